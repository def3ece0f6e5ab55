"""End a process together with the process that started it."""

from __future__ import annotations

import os
import signal
import sys


def die_with(parent: int) -> None:
    """Let the system end this process when its parent ends (Linux), and end it now where that has happened already.

    Args:
        parent: the parent's process number, as the parent knows it.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
