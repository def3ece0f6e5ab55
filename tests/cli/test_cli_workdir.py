"""A working folder belongs to one training, which goes on from its own progress; files of the user's are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from molgraph.base.errors import FileKeptError
from molgraph.cli.train import check_workdir, has_progress


@pytest.mark.parametrize("kind", ["notes", "link", "file", "deep"])
def test_a_working_folder_of_the_users_own_is_refused_and_left(tmp_path: Path, kind: str) -> None:
    workdir, own = tmp_path / "m.mgm.work", tmp_path / "own"
    (own / ("0" * 16)).mkdir(parents=True)
    (own / ("0" * 16) / "thesis.txt" if kind == "deep" else own / "thesis.txt").write_text("five years")
    if kind == "file":
        workdir.write_text("mine")
    elif kind == "link":
        workdir.symlink_to(own)
    else:
        own.rename(workdir)
    with pytest.raises(FileKeptError, match=workdir.name) as caught:
        check_workdir(workdir)
    assert "--out" in caught.value.hint
    assert kind == "file" or "thesis.txt" in caught.value.message or kind == "link"


def test_a_working_folder_of_checkpoints_is_gone_on_with(tmp_path: Path) -> None:
    check_workdir(tmp_path / "m.mgm.work")
    run = "0123456789abcdef"
    kept = ("training.ckpt", "member-0/training.ckpt.tmp", "corpus/.train.1a.tmp/000.npy", "labels/a-1.npy")
    kept += (
        "auto/0123456789ab/fold-0.mgm",
        "auto/features/features/morgan/1.npz",
        "final/auto/0123456789ab/fold-1.json",
    )
    for name in ("early.mgm", ".early.mgm.0a1b2c3d.tmp", "trials.jsonl", *(f"{run}/{each}" for each in kept)):
        path = tmp_path / "m.mgm.work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    check_workdir(tmp_path / "m.mgm.work")


def test_labels_and_folds_are_progress(tmp_path: Path) -> None:
    for name in ("0/labels/a-1.npy", "1/auto/2/fold-0.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        assert not any(has_progress(path.parent))
        path.write_bytes(b"x")
        assert any(has_progress(path.parents[1]))
