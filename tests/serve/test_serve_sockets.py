"""Over real connections: clients that stall, large bodies, too many connections, and the end of a server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from molgraph.serve.limits import Limits
from tests.serve.conftest import running

pytest.importorskip("fastapi")
LIMITS = Limits(seconds=0.5, connections=5, bytes=100_000)


@pytest.fixture
def server(service: Any) -> Iterator[Any]:
    """A server that soon loses patience."""
    with running(service, LIMITS) as made:
        yield made


def connect(server: Any, sent: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    made.sendall(sent)
    return made


def received(sock: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    out = b""
    while piece := sock.recv(65_536):
        out += piece
    return out


@pytest.mark.parametrize("sent", [b"", b"POST /draw HTTP/1.1\r\nhost: loc"])
def test_headers_that_never_end_are_not_waited_for(server: Any, sent: bytes) -> None:
    started = time.monotonic()
    with connect(server, sent) as sock:
        assert received(sock).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - started < 5


def test_a_body_that_stalls_ends_the_connection(server: Any) -> None:
    head = b"POST /models/tiny/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with connect(server, head + b"content-length: 50\r\n\r\n{") as sock:
        answer = received(sock)
    assert b" 408 " in answer and b"too-slow-to-arrive" in answer


def test_a_body_of_many_megabytes_is_refused_in_bounded_memory(server: Any) -> None:
    before = psutil.Process().memory_info().rss
    head = b"POST /models/tiny/predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with connect(server, head) as sock:
        for _ in range(30):
            try:
                sock.sendall(piece)
            except OSError:
                break
        assert sock.recv(65_536).startswith(b"HTTP/1.1 413 ")
    assert psutil.Process().memory_info().rss - before < 20e6


def test_too_many_connections_are_refused(server: Any) -> None:
    held = [connect(server) for _ in range(LIMITS.connections)]
    time.sleep(0.1)
    with connect(server) as sock:
        answer = received(sock)
    assert answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in answer
    for one in held:
        one.close()


def test_a_client_that_does_not_read_is_cut_off(server: Any) -> None:
    with connect(server) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 500)
        end = time.monotonic() + 10
        while not server.server_state.connections:
            time.sleep(0.01)
        while server.server_state.connections and time.monotonic() < end:
            time.sleep(0.05)
        assert not server.server_state.connections


@pytest.mark.slow
def test_the_command_answers_and_leaves_nothing_behind(models: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "molgraph", "serve", str(models / "tiny.mgm"), "--port", "0", "--workers", "1"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "MOLGRAPH_TOKEN": "secret"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        body = json.dumps({"smiles": ["CCO"]}).encode()
        headers = {"content-type": "application/json", "authorization": "Bearer secret"}
        asked = urllib.request.Request(f"{address}/models/tiny/predict", body, headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert json.load(answer)["rows"][0]["status"] == "ok"
        children = psutil.Process(server.pid).children()
        assert children and [*tmp_path.iterdir()]
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
    finally:
        server.kill()
    assert not [*tmp_path.iterdir()] and not psutil.wait_procs(children, 10)[1]
