"""List registered names, and the parameters of each with their meanings."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from molgraph.base import registry
from molgraph.base.registry import Entry

MODEL_KINDS = ("encoder", "method")


class Parameter(NamedTuple):
    """A hyper-parameter, as the constructor's signature and docstring have it."""

    name: str
    default: Any
    meaning: str


def names(kind: str = "model") -> list[str]:
    """Names of one kind, sorted; ``model`` means encoders and methods, whatever ``train`` takes.

    Example:
        >>> "dmpnn" in names("model"), "random_forest" in names("model")
        (True, True)
    """
    kinds = MODEL_KINDS if kind == "model" else (kind,)
    return sorted({name for k in kinds for name in registry.names(k)})


def model_entries() -> list[Entry]:
    """Everything that ``train`` takes, graph models first; an encoder stands for the method of its name."""
    found: dict[str, Entry] = {}
    for kind in MODEL_KINDS:
        for name in registry.names(kind):
            found.setdefault(name, registry.entry(kind, name))
    return list(found.values())


def parameters(value: Any) -> list[Parameter]:
    """The keyword arguments with a default of a class or function, explained where its docstring explains them.

    Example:
        >>> def example(n_bits=2048): "Make bits.\\n\\nArgs:\\n    n_bits: length of the print."
        >>> parameters(example)
        [Parameter(name='n_bits', default=2048, meaning='length of the print.')]
    """
    meanings = _meanings(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        meanings = _meanings(inspect.getdoc(value.__init__) or "") | meanings
    found = inspect.signature(value).parameters.values()
    return [Parameter(p.name, p.default, meanings.get(p.name, "")) for p in found if p.default is not p.empty]


def _meanings(docstring: str) -> dict[str, str]:
    """Names of a Google-style ``Args:`` section, with what they say."""
    _, _, section = docstring.partition("Args:\n")
    found: dict[str, str] = {}
    shared: list[str] = []
    indent = len(section) - len(section.lstrip())
    for line in section.splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth < indent:
            break
        name, colon, words = line.strip().partition(":")
        if depth == indent and colon and all(part.strip().isidentifier() for part in name.split(",")):
            shared = [part.strip() for part in name.split(",")]
            found.update(dict.fromkeys(shared, words.strip()))
        else:
            found.update({key: f"{found[key]} {line.strip()}".strip() for key in shared})
    return {name: words.replace("``", "") for name, words in found.items()}
