"""Define ``RefusedError``, a request that is not answered, with its HTTP status; and the JSON of all errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from molgraph.base.errors import ModelFileError, MolgraphError, StorageError


class RefusedError(MolgraphError):
    """A request that the server does not answer.

    Args:
        status: of HTTP.
        code: the kind of failure, for programs.
        message, hint: as of every error of molgraph.
        retry: seconds after which the same request may succeed, for the header ``Retry-After``; None for none.
        headers: more headers.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        retry: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status, self.code, self.headers = status, code, dict(headers or {})
        if retry is not None:
            self.headers["Retry-After"] = str(max(retry, 1))

    def response(self) -> Any:
        """The answer that says so, of ``fastapi.Response``."""
        from fastapi import Response

        return Response(error_body(self), self.status, self.headers, media_type="application/json")


def error_body(error: MolgraphError) -> bytes:
    """The JSON of an error: its code, message and hint.

    Example:
        >>> error_body(RefusedError(404, "no-such-job", "there is no job 'x'"))
        b'{"error": {"code": "no-such-job", "message": "there is no job \\'x\\'", "hint": ""}}'
    """
    return json.dumps({"error": {"code": error.code, "message": error.message, "hint": error.hint}}).encode()


def status_of(error: MolgraphError) -> int:
    """The HTTP status of an error: 500 where the server's own files are to blame, else 422."""
    if isinstance(error, RefusedError):
        return error.status
    return 500 if isinstance(error, StorageError | ModelFileError) else 422


def overloaded(what: str, retry: int = 1) -> RefusedError:
    """The refusal of a server that has too much to do."""
    return RefusedError(503, "overloaded", what, hint=f"send the same request again in {retry} s", retry=retry)
