"""Hold what a server consists of: the models' processes, the uploaded files, the limits and the token."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from molgraph.base.errors import ConflictError, EmptyError, nearest
from molgraph.serve.engine import Engine
from molgraph.serve.jobs import Jobs
from molgraph.serve.limits import Limits
from molgraph.serve.refusal import RefusedError


class Service:
    """A server without its port.

    Args:
        models: model files; each is named after its file, or as in ``name=file``.
        limits: sizes and times.
        token: that requests must bear, or empty for none.
        local: whether to answer to the names of this machine alone.
        measured: a table of measured molecules, for the nearest ones, or None.
        explain: an explainer with its settings, ``auto`` for the first that can read a model, or ``none``.
        folder: where uploaded files are kept, from one start to the next; None for a temporary one.
        workers: processes that hold the models.
        running: ``device``, ``threads`` (1 if not given), ``precision``.

    Raises:
        UsageError: no model, or two of one name.
    """

    def __init__(
        self,
        models: Sequence[str],
        *,
        limits: Limits | None = None,
        token: str = "",
        local: bool = False,
        measured: str | None = None,
        explain: str = "auto",
        folder: str | Path | None = None,
        workers: int = 2,
        running: Mapping[str, Any] | None = None,
    ) -> None:
        self.limits, self.token, self.local, self.measured = limits or Limits(), token, local, measured
        self.paths = named_models(models)
        run = {"threads": 1} | {name: value for name, value in (running or {}).items() if value is not None}
        options = {"models": self.paths, "running": run, "measured": measured, "explain": explain}
        self.engine = Engine(options, self.limits, workers)
        self._temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="molgraph-serve-")) if folder is None else Path(folder)
        self.jobs = Jobs(self.folder, self.paths, run, self.limits)

    def known(self, model: str) -> str:
        """The name of a model that there is; ``RefusedError`` (404) for others."""
        if model not in self.paths:
            raise RefusedError(404, "no-such-model", f"there is no model {model!r}", hint=nearest(model, self.paths))
        return model

    def start(self) -> Service:
        """Load the models; ``MolgraphError`` where one cannot be."""
        try:
            self.engine.start()
            self.jobs.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """End all processes; a temporary folder is removed."""
        self.engine.close()
        self.jobs.close()
        if self._temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


def named_models(texts: Sequence[str]) -> dict[str, str]:
    """Name to path: a file's own name without its ending, or the one before ``=``.

    Example:
        >>> named_models(["models/assay 1.mgm", "sol=esol.mgm"])
        {'assay-1': 'models/assay 1.mgm', 'sol': 'esol.mgm'}
    """
    paths: dict[str, str] = {}
    for text in map(str, texts):
        label, sign, path = text.partition("=")
        name, path = (label, path) if sign and re.fullmatch(r"[\w.-]+", label) else (Path(text).stem, text)
        name = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "model"
        if name in paths:
            words = f"two models are called {name}: {paths[name]} and {path}"
            raise ConflictError(words, hint=f"name one of them otherwise: other={path}")
        paths[name] = path
    if not paths:
        raise EmptyError("there is no model to serve", hint="name a file: molgraph serve assay.mgm")
    return paths
