"""Close connections whose client stalls, and refuse those beyond a number, below everything that reads requests."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from molgraph.serve.limits import Limits
from molgraph.serve.refusal import RefusedError, error_body, overloaded

GRACE_SECONDS = 5.0  # for the last bytes of an answer


def patient_for(limits: Limits) -> Any:
    """A class of uvicorn's protocol that keeps to the limits ``seconds`` and ``connections``."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        """uvicorn's HTTP/1.1, which itself waits for ever: for headers, for a refused body, for a client to read."""

        _arriving: asyncio.TimerHandle | None = None
        _leaving: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Accept a connection, or refuse it where there are too many."""
            super().connection_made(transport)
            if (sock := transport.get_extra_info("socket")) is not None:
                with suppress(OSError, AttributeError):  # asyncio leaves it out for sockets made without a protocol
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(self.connections) > limits.connections:
                self._refuse("503 Service Unavailable", overloaded("too many connections are open"))
            else:
                self._watch()

        def data_received(self, data: bytes) -> None:
            """Read on, and wait for the rest no longer than allowed."""
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            """An answer has been given."""
            super().on_response_complete()
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            """The connection is gone."""
            super().connection_lost(exc)
            for timer in (self._arriving, self._leaving):
                if timer is not None:
                    timer.cancel()

        def pause_writing(self) -> None:
            """The client does not read: it is cut off after a while."""
            self.flow.pause_writing()
            self._leaving = self.loop.call_later(limits.seconds, self.transport.abort)

        def resume_writing(self) -> None:
            """The client reads again."""
            if self._leaving is not None:
                self._leaving.cancel()
            self.flow.resume_writing()

        def _watch(self) -> None:
            """Time what the client owes: headers, or the rest of a body that was refused."""
            answered = self.cycle is None or self.cycle.response_complete
            owes = answered and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
            if not owes and self._arriving is not None:
                self._arriving.cancel()
                self._arriving = None
            elif owes and self._arriving is None and not self.transport.is_closing():
                self._arriving = self.loop.call_later(limits.seconds, self._too_late)

        def _too_late(self) -> None:
            words = f"the request did not arrive within {limits.seconds:g} s"
            late = RefusedError(408, "too-slow-to-arrive", words)
            self._refuse("408 Request Timeout" if self.conn.their_state is h11.IDLE else "", late)

        def _refuse(self, status: str, error: RefusedError) -> None:
            """Say why, unless an answer was given already, and close."""
            if status and not self.transport.is_closing():
                body = error_body(error)
                head = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}"]
                head += ["connection: close", *(f"{name}: {value}" for name, value in error.headers.items())]
                self.transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
            self.transport.close()
            self.loop.call_later(GRACE_SECONDS, self.transport.abort)

    return Patient
