"""Start a fresh Python process and ask it to call functions, one at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from molgraph.base.errors import MolgraphError

POSSIBLE = sys.platform != "win32"  # a pipe is handed over by its file descriptor
#: finds this package where the parent does, wherever that is
_BOOT = """
import sys
from multiprocessing.connection import Connection
line = Connection(int(sys.argv[1]))
try:
    sys.path[:] = line.recv()
    serve = line.recv()
except (EOFError, OSError):  # the parent has ended
    sys.exit()
serve(line)
"""


class Worker(NamedTuple):
    """A process and the line to it.

    It is a fresh interpreter that is told what to do through a pipe. So nothing is forked beside threads, a caller's
    script needs no ``__main__`` guard, and a process whose parent is gone, however it died, finds the pipe closed and
    ends.
    """

    process: subprocess.Popen[bytes]
    line: Connection

    def send(self, function: Callable[[Any], Any], item: Any) -> None:
        """Ask for ``function(item)``; the function stands at module level, or is a ``partial`` of such a one.

        Raises:
            EOFError, OSError: the process has ended.
        """
        self.line.send((function, item))

    def receive(self) -> Any:
        """Wait for the answer to what was sent.

        Raises:
            EOFError, OSError: the process has ended.
            MolgraphError: what the function raised.
            RuntimeError: any other failure of the function, with its traceback.
        """
        done, answer = self.line.recv()
        if not done:
            raise answer
        return answer

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.line.close()
        self.process.wait()


def serve(line: Connection) -> None:
    """Answer requests until the other end of the line is closed."""
    try:
        while True:
            function, item = line.recv()
            try:
                answer = True, function(item)
            except MolgraphError as error:
                answer = False, error
            except Exception:  # any failure is the caller's to hear of; its own class might not survive the pipe
                answer = False, RuntimeError(traceback.format_exc())
            line.send(answer)
    except (EOFError, OSError):
        return


def start_worker(main: Callable[[Connection], None] = serve, **options: Any) -> Worker:
    """A new process that runs ``main(line)``; it does not receive the terminal's Ctrl-C, which its parent answers.

    Args:
        main: at module level.
        options: more for ``subprocess.Popen``.
    """
    ours, theirs = Pipe()
    with theirs:
        command = [sys.executable, "-P", "-c", _BOOT, str(theirs.fileno())]
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
    ours.send(sys.path)
    ours.send(main)
    return Worker(process, ours)


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
