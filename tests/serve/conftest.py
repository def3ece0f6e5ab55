"""A small model served without a port, and calls to it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import pytest

import molgraph
from tests.evaluate.conftest import browser  # noqa: F401 - a fixture
from tests.tiny import series


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a linear model of 60 rows that gives intervals and grades, and the 60 rows."""
    folder = tmp_path_factory.mktemp("served")
    table = series(60)
    options = {"model": "domain(conformal(linear, split=random))", "split": "random", "baseline": False}
    molgraph.train(table, **options).model.save(folder / "tiny.mgm")
    rows = zip(table.smiles, table.y[:, 0], strict=True)
    (folder / "measured.csv").write_text("smiles,pActivity\n" + "".join(f"{s},{y}\n" for s, y in rows))
    return folder


@pytest.fixture(scope="session")
def service(models: Path) -> Iterator[Any]:
    """One process that holds the model."""
    from molgraph.serve.service import Service

    more = {"measured": str(models / "measured.csv"), "explain": "infill(fill=carbon)", "workers": 1}
    made = Service([str(models / "tiny.mgm")], **more).start()
    yield made
    made.close()


def changed(service: Any, **attributes: Any) -> Any:
    """The same processes with other limits or another token."""
    made = copy(service)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def call(service: Any, *asked: tuple[Any, ...], **options: Any) -> Any:
    """The answers to requests that are sent at the same time, each (method, path, options of httpx)."""
    import httpx

    from molgraph.serve.app import make_app

    async def all_of_them() -> list[Any]:
        transport = httpx.ASGITransport(app=make_app(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            sent = [client.request(one[0], one[1], **options, **(one[2] if one[2:] else {})) for one in asked]
            return await asyncio.gather(*sent)

    found = asyncio.run(all_of_them())
    return found[0] if len(found) == 1 else found


@contextmanager
def running(service: Any, limits: Any) -> Iterator[Any]:
    """A server of a service on a free port (``port``), in a thread."""
    from molgraph.serve import server as served

    sock = served.listening("127.0.0.1", 0)
    made = served.server(changed(service, limits=limits), limits)
    thread = threading.Thread(target=made.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not made.started:
        time.sleep(0.01)
    made.port = sock.getsockname()[1]
    try:
        yield made
    finally:
        made.should_exit = True
        thread.join(10)
