"""molgraph models: one line an entry, whole with a name; the parameters of splits; names of other kinds."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from molgraph.cli.main import app

run = CliRunner().invoke


def test_models_lists_what_train_takes() -> None:
    page = run(app, ["models"], env={"COLUMNS": "140"})
    assert page.exit_code == 0, page.output
    for words in ("dmpnn", "mpnn", "random_forest", "mean", "directed message passing", "Gilmer 2017"):
        assert words in page.stdout


@pytest.mark.parametrize("kind", ["model", "split", "readout", "standardiser"])
def test_models_takes_one_line_an_entry(kind: str) -> None:
    found = [
        e["name"] for e in json.loads(run(app, ["models", "--kind", kind, "--json"]).stdout) if e["name"] != "graph"
    ]
    for width in ("60", "80", "140"):
        lines = run(app, ["models", "--kind", kind], env={"COLUMNS": width}).stdout.splitlines()
        shown = [line.split()[0] for line in lines[3:] if line[24:].strip() and not line.startswith(" ")]
        assert shown[: len(found)] == found, width
        assert max(map(len, lines)) <= int(width)


def test_models_shows_the_parameters_of_splits_and_finds_names_of_other_kinds() -> None:
    assert run(app, ["models", "--kind", "search"]).stdout.startswith("Searches")
    page = run(app, ["models", "--kind", "split"], env={"COLUMNS": "80"}).stdout
    assert re.search(r"cluster/butina +similarity = 0\.4, radius = 2, n_bits = 2048\n", " ".join(page.split(" ")))
    assert re.search(r"column +column, fold, leave_out, inner *\n", page) and "params = { NAME = VALUE }" in page
    (entry,) = json.loads(run(app, ["models", "cluster/butina", "--json"]).stdout)
    assert entry["kind"] == "split" and entry["parameters"]["similarity"] == 0.4
    assert "scaffold/balanced  " in run(app, ["models", "scaffold"]).stdout
    assert "did you mean 'cluster/butina'" in run(app, ["models", "cluster/butin"]).stderr


def test_models_tells_one_models_parameters() -> None:
    page = run(app, ["models", "dmpnn"], env={"COLUMNS": "140"}).stdout
    assert all(words in page for words in ("depth", "learning_rate", "Yang", "next bond"))
    (entry,) = json.loads(run(app, ["models", "dmpnn", "--json"]).stdout)
    assert entry["line"]["rows"] == "directed bonds"
    assert entry["parameters"]["depth"] == 3
    assert entry["parameters"]["batch_size"] == 64


@pytest.mark.parametrize("kind", ["split", "metric", "standardiser", "readout"])
def test_models_lists_other_kinds(kind: str) -> None:
    found = json.loads(run(app, ["models", "--kind", kind, "--json"]).stdout)
    assert len(found) >= 3 and all(entry["summary"] for entry in found)
    assert run(app, ["models", "--kind", kind]).exit_code == 0


@pytest.mark.parametrize("words", [["dmpn"], ["--kind", "splits"]])
def test_models_answers_unknown_names_with_known_ones(words: list[str]) -> None:
    result = run(app, ["models", *words])
    assert result.exit_code == 2
    assert "did you mean" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gin"], ["Use it for graphs without chemistry", "Known limits: it tells no graphs apart"]),
        (["infograph"], ["d_score 128 width of", "--objective 'infograph(NAME=VALUE)'", "infograph -o"]),
        (["set2set"], ["steps 3 number of questions.", "-s params.readout=set2set"]),
        (["pair"], ["scale 1.0 the root mean square", "-s params.norm=pair"]),
        (
            ["mean-teacher"],
            ["try it: molgraph train dataset:chembl2321810 -m gin --objective mean-teacher --unlabelled"],
        ),
    ],
)
def test_models_says_when_to_use_one_and_how(words: list[str], said: list[str]) -> None:
    page = " ".join(run(app, ["models", *words], env={"COLUMNS": "80"}).stdout.split())
    assert all(each in page for each in said), page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["group"], "molgraph models group --kind norm\n  the split of that name: molgraph models group --kind split"),
        (["dmpnn", "--kind", "readout"], "molgraph models dmpnn --kind encoder"),
        (["forset"], "did you mean 'random_forest'?"),
        (["schnet", "--why"], "your own table: molgraph train assay.csv -t Y -m schnet"),
    ],
)
def test_models_says_what_to_type_instead(words: list[str], said: str) -> None:
    result = run(app, ["models", *words])
    assert result.exit_code == 2 and said in result.stderr, result.stderr
