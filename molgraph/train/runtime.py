"""Set up a run: device, precision, threads and seeds."""

from __future__ import annotations

import logging
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn

from molgraph.base.cores import cores
from molgraph.base.errors import UnknownNameError, UnsupportedError, nearest

if TYPE_CHECKING:
    from lightning.fabric import Fabric

logger = logging.getLogger("molgraph")

PRECISIONS = {"float32": "32-true", "bfloat16": "bf16-mixed"}
DDP: dict[str, Any] = {"ddp": "popen", "ddp_spawn": "spawn", "ddp_fork": "fork"}  # how its processes are started


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during training: nothing is lost, and the message says how to go on (exit code 130)."""

    exit_code = 130


def resolve_device(device: str) -> torch.device:
    """The device of that name: ``cpu``, ``auto``, ``cuda``, ``cuda:1``, ``mps``.

    Example:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if _has_mps() else "cpu")
    name = "cuda" if device == "gpu" else device
    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda", "mps"):
        raise UnknownNameError(f"no device is named {device!r}", hint=nearest(device, ("cpu", "auto", "cuda", "mps")))
    if (kind == "cuda" and not torch.cuda.is_available()) or (kind == "mps" and not _has_mps()):
        words = f"this machine has no {device!r} device that torch can use"
        raise UnsupportedError(words, hint="use device='auto' or 'cpu'")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise UnknownNameError(f"no device is named {device!r}", hint="examples: cpu, cuda, cuda:1") from error


def check_precision(precision: str, device: str = "cpu") -> str:
    """Lightning's word for a precision of ours; a warning, once, where the processor would only be slowed by it."""
    if precision not in PRECISIONS:
        raise UnknownNameError(f"no precision is named {precision!r}", hint=nearest(precision, PRECISIONS))
    if precision == "bfloat16" and resolve_device(device).type == "cpu":
        _warn_of_slow_bfloat16()
    return PRECISIONS[precision]


@cache
def _warn_of_slow_bfloat16() -> None:
    able = torch.cpu.get_capabilities()
    if able.get("architecture") == "x86_64" and not (able.get("avx512_bf16") or able.get("amx_bf16")):
        logger.warning("this processor has no instructions for bfloat16: float32 is faster on it")


def make_fabric(
    device: str, precision: str, devices: int = 1, strategy: str = "auto", *, unused: bool = False
) -> Fabric:
    """Lightning's Fabric for that device, number of devices and precision.

    With ``unused``, processes that work by DDP look for parameters that a step leaves without a gradient.
    """
    lightning_precision, where = check_precision(precision, device), resolve_device(device)
    from lightning.fabric import Fabric  # imported late: it takes seconds
    from lightning.fabric.strategies.ddp import DDPStrategy

    if devices > 1 and strategy == "auto":
        strategy = "ddp_spawn" if where.type == "cpu" else "ddp"
    chosen: Any = [where.index] if where.index is not None and devices == 1 else devices
    by: Any = strategy
    if unused and strategy in DDP:
        by = DDPStrategy(start_method=DDP[strategy], find_unused_parameters=True)
    return Fabric(accelerator=where.type, devices=chosen, strategy=by, precision=lightning_precision)  # type: ignore[arg-type]


def launch(fabric: Fabric, function: Callable[..., tuple[Any, ...]], module: nn.Module) -> Any:
    """What the function returns, called in as many processes as there are devices: tensors and plain values.

    The result of several comes in a file: Lightning reads the pipe that it returns results by when the processes have
    ended, and none ends that has more than the pipe holds, 64 KB.
    """
    if fabric.world_size == 1:
        return fabric.launch(cast(Any, function), module)
    with tempfile.TemporaryDirectory() as folder:
        fabric.launch(cast(Any, partial(_to_file, function, folder)), module)
        return torch.load(Path(folder) / f"{fabric.global_rank}.pt", weights_only=True)


def _to_file(function: Callable[..., tuple[Any, ...]], folder: str, fabric: Fabric, module: nn.Module) -> None:
    """Write what it returns under this process's rank: processes that are scripts have each a folder of their own."""
    with lightning_quiet():
        torch.save(tuple(function(fabric, module)), Path(folder) / f"{fabric.global_rank}.pt")


@contextmanager
def torch_settings(threads: int | None, seed: int | None = None) -> Iterator[None]:
    """Threads and torch's random numbers as asked, and as they were before at the end."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(enabled=seed is not None):
        if threads is not None:
            torch.set_num_threads(cores(threads))
        if seed is not None:
            torch.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(before)


@contextmanager
def watch_ctrl_c() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that a loop stops at the end of its step; a second one stops at once."""
    pressed, before = threading.Event(), signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, before)

    if threading.current_thread() is not threading.main_thread():  # only a main thread can watch
        yield pressed
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def lightning_quiet() -> Iterator[None]:
    """Lightning's advice on loaders and workers kept off the terminal: molgraph has its own loader."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="lightning.*")
        yield


def _has_mps() -> bool:
    return torch.backends.mps.is_available()
