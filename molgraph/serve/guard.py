"""Let requests in: their host and token, their size and the time that they take to arrive, and how many at once."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from molgraph.serve.limits import Limits
from molgraph.serve.refusal import RefusedError, overloaded

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

OPEN = ("/", "/health", "/openapi.json")  # need no token: they tell nothing of molecules
LOCAL = ("localhost", "127.0.0.1", "[::1]", "::1")
HELD = 32  # bodies of the largest size that are held at once
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


class Guard:
    """A middleware of ASGI before everything else.

    A body is read here, whole and within ``limits.bytes`` and ``limits.seconds``, before anything looks into it; that
    of a file is counted while it streams to the disk. Without a token only requests to this machine's own names are
    answered, so that no web page elsewhere can reach it through a name of its own (DNS rebinding).

    Args:
        app: what answers.
        limits: sizes and times.
        token: that requests must bear, or empty for none.
        local: whether to answer only to the names of this machine.
    """

    def __init__(self, app: App, limits: Limits, token: str = "", local: bool = False) -> None:
        self.app, self.limits, self.token, self.local = app, limits, token.encode(), local
        self.busy = self.held = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answered = False

        async def say(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        body = _Body(receive)
        try:
            await self._let_in(scope, body, say)
        except RefusedError as refusal:
            if not answered:
                if refusal.status != 408:
                    await self._drain(dict(scope["headers"]), body)
                await refusal.response()(scope, receive, say)

    async def _let_in(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if self.local and _host(headers) not in LOCAL:
            words = f"this server answers to {LOCAL[0]} and {LOCAL[1]} alone"
            raise RefusedError(421, "other-host", words, hint="start it with --token to reach it by another name")
        if scope["path"] not in OPEN and self.token:
            self._check_token(headers)
        if scope["path"] in OPEN and scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        if self.busy >= self.limits.requests:
            raise overloaded(f"{self.busy} requests are being answered already")
        if scope["method"] == "POST" and scope["path"].endswith("/jobs"):
            received = self._counted(headers, receive)
        else:
            received = await self._body(headers, receive)
        size = getattr(received, "size", 0)
        self.busy += 1
        try:
            await self.app(scope, received, send)
        finally:
            self.busy -= 1
            self.held -= size

    async def _drain(self, headers: dict[bytes, bytes], body: _Body) -> None:
        """Read the rest of a body and drop it: who still sends when the connection closes never sees the answer."""
        if b"expect" in headers or _length(headers) > self.limits.upload:
            return
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limits.seconds):
                while not body.over and size <= self.limits.upload:
                    size += len((await body()).get("body", b""))

    def _check_token(self, headers: dict[bytes, bytes]) -> None:
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self.token):
            words = "the token is wrong" if token else "a token is needed"
            hint = "send the header Authorization: Bearer TOKEN, with the token that the server was started with"
            raise RefusedError(401, "wrong-token", words, hint=hint, headers={"WWW-Authenticate": "Bearer"})

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> _Replay:
        """The whole body; its size counts as held until the request is answered."""
        most, parts, size = self.limits.bytes, list[bytes](), 0
        if _length(headers) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(self.limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(400, "gone", "the client went away")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self.held += len(parts[-1])
                    if size > most:
                        raise _too_large(most)
                    if self.held > HELD * most:
                        raise overloaded("too many large requests at once", 2)
                    if not message.get("more_body", False):
                        return _Replay(b"".join(parts), size, receive)
        except TimeoutError:
            self.held -= size
            raise _late(self.limits.seconds) from None
        except BaseException:
            self.held -= size
            raise

    def _counted(self, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """Receive a file, counted, until its time is up."""
        most, size = self.limits.upload, 0
        if _length(headers) > most:
            raise _too_large(most)
        end = asyncio.get_running_loop().time() + self.limits.upload_seconds

        async def counted() -> Message:
            nonlocal size
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                raise _late(self.limits.upload_seconds) from None
            size += len(message.get("body", b""))
            if size > most:
                raise _too_large(most)
            return message

        return counted


class _Body:
    """Receives a body, and knows whether all of it is there."""

    def __init__(self, receive: Receive) -> None:
        self.receive, self.over = receive, False

    async def __call__(self) -> Message:
        message = await self.receive()
        self.over = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message


class _Replay:
    """Gives a body that was read already, then whatever comes after it."""

    def __init__(self, body: bytes, size: int, receive: Receive) -> None:
        self.body: bytes | None = body
        self.size, self.receive = size, receive

    async def __call__(self) -> Message:
        if self.body is None:
            return await self.receive()
        body, self.body = self.body, None
        return {"type": "http.request", "body": body, "more_body": False}


def _host(headers: dict[bytes, bytes]) -> str:
    host = headers.get(b"host", b"").decode("latin-1").lower()
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _length(headers: dict[bytes, bytes]) -> int:
    text = headers.get(b"content-length", b"0")
    return int(text) if text.isdigit() else 0


def _too_large(most: int) -> RefusedError:
    words = f"the body is larger than {most:,} bytes"
    return RefusedError(413, "too-large", words, hint="send less at once, or upload a file in parts")


def _late(seconds: float) -> RefusedError:
    words = f"the request did not arrive within {seconds:g} s"
    return RefusedError(408, "too-slow-to-arrive", words, headers={"Connection": "close"})
