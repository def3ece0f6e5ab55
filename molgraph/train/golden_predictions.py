"""Record predictions on public molecules, and compare them on another machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.base.contracts import Generator, Method, Prediction, PredictsGraphs, Trainable
from molgraph.base.errors import DamagedModelError, ModelFileError
from molgraph.base.seeds import generator
from molgraph.data.table import Table, make_table
from molgraph.train.card import LIBRARIES, library_versions
from molgraph.train.inputs import example_table

TOLERANCE = 1e-5  # relative to the larger of the value and 1
SAMPLES_TOLERANCE = 0.1  # on another machine, a rounding may turn a draw, and the rest of that sample with it

# Common drugs, solvents and small edge cases that everybody knows; never a user's own molecules.
MOLECULES = (
    "C", "O", "CCO", "c1ccccc1", "CC(=O)O", "CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O", "CC(=O)Nc1ccc(O)cc1", "OC[C@H]1O[C@@H](O)[C@H](O)[C@@H](O)[C@@H]1O",
    "N[C@@H](C)C(=O)O", "C[N+](C)(C)CCO", "CS(C)=O", "FC(F)(F)c1ccccc1", "Clc1ccc(Br)cc1I", "O=[N+]([O-])c1ccccc1",
    "C1CC2CCC1CC2", "C#CCN", "F/C=C/F", "CCCCCCCCCCCCCCCC(=O)O", "[Na+].CC(=O)[O-]", "[2H]C([2H])([2H])Cl",
    "C[Si](C)(C)C", "OB(O)c1ccccc1", "not a molecule",
)  # fmt: skip


def vector_table(method: Trainable, feature_names: tuple[str, ...], n: int = len(MOLECULES)) -> Table:
    """The first molecules, with numbers drawn from a fixed seed in the descriptor columns.

    A method that reads other entities gets public examples of those.
    """
    drawn = generator(0, "vectors").normal(size=(len(MOLECULES), len(feature_names)))[:n]
    table = make_table(list(MOLECULES[:n]), features=drawn if feature_names else None, feature_names=feature_names)
    inputs = method.graph_inputs() if isinstance(method, PredictsGraphs) else ()
    if [input_.kind for input_ in inputs] in ([], ["molecule"]):
        return table
    molecules = table.entities[0].values
    others = example_table(inputs, (), n).entities
    entities = tuple(replace(e, values=molecules) if e.kind == "molecule" else e for e in others)
    return replace(table, entities=entities)


def make_vectors(method: Trainable, table: Table) -> dict[str, Any]:
    """What the method answers or the generator draws now, and with which libraries, as JSON values."""
    if isinstance(method, Generator):
        return {"samples": method.sample(len(MOLECULES)), "versions": library_versions()}
    assert isinstance(method, Method)
    prediction = method.predict(table)
    value = [[None if np.isnan(v) else float(v) for v in row] for row in _answers(prediction)]
    status = [str(s) for s in prediction.status]
    return {"molecules": list(MOLECULES), "value": value, "status": status, "versions": library_versions()}


def compare_vectors(method: Trainable, table: Table, vectors: Any) -> tuple[int, float]:
    """Ask again; raises ``ModelFileError`` for another answer than when the model was saved.

    Returns:
        The number of molecules, and the largest difference relative to the larger of the value and 1; of a generator
        the number of samples, and the share that differs.
    """
    generates = isinstance(method, Generator)
    try:
        if not generates and list(vectors["molecules"]) != list(MOLECULES):
            raise DamagedModelError("the model file's test vectors are not on the public molecules")
        rows = list(vectors["samples" if generates else "value"])
        if len(rows) != len(MOLECULES):
            raise ValueError(f"{len(rows)} rows")
        expected = rows if generates else [np.array([np.nan if v is None else float(v) for v in row]) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        words = f"the model file's test {'samples' if generates else 'vectors'} cannot be read"
        raise DamagedModelError(words) from error
    reason = _why(vectors.get("versions"))
    if isinstance(method, Generator):
        odd = [pair for pair in zip(method.sample(len(rows)), rows, strict=True) if pair[0] != pair[1]]
        if len(odd) > SAMPLES_TOLERANCE * len(rows):
            drawn, before = (str(text)[:60] for text in odd[0])
            raise ModelFileError(f"the generator draws {drawn!r}, and {before!r} when it was saved", hint=reason)
        return len(rows), len(odd) / len(rows)
    assert isinstance(method, Method)
    answers = _answers(method.predict(table))
    if [len(row) for row in expected] != [len(row) for row in answers]:
        raise DamagedModelError("the test vectors have other numbers of values than the predictions")
    if not any(np.isfinite(row).any() for row in expected):
        words = "the model file's test vectors hold no value, so they tell nothing"
        raise ModelFileError(words, hint="save it again with this version of molgraph")
    largest = 0.0
    for text, then, now in zip(MOLECULES, expected, answers, strict=True):
        gap = np.abs(now - then) / np.maximum(np.abs(then), 1.0)
        for k in np.flatnonzero((np.isnan(now) != np.isnan(then)) | (gap > TOLERANCE)):
            words = f"the model answers {now[k]:.6g} for {text}, and {then[k]:.6g} when it was saved"
            raise ModelFileError(words, hint=reason)
        largest = max(largest, float(np.nanmax(gap, initial=0.0)))
    return len(MOLECULES), largest


def _answers(prediction: Prediction) -> list[np.ndarray]:
    """The values of each row, those of its atoms or bonds behind the others."""
    parts = [[row] for row in prediction.value]
    for name in sorted(prediction.packed):
        for part, values in zip(parts, prediction.packed[name].lists(), strict=True):
            part.append(values)
    return [np.concatenate(part) for part in parts]


def _why(saved: Any) -> str:
    """What may lie behind other answers: the libraries whose versions are not those of the day it was saved."""
    if not isinstance(saved, dict) or not saved:  # a file of a version that did not write them
        return "library versions may differ; the card lists those that it was made with"
    here = library_versions()
    pairs = [
        (name, str(saved.get(name, "none"))[:20], here.get(name, "none")) for name in dict.fromkeys([*here, *LIBRARIES])
    ]
    other = [f"{name} {then} (here {now})" for name, then, now in pairs if then != now]
    if other:
        return f"library versions may be why: it was saved with {', '.join(other)}"
    return "library versions are those that it was saved with, so the file was altered or this machine differs"
