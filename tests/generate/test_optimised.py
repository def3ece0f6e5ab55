"""What is written of the molecules that a search scored: novelty by identity, and a page that holds long words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.evaluate.report_search import write_search_report
from molgraph.generate.optimised import Optimised, annotated, ranked, rows_of
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.oracles.similarity import Molecules

CHAIN, LONGER = "CCCCCCCCO", "CCCCCCCCCCO"  # of one fingerprint
ALERTS = "halogenated_ring_1; aldehyde"


def test_novel_is_what_the_reference_does_not_hold() -> None:
    calls = OracleCalls(read_oracle("qed"), 9)
    calls.score([LONGER, "CCN", "C[C@@H](O)F", "CC(=O)[O-]", "CCC"])
    reference = Molecules([CHAIN, "CC(F)O", "CC(=O)O", "CCN.Cl"])
    frame = annotated(rows_of(ranked(calls), calls.oracle), calls.oracle, reference=reference)
    novel = dict(zip(frame["smiles"], frame["novel"], strict=True))
    assert novel == {LONGER: True, "CCN": False, "C[C@@H](O)F": False, "CC(=O)[O-]": False, "CCC": True}
    assert frame.set_index("smiles").loc[LONGER, "known_similarity"] == 1


def test_a_start_is_told_from_what_was_found() -> None:
    calls = OracleCalls(read_oracle("logp"), 9)
    calls.score(["CCO", "C[C@@H](O)F", "C[C@H](O)F"])
    for starts, words in (
        (["C[C@@H](O)F"], "which is the start: nothing better"),
        (["CCO"], "from -0.001 of the start"),
    ):
        frame = annotated(rows_of(ranked(calls), calls.oracle, starts), calls.oracle)
        assert words in Optimised(frame, "logp", "ascent", 9, {}).sentence
        assert frame.loc[frame["start"], "smiles"].tolist() == starts
        assert (frame["novel"] == frame["smiles"].str.contains("F").eq(starts == ["CCO"])).all(), "stereo aside"


def test_a_card_gives_long_words_a_line_and_draws_the_nearest(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"rank": [1], "smiles": ["O=Cc1ccccc1F"], "objective": [0.5], "within_bounds": [True], "sa": [1.5],
         "alerts": [ALERTS], "known": ["CC(C)=O"], "known_similarity": [0.4], "novel": [True], "call": [1],
         "reason": [""]}
    )  # fmt: skip
    how = {"oracle": "qed", "search": "ascent", "curves": {"ascent": np.array([0.5])}, "lead": "one"}
    watched = pd.DataFrame({"call": [1, 2], "oracle": [0.1, 0.5], "control": [0.1, 0.2]})
    page = tmp_path / "a.html"
    write_search_report(page, frame=frame, watched=watched, verdict="Who knows.", tag="The control cannot tell", **how)
    text = page.read_text("utf-8")
    assert '<dd class="long">halogenated ring 1; aldehyde</dd>' in text and "<dd>1.50</dd>" in text
    card = text[text.index('<ul class="grid">') : text.index("</ul>")]
    assert card.count("<svg") == 2 and "nearest known" in card, "the molecule and the nearest known one"
    assert '<div class="verdict tie"><p class="tag">The control cannot tell' in text and "CC(C)=O" in text
