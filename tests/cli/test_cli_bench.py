"""``molgraph bench run`` and ``verify`` as a person types them: what is printed, and the exit codes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import molgraph
from molgraph.base.errors import BadValueError, MissingOptionError, UnknownNameError
from molgraph.base.resources import recipe_names
from molgraph.cli.bench import parse_only
from molgraph.cli.main import app
from molgraph.data import cards
from molgraph.data.datasets import load_dataset
from molgraph.evaluate.benchmark.result import BenchmarkResult
from molgraph.evaluate.benchmark.run_folder import SCORES
from tests.evaluate.bench_tables import small

RECIPE = """
datasets = [{datasets}]
seeds = [0]
[[split]]
splitter = "random"
folds = 2
[[method]]
name = "mean"
[[method]]
name = "dmpnn"
label = "refuses"
params = {{ device = "cuda:99" }}
"""


@pytest.fixture(autouse=True)
def _few_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("molgraph.api.benchmarking.IMPORTS", ("molgraph.auxiliary",))  # what the mean needs


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the recipe for some datasets."""

    def write(datasets: str) -> Path:
        path = tmp_path / "mine.toml"
        path.write_text(RECIPE.format(datasets=datasets))
        return path

    return write


def call(*words: object) -> Result:
    """A command line's output and exit code."""
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


def test_run_sums_up_and_says_what_to_type_next_and_verify_checks_it(write, tmp_path):
    recipe, out = write('"chembl2321810"'), tmp_path / "out"
    dry = call("bench", "run", recipe, "-o", out, "--dry-run")
    assert dry.exit_code == 0 and "4 cells: 0 are there, 4 would be computed" in dry.output and not out.exists()
    found = call("bench", "run", recipe, "-o", out, "--only", "method=mean")
    assert found.exit_code == 0, found.output
    assert "2 cells: 2 ok (" in found.output and "chembl2321810 random-1x2 rmse" in found.output
    assert f"molgraph bench report {out}" in found.output and f"molgraph bench verify {out}" in found.output
    again = call("bench", "run", recipe, "-o", out, "--only", "method=mean")
    assert "2 cells: all were there (" in again.output
    right = call("bench", "verify", out)
    assert right.exit_code == 0 and "2 cells are as they were written, 8 scores made anew" in right.output
    text = (out / SCORES).read_text()
    (out / SCORES).write_text(text.replace(",rmse,1.", ",rmse,0."))
    wrong = call("bench", "verify", out)
    assert wrong.exit_code == 1 and "scores.csv has 0." in wrong.output
    assert "2 of 4 cells are there" in right.output and "0 cells are as they were written" in wrong.output
    shutil.rmtree(out / "cells")
    (out / SCORES).unlink()
    none = call("bench", "verify", out)
    assert none.exit_code == 1 and "there is nothing to verify: none of 4 cells is there" in none.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["quik"], "did you mean 'quick'"),
        (["quick", "--engine", "rey"], "did you mean 'ray'"),
        (["quick", "--only", "method=dmpn"], "did you mean 'dmpnn'"),
        (["quick", "--only", "esol"], "not of the form key=value"),
        (["quick", "--only", "seed=99"], "the recipe has no seed '99'"),
        (["quick", "--only", "fold=7"], "known: 0, 1, 2, 3, 4"),
        (["quick", "--retry", "timeouts"], "did you mean 'timeout'"),
        (["quick", "--jobs", "0"], "--jobs is 0"),
    ],
)
def test_slips_are_answered_with_the_nearest_known_word(words, said, tmp_path):
    found = call("bench", "run", *words, "-o", tmp_path / "out")
    assert found.exit_code == 2 and said in found.output and not (tmp_path / "out").exists()


def test_a_folder_that_is_none_is_exit_code_5(tmp_path):
    assert call("bench", "verify", tmp_path).exit_code == 5


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_help_has_examples(verb):
    found = call("bench", verb, "--help")
    assert found.exit_code == 0 and f"molgraph bench {verb}" in found.output.partition("Examples")[2]


def test_help_names_all_recipes_that_ship():
    text = " ".join(call("bench", "run", "--help").output.replace("│", " ").split())
    assert len(recipe_names()) >= 3 and ", ".join(recipe_names()) in text


def test_only_is_read_with_commas_and_again():
    assert parse_only(["fold=0,1", "method=mean", "fold=2"]) == {"fold": {"0", "1", "2"}, "method": {"mean"}}
    with pytest.raises(BadValueError, match="mean"):
        parse_only(["mean"])


def test_the_same_from_python_on_tables_of_ones_own(tmp_path):
    values = {"name": "own", "datasets": ["mine"], "split": [{"splitter": "random"}], "method": [{"name": "mean"}]}
    result = molgraph.benchmark(values, tmp_path, tables={"mine": small()})
    assert isinstance(result, BenchmarkResult) and result.ran.made == {"ok": 1}
    assert result.summary.loc["mine random rmse", "mean"] > 0 and len(result.scores) == 4 and len(result.cells) == 1
    assert "1 of 1 cells" in repr(result) and "<table" in result._repr_html_() and result.verify().ok
    with pytest.raises(UnknownNameError, match="mine"):
        molgraph.benchmark(values, tmp_path / "other")


def test_plain_values_need_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = {"datasets": ["mine"], "split": [{"splitter": "random"}], "method": [{"name": "mean"}]}
    result = molgraph.benchmark(values, tables={"mine": small()}, dry_run=True)
    assert result.out == Path("bench/unnamed") and result.ran.wanted == 1
    with pytest.raises(MissingOptionError, match="datasets"):
        molgraph.benchmark({"method": []})


@pytest.mark.slow
def test_a_run_of_which_no_cell_is_ok_is_exit_code_1_and_one_that_goes_on_is_not(write, tmp_path):
    recipe, out = write('"chembl2321810"'), tmp_path / "out"
    failed = call("bench", "run", recipe, "-o", out, "--only", "method=refuses,fold=0")
    assert failed.exit_code == 1 and "of 1 cells computed, none is ok" in failed.output
    assert f"molgraph bench run {recipe} -o {out} --retry failed" in failed.output
    more = call("bench", "run", recipe, "-o", out, "--only", "fold=0", "--retry", "failed")
    assert more.exit_code == 0 and "1 ok, 1 refused" in more.output and "none is ok" not in more.output
    text = " ".join(call("bench", "run", "--help").output.replace("│", " ").split())
    assert "It is 1 where cells were computed and none of them is ok." in text


@pytest.mark.slow
def test_a_file_of_ones_own_is_benchmarked_from_a_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = small(kind="binary")
    rows = [f"{smiles},{int(y)}" for smiles, y in zip(table.smiles, table.y[:, 0], strict=True)]
    Path("measured.csv").write_text("\n".join(["structure,active", *rows, "C1CC,1"]))
    head = 'datasets = ["own"]\nsplit = [{ splitter = "random", folds = 2 }]\nmethod = [{ name = "mean" }]\n'
    Path("no.toml").write_text(head)
    found = call("bench", "run", "no.toml")
    assert found.exit_code == 2 and "no dataset is named 'own'" in found.output and "[[table]]" in found.output
    more = '[[table]]\nname = "own"\npath = "measured.csv"\ntargets = ["active:binary"]\nmetric = "mcc"\n'
    Path("mine.toml").write_text(head + more)
    Path("gone.toml").write_text(head + more.replace("measured", "measurd"))
    found = call("bench", "run", "gone.toml")
    assert found.exit_code == 5 and "the [[table]] 'own': there is no file 'measurd.csv'" in found.output
    words = " ".join(found.output.split())
    assert "did you mean 'measured.csv'" in words and f"that the run is started in, {Path.cwd()}" in words
    found = call("bench", "run", "mine.toml")
    assert "own: 60 of 61 rows; 1 cannot be read" in found.output
    assert found.exit_code == 0 and "2 ok" in found.output and "own random-1x2 mcc" in found.output
    assert call("bench", "verify", "bench/mine").exit_code == 0
    result = molgraph.benchmark("mine.toml")
    assert result.ran.there == 2 and result.scores.query("metric == 'mcc'")["n"].sum() == len(rows)


def test_a_dataset_that_is_not_its_cards_is_refused_and_the_exit_code_says_so(write, tmp_path, monkeypatch):
    real = cards.card
    monkeypatch.setattr("molgraph.data.datasets.card", lambda name: real(name).model_copy(update={"hash": "0" * 64}))
    found = call("bench", "run", write('"chembl2321810"'), "-o", tmp_path / "out")
    monkeypatch.undo()
    assert found.exit_code == 3 and "is refused" in found.output
    assert "0" * 64 in found.output and load_dataset("chembl2321810").hash in found.output, "both hashes"


@pytest.mark.slow
def test_a_split_that_cannot_divide_a_dataset_is_said_and_is_exit_code_3(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("odd.csv").write_text("\n".join(["smiles,y", *(f"c1ccccc1{'C' * n},{n}" for n in range(20))]))
    head = (
        'datasets = ["odd"]\nmethod = [{ name = "mean" }]\n[[table]]\nname = "odd"\npath = "odd.csv"\ntargets = ["y"]'
    )
    splits = '[[split]]\nsplitter = "random"\nfolds = 2\n[[split]]\nsplitter = "scaffold/balanced"'
    Path("mine.toml").write_text(f"{head}\n{splits}\n")
    said = "odd, scaffold-balanced is refused: the split 'scaffold/balanced' would leave"
    dry = call("bench", "run", "mine.toml", "--dry-run")
    assert dry.exit_code == 3 and said in dry.output and "2 would be computed" in dry.output
    found = call("bench", "run", "mine.toml")
    assert found.exit_code == 3 and said in found.output and "2 ok" in found.output
    assert call("bench", "verify", "bench/mine").exit_code == 0


def test_a_run_of_which_everything_is_refused_says_so_and_advises_no_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("few.csv").write_text("smiles,y\nCCO,1\nCCN,2\n")
    head = 'datasets = ["few"]\nmethod = [{ name = "mean" }]\nsplit = [{ splitter = "scaffold" }]\n'
    Path("mine.toml").write_text(f'{head}[[table]]\nname = "few"\npath = "few.csv"\ntargets = ["y"]\n')
    for words, said in (([], "computed"), (["--dry-run"], "planned")):
        found = call("bench", "run", "mine.toml", *words)
        assert found.exit_code == 3 and f"nothing was {said}: everything that was asked for is refused" in found.output
        assert "the split 'scaffold/balanced' would leave" in found.output
        assert "or the splitter 'random'" in found.output
        assert "0 were there" not in found.output and "bench report" not in found.output
