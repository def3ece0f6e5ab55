"""List registered names, and the parameters of each with their meanings."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

from molgraph.base import registry
from molgraph.base.registry import Entry

MODEL_KINDS = ("encoder", "method")
DATA = {"molecule": "dataset:chembl2321810", "geometry": "dataset:gdb7_3d", "sequence": "dataset:davis"}
#: the command that shows a member of a kind working, where the entry names no other
COMMANDS = {
    "encoder": "molgraph train {data} -m {name}",
    "method": "molgraph train {data} -m {name}",
    "study": "molgraph study {name} {data} -o page.html",
    "compressor": "molgraph compress model.mgm {data} --how {name} -o small.mgm",
    "explainer": "molgraph explain model.mgm CCO --by {name} -o page.html",
    "wrapper": "molgraph train {data} -m '{name}(random_forest)'",
    "readout": "molgraph train {data} -m dmpnn -s params.readout={name}",
    "norm": "molgraph train {data} -m gin -s params.norm={name}",
    "sequence": "molgraph train {data} -m 'tokens(sequence={name})'",
    "head": "molgraph train {data} -m dmpnn -s params.head={name}",
    "bottleneck": "molgraph train-generator {data} -m 'chemvae(posterior={name})' -o generator.mgm",
    "joiner": "molgraph train dataset:davis -m dmpnn+deepdta -s params.joiner={name} --epochs 2",
    "generator": "molgraph train-generator {data} -m {name} -o generator.mgm",
    "oracle": "molgraph optimise --oracle {name} -o found.csv",
    "transform": "molgraph optimise --search graph-ga --oracle 'logp={name}(2,4)' -o found.csv",
    "search": "molgraph optimise generator.mgm --oracle qed --search {name} -o found.csv",
    "objective": "molgraph pretrain {data} --objective {name} -o encoder.mgm",
    "callback": "molgraph train {data} -m dmpnn --callback {name}",
    "view": "molgraph train {data} -m dmpnn --views {name}",
    "optimizer": "molgraph train {data} -m dmpnn --optimizer {name}",
    "schedule": "molgraph train {data} -m dmpnn --schedule {name}",
}


#: headings of models, each by the first of these tags that it has
GROUPS = {
    "graph": "Graph networks",
    "3d": "3D networks",
    "sequence": "Sequence networks",
    "fingerprints": "Fingerprints",
    "kernel": "Graph kernels",
    "baseline": "Baseline",
    "peer": "Peer packages",
}


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
    """Everything that ``train`` takes, group by group; an encoder stands for the method of its name."""
    entries: dict[str, Entry] = {}
    for kind in MODEL_KINDS:
        for name in registry.names(kind):
            entries.setdefault(name, registry.entry(kind, name))
    order = [*GROUPS.values(), group_of(registry.entry("method", "ensemble"))]
    return sorted(entries.values(), key=lambda each: order.index(group_of(each)))


def group_of(entry: Entry) -> str:
    """The heading of the group that a model belongs to.

    Example:
        >>> group_of(registry.entry("encoder", "gin")), group_of(registry.entry("method", "ensemble"))
        ('Graph networks', 'Other models')
    """
    tags = tags_of(entry)
    return next((heading for tag, heading in GROUPS.items() if tag in tags), "Other models")


def command_of(entry: Entry) -> str:
    """The command that shows an entry working.

    Example:
        >>> command_of(registry.entry("readout", "set2set"))
        'molgraph train dataset:chembl2321810 -m dmpnn -s params.readout=set2set'
    """
    data = DATA.get(tags_of(entry)[0] if entry.kind == "encoder" else "", DATA["molecule"])
    return entry.command or COMMANDS.get(entry.kind, "molgraph models {name}").format(data=data, name=entry.name)


def tags_of(entry: Entry) -> tuple[str, ...]:
    """An entry's tags; an encoder's are the kinds of entity that it reads too."""
    return (*(entry.value.reads if entry.kind == "encoder" else ()), *entry.tags)


def matches(entry: Entry, words: str) -> bool:
    """Whether each of some words stands in an entry's name, summary, paper, system or tags.

    Example:
        >>> [matches(registry.entry("encoder", "schnet"), words) for words in ("geometry", "Schuett distances", "bond")]
        [True, True, False]
    """
    text = " ".join(
        (entry.name, entry.summary, entry.paper, *(card.id for card in entry.systems), *tags_of(entry))
    ).lower()
    return all(word in text for word in words.lower().split())


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
    arguments = inspect.signature(value).parameters.values()
    return [Parameter(p.name, p.default, meanings.get(p.name, "")) for p in arguments if p.default is not p.empty]


def advice(value: Any) -> list[str]:
    """When to use a class, and its known limits, as its docstring has them; empty where it does not say.

    Example:
        >>> def example(): "Sums.\\n\\n    Use it first. Known limits: it is\\n    slow."
        >>> advice(example)
        ['Use it first.', 'Known limits: it is slow.']
    """
    text = (inspect.getdoc(value) or "").replace("``", "")
    passages = re.findall(r"\bUse it\b.*?(?=\sKnown limits:|\n\n|\Z)|\bKnown limits:.*?(?=\n\n|\Z)", text, re.DOTALL)
    return [" ".join(passage.split()) for passage in passages]


def _meanings(docstring: str) -> dict[str, str]:
    """Names of a Google-style ``Args:`` section, with what they say."""
    _, _, section = docstring.partition("Args:\n")
    meanings: dict[str, str] = {}
    shared: list[str] = []
    indent = len(section) - len(section.lstrip())
    for line in section.splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth < indent:
            break
        name, colon, words = line.strip().partition(":")
        if depth == indent and colon and all(part.strip().isidentifier() for part in name.split(",")):
            shared = [part.strip() for part in name.split(",")]
            meanings.update(dict.fromkeys(shared, words.strip()))
        else:
            meanings.update({key: f"{meanings[key]} {line.strip()}".strip() for key in shared})
    return {name: words.replace("``", "") for name, words in meanings.items()}
