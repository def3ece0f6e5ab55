"""What the processes of ``test_overlap`` are asked to do; light, since each of them imports it."""

from __future__ import annotations

import os
import signal

from molgraph.base.errors import DataError


def double(x: int) -> int:
    """Twice a number; three numbers fail in three ways."""
    if x == 7:
        raise DataError("seven", hint="take eight")
    if x == 8:
        raise ValueError("eight")
    if x == 9:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * x
