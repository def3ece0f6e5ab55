"""Keep training checkpoints in a folder next to the output model file, and remove it when the model is written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from molgraph.base.errors import StorageError
from molgraph.base.paths import storage_error
from molgraph.evaluate.benchmark.locks import Claims

CLAIM = "claim"  # the file whose lock says that a training is at work


@contextmanager
def working_folder(out: Path) -> Iterator[Path]:
    """The folder for the checkpoints of one training at a time; after a failure it stays where it holds some."""
    workdir = out.with_name(out.name + ".work")
    check_workdir(workdir)
    claims, kept = Claims(workdir), False
    try:
        if not claims.take(CLAIM):
            hint = "wait until it ends, or choose another --out"
            raise StorageError(f"another training is writing {out} and keeps its checkpoints in {workdir}", hint=hint)
    except OSError as error:
        raise storage_error(f"cannot write into {workdir}", error) from error
    try:
        yield workdir
    except BaseException:
        kept = any(workdir.rglob("*.ckpt"))
        raise
    finally:
        claims.close()
        if not kept:
            shutil.rmtree(workdir, ignore_errors=True)


def check_workdir(workdir: Path) -> None:
    """Refuse a working folder that training would write into, and remove at the end, though it is not its own."""
    if not workdir.is_symlink() and not workdir.exists():
        return
    odd = "it is a link" if workdir.is_symlink() else "" if workdir.is_dir() else "it is a file"
    for path in () if odd else sorted(workdir.rglob("*")):
        name = path.relative_to(workdir).as_posix()
        if path.is_symlink() or not re.fullmatch(
            rf"{CLAIM}|[0-9a-f]{{16}}(/member-\d+)?(/training\.ckpt(\.tmp)?)?", name
        ):
            odd = f"it holds {name}, which is no checkpoint"
            break
    if odd:
        hint = (
            "move it or choose another --out: checkpoints are kept there and the folder is removed after the training"
        )
        raise StorageError(f"cannot write into {workdir}: {odd}", hint=hint)
