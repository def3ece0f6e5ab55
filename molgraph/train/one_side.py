"""Derive the one-sided control of a model of pairs: the same settings, reading the ligand or the protein alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import Trainable
from molgraph.base.parts import split_model
from molgraph.data.sides import Side, sides_of
from molgraph.data.table import Table
from molgraph.train.inputs import choose_columns, own_params
from molgraph.train.make_method import make_method, method_class
from molgraph.train.method import GraphMethod
from molgraph.train.modelfile import load_start


def method_sides(method: Trainable, table: Table) -> tuple[Side, ...]:
    """The sides of the columns that a graph model reads in a table of pairs or complexes; none of another model."""
    parts = method.innermost
    first = parts[0] if parts else None
    if not isinstance(first, GraphMethod) or table.packed:
        return ()
    return sides_of(table, first.inputs)


def one_side(name: str, params: Mapping[str, Any], side: Side, table: Table) -> tuple[str, dict[str, Any]]:
    """The name and the hyper-parameters of a model that reads one side of a table's rows, and is the same otherwise.

    The encoders of the side's columns stay, with their settings; the others are left out, and so is the joiner where
    one column is left.

    Args:
        name: of a graph method by its encoders, or of a wrapper of one.
        params: its hyper-parameters; of a wrapper ``method`` and ``params`` are those of what it wraps.
        side: what stays.
        table: the rows of the pairs.

    Example:
        >>> from molgraph.data.read import read_table
        >>> pairs = read_table({"drug": ["CCO"], "target": ["MKT"]}, smiles="drug", sequence="target")
        >>> one_side("dmpnn+deepdta", {"dmpnn.depth": 4, "epochs": 9}, sides_of(pairs)[0], pairs)
        ('dmpnn', {'epochs': 9, 'depth': 4, 'joiner': 'concat', 'inputs': None})
    """
    name, params = split_model(name, dict(params))
    if method_class(name) is not GraphMethod:
        wrapped = method_class(name)(**params).get_params()
        inner, settings = one_side(wrapped["method"], wrapped["params"] or {}, side, table)
        return name, {**params, "method": inner, "params": settings}
    params |= params.pop("params", None) or {}
    chosen = {entity.name: encoder for entity, encoder in choose_columns(table, name, params.get("inputs"))}
    kept = [*dict.fromkeys(chosen[column] for column in side.columns)]
    usual, joined = {*GraphMethod.param_names()}, len(side.columns) > 1
    out = {key: value for key, value in params.items() if key in usual or key.startswith("objective.")}
    for encoder in kept:
        settings = own_params({k: v for k, v in params.items() if k not in out}, encoder, len({*chosen.values()}))
        out |= {f"{encoder}.{key}" if len(kept) > 1 else key: value for key, value in settings.items()}
    if joined:
        out |= {key: value for key, value in params.items() if key.startswith("joiner.")}
    else:
        out["joiner"] = "concat"
    if "molecule" not in {table.column(column).kind for column in side.columns}:
        out["descriptors"] = "none"
    if (init := out.get("init")) is not None and load_start(init).method.get_params().get("encoder") not in kept:
        out["init"] = None
    return "+".join(kept), {**out, "inputs": None}


def method_alone(method: Trainable, side: Side, table: Table) -> Any:
    """A fresh method like a graph method or a wrapper of one, that reads one side alone."""
    params = method.get_params()
    name = params.pop("encoder") if isinstance(method, GraphMethod) else method.name
    name, params = one_side(name, params, side, table)
    return make_method(name, **params)
