"""A target in, the JSON values that a classical method's file keeps of it out, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import Target


def target_meta(target: Target) -> dict[str, Any]:
    """A row-level target as JSON values."""
    return {"name": target.name, "kind": target.kind, "classes": list(target.classes), "bounds": target.bounds}


def target_from_meta(meta: Mapping[str, Any]) -> Target:
    """The target that ``target_meta`` described.

    Example:
        >>> target_from_meta(target_meta(Target("y", "multiclass", classes=("a", "b")))).columns
        ('y:a', 'y:b')
    """
    bounds = meta["bounds"]
    low_high = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    if meta["kind"] not in ("regression", "binary", "multiclass", "bounded"):
        raise ValueError(f"{meta['kind']!r} is no kind of target")
    return Target(str(meta["name"]), meta["kind"], classes=tuple(map(str, meta["classes"])), bounds=low_high)
