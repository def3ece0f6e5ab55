"""Run the ``molgraph`` command; Ctrl-C is answered before anything slow is imported."""

import atexit
import os
import sys
from contextlib import suppress

from molgraph.cli.interrupt import EXIT_CODE, answer_ctrl_c, end_process


def main() -> None:
    """The console script."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):  # a character that the stream's encoding lacks is written out
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    answer_ctrl_c()
    from molgraph.cli.main import main as run

    try:
        run()
    except SystemExit as stop:
        if stop.code == EXIT_CODE:  # at once: the interpreter's own end takes a second or more
            end_process()
        if stop.code:  # a thread of pyarrow's that met an error may wait for itself, and the interpreter's end for it
            atexit._run_exitfuncs()
            with suppress(OSError, ValueError):
                sys.stdout.flush()
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(int(stop.code))
        raise


def _open_closed_streams() -> None:
    """Give closed standard streams a descriptor, or the first file that is opened would be taken for one of them.

    What is read from such an input or written to such an output fails as it does for a closed descriptor; messages
    for a closed standard error are lost.
    """
    closed = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
    for number, (name, mode, flags) in enumerate(closed):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)
            stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


if __name__ == "__main__":
    main()
