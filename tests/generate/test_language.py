"""The language model of SMILES: its loss by hand, exact resume, the distribution of its samples, and its tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import molgraph
from molgraph.base.errors import BadValueError, ConflictError, UnsupportedError
from molgraph.base.registry import get
from molgraph.chem.smiles import why_unreadable
from molgraph.chem.tokens import is_vocabulary, tokens_of
from molgraph.data.table import Table, make_table
from molgraph.generate.language import LanguageGenerator, samples_of
from molgraph.generate.next_token import LanguageNetwork, NextToken
from molgraph.train.model import Model
from molgraph.train.objective import Objective, StepState
from molgraph.train.runtime import Interrupted
from tests.tiny import same_bits, series

TEXTS = [tokens_of(smiles) for smiles in ("CCO", "C", "c1cc(Cl)ccc1Br", "C[N+](=O)[O-]")]
VOCABULARY = tuple(sorted({token for text in TEXTS for token in text}))


def small(**params: Any) -> LanguageGenerator:
    """A generator of width 16."""
    given: dict[str, Any] = {"d_embedding": 8, "d_hidden": 16, "batch_size": 16, "epochs": 3, "threads": 1}
    return LanguageGenerator(**{**given, **params})


def corpus(n: int = 48, start: int = 0) -> Table:
    """Molecules, one of which cannot be read."""
    return make_table([*series(n, start).smiles, "not a molecule"])


def goes_on_exactly(
    make: Callable[..., Any], options: dict[str, Any], objective: type[Objective], stop_after: int, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A fit that was killed after so many steps has, started again, the weights, curves and samples of a whole one."""
    options, steps = {"epochs": 4, "checkpoint_seconds": 0.0, **options}, []
    whole = make(**options).fit(corpus(), corpus(16, 100), workdir=folder / "whole")

    def stop(self: Any, network: Any, state: StepState) -> None:
        steps.append(state.step)
        if len(steps) == stop_after + 1:
            raise Interrupted("killed")

    monkeypatch.setattr(objective, "after_step", stop)
    with pytest.raises(Interrupted):
        make(**options).fit(corpus(), corpus(16, 100), workdir=folder / "cut")
    monkeypatch.undo()
    again = make(**options).fit(corpus(), corpus(16, 100), workdir=folder / "cut")
    assert same_bits(*({k: v.numpy() for k, v in m.ready().network.state_dict().items()} for m in (again, whole)))
    assert again.sample(20) == whole.sample(20)
    assert again.curves is not None and whole.curves is not None
    assert again.curves.drop(columns="seconds").equals(whole.curves.drop(columns="seconds"))


@pytest.mark.parametrize("sequence", ["gru", "lstm", "s4(d_state=4)"])
def test_the_loss_is_the_cross_entropy_of_every_token_and_end(sequence: str) -> None:
    """Against one text at a time, one step at a time, the softmax written out."""
    torch.manual_seed(0)
    network = LanguageNetwork(len(VOCABULARY) + 1, 4, 8, 2, 0.0, sequence)
    batch = samples_of(TEXTS, VOCABULARY).sample(np.array([2, 0, 3, 1]))
    batch.weights[1] = 0.0  # a row that does not count
    found = NextToken()(network, batch, StepState(0, 1, 0))
    expected, count = 0.0, 0
    for text in (TEXTS[2], TEXTS[3], TEXTS[1]):
        token, state = 0, None
        for code in [*(VOCABULARY.index(each) + 1 for each in text), 0]:
            scores, state = network(torch.tensor([[token]]), state)
            scores = scores[0, 0].detach().double()
            expected, count, token = expected + float(scores.exp().sum().log() - scores[code]), count + 1, code
    assert found.count == count
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [1, 5, 10])
def test_a_killed_training_goes_on_exactly(stop_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on_exactly(small, {"dropout": 0.2}, NextToken, stop_after, tmp_path, monkeypatch)


@pytest.fixture(
    scope="module", params=["gru", *(pytest.param(each, marks=pytest.mark.slow) for each in ("lstm", "s4"))]
)
def fluent(request: pytest.FixtureRequest) -> LanguageGenerator:
    """A generator that has learned three molecules by heart."""
    molecules = ["CCO"] * 30 + ["c1ccccc1"] * 20 + ["CC(=O)N"] * 10
    return small(epochs=60, learning_rate=0.02, d_hidden=24, patience=None, sequence=request.param).fit(
        make_table(molecules)
    )


def test_samples_come_as_often_as_in_the_corpus(fluent: LanguageGenerator) -> None:
    counts = Counter(fluent.sample(1200, 1))
    for text, share in (("CCO", 1 / 2), ("c1ccccc1", 1 / 3), ("CC(=O)N", 1 / 6)):
        assert counts[text] / 1200 == pytest.approx(share, abs=0.06), counts.most_common(5)


def test_a_low_temperature_draws_the_likeliest(fluent: LanguageGenerator) -> None:
    fluent.set_params(temperature=0.05)
    assert set(fluent.sample(50)) == {"CCO"}
    fluent.set_params(temperature=50.0)
    assert len({*fluent.sample(50)} - {"CCO", "c1ccccc1", "CC(=O)N"}) > 25
    with pytest.raises(BadValueError, match="temperature is 0"):
        fluent.set_params(temperature=0).sample(1)
    fluent.set_params(temperature=1.0)


def test_the_first_samples_do_not_depend_on_how_many_follow(fluent: LanguageGenerator) -> None:
    assert fluent.sample(300, 5)[:131] == fluent.sample(131, 5)
    assert len({*map(tuple, (fluent.sample(128, 5), fluent.sample(256, 5)[128:]))}) == 2, "batches differ"
    with pytest.raises(BadValueError, match="-1 samples"):
        fluent.sample(-1)


@pytest.mark.parametrize("bias", [-1e9, 3e38])
def test_sampling_ends_whatever_the_network_answers(bias: float) -> None:
    made = small(max_length=24, epochs=1).fit(make_table(["CCO", "CCN"]))
    with torch.no_grad():
        made.ready().network.scores.bias[0] = bias
    assert {len(tokens_of(text)) for text in made.sample(20)} <= ({24} if bias < 0 else {0})


def test_long_molecules_and_unknown_tokens_are_passed_over() -> None:
    table = make_table(["C" * 30, "CCO", "CCN", "CCC"])
    made = small(max_length=10).fit(table, make_table(["CCBr", "CCC"]))
    assert made.ready().vocabulary == ("C", "N", "O")
    assert made.notes == ("rows that are not learned from: 1 (over 10 tokens)",)
    assert made.curves is not None and made.curves["valid_loss"].notna().all()
    assert small().fit(table, make_table(["CCBr"])).notes[-1].startswith("no validation part")


def test_a_text_is_the_sum_of_its_tokens() -> None:
    lines = (Path(__file__).parent.parent / "nasty.tsv").read_text("utf-8").splitlines()[1:]
    for text in [*(line.split("\t")[0] for line in lines), *series(200).smiles, "C%12CC%12", "[" * 80, "C\nC"]:
        assert "".join(tokens_of(text)) == text
    assert tokens_of("C%12Br[C@@H]%(123)") == ["C", "%12", "Br", "[C@@H]", "%", "(", "1", "2", "3", ")"]


@pytest.mark.parametrize("tokens", [("C", ""), ("C", "C"), ("C", 5), ("a b",), ("\x1b[31m",), ("é",), ("C" * 65,)])
def test_what_is_no_vocabulary(tokens: tuple[Any, ...]) -> None:
    assert not is_vocabulary(tokens)


def test_layers_that_cannot_write_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="convolution"):
        small(sequence="convolution").fit(corpus())


def test_a_training_that_starts_from_another_has_its_alphabet_and_begins_at_its_loss(tmp_path: Path) -> None:
    first = small(epochs=12, learning_rate=1e-2).fit(make_table(["CCO", "CCN", "OCCN"] * 8))
    Model(first, targets=()).save(tmp_path / "first.mgm")
    on = LanguageGenerator(epochs=1, learning_rate=1e-12, threads=1, init=str(tmp_path / "first.mgm"))
    on.fit(make_table(["CCO", "CCN", "OCCN"] * 8 + ["CCBr"]))
    assert first.curves is not None
    assert on.curves is not None
    assert on.ready().vocabulary == first.ready().vocabulary
    assert on.notes[0] == "rows that are not learned from: 1 (tokens that the alphabet lacks)"
    assert on.log_prob(["CCO"]) == pytest.approx(first.log_prob(["CCO"]), abs=1e-5)
    with pytest.raises(ConflictError, match="d_hidden"):
        molgraph.train_generator(["CCO"], init=str(tmp_path / "first.mgm"), params={"d_hidden": 20})


def test_bfloat16_draws_nearly_the_texts_of_float32(fluent: LanguageGenerator) -> None:
    texts = fluent.sample(400, seed=5)
    fluent.set_params(precision="bfloat16")
    try:
        same = sum(a == b for a, b in zip(texts, fluent.sample(400, seed=5), strict=True))
    finally:
        fluent.set_params(precision="float32")
    assert same > 300


def test_older_names_stay() -> None:
    assert get("generator", "gru") is LanguageGenerator
    old, new = (small(**{key: "lstm"}).fit(corpus()) for key in ("cell", "sequence"))
    assert old.sample(20) == new.sample(20)


def test_selfies_are_molecules() -> None:
    made = small(tokens="selfies", epochs=1).fit(corpus())
    texts = made.sample(40)
    assert all(text and not why_unreadable(text) for text in texts)


def test_texts_of_all_lengths_weigh_alike_where_like_lengths_are_learned_together() -> None:
    texts = ["CCO"] * 256 + ["c1ccccc1CCCCCCCCN"] * 256
    made = small(epochs=6, learning_rate=1e-2, schedule="cosine", patience=None).fit(make_table(texts))
    short = sum(text.startswith("C") for text in made.sample(1500, 1))
    assert short / 1500 == pytest.approx(0.5, abs=0.1)
