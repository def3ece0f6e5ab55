"""Read vectors of molecules together with a label of each row, its scaffold or a target, for studies of vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from molgraph.base.errors import ConflictError, LabelError, MissingOptionError
from molgraph.chem.scaffold import scaffolds
from molgraph.data.read import read_table
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.embed.vectors import holds_vectors, read_vectors
from molgraph.train.model import Model

About = Literal["scaffold", "target"]
OTHERS = "others"  # the class of all scaffolds but the most frequent ones


class Labelled(NamedTuple):
    """Vectors and labels of the rows that have both.

    Args:
        x: float64 [n, d].
        y: float64 [n]: a number, or the number of a class.
        classes: names of the classes; empty where y is a number.
        about: name of the label.
        left_out: rows that lack one of both.
    """

    x: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    about: str
    left_out: int

    @property
    def entropy(self) -> float:
        """Entropy of the classes in bits; infinite for numbers."""
        shares = np.bincount(self.y.astype(int)) / len(self.y) if self.classes else np.zeros(0)
        return float(-(shares[shares > 0] * np.log2(shares[shares > 0])).sum()) if self.classes else float("inf")


def labelled_vectors(
    data: Any, model: Model | None, columns: Mapping[str, Any], about: About, most: int = 12
) -> Labelled:
    """The vectors of a file, or those that a model's encoder makes of molecules, with their labels.

    Args:
        data: what ``molgraph embed`` writes, or molecules.
        model: the encoder, for molecules.
        columns: which columns of ``data`` are which.
        about: ``scaffold``: the Murcko scaffold, of which the most frequent are classes and the others one class;
            ``target``: the first target.
        most: scaffolds that are classes.

    Raises:
        MissingOptionError: molecules without a model. ConflictError: vectors with one.
        LabelError: no target, all rows of one label, or fewer than ten rows.
    """
    if holds_vectors(data):
        if model is not None:
            raise ConflictError("the data holds vectors already, and a model would make others", hint="leave -m out")
        rows = read_vectors(data)
        x, ok, texts = rows.x, rows.ok, rows.texts
    elif model is None:
        words = "this study is about vectors, and the table holds molecules"
        raise MissingOptionError(words, hint="name their encoder (-m encoder.mgm), or give what molgraph embed writes")
    else:
        table = read_table(data, **columns)
        texts = np.array([text if isinstance(text, str) else "" for text in table.smiles], dtype=object)
        prints = MoleculeEncoder(model).vectors(texts.tolist(), 1)
        x, ok = prints.x, prints.ok & table.ok
    if about == "scaffold":
        y, fine, classes = _scaffolds(texts, ok, most)
    else:
        y, fine, classes, about = _target(data, columns)  # type: ignore[assignment]
    rows_ok = np.flatnonzero(ok & fine)
    if len(rows_ok) < 10 or len(np.unique(y[rows_ok])) < 2:
        words = f"{len(rows_ok)} rows have a vector and a label, of {len(np.unique(y[rows_ok]))} different ones"
        raise LabelError(words, hint="give more rows, or about=target with -t COLUMN")
    return Labelled(x[rows_ok].astype(np.float64), y[rows_ok], classes, about, len(x) - len(rows_ok))


def _scaffolds(texts: np.ndarray, ok: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    result = scaffolds([str(text) for text in texts])
    fine = np.array([not reason for reason in result.reasons]) & ok
    counts = Counter(str(scaffold) for scaffold, good in zip(result.values, fine, strict=True) if good)
    first = [name for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n > 1][:most]
    place = {name: i for i, name in enumerate(first)}
    y = np.array([place.get(str(scaffold), len(first)) for scaffold in result.values], dtype=np.float64)
    return y, fine, (*(name or "no ring" for name in first), OTHERS)


def _target(data: Any, columns: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], str]:
    table = read_table(data, **columns)
    if table.y is None or not table.row_targets:
        raise LabelError("the table has no target of its rows", hint="name it: -t COLUMN")
    target = table.row_targets[0]
    y = table.y[:, [column.name for column in table.targets].index(target.name)].astype(np.float64)
    names = {"binary": ("0", "1"), "multiclass": tuple(target.classes or ())}.get(target.kind, ())
    return y, np.isfinite(y), names, target.name
