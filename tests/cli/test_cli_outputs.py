"""What a verb writes never takes the place of what it was given, and what cannot end well does not begin."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import molgraph
from molgraph import api
from molgraph.base.errors import ConflictError, DataError, StorageError, UnknownNameError
from molgraph.base.run_config import RunConfig
from molgraph.cli.main import app
from molgraph.cli.options import check_writable
from molgraph.run.result import TrainingResult
from molgraph.run.rows import read_rows
from molgraph.train.make_method import make_method

TEXT = "smiles,y\n" + "".join(f"{'C' * n}O,{n % 7 + n / 10}\n" for n in range(1, 31))
RECIPE = 'data = {path = "a.csv", targets = ["y"]}\nsplit.splitter = "random"\nmodel.name = "mean"\n'
MEAN = ("-t", "y", "-m", "mean", "--split", "random")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "a.csv").write_text(TEXT)
    result = molgraph.train(folder / "a.csv", targets=["y"], model="mean", split="random")
    return result.save(folder / "m.mgm")


@pytest.fixture
def folder(tmp_path: Path, model: Path) -> Path:
    """A table, a link to it, a recipe, a split and a model in a folder."""
    (tmp_path / "a.csv").write_text(TEXT)
    (tmp_path / "link.csv").symlink_to("a.csv")
    (tmp_path / "r.toml").write_text(RECIPE)
    rows = list(range(30))
    (tmp_path / "s.json").write_text(str({"train": rows[:20], "test": rows[20:]}).replace("'", '"'))
    shutil.copy(model, tmp_path)
    return tmp_path


def call(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and messages of a verb that runs in a folder."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, list(words), prog_name="molgraph")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stderr


OVER = {
    "train, report": (("train", "a.csv", *MEAN, "--report", "a.csv"), "a.csv is read"),
    "train, recipe saved": (("train", "a.csv", *MEAN, "--save-recipe", "link.csv"), "a.csv is read"),
    "train, a recipe's table": (("train", "-r", "r.toml", "--report", "./a.csv"), "a.csv is read"),
    "train, its recipe": (("train", "-r", "r.toml", "--save-recipe", "r.toml"), "r.toml is read"),
    "train, its split": (("train", "a.csv", *MEAN[:4], "--split", "s.json", "--report", "s.json"), "s.json is read"),
    "train, twice": (("train", "a.csv", *MEAN, "--report", "x", "--save-recipe", "./x"), "x would be written twice"),
    "train, report on model": (("train", "a.csv", *MEAN, "-o", "x", "--report", "x.mgm"), "written twice"),
    "predict": (("predict", "m.mgm", "a.csv", "-o", "a.csv"), "a.csv is read"),
    "predict, a link": (("predict", "m.mgm", "a.csv", "-o", "link.csv"), "a.csv is read"),
    "predict, the model": (("predict", "m.mgm", "a.csv", "-o", "m.mgm"), "m.mgm is read"),
    "evaluate, the model": (("evaluate", "m.mgm", "a.csv", "-o", "m.mgm"), "m.mgm is read"),
    "evaluate, the table": (("evaluate", "m.mgm", "a.csv", "-o", "a.csv"), "a.csv is read"),
    "data audit": (("data", "audit", "a.csv", "-o", "a.csv"), "a.csv is read"),
    "data split": (("data", "split", "a.csv", "-o", "a.csv"), "a.csv is read"),
    "data split, a fold": (("data", "split", "b-1.csv", "--folds", "3", "-o", "b.csv"), "b-1.csv is read"),
    "data featurize": (("data", "featurize", "a.csv", "-o", "a.csv"), "a.csv is read"),
}


@pytest.mark.parametrize("name", OVER)
def test_nothing_is_written_over_what_is_read(name: str, folder: Path) -> None:
    words, expected = OVER[name]
    (folder / "b-1.csv").write_text(TEXT)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, said = call(folder, *words)
    assert code == 2, said
    assert expected in said
    assert "\n  name a" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_devices_may_be_read_and_written_and_other_files_are_no_matter(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    check_writable(tmp_path / "b.csv", None, "-", inputs=[tmp_path / "a.csv", "-", None, "builtin:x", "\0"])
    if os.path.exists(os.devnull):
        check_writable(os.devnull, inputs=[os.devnull])
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "a.csv")
    with pytest.raises(ConflictError, match=r"a\.csv"):
        check_writable(tmp_path / "hard.csv", inputs=[tmp_path / "a.csv"])


def test_a_model_file_ends_in_mgm(folder: Path) -> None:
    code, said = call(folder, "train", "a.csv", *MEAN, "-o", "model.csv")
    assert code == 2
    assert "model files end in .mgm: model.mgm" in said
    assert not (folder / "model.csv").exists()
    assert call(folder, "train", "a.csv", *MEAN, "-o", "assay")[0] == 0
    assert (folder / "assay.mgm").is_file()


BEFORE = {
    "no test part to report on": (("--fractions", "0.9,0.1,0", "--report", "r.html"), 2, "0.8,0.1,0.1"),
    "split": (("--split", "scafold"), 2, "scaffold/"),
    "split without its column": (("--split", "time"), 2, "--split-column"),
    "standardiser": (("--standardise", "standart"), 2, "'standard'"),
    "split file": (("--split", "t.json"), 5, "no split file 't.json'"),
    "model": (("-m", "dmpn"), 2, "dmpnn"),
    "parameter": (("-m", "dmpnn", "-s", "params.dept=3"), 2, "depth"),
    "device": (("-m", "dmpnn", "--device", "tpu"), 2, "cpu"),
    "threads": (("--threads", "0"), 2, "threads"),
    "ending": (("-o", "m.csv"), 2, ".mgm"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_cannot_end_well_is_refused_before_the_table_is_read(name: str, folder: Path) -> None:
    """The table is no table: who looks into it says so with another code."""
    words, code, expected = BEFORE[name]
    (folder / "a.csv").write_bytes(b"PK\x03\x04")
    found, said = call(folder, "train", "a.csv", *MEAN, *words)
    assert (found, expected in said) == (code, True), said
    assert not list(folder.glob("model.mgm*"))


@pytest.mark.parametrize("words", [["--split", "scafold"], ["--fractions", "1,2"], ["-o", "x.txt"]])
def test_data_split_too(words: list[str], folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"PK\x03\x04")
    assert call(folder, "data", "split", "a.csv", *words)[0] == 2


def test_a_model_is_not_written_over_unasked(folder: Path) -> None:
    (folder / "model.mgm").write_text("last week's")
    code, said = call(folder, "train", "a.csv", *MEAN)
    assert code == 2 and "model.mgm is there already" in said and "-o model.mgm" in said
    assert (folder / "model.mgm").read_text() == "last week's"
    (folder / "model.baseline.mgm").touch()
    code, said = call(folder, "train", "a.csv", *MEAN, "-o", "model.mgm")
    assert code == 0 and "model.baseline.mgm is the baseline of an earlier training" in said, "who names it means it"
    code, said = call(folder, "train", "a.csv", *MEAN, "-o", "b.mgm", "--keep", "bets")
    assert code == 2 and "did you mean 'best'?" in said


def test_an_error_before_the_first_step_leaves_no_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(config: RunConfig, method: object, parts: object, work: Path, unlabelled: object) -> None:
        assert work.is_dir()
        raise DataError("nothing to learn")

    monkeypatch.setattr("molgraph.run.fit.run_methods", refuse)
    assert call(folder, "train", "a.csv", *MEAN)[0] == 3
    assert not list(folder.glob("model.mgm*"))
    kept = folder / "model.mgm.work" / ("0" * 16) / "training.ckpt"  # another run's, which goes on from it
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"")
    assert call(folder, "train", "a.csv", *MEAN)[0] == 3
    assert kept.is_file()


def test_a_file_where_a_resume_would_be_kept_is_no_fault_of_molgraph(folder: Path) -> None:
    (folder / "model.mgm.work").write_text("mine")
    code, said = call(folder, "train", "a.csv", *MEAN)
    assert code == 5
    assert "model.mgm.work: it is a file" in said
    assert (folder / "model.mgm.work").read_text() == "mine"


def test_the_recipe_is_kept_where_the_report_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: TrainingResult, path: Path) -> Path:
        raise StorageError(f"cannot write {path}: no space left")

    monkeypatch.setattr(TrainingResult, "report", full)
    code, said = call(folder, "train", "a.csv", *MEAN, "--report", "r.html", "--save-recipe", "kept.toml")
    assert code == 5
    assert "no space left" in said
    assert 'path = "a.csv"' in (folder / "kept.toml").read_text()
    assert (folder / "model.mgm").is_file()


def test_python_is_refused_before_reading_as_well(folder: Path) -> None:
    (folder / "a.csv").write_bytes(b"PK\x03\x04")
    with pytest.raises(UnknownNameError, match="scafold"):
        api.train(folder / "a.csv", targets=["y"], split="scafold")


def test_train_tells_what_it_learns(folder: Path) -> None:
    rows = [line.split(",") for line in TEXT.splitlines()[1:]]
    text = "".join(f"{smiles},{y},{i % 3},{i % 2},{i % 3}\n" for i, (smiles, y) in enumerate(rows))
    (folder / "a.csv").write_text("smiles,y,z,active,level\n" + text)
    kinds = ("-t", "z", "-t", "active", "-t", "level:multiclass")
    code, said = call(folder, "train", "a.csv", *MEAN, *kinds)
    assert code == 0, said
    line = "y (regression), z (regression; z:multiclass for classes), active (binary), level (multiclass)"
    assert f"learning {line}\n" in said
    said = call(folder, "train", "a.csv", *MEAN, "-t", "z:regression", "-o", "b.mgm")[1]
    assert "learning y (regression), z (regression)\n" in said


def test_many_targets_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    frame = {"smiles": ["C", "CC", "CCC"] * 4} | {f"t{i}": [0.5, 1.5, 2.5] * 4 for i in range(700)}
    names = [name for name in frame if name != "smiles"]
    with caplog.at_level(logging.INFO, "molgraph"):
        read_rows(frame, RunConfig().override(f"targets={','.join(names)}"), make_method("mean"))
    assert caplog.messages[-1].endswith("t4 (regression) and 695 more")


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be deleted there")
def test_a_working_folder_that_was_deleted_is_a_sentence(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    before = Path.cwd()
    try:
        os.chdir(gone)
        gone.rmdir()
        for words in (
            "predict M T -o o.csv",
            "data curate T -o o.csv",
            "data split T -o o.csv",
            "train T -t y -m mean",
        ):
            told = [{"M": str(folder / "m.mgm"), "T": str(folder / "a.csv")}.get(word, word) for word in words.split()]
            done = CliRunner().invoke(app, told)
            assert done.exit_code == 5 and "the folder that you work in was deleted" in done.output, words
    finally:
        os.chdir(before)


def test_too_many_open_files_are_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "x")

    monkeypatch.setattr("molgraph.data.read.read_table", refuse)
    done = CliRunner().invoke(app, ["data", "split", str(folder / "a.csv")])
    assert done.exit_code == 5 and "too many open files" in done.output.lower() and "ulimit" in done.output


def test_two_trainings_into_one_file_do_not_share_checkpoints(folder: Path) -> None:
    from molgraph.cli.train import working_folder

    with working_folder(folder / "model.mgm") as workdir:
        (workdir / ("0" * 16)).mkdir()
        (workdir / ("0" * 16) / "training.ckpt").write_bytes(b"")
        code, said = call(folder, "train", "a.csv", *MEAN)
        assert code == 5 and "another training is writing model.mgm" in said and "choose another --out" in said
        assert list(workdir.rglob("*.ckpt")) and not (folder / "model.mgm").exists()
    assert not workdir.exists()
    workdir.mkdir()
    (workdir / "claim").write_bytes(b"")  # of one that was killed
    assert call(folder, "train", "a.csv", *MEAN)[0] == 0 and not workdir.exists()


@pytest.mark.parametrize("out", [".", ""])
@pytest.mark.parametrize("words", ["data audit a.csv", "data split a.csv", "train a.csv -t y", "predict m.mgm a.csv"])
def test_an_output_that_names_no_file_is_a_sentence(
    words: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("smiles,y\nCCO,1\n")
    done = CliRunner().invoke(app, [*words.split(), "-o", out])
    assert done.exit_code == 2 and "Traceback" not in done.output, done.output
