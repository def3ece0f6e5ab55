"""``molgraph.serve``: a page and a JSON API for model files; says how to install what it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from molgraph.base.errors import BadValueError
from molgraph.base.optional import need


def serve(
    models: str | os.PathLike[str] | Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Mapping[str, float] | Iterable[str] = (),
    measured: str | None = None,
    explain: str = "auto",
    folder: str | os.PathLike[str] | None = None,
    workers: int = 2,
    running: Mapping[str, Any] | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Serve model files over HTTP until the process is stopped: a page to paste or upload molecules, and a JSON API.

    Predictions have the columns and status words of ``molgraph predict``. What waits at the same time is predicted in
    one batch; a process that dies is started again and its requests are answered all the same.

    Args:
        models: a model file, or several; each is named after its file, or as in ``name=file``.
        host: ``127.0.0.1`` for this machine alone, ``0.0.0.0`` for all that reach it.
        port: 0 for any that is free.
        token: that requests must bear (``Authorization: Bearer TOKEN``); ``MOLGRAPH_TOKEN`` of the environment if not
            given, else none.
        limits: such as ``{"rows": 500, "seconds": 10}``; see ``molgraph.serve.limits.Limits``.
        measured: a table of measured molecules, of which the nearest to a query are shown.
        explain: an explainer with its settings, ``auto`` for the first of contributions, occlusion and infill that can
            read a model, or ``none``.
        folder: where uploaded files are kept, to be gone on with after a restart; None for a temporary one.
        workers: processes that hold the models; with two, an explanation never delays a prediction.
        running: ``device``, ``threads`` (1 if not given) and ``precision`` of the models.
        say: is told the address once the models are loaded.

    Raises:
        NotInstalledError: fastapi or uvicorn is missing. BusyError: the port is taken.
        MolgraphError: a model or table that cannot be read.

    Example:
        >>> import molgraph
        >>> molgraph.serve("assay.mgm", port=8000, limits={"rows": 500})  # doctest: +SKIP
    """
    for library in ("fastapi", "uvicorn"):
        need(library, "molgraph serve")
    from molgraph.serve.server import run

    if workers < 1:
        raise BadValueError(f"workers is {workers}, expected 1 or more", hint="as in workers=2")
    texts = [f"{name}={value}" for name, value in limits.items()] if isinstance(limits, Mapping) else [*limits]
    paths = [str(models)] if isinstance(models, str | os.PathLike) else [str(path) for path in models]
    more = {"measured": measured, "explain": explain, "folder": folder, "workers": workers, "running": running}
    run(paths, host=host, port=port, token=token, limits=texts, say=say, **more)
