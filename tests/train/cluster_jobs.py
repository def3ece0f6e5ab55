"""What processes of a cluster compute in tests; they import this module."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from molgraph.base.errors import DataError
from molgraph.train.model import Model


class Mortal(Model):
    """A model whose process is killed in the middle of a shard, once."""

    def __init__(self, model: Model, flag: Path) -> None:
        self.__dict__.update(model.__dict__)
        self.flag, self.here = flag, os.getpid()

    @property
    def confidence(self) -> Any:
        """None; another process than that of the test dies where the flag is not there yet."""
        if os.getpid() != self.here:
            die_once(self.flag)
        return None

    @confidence.setter
    def confidence(self, value: Any) -> None:
        return


def die_once(flag: Path) -> None:
    """Kill this process unless the file is there."""
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def double(shared: int, item: int) -> int:
    """Twice a number and ``shared``; 7 is an error."""
    if item == 7:
        raise DataError("seven", hint="take eight")
    return 2 * item + shared


def always_dies(shared: int, item: int) -> int:
    """No process survives this."""
    os.kill(os.getpid(), signal.SIGKILL)
    return item
