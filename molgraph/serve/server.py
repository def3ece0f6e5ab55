"""Serve model files over HTTP: bind the port, load the models, answer until the process is stopped."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from molgraph.base.errors import BusyError
from molgraph.serve.app import make_app
from molgraph.serve.guard import LOCAL
from molgraph.serve.limits import Limits, read_limits
from molgraph.serve.service import Service
from molgraph.serve.slow_clients import patient_for

IDLE_SECONDS = 15  # that a connection is kept open between two requests
BACKLOG = 256


def run(
    models: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | Iterable[str] = (),
    say: Callable[[str], object] = print,
    **options: Any,
) -> None:
    """Serve models until Ctrl-C or a signal to end.

    Args:
        models: model files, or ``name=file``.
        host, port: where; port 0 for any that is free.
        token: that requests must bear; the environment's ``MOLGRAPH_TOKEN`` if not given, else none.
        limits: ``Limits``, or texts such as ``rows=500``.
        say: is told the address once the models are loaded.
        options: of ``molgraph.serve.service.Service``: ``measured``, ``explain``, ``folder``, ``workers``, ``running``.

    Raises:
        BusyError: the port is taken, or may not be used. MolgraphError: a model that cannot be read.
    """
    bounds = limits if isinstance(limits, Limits) else read_limits(limits)
    secret = os.environ.get("MOLGRAPH_TOKEN", "") if token is None else token
    with listening(host, port) as sock:
        service = Service(models, limits=bounds, token=secret, local=host in LOCAL and not secret, **options)
        try:
            service.start()
            where = f"{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"
            say(f"http://{where}")
            server(service, bounds).run(sockets=[sock])
        finally:
            service.close()


def server(service: Service, limits: Limits) -> Any:
    """The HTTP server of a service that was started, a ``uvicorn.Server``."""
    import uvicorn

    class Server(uvicorn.Server):
        """One that ends without raising the signal again, so that what it holds is given back."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            """Note that it should end."""
            super().handle_exit(sig, frame)
            with suppress(AttributeError):
                self._captured_signals.clear()

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return Server(
        uvicorn.Config(
            make_app(service),
            http=patient_for(limits),
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(min(IDLE_SECONDS, max(limits.seconds, 1))),
            timeout_graceful_shutdown=1,
            backlog=BACKLOG,
        )
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; ``BusyError`` where it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        words = f"cannot listen at {host}, port {port}: {getattr(error, 'strerror', None) or error}"
        raise BusyError(words, hint="choose another one: --port 8001, or --port 0 for any that is free") from None
