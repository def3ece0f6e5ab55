"""Read, check and write the configuration of a run."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from molgraph.base.errors import BadValueError, UnknownNameError, close_names, did_you_mean, nearest
from molgraph.base.paths import write_whole
from molgraph.base.recipe_keys import FORMER, SECTIONS, DataSection, ModelSection, TrainingSection
from molgraph.base.registry import get, names
from molgraph.base.split_keys import SplitSection
from molgraph.base.toml_config import Section, parse_toml, read_toml, recipe_error, write_toml


class RunConfig(Section):
    """A whole run, as plain values.

    A section's ``model_fields_set`` names the keys that were given; the others have their defaults.

    Example:
        >>> recipe = RunConfig().override("epochs=30", "params.depth=4")
        >>> recipe.training.epochs, recipe.model.params
        (30, {'depth': 4})
    """

    data: DataSection = DataSection()
    split: SplitSection = SplitSection()
    model: ModelSection = ModelSection()
    training: TrainingSection = TrainingSection()

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a recipe file; what it does not say keeps its default."""
        return cls.from_dict(read_toml(path, "epochs = 30"))

    def to_toml(self, path: str | Path | None = None) -> str:
        """The recipe as TOML text, every key with its value (those without one left out); written to ``path``.

        Example:
            >>> print(RunConfig().to_toml().split("[training]")[0].split("[split]")[1].strip())
            splitter = "scaffold/balanced"
            fractions = [0.8, 0.1, 0.1]
            final = false
            seed = 0
            <BLANKLINE>
            [model]
            name = "dmpnn"
        """
        text = write_toml(self.model_dump(mode="json"))
        if path is not None:
            write_whole(path, text)
        return text

    def to_json(self) -> str:
        """The recipe as JSON text."""
        return self.model_dump_json(indent=2)

    def with_values(self, section: str, **values: Any) -> Self:
        """The configuration with some keys of a section set to values of the right types.

        Example:
            >>> RunConfig().with_values("training", epochs=3).training.epochs
            3
        """
        return self.model_copy(update={section: getattr(self, section).model_copy(update=values)})

    def override(self, *assignments: str) -> Self:
        """A recipe with some keys set, as ``--set`` does.

        Args:
            assignments: ``section.key=value``; ``key=value`` where one section alone has the key;
                ``params.key=value`` for the model's own parameters. Values as in TOML; text needs no quotes,
                lists may be written ``a,b``.

        Raises:
            UsageError: no such key, a key of two sections, or a value of the wrong type.
        """
        values = self.model_dump(exclude_unset=True)
        for assignment in assignments:
            key, equals, text = (part.strip() for part in assignment.partition("="))
            if not equals or not key:
                raise BadValueError(f"{assignment!r} is not of the form key=value", hint="example: epochs=30")
            section, name, param = _find(key, values.get("model", {}).get("name", ModelSection().name))
            fields = values.setdefault(section, {})
            fields[name] = fields.get(name, {}) | {param: _literal(text)} if param else _fitting(section, name, text)
        return type(self).from_dict(values)


def _find(key: str, model: str) -> tuple[str, str, str]:
    """Section, field and (for a model's parameter) parameter that a key means; ``model`` is the model, for hints."""
    known = {f"{section}.{name}": name for section, item in SECTIONS.items() for name in item.model_fields}
    key = FORMER.get(key, key)
    path = key.removeprefix("model.")
    if path.startswith("params.") and path != "params.":
        return "model", "params", path.removeprefix("params.")
    matches = [item for item, name in known.items() if key in (item, name)]
    if len(matches) == 1:
        section, name = matches[0].split(".")
        return section, name, ""
    if matches:
        hint = f"write one of them, as {matches[-1]}=..."
        raise UnknownNameError(f"{key!r} could mean {' or '.join(matches)}", hint=hint)
    parameters = _parameters(model)
    if key in parameters:
        raise UnknownNameError(f"{key!r} is a parameter of {model}", hint=f"write it params.{key}=...")
    candidates = sorted({*known} if "." in key else {*known.values()})
    close = [f"params.{name}" for name in close_names(key, parameters)] if not close_names(key, candidates) else []
    hint = did_you_mean(close) if close else nearest(key, candidates)
    raise UnknownNameError(f"the recipe has no key {key!r}", hint=f"{hint}; a model's own parameter is params.NAME")


def _parameters(model: str) -> list[str]:
    """The parameters of a registered method or encoder, with those of its training; none of an unknown model."""
    kinds = [("method", model)] if model in names("method") else [("encoder", model), ("method", "graph")]
    signatures = [signature(get(kind, name).__init__).parameters for kind, name in kinds if name in names(kind)]
    return [name for parameters in signatures for name in parameters if name not in ("self", "spec")]


def _fitting(section: str, name: str, text: str) -> Any:
    """The first reading of ``text`` that the field accepts: as nothing, as a list, as it stands, as TOML."""
    model = SECTIONS[section]
    takes_list = "tuple" in str(model.model_fields[name].annotation)
    main: Any = [part.strip() for part in text.split(",")] if takes_list else text
    readings = [_literal(text), main] if takes_list or text[:1] in ("'", '"') else [main, _literal(text)]
    if text.lower() in ("none", "null", ""):
        readings.insert(0, None)
    wrong: Any = None
    for value in readings:
        try:
            return getattr(model.model_validate({name: value}), name)
        except ValidationError as error:
            wrong = error if value is main or wrong is None else wrong
    raise recipe_error(wrong, RunConfig, section)


def _literal(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
