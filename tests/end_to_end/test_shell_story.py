"""The main job from the shell: each verb, the nasty list, broken input, and the exit codes."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph as mg

ROOT = Path(__file__).resolve().parents[2]
MODELS = ["graph_model", "ensemble_model", "forest_model"]


@pytest.mark.slow
def test_train_tells_scores_verdict_and_next_step(home: Path, graph_model: Path) -> None:
    words = (home / "graph.txt").read_text()
    for expected in ("random_forest", "mean", "rmse", "roc_auc", "pActivity:", "active:", "molgraph predict graph.mgm"):
        assert expected in words
    page = (home / "report.html").read_text()
    assert "<svg" in page or "data:image" in page
    assert 'src="http' not in page
    assert not (home / "graph.mgm.work").exists()
    model = mg.load(graph_model)
    assert model.card.recipe["training"]["epochs"] == 2 and model.card.n_test > 0
    recipe = (home / "recipe.toml").read_text()
    assert 'path = "assay.csv"' in recipe and "d_hidden = 16" in recipe


def test_the_baseline_is_kept_beside_the_model(home: Path, graph_model: Path, run) -> None:
    """Friction 1: the dmpnn was saved and the fitted forest thrown away."""
    words = (home / "graph.txt").read_text()
    assert "model written to graph.mgm" in words and "baseline written to graph.baseline.mgm" in words
    forest = mg.load(home / "graph.baseline.mgm")
    assert forest.name == "random_forest" and {row["target"] for row in forest.card.scores} == {"pActivity", "active"}
    assert run("verify", home / "graph.baseline.mgm").returncode == 0


@pytest.mark.parametrize("keep", ["best", "baseline", "model"])
def test_one_of_both_is_kept(keep: str, home: Path, tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("molgraph.run.baselines.BASELINE", "knn")
    monkeypatch.setattr("molgraph.run.fit.BASELINE", "knn")
    words = ("-t", "pActivity", "--epochs", "1", "-s", "params.d_hidden=8", "--split", "random", "--threads", "1")
    done = run("train", home / "assay.csv", *words, "--keep", keep, "-o", "m.mgm")
    assert done.returncode == 0, done.stderr
    assert [p.name for p in tmp_path.glob("*.mgm")] == ["m.mgm"]
    model = mg.load(tmp_path / "m.mgm")
    assert model.name == ("dmpnn" if keep == "model" else "knn")
    if keep == "best":
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("knn is kept: RMSE")]
        assert "These rows also stopped the training of dmpnn, which flatters it here." in line
        assert line.startswith(model.card.notes[-1]) and "--model auto" in line


def test_a_recipe_repeats_the_run(home: Path, graph_model: Path, run) -> None:
    out = home / "again.mgm"
    done = run("train", home / "assay.csv", "--recipe", home / "recipe.toml", "-o", out, "--no-baseline")
    assert done.returncode == 0, done.stderr
    smiles = ["CCO", "c1ccccc1"]
    assert np.array_equal(mg.load(out).predict(smiles).value, mg.load(graph_model).predict(smiles).value)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_predict_evaluate_verify(name: str, home: Path, run, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(name)
    done = run("predict", model, home / "assay.csv", "-o", home / f"{name}.csv")
    assert done.returncode == 0 and "150 rows" in done.stderr, done.stderr
    assert ("The spread is not calibrated" in done.stderr) == (name == "ensemble_model")
    frame = pd.read_csv(home / f"{name}.csv", dtype={"id": str})
    given = pd.read_csv(home / "assay.csv", dtype=str)
    assert frame["id"].tolist() == given["id"].tolist() and frame["smiles"].tolist() == given["smiles"].tolist()
    assert set(frame["status"]) == {"ok"}
    if name == "ensemble_model":
        assert (frame["pActivity_predicted_spread"] > 0).all()
    if name == "forest_model":
        shares = frame[["level:high", "level:low", "level:middle"]].sum(axis=1)
        assert np.allclose(shares, 1, atol=1e-6)
    if name == "graph_model":
        assert frame["active_predicted"].between(0, 1).all()
    done = run("evaluate", model, home / "assay.csv", "-o", home / "scores.csv")
    assert done.returncode == 0, done.stderr
    assert {"target", "metric", "value", "n", "note"} <= set(pd.read_csv(home / "scores.csv").columns)
    done = run("verify", model)
    assert done.returncode == 0 and "ok:" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODELS)
def test_nasty_list(name: str, run, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lines = [line.split("\t")[0] for line in (ROOT / "tests" / "nasty.tsv").read_text().splitlines()]
    with open(tmp_path / "in.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "smiles"], *([f"{i:03d}", text] for i, text in enumerate(lines))])
    done = run("predict", request.getfixturevalue(name), "in.csv", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    frame = pd.read_csv(tmp_path / "out.csv", dtype={"id": str}, keep_default_na=False)
    assert frame["id"].tolist() == [f"{i:03d}" for i in range(len(lines))]
    value = pd.to_numeric(frame.iloc[:, 2], errors="coerce")
    ok = frame["status"] == "ok"
    assert (value.notna() == ok).all() and (frame["reason"] != "").eq(~ok).all()
    assert 0 < ok.sum() < len(lines)


def test_pipe_to_pipe_keeps_ids(run, graph_model: Path) -> None:
    done = run("predict", graph_model, "-", stdin="id,smiles\n007,CCO\nNA,C(C\n")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [row["id"] for row in rows] == ["007", "NA"] and [row["status"] for row in rows] == ["ok", "unreadable"]


def test_on_error(run, graph_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,smiles\na,CCO\nb,C(C\n")
    assert run("predict", graph_model, "in.csv", "-o", "out.csv", "--on-error", "drop").returncode == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 1
    done = run("predict", graph_model, "in.csv", "-o", "out.csv", "--on-error", "stop")
    assert done.returncode == 3 and "row 2 (id b)" in done.stderr and "--on-error keep" in done.stderr
    assert run("predict", graph_model, "in.csv", "--on-error", "kepe").returncode == 2


def test_data_verbs(run, home: Path, tmp_path: Path) -> None:
    done = run("data", "audit", home / "assay.csv", "-t", "pActivity", "-o", "odd.csv")
    assert done.returncode == 0 and "duplicate" in done.stdout, done.stderr
    done = run("data", "split", home / "assay.csv", "-o", "split.csv")
    assert done.returncode == 0, done.stderr
    words = pd.read_csv(tmp_path / "split.csv")["split"].value_counts()
    assert words["train"] == 120 and words["test"] == 15
    done = run("data", "split", home / "assay.csv", "--split", "random", "--folds", "3", "-o", "fold.json")
    assert done.returncode == 0 and len(list(tmp_path.glob("fold-*.json"))) == 3
    done = run("data", "featurize", home / "assay.csv", "-o", "store")
    assert done.returncode == 0 and "150 rows" in done.stdout, done.stderr


def test_a_split_file_is_used(run, home: Path, tmp_path: Path) -> None:
    assert run("data", "split", home / "assay.csv", "--split", "random", "-o", "split.json").returncode == 0
    done = run("train", home / "assay.csv", "-t", "pActivity", "-m", "mean", "--split", "split.json", "-o", "m.mgm")
    assert done.returncode == 0, done.stderr
    assert "120 train, 15 valid, 15 test" in done.stderr


BAD_TARGETS = {
    "nan": ([""] * 6, 3),
    "text": (["a", "b", "c", "d", "e", "f"], 3),
    "infinite": (["1", "2", "inf", "4", "5", "6"], 0),
    "constant": (["1.5"] * 6, 3),
    "one class": (["0"] * 6, 3),
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_odd_targets(name: str, run, tmp_path: Path) -> None:
    values, expected = BAD_TARGETS[name]
    smiles = ["CCO", "CCN", "CCC", "c1ccccc1", "CCCl", "CCBr"]
    (tmp_path / "in.csv").write_text("smiles,y\n" + "".join(f"{s},{v}\n" for s, v in zip(smiles, values, strict=True)))
    words = ("--split", "random", "--fractions", "0.6,0.2,0.2", "--epochs", "1", "--set", "params.d_hidden=8")
    done = run("train", "in.csv", "-t", "y", "--no-baseline", *words)
    assert done.returncode == expected, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if expected:
        assert "error: " in done.stderr and "\n  " in done.stderr
        assert "y" in done.stderr


TABLES = {
    "empty": ("", 3, "empty"),
    "header alone": ("smiles,y\n", 3, ""),
    "one row": ("smiles,y\nCCO,1\n", 3, ""),
    "no such target": ("smiles,z\nCCO,1\nCC,2\n", 3, "z"),
    "duplicate names": ("smiles,y,y\nCCO,1,1\nCC,2,2\n", 3, "y"),
}


@pytest.mark.parametrize("name", TABLES)
def test_odd_tables(name: str, run, tmp_path: Path) -> None:
    text, code, word = TABLES[name]
    (tmp_path / "in.csv").write_text(text)
    done = run("train", "in.csv", "-t", "y", "--no-baseline", "--epochs", "1")
    assert done.returncode == code and word in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "model.mgm").exists()


def test_header_alone_is_predicted_as_a_header(run, graph_model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,smiles\n")
    done = run("predict", graph_model, "in.csv", "-o", "out.csv")
    assert done.returncode == 0, done.stderr
    numbers = "pActivity,pActivity_low,pActivity_high,active,active_set"
    beside = "domain,distance,nearest,nearest_id,nearest_pActivity,nearest_active,status,reason"
    assert (tmp_path / "out.csv").read_text() == f"id,smiles,{numbers},{beside}\n"


REFUSED = {
    "unknown model": (("train", "a.csv", "-t", "y", "-m", "dmpn"), 2, "dmpnn"),
    "unknown key": (("train", "a.csv", "-t", "y", "--set", "epoch=3"), 2, "epochs"),
    "unknown split": (("train", "a.csv", "-t", "y", "--split", "scafold/balanced"), 2, "scaffold/balanced"),
    "fractions": (("train", "a.csv", "-t", "y", "--fractions", "0.8,0.2"), 2, "0.8,0.1,0.1"),
    "no file": (("train", "asay.csv", "-t", "y"), 5, "no file 'asay.csv'\n  did you mean 'assay.csv'?"),
    "no file like it": (("train", "b.csv", "-t", "y"), 5, "no file 'b.csv'\n  the folder '.' holds a.csv, assay.csv"),
    "no recipe": (("train", "--recipe", "a.toml"), 5, "no recipe 'a.toml'\n  did you mean 'a.csv'?"),
    "no input": (("predict", "{model}", "asay.csv"), 5, "no file 'asay.csv'\n  did you mean 'assay.csv'?"),
    "no folder": (("train", "a.csv", "-t", "y", "-o", "no/model.mgm"), 5, "does not exist"),
    "no model": (("predict", "asay.mgm", "a.csv"), 5, "no model file 'asay.mgm'\n  did you mean 'assay.mgm'?"),
    "foreign model": (("predict", "a.csv", "a.csv"), 4, "a.csv"),
    "unknown ending": (("predict", "{model}", "a.csv", "-o", "out.ods"), 2, ".parquet"),
    "no data": (("train",), 2, ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_have_a_sentence_and_a_code(name: str, run, tmp_path: Path, graph_model: Path) -> None:
    words, code, expected = REFUSED[name]
    (tmp_path / "a.csv").write_text("smiles,y\n" + "".join(f"{'C' * n},{n}\n" for n in range(1, 31)))
    (tmp_path / "assay.csv").write_text("")
    (tmp_path / "assay.mgm").write_bytes(b"")
    done = run(*(word.replace("{model}", str(graph_model)) for word in words))
    assert done.returncode == code, (done.returncode, done.stderr)
    assert expected in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("model", ["mean", "random_forest"])
def test_a_forest_is_trained_beside_a_graph_model_alone(model: str, home: Path, run) -> None:
    small = ("--set", "params.n_estimators=5") if model == "random_forest" else ()
    done = run("train", home / "assay.csv", "-t", "pActivity", "-m", model, "--split", "random", *small)
    assert done.returncode == 0, done.stderr
    assert {line.split()[0] for line in done.stdout.splitlines() if "." in line and line[:1].isalpha()} >= {"mean"}
    assert ("random_forest" in done.stdout) == (model == "random_forest")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_full_disk(run, home: Path, graph_model: Path) -> None:
    done = run("predict", graph_model, home / "assay.csv", "-o", "/dev/full")
    assert done.returncode == 5 and "no space left" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT there")
def test_ctrl_c_keeps_what_is_done(home: Path, tmp_path: Path, run) -> None:
    words = ["train", home / "assay.csv", "-t", "pActivity", "--epochs", "100000", "--patience", "none", "-o", "m.mgm"]
    words = [*map(str, words), "--no-baseline", "--set", "params.checkpoint_seconds=0"]
    words[words.index("--patience") : words.index("--patience") + 2] = ["--set", "patience=none"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "molgraph", *words]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while process.poll() is None and not list(tmp_path.glob("m.mgm.work/*/training.ckpt")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert re.search(r"^stopped by Ctrl-C in epoch \d+; the checkpoint is m\.mgm\.work", said, re.M), said
    assert said.endswith("\n  run the same command again to go on from there\n") and "Traceback" not in said
    assert not (tmp_path / "m.mgm").exists()
