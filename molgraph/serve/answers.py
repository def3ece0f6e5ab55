"""Answer requests in the process that holds the models: predictions, explanations, drawings, nearest molecules."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from molgraph.api.prediction import load
from molgraph.base.errors import MolgraphError, UnsupportedError
from molgraph.base.registry import get
from molgraph.chem.draw import draw_molecule
from molgraph.data.levels import level_of
from molgraph.data.reading.table import SourceRows
from molgraph.data.table import Table
from molgraph.explain.explanation import explain
from molgraph.serve.calls import Call, Reply
from molgraph.serve.measured import Measured
from molgraph.serve.refusal import error_body, status_of
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.rowformat import arrange

EXPLAINERS = ("contributions", "occlusion", "infill")  # the first that can read a model


class Holdings(NamedTuple):
    """What the process has loaded.

    Args:
        models: by name.
        explainers: the explainer of each model, with its settings; empty for none.
        measured: molecules with measured values, or None.
    """

    models: dict[str, Model]
    explainers: dict[str, str]
    measured: Measured | None


_holdings = Holdings({}, {}, None)


def prepare(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Load the models, and the table of measured molecules if there is one; a description of each model.

    Args:
        given: ``models`` (name to path), ``running`` (device, threads, precision), ``measured`` (a source or None),
            ``explain`` (an explainer with its settings, ``auto`` or ``none``).

    Raises:
        MolgraphError: a model or a table that cannot be read, or a model that predicts nothing.
    """
    global _holdings
    models = {name: load(path, **given["running"]) for name, path in given["models"].items()}
    for model in models.values():
        model.check_predicts()
    wanted = [target.name for model in models.values() for target in model.targets]
    measured = None if given["measured"] is None else Measured(given["measured"], wanted)
    explainers = {name: _explainer(model, given["explain"]) for name, model in models.items()}
    _holdings = Holdings(models, explainers, measured)
    return [_described(name, model, explainers[name]) for name, model in models.items()]


def answer(calls: Sequence[Call]) -> list[Reply]:
    """Answer each call; the predictions of one model are computed in one go."""
    replies: dict[int, Reply] = {}
    for name in dict.fromkeys(call.model for call in calls if call.kind == "predict"):
        indices = [i for i, call in enumerate(calls) if call.kind == "predict" and call.model == name]
        plain = [i for i in indices if "columns" not in calls[i].given]
        asked = [calls[i].given for i in plain]
        bodies = _tried(partial(_predict_lists, _holdings.models[name], asked)) if len(plain) > 1 else None
        if isinstance(bodies, list):
            replies |= {i: Reply(200, body) for i, body in zip(plain, bodies, strict=True)}
    return [replies.get(i) or _reply(call) for i, call in enumerate(calls)]


def _reply(call: Call) -> Reply:
    result = _tried(partial(_KINDS[call.kind], call))
    return result if isinstance(result, Reply) else Reply(200, result)


def _tried(work: Callable[[], Any]) -> Any:
    """What the work gives, or a reply that says why it failed."""
    try:
        return work()
    except MolgraphError as error:
        return Reply(status_of(error), error_body(error))
    except Exception:  # a fault of molgraph, which the other requests must not suffer from
        traceback.print_exc(file=sys.stderr)
        hint = "the server's own output has the details; molgraph doctor says what to report"
        return Reply(500, error_body(MolgraphError("this is a fault in molgraph itself", hint=hint)))


def _predict(call: Call) -> bytes:
    model, body = _holdings.models[call.model], call.given
    if "columns" not in body:
        return _predict_lists(model, [body])[0]
    frame = pd.DataFrame(body["columns"], dtype=object)
    table = model.read(frame)
    return b", ".join(_rows(model, table, tuple(map(str, frame.columns))))


def _predict_lists(model: Model, asked: Sequence[dict[str, Any]]) -> list[bytes]:
    """The rows of several lists of SMILES, predicted together."""
    if len(model.columns_read) > 1 or model.feature_names:
        named = ", ".join(f"{entry['column']} ({entry['kind']})" for entry in _reads(model))
        raise UnsupportedError(f"this model reads {named} of each row", hint="give columns, a list for each of them")
    texts = [text for body in asked for text in body["smiles"]]
    table = model.read(texts)
    ids = [id for body in asked for id in _ids(body)]
    rows, out, start = _rows(model, table, (table.entities[0].name,), ids), [], 0
    for body in asked:
        out.append(b", ".join(rows[start : start + len(body["smiles"])]))
        start += len(body["smiles"])
    return out


def _ids(given: dict[str, Any]) -> list[str]:
    """The ids of a request's rows: those given, else their numbers, from 0."""
    start = given.get("start", 0)
    return given.get("ids") or [str(start + i) for i in range(len(given["smiles"]))]


def _rows(model: Model, table: Table, names: tuple[str, ...], ids: Sequence[str] | None = None) -> list[bytes]:
    """Each row as JSON, with the columns of ``molgraph predict``."""
    prediction = model.predict_table(table)
    every = np.arange(len(table))
    output = arrange(SourceRows(table, names, pa.table({})), prediction, every, keep_columns=False)
    columns = {name: _json_values(values) for name, values in output.columns.items()}
    if ids is not None:
        columns["id"] = list(ids)
    return [json.dumps(dict(zip(columns, row, strict=True))).encode() for row in zip(*columns.values(), strict=True)]


def _json_values(values: Any) -> list[Any]:
    """A column as values of JSON: float32 by its shortest digits, None where there is no number."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        return [None if value is None else _json_values(value) for value in values]
    if isinstance(values, np.ndarray):
        return [float(str(value)) if np.isfinite(value) else None for value in values]
    return ["" if value is None else str(value) for value in values]


def _explain(call: Call) -> bytes:
    name = _holdings.explainers[call.model]
    if not name:
        raise UnsupportedError("no explainer reads this model", hint="molgraph models --kind explainer lists them")
    result = explain(_holdings.models[call.model], call.given["smiles"], by=name)
    fields = {"by": result.by, "smiles": result.smiles[0], "reason": result.reasons[0], "svg": result.svgs[0]}
    frame = result.values.drop(columns="molecule")
    values = json.loads(frame.to_json(orient="records", double_precision=6))
    return json.dumps({**fields, "caption": result.captions[0], "notes": result.notes, "values": values}).encode()


def _draw(call: Call) -> bytes:
    return json.dumps({"svgs": [draw_molecule(text) for text in call.given["smiles"]]}).encode()


def _nearest(call: Call) -> bytes:
    if _holdings.measured is None:
        words = "this server has no measured molecules"
        raise UnsupportedError(words, hint="start it with a table of them: molgraph serve MODEL --measured assay.csv")
    return json.dumps(_holdings.measured.nearest(call.given["smiles"], call.given["k"])).encode()


_KINDS: dict[str, Callable[[Call], bytes]] = {
    "predict": _predict,
    "explain": _explain,
    "draw": _draw,
    "nearest": _nearest,
}


def _explainer(model: Model, asked: str) -> str:
    """The explainer of a model: the one asked for, or the first that can read it; empty for none."""
    if asked not in ("auto", "none"):
        explain(model, "C", by=asked)  # raises now, not at the first request
        return asked
    if asked == "none" or [item["kind"] for item in _reads(model)] != ["molecule"] or level_of(model.targets) != "row":
        return ""
    encoder = model.method.ready().network.encoder if isinstance(model.method, GraphMethod) else None
    for name in EXPLAINERS:
        cls = get("explainer", name)
        if cls().can_read(model if cls.whole_model else encoder):
            return name
    return ""


def _described(name: str, model: Model, explainer: str) -> dict[str, Any]:
    targets = [
        {
            "name": target.name,
            "kind": target.kind,
            "level": target.level,
            "unit": model.card.units.get(target.name, ""),
            "columns": [*target.columns],
        }
        for target in model.targets
    ]
    covered = (getattr(part, "coverage", None) for part in model.method.with_members)  # of what a wrapper wraps, too
    details = {"coverage": next(filter(None, covered), None), "explainer": explainer, "summary": model.summary()}
    return {"name": name, "targets": targets, "reads": _reads(model), **details}


def _reads(model: Model) -> list[dict[str, str]]:
    """The columns that a model reads of each row, and of what kind each is."""
    entities = [{"kind": kind, "column": column} for kind, column in model.columns_read]
    return [*entities, *({"kind": "number", "column": column} for column in model.feature_names)]
