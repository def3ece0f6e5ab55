"""Add the routes that answer at once: predict, explain, draw, and the nearest measured molecules."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any

from molgraph.serve import schemas as form
from molgraph.serve.calls import Call, Reply
from molgraph.serve.engine import PIECE, too_slow
from molgraph.serve.refusal import RefusedError
from molgraph.serve.responses import BOUNDS, JSON, said
from molgraph.serve.service import Service


def add_molecule_routes(app: Any, service: Service) -> None:
    """Add them to a FastAPI application."""
    from fastapi import Path, Response

    limits, engine = service.limits, service.engine
    ModelName = Annotated[str, Path(description="As /models lists it.")]

    async def asked(call: Call) -> Reply:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(engine.submit(call)), limits.seconds)
        except TimeoutError:
            raise too_slow(limits.seconds) from None

    async def answered(call: Call) -> Response:
        reply = await asked(call)
        return Response(reply.body, reply.status, media_type=JSON)

    @app.post("/models/{model}/predict", responses=said(404, 504, *BOUNDS, answer=form.PredictAnswer))
    async def predict(model: ModelName, body: form.PredictRequest) -> Response:
        """Predict molecules: a row for each, in order, with a value or a reason."""
        name = service.known(model)
        if body.rows > limits.rows:
            words = f"{body.rows:,} rows, {limits.rows:,} at most are answered at once"
            raise RefusedError(413, "too-many-rows", words, hint=f"upload a file: POST /models/{name}/jobs")
        replies = await asyncio.gather(*(asked(call) for call in _calls(name, body)))
        for reply in replies:
            if reply.status != HTTPStatus.OK:
                return Response(reply.body, reply.status, media_type=JSON)
        rows = b", ".join(reply.body for reply in replies)
        return Response(b'{"model": "%b", "rows": [%b]}' % (name.encode(), rows), media_type=JSON)

    @app.post("/models/{model}/explain", responses=said(404, 504, *BOUNDS, answer=form.ExplainAnswer))
    async def explain(model: ModelName, body: form.OneMolecule) -> Response:
        """Colour the atoms or bonds of a molecule by what the model holds of them."""
        return await answered(Call("explain", service.known(model), body.model_dump()))

    @app.post("/draw", responses=said(504, *BOUNDS, answer=form.DrawAnswer))
    async def draw(body: form.DrawRequest) -> Response:
        """Draw molecules; one that cannot be read is an empty box."""
        return await answered(Call("draw", "", body.model_dump(), len(body.smiles)))

    @app.post("/nearest", responses=said(504, *BOUNDS, answer=form.NearestAnswer))
    async def nearest(body: form.NearestRequest) -> Response:
        """The most similar molecules of the table of measured ones."""
        return await answered(Call("nearest", "", body.model_dump()))


def _calls(model: str, body: form.PredictRequest) -> Sequence[Call]:
    """The calls of a request: of many molecules several, so that small requests pass between them."""
    if body.smiles is None:
        return [Call("predict", model, {"columns": body.columns}, body.rows)]
    calls = []
    for start in range(0, body.rows, PIECE):
        part = slice(start, start + PIECE)
        fields: dict[str, Any] = {"smiles": body.smiles[part], "ids": body.ids and body.ids[part], "start": start}
        calls.append(Call("predict", model, fields | {"large": body.rows > PIECE}, len(body.smiles[part])))
    return calls
