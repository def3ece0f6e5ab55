"""A record is enough to make a benchmark's board again, and its picture shows who is where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from molgraph.base.errors import FormatError, MissingFileError, UnsupportedError
from molgraph.data.datasets import load_dataset
from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.frozen_splits import freeze
from molgraph.evaluate.benchmark.published_record import ABOUT, PACKED, is_record, read_record
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import read_scores, score_records
from pipelines.boards.picture import FIRST, cell, in_order, write_picture
from tests.evaluate.bench_scores import failed, made_up
from tests.evaluate.bench_tables import small, three_and_a_failure

QUOTE = {"dataset": "small", "split": "random-1x5", "method": "Paper's", "metric": "rmse", "value": 0.1}
QUOTE |= {"protocol": "of its own", "source": "Nobody 2020"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three good methods, one that fails, and a dataset that is refused; values measured more than once."""
    tables = {"small": small(100), "bare": small().with_targets([])}
    return three_and_a_failure(tmp_path_factory.mktemp("bench") / "run", tables, quoted=[QUOTE], title="Of nothing")


@pytest.fixture(scope="module")
def stored(run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchReport, Path]:
    folder = tmp_path_factory.mktemp("record") / "kept"
    return write_bench_report(run, record=folder), folder


RECORDS = Path(__file__).parents[2] / "pipelines" / "records"
PUBLISHED = [path.name for path in sorted(RECORDS.iterdir()) if path.name != "hiv"]  # 41,127 molecules: four minutes


def folds_of(record: str, *, builtin: bool, out: Path) -> tuple[dict[tuple, str], dict[tuple, str]]:
    """The hashes of a record's folds, and those that its recipe gives now, of sets with or without a download."""
    recipe, found = BenchRecipe.from_toml(RECORDS / record / "recipe.toml"), dict[tuple, str]()
    names = [name for name in recipe.datasets if name.startswith("chembl") == builtin]
    for name in names:
        parts, _ = freeze(recipe, out, name, load_dataset(name).table, write=False)
        found |= {(name, *part): split.hash for part, split in parts.items()}
    scores = read_scores(RECORDS / record / PACKED).query("dataset in @names and split_hash != ''")
    keys = ["dataset", "split", "repeat", "fold"]
    return scores.drop_duplicates(keys).set_index(keys)["split_hash"].to_dict(), found


@pytest.mark.slow
def test_published_records_stand_on_the_folds_of_today(tmp_path: Path) -> None:
    known, found = folds_of("quality", builtin=True, out=tmp_path)
    assert known == found and len(found) == 5


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("record", PUBLISHED)
def test_published_records_of_larger_sets_stand_on_them_too(record: str, tmp_path: Path) -> None:
    known, found = folds_of(record, builtin=False, out=tmp_path)
    assert known == found and found


def test_a_record_makes_the_same_leaderboard_without_predictions(stored, tmp_path):
    report, folder = stored
    again = read_record(folder)
    assert leaderboard(again) == leaderboard(report)
    assert "crashed" in leaderboard(again) and "bare was refused" in leaderboard(again)
    assert [b.quoted for b in again.boards] == [b.quoted for b in report.boards]
    assert [b.ceilings for b in again.boards] == [b.ceilings for b in report.boards]
    page = tmp_path / "page.html"
    assert write_bench_report(folder, page).wanted == report.wanted and page.stat().st_size > 10_000


def test_a_record_holds_every_score_and_the_hash_of_every_prediction(run, stored):
    scores, kept = score_records(read_records(run)), read_scores(stored[1] / PACKED)
    assert kept["value"].tolist() == pytest.approx(scores["value"].tolist(), abs=0, rel=0, nan_ok=True)
    hashes = {r.cell.key: r.manifest["predictions_sha256"] for r in read_records(run).done}
    found = kept.drop_duplicates("key").set_index("key")["predictions_sha256"]
    assert {key: found[key] for key, sha in hashes.items() if sha} == {k: v for k, v in hashes.items() if v}


def test_the_same_run_gives_the_same_record_to_the_byte(run, stored, tmp_path):
    write_bench_report(run, record=tmp_path / "again")
    for path in stored[1].iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_a_record_that_is_not_whole_says_so(stored, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in stored[1].iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert is_record(copy)
    with pytest.raises(UnsupportedError, match="copy"):
        write_bench_report(copy, record=tmp_path / "other")
    packed = (copy / PACKED).read_bytes()
    (copy / PACKED).write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FormatError, match="copy"):
        read_record(copy)
    (copy / PACKED).write_bytes(packed)
    (copy / ABOUT).write_text(json.dumps({"format": "other"}))
    with pytest.raises(FormatError, match="'other'"):
        read_record(copy)
    (copy / PACKED).unlink()
    with pytest.raises(MissingFileError, match=r"scores\.csv\.gz"):
        read_record(copy)


def test_the_picture_has_a_cell_for_every_method_and_board(tmp_path):
    scores = made_up({"mean": 1.2, "good": 0.5, "better": 0.5, "lost": 0.6}, noise=0.05)
    board = make_boards(failed(scores, (scores["method"] == "lost") & (scores["fold"] == 1)))[0]
    made = BenchReport("A title", (board,))
    assert in_order(made, [board])[2:] == ["mean", "lost"]
    assert cell(board, "lost")[:2] == ("", "failed") and cell(board, "nobody")[1] == "\N{EN DASH}"
    assert cell(board, "good")[0] == "1" and cell(board, "good")[2] == FIRST and cell(board, "mean")[0] == "3"
    picture = write_picture([made, made], tmp_path / "a.png")
    single = make_boards(scores[(scores["repeat"] == 0) & (scores["fold"] == 0)])[0]
    assert cell(single, "good")[0] == "" and cell(single, "good")[2] != FIRST, "one fold ranks nobody"
    with Image.open(picture) as image:
        assert image.size[0] == 1600 and image.getpixel((2, 2))[:3] == (255, 255, 255)
        seen = {colour[:3] for _, colour in image.convert("RGB").getcolors(1 << 20)}
    assert tuple(int(FIRST[i : i + 2], 16) for i in (1, 3, 5)) in seen
    assert write_picture([made, made], tmp_path / "b.png").read_bytes() == picture.read_bytes()
