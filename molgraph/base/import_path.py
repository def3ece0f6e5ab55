"""Import an object by its path, ``module:object`` or ``FILE.py:object``."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from molgraph.base.errors import BadValueError, UnknownNameError, UsageError, nearest

IMPORT_SECONDS = 120.0  # that a module may take


def load_object(path: str) -> Any:
    """What an import path names; modules are looked for in the working folder too.

    Raises:
        UsageError: it cannot be imported, or is neither callable nor an estimator.

    Example:
        >>> load_object("math:sqrt")(4)
        2.0
    """
    module, _, name = path.rpartition(":")
    here, process = str(Path.cwd()), os.getpid()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        with _at_most(IMPORT_SECONDS), redirect_stdout(sys.stderr):
            value = getattr(_from_file(module) if module.endswith(".py") else import_module(module), name)
    except AttributeError as error:
        raise UnknownNameError(f"{module} has no {name!r}", hint=nearest(name, dir(sys.modules[module]))) from error
    except (Exception, SystemExit) as error:  # it is somebody else's code, which may raise anything
        raise UsageError(
            f"{path!r} cannot be imported: {error}", hint=f"looked in {here} and installed ones"
        ) from error
    finally:
        if os.getpid() != process:  # the module forked, and this is its child
            os._exit(0)
    if not callable(value) and not hasattr(value, "fit") and not hasattr(value, "score"):
        raise BadValueError(f"{path!r} is a {type(value).__name__}", hint="name an estimator, a class or a function")
    return value


def _from_file(path: str) -> ModuleType:
    """The module in a file, whatever its folder; it is known under its path."""
    spec = spec_from_file_location(path, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` after so many seconds, where the system has alarms and this is the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: Any) -> NoReturn:
        raise TimeoutError(f"it took more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
