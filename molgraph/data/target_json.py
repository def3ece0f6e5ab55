"""Read from the JSON values of a model file its targets, and why some of them were not learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from molgraph.base.contracts import Target
from molgraph.base.errors import DamagedModelError, ModelFileError
from molgraph.base.table import Kind, LevelName

Unlearned = Mapping[str, str]  # target's name -> why


def targets_from_json(values: Any) -> tuple[Target, ...]:
    """Every target of a model, at least one.

    Raises:
        ModelFileError: a kind or level that molgraph does not have, or classes or bounds that do not fit the kind.
        KeyError, TypeError, ValueError: a part is missing or of another type.

    Example:
        >>> targets_from_json([{"name": "y", "kind": "multiclass", "classes": ["a", "b"]}])[0].columns
        ('y:a', 'y:b')
    """
    targets = tuple(map(target_from_json, values))
    if not targets:
        raise DamagedModelError("the model has no targets")
    return targets


def target_from_json(value: Mapping[str, Any]) -> Target:
    """One target from the plain values that ``dataclasses.asdict`` gave, through JSON."""
    kind, level, bounds = value["kind"], value.get("level", "row"), value.get("bounds")
    if kind not in get_args(Kind) or level not in get_args(LevelName):
        words = f"kind {str(kind)[:40]!r} or level {str(level)[:40]!r}"
        raise ModelFileError(f"the model has a target of unknown {words}")
    low_high = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    target = Target(str(value["name"]), kind, level, tuple(map(str, value["classes"])), low_high)
    if kind == "multiclass" and not target.classes:
        raise DamagedModelError(f"the model's target {target.name[:40]!r} has no classes")
    if kind == "bounded" and (low_high is None or not low_high[0] < low_high[1]):
        raise DamagedModelError(f"the model's target {target.name[:40]!r} has bounds that cannot be")
    return target


def notes_of(unlearned: Unlearned) -> tuple[str, ...]:
    """A sentence for each target.

    Example:
        >>> notes_of({"toxic": "only class 0 among 31 training labels"})
        ("target 'toxic' is not learned: only class 0 among 31 training labels; its predictions are empty",)
    """
    return tuple(f"target {name!r} is not learned: {why}; its predictions are empty" for name, why in unlearned.items())


def restore_unlearned(meta: Mapping[str, Any], targets: tuple[Target, ...]) -> dict[str, str]:
    """What a model file says of its targets; a file of a version that refused such targets says nothing.

    Raises:
        ValueError: it names other targets than the model's, or all of them.
    """
    data = meta.get("unlearned", {})
    if not isinstance(data, Mapping):
        raise ValueError("what was not learned is no mapping")
    if not all(isinstance(text, str) and text for text in data.values()) or not set(data) <= {t.name for t in targets}:
        raise ValueError("the targets that were not learned are not the model's own")
    if len(data) == len(targets):
        raise ValueError("none of the targets was learned")
    return dict(data)
