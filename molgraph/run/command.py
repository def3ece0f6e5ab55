"""Write a training configuration as a ``molgraph train`` command line."""

from __future__ import annotations

from typing import Any

from molgraph.base.recipe_keys import KEYS, KEYWORDS
from molgraph.base.run_config import RunConfig


def command_words(config: RunConfig, verb: str = "train", data: str = "DATA") -> list[str]:
    """The words of a command: what a configuration sets, each option once; ``data`` stands where it names no file.

    Example:
        >>> config = RunConfig().override("path=a.csv", "targets=y,z", "name=knn", "params.k=3", "log=true")
        >>> " ".join(command_words(config))
        'molgraph train a.csv --target y --target z --log --model knn -s params.k=3'
    """
    words = ["molgraph", verb, config.data.path or data]
    for name, keyword in KEYWORDS.items():
        (section, key), *_ = KEYS[name]
        part = getattr(config, section)
        if key not in part.model_fields_set or (value := getattr(part, key)) is None:
            continue
        flag, *off = (keyword.option.flags or (f"--{name.replace('_', '-')}",))[0].split("/")
        if isinstance(value, bool):
            words += [flag] if value else off
        elif name == "fractions":
            words += [flag, ",".join(map(str, value))]
        elif isinstance(value, dict):
            words += ["-s", f"{key}={inline(value)}"]
        else:
            for item in value if isinstance(value, tuple) else (value,):
                words += [flag, str(item)]
    for name, value in config.model.params.items():
        words += ["-s", f"params.{name}={inline(value)}"]
    return words


def inline(value: Any) -> str:
    """A value as ``--set`` reads it.

    Example:
        >>> inline(True), inline("morgan"), inline({"a": 1, "b": "x"}), inline([1, 2])
        ('true', 'morgan', '{a = 1, b = "x"}', '[1, 2]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_quoted(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_quoted(item) for item in value) + "]"
    return repr(value)


def _quoted(value: Any) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else inline(value)
