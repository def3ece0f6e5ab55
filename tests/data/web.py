"""A small web server on this machine for tests: it serves bytes, whole or from a range, and misbehaves on request."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Web:
    """What the server holds, how it behaves, and what it was asked.

    Args:
        files: path without the slash -> bytes.
        cut: break the connection after so many bytes of an answer, for the next answers as many as ``cuts``.
        ranges: whether ``Range`` is understood.
        validators: whether answers carry an ETag.
        pause: seconds before each piece of 16 kB.
        status: answer with that error instead, for as many answers as ``errors``.
        trusts: whether a range is given of whatever file is there now, whatever ``If-Range`` asks for.
        shifted: how many bytes further on than asked for a range begins.
        lengths: whether answers say how long they are.
    """

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.cut, self.cuts = 0, 0
        self.ranges, self.validators = True, True
        self.trusts, self.shifted, self.lengths = False, 0, True
        self.pause, self.status, self.errors = 0.0, 0, 0
        self.asked: list[tuple[str, str]] = []
        self.sent = 0
        self.address = ""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            name, asked = self.path.lstrip("/"), self.headers.get("Range", "")
            web.asked.append((name, asked))
            if web.errors > 0 or name not in web.files:
                web.errors -= 1
                self.send_error(web.status if name in web.files else 404)
                return
            data = web.files[name]
            etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and web.ranges else 0
            if start and self.headers.get("If-Range") != etag and not web.trusts:
                start = 0
            start += web.shifted * bool(start)
            if start >= len(data) > 0 and start:
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            if web.validators:
                self.send_header("ETag", etag)
            if web.lengths:
                self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            body = data[start:]
            if web.cuts > 0:
                web.cuts -= 1
                body = body[: web.cut]
            with suppress(ConnectionError):  # who asked has gone, as some tests do
                for at in range(0, len(body), 1 << 14):
                    time.sleep(web.pause)
                    self.wfile.write(body[at : at + (1 << 14)])
                    web.sent += len(body[at : at + (1 << 14)])

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
