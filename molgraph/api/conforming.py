"""Predict a conformer of each molecule of a table by a model that was trained on distances."""

from __future__ import annotations

import os
from typing import Any

from molgraph.api.prediction import load
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.train.coordinates import Conformations, place_molecules
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model


def conformers(
    model: Model | str | os.PathLike[str],
    data: Any,
    *,
    restarts: int = 6,
    seed: int = 0,
    threads: int | None = None,
    **columns: Any,
) -> Conformations:
    """Place the atoms of molecules in space, by the distances that a pretrained encoder's distogram predicts.

    Args:
        model: a model pretrained by ``objective="distogram"``, or trained with the callback of that name; or its file.
        data: molecules in any form that ``Model.predict`` takes.
        restarts: from how many starts the distances' likelihood is maximised, for each molecule.
        seed: of the starts.
        threads: CPU threads; all if not given.
        columns: ``smiles`` and ``id``, as in ``read_table``.

    Returns:
        A row for each row of the data; ``save("out.sdf")`` writes them.

    Raises:
        UnsupportedError: the model knows no distances.

    Example:
        >>> import molgraph
        >>> options = {"objective": "distogram", "epochs": 1, "fractions": (0.8, 0.2, 0.0)}
        >>> model = molgraph.pretrain(["CCO", "CCN", "CCC", "CCCl", "CCBr", "CCF", "CCI", "CC"] * 3, **options)
        >>> found = molgraph.conformers(model, ["CCO", "not a molecule"])
        >>> found.positions[0].shape, found.status.tolist()
        ((3, 3), ['ok', 'unreadable'])
    """
    loaded = model if isinstance(model, Model) else load(model)
    if restarts < 1:
        raise BadValueError(f"restarts is {restarts}", hint="give at least 1")
    if not isinstance(loaded.method, GraphMethod):
        words = f"a {loaded.kind} knows nothing of distances"
        hint = "pretrain an encoder: molgraph pretrain LIBRARY -m dmpnn --objective distogram"
        raise UnsupportedError(words, hint=hint)
    how: dict[str, Any] = {"restarts": restarts, "seed": seed, "threads": threads}
    table = loaded.read(data, **columns)
    return place_molecules(loaded.method.ready(), table, standardiser=loaded.standardiser, **how)
