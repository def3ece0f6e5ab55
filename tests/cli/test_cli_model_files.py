"""A stranger's model file at a shell: exit code 4 or 5 and a sentence, and nothing that a terminal obeys."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from molgraph.base.contracts import Target
from molgraph.base.cores import MOST
from molgraph.base.errors import CannotReadError, MolgraphError
from molgraph.cli.main import app
from molgraph.data.table import make_table
from molgraph.train import archive, stream
from molgraph.train.modelfile import load_model
from pipelines.attack.mutate import pack, unpack

GOLDEN = Path(__file__).parents[1] / "golden"
EVIL = "logS\x1b[2J\x1b]0;owned\x07\u202e"


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    return done.exit_code, done.output


@pytest.mark.parametrize("verb", ["verify", "predict", "evaluate"])
def test_a_hostile_file_ends_in_exit_code_4(tmp_path, verb):
    (tmp_path / "a.csv").write_text("smiles,y\nCCO,1\n")
    opened = unpack((GOLDEN / "0.1.0-dmpnn.mgm").read_bytes())
    for odd in ({"epochs": 0}, {"precision": 7}, {"encoder": "none"}, {"device": "cuda", "params": {"depth": 3.5}}):
        changed = unpack(pack(opened))
        changed.parts["method.json"]["meta"]["params"] |= odd
        (tmp_path / "odd.mgm").write_bytes(pack(changed))
        code, out = run(verb, tmp_path / "odd.mgm", *([] if verb == "verify" else [tmp_path / "a.csv"]))
        assert code == 4 and "Traceback" not in out, (odd, out)


@pytest.mark.parametrize("verb", ["verify", "predict"])
def test_what_is_no_file_is_refused_at_once(tmp_path, verb):
    os.mkfifo(tmp_path / "pipe.mgm")
    (tmp_path / "a.csv").write_text("smiles\nCCO\n")
    for place in (tmp_path / "pipe.mgm", tmp_path, Path("/dev/zero")):
        code, out = run(verb, place, *([] if verb == "verify" else [tmp_path / "a.csv"]))
        assert code == 5, (place, out)


def test_too_many_open_files_is_no_damage(monkeypatch):
    def full(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(archive.zipfile, "ZipFile", full)
    with pytest.raises(CannotReadError, match="ulimit"):
        load_model(GOLDEN / "0.1.0-mean.mgm")


def evil(tmp_path: Path) -> Path:
    """A file whose every name is hostile to a terminal."""
    opened = unpack((GOLDEN / "0.1.0-mean.mgm").read_bytes())
    for part in (opened.parts["targets.json"], opened.parts["method.json"]["meta"]):
        part["targets"][0]["name"] = EVIL
    scores = [{"target": EVIL, "metric": EVIL, "value": 1.0, "part": EVIL}]
    opened.parts["card.json"] |= {"name": EVIL, "what": EVIL, "notes": [EVIL], "units": {EVIL: EVIL}, "scores": scores}
    opened.parts["card.json"] |= {"split": EVIL, "n_train": 3, "versions": {"molgraph": EVIL}, "created": EVIL}
    (tmp_path / "evil.mgm").write_bytes(pack(opened))
    return tmp_path / "evil.mgm"


def harmless(text: str) -> bool:
    return not any((c < " " and c not in "\t\n\r") or c in "\x7f\u202e" for c in text)


def test_names_of_a_model_are_printable_where_they_reach_a_terminal(tmp_path, monkeypatch):
    path = evil(tmp_path)
    code, out = run("verify", path)
    assert code == 0 and r"logS\x1b[2J" in out and harmless(out)
    (tmp_path / "a.csv").write_text("smiles\nCCO\n")
    code, out = run("predict", path, tmp_path / "a.csv", "-o", str(tmp_path / "b.csv"))
    assert code == 0 and harmless(out) and EVIL in (tmp_path / "b.csv").read_text(), "a file gets the name as it is"
    code, out = run("evaluate", path, tmp_path / "a.csv")
    assert code != 0 and harmless(out)
    model = load_model(path)
    assert harmless(repr(model)) and harmless(repr(model.predict(["CCO"])))
    assert harmless(str(MolgraphError(EVIL, hint=EVIL)))


def test_predictions_on_a_terminal_are_printable(tmp_path, monkeypatch, capfdbinary):
    model = load_model(evil(tmp_path))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    stream.predict_stream(model, make_table(["CCO"]), "-")
    sys.stdout.flush()
    out = capfdbinary.readouterr().out.decode()
    assert r"logS\x1b[2J" in out and harmless(out)
    assert model.targets == (Target(EVIL),)


def test_more_threads_than_a_machine_can_start_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y\n" + "".join(f"{'C' * i}O,{i}\n" for i in range(1, 30)))
    for words in (
        ("predict", GOLDEN / "0.1.0-forest.mgm", tmp_path / "a.csv"),
        ("train", tmp_path / "a.csv", "--target", "y", "-o", tmp_path / "m.mgm"),
    ):
        code, out = run(*words, "--threads", str(10**6))
        assert code == 2 and "threads is 1000000" in out, out
    assert MOST >= 64 and not (tmp_path / "m.mgm").exists()
