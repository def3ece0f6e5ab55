"""Say in the OpenAPI description what each HTTP status of a route means, and give failures their one JSON form."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from molgraph.serve import schemas as form
from molgraph.serve.refusal import RefusedError, status_of

SAID = {
    400: "The JSON, or the request, cannot be read.",
    401: "The token is missing or wrong.",
    404: "There is no such model, job or page.",
    408: "The request took too long to arrive.",
    409: "The result is not ready.",
    413: "More rows or bytes than the limits allow.",
    415: "A kind of file that cannot be uploaded.",
    421: "Another host name than the server answers to.",
    422: "Not what this route takes, or not what this model reads; the error says what.",
    429: "Too many files are kept; Retry-After says when to try again.",
    500: "A fault of the server.",
    503: "Too much to do; Retry-After says when to try again.",
    504: "No answer within the limit.",
}
BOUNDS = (400, 401, 408, 413, 421, 422, 500, 503)  # of every route that a token guards
JSON = "application/json"


def said(*statuses: int, answer: Any = None) -> dict[int | str, dict[str, Any]]:
    """What the description says of the answers of a route: its own, and its failures."""
    answers: dict[int | str, dict[str, Any]] = {
        status: {"model": form.ErrorAnswer, "description": SAID[status]} for status in sorted({*statuses})
    }
    if answer is form.HealthAnswer:
        answers[503] = {"model": answer, "description": SAID[503]}
    if answer is not None:
        answers[200] = {"model": answer}
    return answers


async def refused(_: Any, error: Any) -> Any:
    """The answer to an error of molgraph."""
    if isinstance(error, RefusedError):
        return error.response()
    return RefusedError(status_of(error), error.code, error.message, hint=error.hint).response()


async def invalid(_: Any, error: Any) -> Any:
    """The answer to a request of another form than the route takes."""
    first, hint = error.errors()[0], "/openapi.json describes what each route takes"
    if first["type"] == "json_invalid":
        words = f"the JSON cannot be read at character {first['loc'][-1]}: {first['ctx']['error']}"
        return RefusedError(400, "bad-json", words, hint=hint).response()
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    words = f"{where}: {first['msg']}" if where else str(first["msg"])
    return RefusedError(422, "bad-request", words, hint=hint).response()


async def other(_: Any, error: Any) -> Any:
    """The answer where there is no such page or method, or the request cannot be read."""
    status = error.status_code
    code, hint = HTTPStatus(status).phrase.lower().replace(" ", "-"), "/openapi.json describes all of them"
    words = {404: "there is no such page", 405: "this page has no such method"}.get(status, str(error.detail))
    return RefusedError(status, code, words, hint=hint, headers=error.headers).response()


async def fault(_: Any, error: Any) -> Any:
    """The answer to a failure that nobody foresaw."""
    words, hint = "this is a fault in molgraph itself", "the server's own output has the details"
    return RefusedError(500, "molgraph", words, hint=hint).response()
