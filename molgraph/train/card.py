"""Describe a model for whoever finds its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from html import escape
from typing import Any, Self

import pandas as pd

from molgraph.base.errors import DamagedModelError, UsageError
from molgraph.base.parameters import check_types
from molgraph.base.version import package_versions

LIBRARIES = ("torch", "rdkit", "numpy", "scikit-learn", "safetensors", "cuik-molmaker-pin")


def library_versions() -> dict[str, str]:
    """Versions of what a prediction depends on."""
    return package_versions(LIBRARIES)


def now() -> str:
    """The date and time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class ModelCard:
    """The endpoint card of a model.

    Args:
        name: the model's short name, such as ``dmpnn``.
        what: what is predicted, in words.
        units: the unit of each target, by name.
        n_train, n_valid, n_test: rows of each part.
        n_limits: labels of each part that are limits, such as >8; empty where there are none.
        split, split_hash: the split's splitter and hash.
        classes: plain rows (target, class, train, valid, test) of how many rows each class has.
        scores: plain rows (target, metric, value, part, ...) of how good it was.
        estimate: where the scores are of a model before this one, in words; empty where they are its own.
        recipe: the whole recipe as plain values.
        created: date in UTC.
        versions: library versions at that time.
        notes: what a person should know.
    """

    name: str = ""
    what: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    n_train: int = 0
    n_valid: int = 0
    n_test: int = 0
    n_limits: Mapping[str, int] = field(default_factory=dict)
    split: str = ""
    split_hash: str = ""
    classes: tuple[Mapping[str, Any], ...] = ()
    scores: tuple[Mapping[str, Any], ...] = ()
    estimate: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    created: str = field(default_factory=now)
    versions: Mapping[str, str] = field(default_factory=library_versions)
    notes: tuple[str, ...] = ()

    @property
    def limits_line(self) -> dict[str, str]:
        """How many labels of each part are limits, as a named line; empty where there are none."""
        counts = ", ".join(f"{n:,} {part}" for part, n in self.n_limits.items())
        return {"limits": f"{counts} labels such as >8"} if any(self.n_limits.values()) else {}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """From JSON; unknown keys of later versions are passed over."""
        if not isinstance(values, dict):
            raise DamagedModelError("the model's card is not a JSON object")
        known = {f.name for f in fields(cls)}
        chosen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items() if k in known}
        try:
            check_types(cls, chosen)
        except UsageError as error:
            raise DamagedModelError(f"the model card's {error.message}") from error
        if not all(_is_score(row) for row in chosen.get("scores", ())):
            raise DamagedModelError("the model card's scores are not rows of plain values")
        return cls(**chosen)


def _is_score(row: Mapping[str, Any]) -> bool:
    """Whether a row of scores holds plain values alone, and numbers where it has any."""
    plain = all(isinstance(value, str | int | float | None) for value in row.values())
    return plain and all(not isinstance(row.get(key), str) for key in ("value", "n"))


def scores_html(scores: Sequence[Mapping[str, Any]]) -> str:
    """A card's scores as a table, without the columns that say nothing; the only part is said above it."""
    if not scores:
        return ""
    frame = pd.DataFrame(list(scores)).reindex(columns=["part", "target", "metric", "value", "n", "note"])
    frame["note"] = frame["note"].fillna("")
    parts = frame["part"].dropna().unique()
    idle = ["part"] * (len(parts) < 2) + ["note"] * (not frame["note"].astype(bool).any())
    table = frame.drop(columns=idle).to_html(index=False, float_format="{:.4g}".format, border=0, na_rep="–")
    return (f"<p>scores on the {escape(str(parts[0]))} part</p>" if len(parts) == 1 else "") + table
