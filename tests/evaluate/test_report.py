"""The report: one page, whole, honest and inert whatever the table holds."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from molgraph.base.contracts import Kind, Prediction, Target
from molgraph.base.errors import EmptyError, ShapeError
from molgraph.data.table import Table, make_table
from molgraph.evaluate.report import report_html, write_report
from molgraph.evaluate.report_parts import MAX_ROWS, flatten
from molgraph.evaluate.report_style import number

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
CURVES = pd.DataFrame({"epoch": [1, 2, 3], "train_loss": [3.0, 2.0, 1.0], "valid_loss": [3.0, 1.5, 2.0]})
VOID = {"meta", "img", "br", "link", "hr"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails on a tag that is not closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def _case(kind: Kind = "regression", n: int = 40, name: str = "y", bad: int = 2) -> tuple[Table, dict[str, Prediction]]:
    rng = np.random.default_rng(0)
    target = Target(name, kind, classes=("low", EVIL, "high") if kind == "multiclass" else ())
    y = {"regression": rng.normal(size=n), "bounded": rng.random(n), "binary": rng.integers(0, 2, n)}.get(
        kind, rng.integers(0, 3, n)
    )
    smiles = ["C" * (i % 12 + 1) + "O" for i in range(n)]
    table = make_table(smiles, ids=[f"m{i}" for i in range(n)], targets=(target,), y=y.astype(float))
    table = table.with_status(np.arange(bad), "unreadable", np.array([f"reason {i}" for i in range(bad)]))
    found = {}
    for k, method in enumerate(["dmpnn", "random_forest", "mean"]):
        if kind == "multiclass":
            value = np.random.default_rng(k).dirichlet(np.ones(3), n)
        elif kind == "binary":
            value = np.clip(0.6 * y + 0.4 * np.random.default_rng(k).random(n), 0, 1)[:, None]
        else:
            value = (y + np.random.default_rng(k).normal(size=n) * 0.1 * (k + 1))[:, None]
        if method == "mean":
            value = np.full(value.shape, 1 / value.shape[1] if kind == "multiclass" else y.mean())
        value[~table.ok] = np.nan
        found[method] = Prediction(table.ids, (target,), value, table.status, table.reason)
    return table, found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "bounded", "binary", "multiclass"])
def test_a_page_is_whole_and_loads_nothing(kind: Kind) -> None:
    table, found = _case(kind)
    page = Page(report_html(title="A run", predictions=found, table=table, curves=CURVES, manifest={"seed": 7}))
    for tag, attributes in page.tags:
        assert tag not in ("script", "iframe", "object")
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("src", "href", "xlink:href"):
                assert (value or "").startswith(("data:", "#"))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids)), "the figures share no id"
    images = [a for tag, a in page.tags if tag == "figure"]
    assert len(images) == 2 and all(a["aria-label"] for a in images)
    assert "Worst errors" in page.text and "reason 1" in page.text and "2 of 40 test rows" in page.text
    assert "dmpnn" in page.text and "mean (floor)" in page.text and "seed" in page.text


def _figures(html: str) -> list[str]:
    return re.findall(r"<figure.*?</figure>", html, flags=re.DOTALL)


def test_the_parity_plot_has_a_point_a_molecule_for_both_methods() -> None:
    table, found = _case()
    parity, learning = _figures(report_html(title="t", predictions=found, table=table, curves=CURVES))
    assert parity.count("<use") >= 2 * 38
    assert all(word in parity for word in ("dmpnn", "random_forest", "measured y", "predicted y"))
    assert "epoch 2 kept" in learning


def test_every_text_from_outside_is_inert() -> None:
    table, found = _case(name=f"${EVIL}")
    ids = table.ids.copy()
    ids[:] = EVIL
    entities = (replace(table.entities[0], values=np.array([EVIL] * len(table), dtype=object)),)
    table = replace(table, ids=ids, entities=entities, reason=np.where(table.ok, "", EVIL).astype(object))
    new = Prediction(ids[:2], table.targets, np.ones((2, 1)), table.status[:2], table.reason[:2], inputs=ids[:2])
    found = {f"{EVIL}{name}": p for name, p in found.items()}
    html = report_html(
        title=EVIL, predictions=found, table=table, manifest={EVIL: {"a": EVIL}}, new_predictions=new, curves=CURVES
    )
    for text in (html, *_figures(html)):
        assert "<script" not in text and "<img src=x" not in text
    page = Page(html)
    assert not any(tag in ("script", "img") or any(k.startswith("on") for k in a) for tag, a in page.tags)
    assert EVIL in page.text


def test_the_headline_says_who_won() -> None:
    table, found = _case()
    page = Page(report_html(title="t", predictions=found, table=table))
    assert "y: dmpnn beats random_forest" in page.text
    swapped = {"dmpnn": found["random_forest"], "random_forest": found["dmpnn"], "mean": found["mean"]}
    assert "y: random_forest beats dmpnn" in Page(report_html(title="t", predictions=swapped, table=table)).text
    alone = Page(report_html(title="t", predictions={"mean": found["mean"]}, table=table))
    assert "mean (floor)" in alone.text
    alone = Page(report_html(title="t", predictions={"dmpnn": found["dmpnn"]}, table=table))
    assert "One method alone" in alone.text and "clear difference" not in alone.text, "there is nothing to differ from"


def test_new_molecules_show_value_spread_and_reason() -> None:
    table, found = _case()
    new = make_table(["CCO", "bad"], ids=["drink", "rubbish"])
    new = new.with_status(np.array([1]), "unreadable", np.array(["cannot be parsed"]))
    value = np.array([[1.25], [np.nan]])
    p = Prediction(new.ids, table.targets, value, new.status, new.reason, spread=value / 10, inputs=new.smiles)
    page = Page(report_html(title="t", predictions=found, table=table, new_predictions=p))
    for word in ("drink", "1.25 ± 0.125", "rubbish", "cannot be parsed", "1 of 2 rows have a prediction"):
        assert word in page.text
    many = make_table(["C"] * (MAX_ROWS + 9))
    p = Prediction(many.ids, table.targets, np.ones((len(many), 1)), many.status, many.reason, inputs=many.smiles)
    assert (
        f"the first {MAX_ROWS} are shown"
        in Page(report_html(title="t", predictions=found, table=table, new_predictions=p)).text
    )


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("rows", [[], [5], [0, 1]])
def test_few_rows_make_a_page_and_no_crash(kind: Kind, rows: list[int]) -> None:
    table, found = _case(kind)
    pick = np.array(rows, dtype=int)
    few = {
        name: replace(p, ids=p.ids[pick], value=p.value[pick], status=p.status[pick], reason=p.reason[pick])
        for name, p in found.items()
    }
    page = Page(report_html(title="t", predictions=few, table=table.take(pick)))
    assert "no verdict" in page.text


def test_several_targets_each_get_their_part() -> None:
    (a, pa), (b, pb) = _case(name="a"), _case("binary", name="b")
    table = replace(a, targets=a.targets + b.targets, y=np.column_stack([a.y, b.y]))
    found = {m: replace(pa[m], targets=table.targets, value=np.column_stack([pa[m].value, pb[m].value])) for m in pa}
    page = Page(report_html(title="t", predictions=found, table=table))
    assert "a: predicted and measured" in page.text and "b: predicted and measured" in page.text


def test_predictions_of_other_rows_are_refused() -> None:
    table, found = _case()
    with pytest.raises(ShapeError, match="40 rows"):
        report_html(title="t", predictions=found, table=table.take(np.arange(3)))
    with pytest.raises(EmptyError):
        report_html(title="t", predictions={}, table=table)


def test_the_file_is_the_page_and_the_same_each_time(tmp_path: Path) -> None:
    table, found = _case()
    paths = [write_report(tmp_path / name, title="t", predictions=found, table=table) for name in ("a", "b")]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert texts[0] == texts[1] == report_html(title="t", predictions=found, table=table)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_numbers_read_well() -> None:
    assert [number(x) for x in (0.0, 5.0, -0.1234, 12345.6, 1e9, 203.0)] == [
        "0",
        "5.00",
        "−0.123",
        "12,346",
        "1.00e+09",
        "203",
    ]
    assert flatten({"a": {"b": [1, 2]}, "c": None}) == [("a.b", "1, 2"), ("c", "None")]
