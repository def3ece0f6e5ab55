"""Run a function on items, in order, in the worker processes of a Ray cluster, again where a worker died."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self, TypeVar

from molgraph.base.cores import limit_cores
from molgraph.base.errors import BusyError, ConflictError, MolgraphError, UnknownNameError, nearest
from molgraph.base.optional import need
from molgraph.base.version import __version__

ENGINES = ("local", "ray")
RETRIES = 5  # times that a shard is computed again whose process died
AHEAD = 2  # shards for each place of the cluster: one is computed, one waits beside it
K = TypeVar("K")
T = TypeVar("T")
R = TypeVar("R")
_held: dict[str, Any] = {}  # in a process of the cluster: the last thing that its shards share, by its token


class Cluster:
    """A Ray cluster (Moritz et al. 2018, OSDI): the one that ``RAY_ADDRESS`` names, else this machine.

    Every node needs the same molgraph; no file system has to be shared.

    Raises:
        NotInstalledError: no ray here. BusyError: no cluster answers at that address.
    """

    def __init__(self) -> None:
        ray = self.ray = need("ray", "--engine ray")
        self.own = not ray.is_initialized()
        self._shared: tuple[Any, str, Any] | None = None
        if not self.own:
            return
        os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own is 15: behind all else on this machine
        try:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            words = " ".join(str(error).split())[:300]
            where = os.environ.get("RAY_ADDRESS", "this machine")
            hint = "ray status --address HOST:PORT says whether it runs; without RAY_ADDRESS this machine is used"
            raise BusyError(f"no Ray cluster can be used at {where}: {words}", hint=hint) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the cluster where it was begun here, and leave it where it was joined."""
        self._shared = None
        if self.own:
            self.ray.shutdown()

    def places(self, cpus: int = 1, gpus: int = 0) -> int:
        """How many shards the cluster computes at once; it may grow and shrink."""
        has = self.ray.cluster_resources()
        return max(1, int(min([has.get("CPU", 0) // cpus, *([has.get("GPU", 0) // gpus] if gpus else [])])))

    def map(
        self,
        function: Callable[[Any, T], R],
        shared: Any,
        items: Iterable[tuple[K, T]],
        *,
        cpus: int = 1,
        gpus: int = 0,
    ) -> Generator[tuple[K, R]]:
        """``function(shared, item)`` of each item, in order and with its key.

        An item whose process or node dies is computed again, by another process. Items are taken as there is room.

        Args:
            function: at module level.
            shared: what every call needs, as a model; it travels once to each process.
            items: keys, which stay here, and items.
            cpus, gpus: that a call takes.

        Raises:
            MolgraphError: what the function raised for an item, when its turn comes; or its process died every time.

        Example:
            >>> with Cluster() as cluster:  # doctest: +SKIP
            ...     list(cluster.map(pow, 2, [("a", 3), ("b", 4)]))
            [('a', 8), ('b', 16)]
        """
        token, blob = self._share(shared)
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": RETRIES, "retry_exceptions": False}
        call: Any = self.ray.remote(_call).options(**options)
        waiting: deque[tuple[K, Any]] = deque()
        try:
            for key, item in items:
                waiting.append((key, call.remote(function, token, blob, item, cpus, __version__)))
                if len(waiting) >= AHEAD * self.places(cpus, gpus):
                    yield self._answer(*waiting.popleft())
            while waiting:
                yield self._answer(*waiting.popleft())
        finally:
            for _, promise in waiting:
                with suppress(Exception):
                    self.ray.cancel(promise)

    def _share(self, shared: Any) -> tuple[str, Any]:
        """A token and the pickled bytes of what calls share; of the last such thing they are kept."""
        if self._shared is None or self._shared[0] is not shared:
            for module in _own_modules():
                self.ray.cloudpickle.register_pickle_by_value(module)
            content = self.ray.cloudpickle.dumps(shared)
            self._shared = shared, os.urandom(8).hex(), self.ray.put(content)
        return self._shared[1], self._shared[2]

    def _answer(self, key: K, promise: Any) -> tuple[K, Any]:
        errors = self.ray.exceptions
        try:
            done, answer = self.ray.get(promise)
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            words = " ".join(str(error).split())[:300]
            hint = "out of memory? fewer CPUs a node take less; the same command goes on from what is done"
            raise MolgraphError(
                f"a shard was lost with its process, each of {RETRIES + 1} times: {words}", hint=hint
            ) from error
        if not done:
            raise answer
        return key, answer


def _own_modules() -> list[ModuleType]:
    """Modules of a user's own, which other nodes need not have: files that were named, and those of this folder."""
    here, modules = Path.cwd(), [*sys.modules.items()]
    return [
        module
        for name, module in modules
        if name != "__main__" and (file := getattr(module, "__file__", None))
        if name.endswith(".py") or (name == module.__name__ and Path(file).parent == here)
    ]


def check_engine(name: str) -> None:
    """Raise ``UnknownNameError`` for an engine that is neither ``local`` nor ``ray``."""
    if name not in ENGINES:
        raise UnknownNameError(f"no engine is named {name!r}", hint=nearest(name, ENGINES))


def _call(
    function: Callable[[Any, Any], Any], token: str, blob: bytes, item: Any, cpus: int, version: str
) -> tuple[bool, Any]:
    """In a process of the cluster: whether the function returned, and what it returned or raised.

    ``blob`` was pickled by the command that runs and came through Ray, which pickles all that it sends: no file,
    and nothing of an outsider's, who would have to reach Ray's port and could run programs there anyway.
    """
    try:
        if version != __version__:
            words = f"the node {platform.node()} has molgraph {__version__}, and this machine {version}"
            raise ConflictError(words, hint="install the same version on every node")
        limit_cores(cpus)
        if token not in _held:
            _held.clear()
            _held[token] = need("ray").cloudpickle.loads(blob)
        return True, function(_held[token], item)
    except MolgraphError as error:
        return False, error
