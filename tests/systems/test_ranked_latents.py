"""Latent axes learned from ranked pairs: the loss by hand, the axis that it moves, and what axes tell of properties."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError, ConflictError, EmptyError, LabelError, MissingColumnError
from molgraph.base.table import MISSING, OK, Entities, Table
from molgraph.chem.quality import measure
from molgraph.data.datasets import load_dataset
from molgraph.data.table import make_table
from molgraph.generate.chemvae import ChemVAE
from molgraph.nn.ranked_axes import RankedAxes
from molgraph.train.objective import StepState
from tests.systems.effect import Effect

NAN = float("nan")
RANKED = ("logp", "tpsa")
VALID = StepState(0, 10, 0, training=False)
SHAPE: dict[str, Any] = {"d_latent": 16, "max_length": 60, "learning_rate": 3e-3, "batch_size": 32, "threads": 1}
SHAPE |= {"schedule": "cosine", "warmup_epochs": 1.0, "epochs": 16, "patience": None}
PAIRS, HELD = 500, 300


def pairs(first: list[str | None], second: list[str | None], ranks: Any, names: tuple[str, ...] = RANKED) -> Table:
    """A table of pairs as a file gives it: a row with a blank cell is marked as missing."""
    targets = tuple(Target(name, "binary") for name in names)
    table = make_table(["C"] * len(first), targets=targets, y=ranks)
    columns = zip("ab", (first, second), strict=True)
    entities = tuple(Entities(name, "molecule", np.array(values, dtype=object)) for name, values in columns)
    blank = [a is None or b is None for a, b in zip(first, second, strict=True)]
    status = np.array([MISSING if each else OK for each in blank], dtype=object)
    reason = np.array(["no molecule in this row" if each else "" for each in blank], dtype=object)
    return replace(table, entities=entities, status=status, reason=reason)


def toy() -> Table:
    """Four pairs, one of them not ranked by the second property, and a molecule with no partner."""
    first: list[str | None] = ["CCO", "CC", None, "CN", "c1ccccc1"]
    second: list[str | None] = ["CCCC", "CO", "CCN", "CC(C)O", "Cc1ccccc1"]
    return pairs(first, second, [[0, 1], [1, NAN], [1, 1], [0, 0], [NAN, 1]])


def fresh(table: Table, **params: Any) -> tuple[ChemVAE, Any, Any]:
    """A generator of small size, its network with random scales, and all rows of a table as one batch."""
    made = ChemVAE(**{**ChemVAE.small, "ranked": RANKED, "threads": 1, "warmup_slope": 0.0, "beta": 0.3, **params})
    corpus = made.read(table, None)
    torch.manual_seed(0)
    network = made.build(corpus.vocabulary).eval()
    with torch.no_grad():
        network.ranks.raw.copy_(torch.tensor([0.4, -1.2]))
    return made, network, (corpus, corpus.train.sample(np.arange(len(corpus.train))))


@pytest.mark.system("wsc", rung="exact")
def test_the_loss_is_that_of_all_molecules_and_the_cross_entropy_of_each_ranked_pair(off: str) -> None:
    made, network, (corpus, batch) = fresh(toy(), ranked_weight=0.0 if off else 3.0)
    objective = made.objective(corpus.vocabulary)
    found = objective(network, batch, VALID)
    plain = ChemVAE(**{**made.get_params(), "ranked": ()})
    order = ["CCO", "CCCC", "CC", "CO", "CCN", "CN", "CC(C)O", "c1ccccc1", "Cc1ccccc1"]
    alone = plain.read(make_table(order), None)
    texts = alone.train.sample(np.arange(9))
    bound = plain.objective(alone.vocabulary)(network, texts, VALID)
    assert found.count == bound.count == 9
    for name in ("reconstruction", "kl"):
        assert found.parts[name].item() == pytest.approx(bound.parts[name].item(), rel=1e-5)
    level = texts.parts[0].batch["token"]
    codes = [codes[None].long() for codes in level.code.split(level.offsets.diff().tolist())]
    noise = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        each = [network.bottleneck.posterior(network.encoder(c, torch.tensor([c.shape[1]]))) for c in codes]
        z = np.concatenate([q.draw(noise[[i]]).numpy() for i, q in enumerate(each)]).astype(float)
    scale = np.log1p(np.exp([0.4, -1.2]))
    ranked = [(0, 1, 0, 0), (0, 1, 1, 1), (2, 3, 0, 1), (5, 6, 0, 0), (5, 6, 1, 0), (7, 8, 1, 1)]
    expected = 0.0
    for first, second, axis, rank in ranked:
        p = 1 / (1 + np.exp(-scale[axis] * (z[first, axis] - z[second, axis])))
        expected -= np.log(p if rank else 1 - p)
    assert found.parts["ranks"].item() == pytest.approx(3.0 * expected, rel=1e-4)
    assert found.total.item() == pytest.approx(bound.total.item() + 3.0 * expected, rel=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.system("wsc", rung="exact")
def test_a_rank_moves_its_own_axis_alone_and_lifts_what_ranks_higher(axis: int, off: str) -> None:
    made, network, (corpus, batch) = fresh(toy())
    objective, axes = made.objective(corpus.vocabulary), network.ranks
    if off:  # the sum of both axes in the place of one
        axes.forward = lambda a, b: axes.scale * (a - b)[:, :2].sum(dim=1, keepdim=True)
    batch.weights[:, 2 - axis] = 0.0  # the ranks of the other property are not known
    linear, others = network.bottleneck.linear, [i for i in range(8) if i % 4 != axis]
    h = torch.randn(9, linear.in_features)
    q = network.bottleneck.posterior(h)
    z = q.draw(torch.randn(9, 4))
    z.retain_grad()
    objective.costs(network, z, batch)["ranks"].backward()
    assert z.grad is not None and linear.weight.grad is not None
    assert not z.grad[:, others[:3]].any() and not linear.weight.grad[others].any() and linear.weight.grad[axis].all()
    expected = {0: [1, -1, -1, 1, 0, 1, -1, 0, 0], 1: [-1, 1, 0, 0, 0, 1, -1, -1, 1]}  # down where it ranks lower
    assert z.grad[:, axis].sign().tolist() == expected[axis]


def test_it_is_the_cross_entropy_of_torch_and_scales_stay_above_zero() -> None:
    axes = RankedAxes(2)
    torch.testing.assert_close(axes.scale, torch.ones(2))
    with torch.no_grad():
        axes.raw.copy_(torch.tensor([-10.0, 1.0]))
    assert (axes.scale > 0).all()
    a, b, y = torch.randn(6, 3), torch.randn(6, 3), torch.randint(0, 2, (6, 2)).float()
    peer = torch.nn.BCELoss(reduction="sum")((axes.scale * (a - b)[:, :2]).sigmoid(), y)
    torch.testing.assert_close(axes.cross_entropy(a, b, y, torch.ones(6, 2)), peer, rtol=1e-4, atol=1e-4)


def test_tables_that_rank_no_pairs_are_refused_with_the_reason() -> None:
    made = ChemVAE(**{**ChemVAE.small, "ranked": ("soluble",), "threads": 1})
    with pytest.raises(AmbiguousColumnError, match="two columns of molecules"):
        made.fit(make_table(["CCO", "CCC"]))
    with pytest.raises(MissingColumnError, match="'soluble'"):
        made.fit(toy())
    with pytest.raises(LabelError, match="row 2: the rank 'soluble' is 2"):
        made.fit(pairs(["C", "CC"], ["CO", "CCO"], [[1], [2]], ("soluble",)))
    with pytest.raises(EmptyError, match="'soluble'"):
        made.fit(pairs(["C", "CC"], ["CO", "CCO"], [[NAN], [NAN]], ("soluble",)))
    for params in ({"ranked": tuple("abcde")}, {"ranked": ("a", "a")}):
        with pytest.raises(ConflictError, match="rank"):
            ChemVAE(**{**ChemVAE.small, **params}).fit(toy())


def test_a_row_of_one_molecule_is_learned_and_other_words_are_refused() -> None:
    small = {**ChemVAE.small, "ranked": ["soluble"]}
    rows = {"a": [f"{'C' * i}O" for i in range(1, 25)], "b": [f"{'C' * i}N" for i in range(1, 25)]}
    rows |= {"soluble": ["1", "0", "1", ""] * 6}
    rows["a"][2], rows["b"][2], rows["b"][5] = "", "CS", ""
    how: dict[str, Any] = {"model": "chemvae", "params": small, "smiles": ["a", "b"], "epochs": 1, "threads": 1}
    made = molgraph.train_generator(pd.DataFrame(rows), **how)
    assert {"C", "O", "N", "S"} == {*made.method.ready().vocabulary.tokens}
    assert made.trained_on is not None and len(made.trained_on) == 46, "hashes of molecules, not of pairs"
    assert any("pairs: " in note and "higher" in note for note in made.card.notes)
    with pytest.raises(LabelError, match="row 1: column 'soluble' holds 'maybe'"):
        molgraph.train_generator(pd.DataFrame({**rows, "soluble": ["maybe", "1", "0", ""] * 6}), **how)


def test_pairs_are_learned_with_properties_and_the_file_keeps_the_axes() -> None:
    params = {**ChemVAE.small, "ranked": RANKED, "properties": ("logp",), "prior": "acn(bank_size=20)", "threads": 1}
    made = ChemVAE(**params).fit(toy(), toy())
    assert made.curves is not None and {"train_ranks", "valid_ranks", "train_properties"} <= {*made.curves.columns}
    assert made.n_learned == (9, 9) and "z1 is the preference score of 'tpsa'" in made.notes[1]
    again = ChemVAE.from_state(made.state())
    np.testing.assert_array_equal(again.encode(make_table(["CCO"])).mean, made.encode(make_table(["CCO"])).mean)
    assert torch.equal(again.ready().network.ranks.raw, made.ready().network.ranks.raw)


@functools.cache
def molecules() -> tuple[Table, Table]:
    """500 pairs of 1,000 molecules of the lipophilicity set, ranked by logP and TPSA, and others that are held out."""
    smiles = [str(text).strip() for text in load_dataset("lipo").table.smiles]
    smiles = list(dict.fromkeys(text for text in smiles if len(text) <= SHAPE["max_length"]))
    pick = np.random.default_rng(0).permutation(len(smiles))[: 2 * PAIRS + HELD]
    first, second, held = ([smiles[i] for i in part] for part in np.split(pick, [PAIRS, 2 * PAIRS]))
    values = [[measure(name, part).value for name in RANKED] for part in (first, second)]
    a, b = (np.stack(each, axis=1) for each in values)
    return pairs([*first], [*second], np.where(a == b, NAN, a > b)), make_table(held)


@functools.cache
def correlations(ranked_weight: float) -> np.ndarray:
    """Spearman's rho of each latent axis and each property over the molecules that are held out."""
    train, held = molecules()
    found = ChemVAE(**{**SHAPE, "ranked": RANKED, "ranked_weight": ranked_weight}).fit(train).encode(held)
    truth = [measure(name, [str(text) for text in held.smiles[found.ok]]).value for name in RANKED]
    return np.array([[spearmanr(axis, value)[0] for value in truth] for axis in found.mean[found.ok].T])


def own_and_plain(off: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rho of the ranked axes, and of all axes of the VAE without ranks, and the best of those by each property."""
    plain = correlations(0.0)
    return (plain if off else correlations(10.0))[:2], plain, np.abs(plain).max(axis=0)


@pytest.mark.data
@pytest.mark.system("wsc", rung="works")
def test_each_axis_follows_its_property(off: str, effect: Effect) -> None:
    own, plain, best = own_and_plain(off)
    beside = {"the same axes without ranks": [float(np.diag(plain[:2]).min())], "their best axis": [float(best.min())]}
    effect("the lower rho of two axes and their properties", [float(np.diag(own).min())], at_least=0.8, beside=beside)


@pytest.mark.data
@pytest.mark.system("wsc", rung="works")
def test_each_axis_follows_the_other_property_less(off: str, effect: Effect) -> None:
    own, _, _ = own_and_plain(off)
    other = float(np.abs([own[0, 1], own[1, 0]]).mean())
    gap = float(np.diag(own).mean()) - other
    effect("rho with its property - with the other", [gap], at_least=0.3, beside={"with the other": [other]})


@pytest.mark.data
@pytest.mark.system("wsc", rung="works")
def test_each_axis_is_above_the_best_one_that_is_learned_without_ranks(off: str, effect: Effect) -> None:
    own, _, best = own_and_plain(off)
    gap = float((np.diag(own) - best).min())
    beside = {f"its rho with {name}": [value] for name, value in zip(RANKED, best.tolist(), strict=True)}
    effect("rho - that of the best single axis without ranks", [gap], at_least=0.05, beside=beside)
