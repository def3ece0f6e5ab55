"""Searches over a tiny latent space: they beat sampling and keep their budget."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.errors import CellError
from molgraph.chem.fingerprints import morgan
from molgraph.chem.quality import measure
from molgraph.chem.smiles import why_unreadable
from molgraph.data.sources import builtin
from molgraph.generate.diversity import determinantal_diversity
from molgraph.generate.guard import OPEN, PARTED, SOUND, watch
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.oracles.similarity import Molecules
from molgraph.generate.run_search import choose_batch, run_search, standard_starts
from molgraph.generate.searches.head import fit_head
from molgraph.generate.searches.search import make_search
from pipelines.jtvae.constrained import improve, success
from tests.latent import NearestMolecule, latent_generator

QUICK = {
    "sampling": {},
    "ascent": {"initial": 40, "paths": 10},
    "bayes": {"initial": 40, "restarts": 20, "steps": 20},
    "cyclegan": {"initial": 40, "steps": 300},
}


@pytest.fixture(scope="module")
def space() -> NearestMolecule:
    return latent_generator(builtin.chembl2321810(), d=6)


def smooth(space: NearestMolecule):
    """An objective that is linear in the space: how far along a direction a molecule lies."""
    place = dict(zip(space.smiles.tolist(), space.points @ np.array([2.0, 1.0, 0, 0, 0, 0]), strict=True))
    return read_oracle(lambda text: place[text])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ascent", "bayes", "cyclegan"])
def test_a_search_finds_more_than_sampling(space: NearestMolecule, name: str) -> None:
    """By the mean of its best batch after the first fit: the space has few molecules that are as good."""
    best = {}
    for each in ("sampling", name):
        calls = OracleCalls(smooth(space), 100)
        run_search(space, calls, make_search(each, **QUICK[each]), batch=20, seed=3)
        values = np.array([one.total for one in calls.scored.values()])
        assert len(values) == 100
        best[each] = values.reshape(-1, 20).mean(axis=1)[2:].max()
    assert best[name] > best["sampling"] + 0.8, best


def test_the_same_seed_gives_the_same_calls_within_the_budget(space: NearestMolecule) -> None:
    runs = []
    for _ in range(2):
        calls = OracleCalls(read_oracle("qed,sa<4"), 70)
        decoded = run_search(space, calls, make_search("ascent", **QUICK["ascent"]), batch=16, seed=1)
        runs.append([*calls.scored.values()])
        assert calls.left == 0 and decoded.texts >= decoded.valid >= len(decoded.distinct) >= 70
    assert runs[0] == runs[1] and [one.call for one in runs[0]] == [*range(1, 71)]


def test_a_space_of_few_molecules_ends_the_search() -> None:
    tiny = latent_generator(builtin.chembl2321810().take(np.arange(12)), d=2, broken=3)
    calls = OracleCalls(read_oracle("qed"), 500)
    decoded = run_search(tiny, calls, make_search("sampling"), seed=0)
    assert len(calls.scored) <= 12 and decoded.valid < decoded.texts
    assert "held no new molecule" in decoded.notes[0]


@pytest.mark.parametrize(("name", "budget", "n"), [("ascent", 60, 20), ("bayes", 30, 10), ("cyclegan", 30, 10)])
def test_a_small_budget_leaves_calls_to_learn_from(space: NearestMolecule, name: str, budget: int, n: int) -> None:
    """A third of the calls are drawn, as sampling draws them, and no more; a person's own number stays."""
    quick = {"steps": 20} if name == "cyclegan" else {"steps": 10}
    search = make_search(name, **quick)
    note, calls = search.fit_into(budget), OracleCalls(smooth(space), budget)
    plain = OracleCalls(smooth(space), budget)
    assert search.initial == n and f"{name} learns after {n} calls" in note
    run_search(space, calls, search, batch=10, seed=1)
    run_search(space, plain, make_search("sampling"), batch=10, seed=1)
    assert [*calls.scored][:n] == [*plain.scored][:n] and [*calls.scored][: n + 10] != [*plain.scored][: n + 10]
    own = make_search(name, initial=100)
    assert "plain sampling" in own.fit_into(80) and own.initial == 100 and not own.fit_into(150)
    own.n_known = 10
    assert not own.fit_into(80)


def test_starts_are_scored_first_and_no_call_is_spent_outside_bounds_that_cost_nothing(space: NearestMolecule) -> None:
    (start,) = standard_starts([str(space.smiles[5])])
    calls = OracleCalls(read_oracle("penalized_logp,similarity>0.5", lead=start), 60)
    search = make_search("sampling")
    decoded = run_search(space, calls, search, starts=[start], seed=0)
    first, *others = calls.scored.values()
    assert first.smiles == start and first.parts[1] == 1
    assert others and all(one.within and one.parts[1] > 0.5 for one in others)
    assert decoded.outside and not decoded.outside & {*calls.scored}
    assert max(Molecules([start]).nearest(sorted(decoded.outside)).similarity) <= 0.5
    lowest = min(one.total for one in calls.scored.values())
    assert (search.score < lowest).any()  # it learns where the bounds are missed
    asked = OracleCalls(read_oracle({"qed": 1, "heavy_atoms": {"max": 0}}), 60)
    assert "within the bounds" in run_search(space, asked, make_search("sampling"), seed=0).notes[0]
    with pytest.raises(CellError, match=r"C\(C"):
        standard_starts(["CCO", "C(C"])


def test_a_batch_is_promising_and_diverse(space: NearestMolecule) -> None:
    smiles = [str(text) for text in space.smiles[:40]]
    promise = np.linspace(1, 0, 40)
    assert choose_batch(smiles, promise, 5, 0.0) == smiles[:5]
    assert choose_batch(smiles, np.zeros(40), 5, 0.0) == smiles[:5]
    volume = [determinantal_diversity(morgan(s).x) for s in (choose_batch(smiles, np.zeros(40), 5, 0.9), smiles[:5])]
    assert volume[0] > 1.5 * volume[1], "it acts where all promise the same, as those of a sampling"
    assert len(set(choose_batch(smiles, promise, 5, 0.9)) - set(smiles[:5])) > 0


def test_diversity_acts_where_nothing_is_known_yet(space: NearestMolecule) -> None:
    """A sampling knows nothing, and yet its batches are spread out where diversity weighs."""
    volume = []
    for weight in (0.0, 0.95):
        calls = OracleCalls(read_oracle("qed"), 40)
        run_search(space, calls, make_search("sampling"), batch=10, diversity=weight, seed=1)
        batches = np.array([*calls.scored]).reshape(4, 10)
        volume.append(np.mean([np.log(determinantal_diversity(morgan([*each]).x)) for each in batches]))
    assert volume[1] > volume[0] + 1, volume


@pytest.mark.slow
def test_graph_ga_climbs_by_its_scores_alone() -> None:
    """It comes nearer to a molecule than a sampling of the list that it begins with, and not by shuffled scores."""
    near = Molecules(["Cc1ccc(-c2cc(C(F)(F)F)nn2-c2ccc(S(N)(=O)=O)cc2)cc1"])

    def similar(text: str) -> float:
        return float(near.nearest([text]).similarity[0])

    best = []
    for name, score in (
        ("sampling", similar),
        ("graph-ga", lambda text: similar(text) * 1e6 % 1),
        ("graph-ga", similar),
    ):
        calls = OracleCalls(read_oracle(score), 400)
        run_search(None, calls, make_search(name), seed=1)
        assert len(calls.scored) == 400 and not any(map(why_unreadable, calls.scored))
        best.append(np.sort(near.nearest([*calls.scored]).similarity)[-10:].mean())
    assert best[2] > max(best[:2]) + 0.05, best


def test_graph_ga_begins_at_the_starts_and_keeps_the_best() -> None:
    search = make_search("graph-ga(population=5, max_atoms=14)")
    calls = OracleCalls(read_oracle("logp"), 60)
    run_search(None, calls, search, starts=["CCOc1ccccc1"], batch=10, seed=0)
    atoms = measure("heavy_atoms", [*calls.scored]).value
    assert next(iter(calls.scored)) == "CCOc1ccccc1" and atoms.max() <= 14
    best = np.array([one.total for one in calls.scored.values()])
    assert best[1:].max() > best[0] and max(search.scores.values()) == best.max()  # type: ignore[attr-defined]


def test_improvement_keeps_the_similarity(space: NearestMolecule) -> None:
    objective = smooth(space)
    head = fit_head(space.points, objective.score([*space.smiles]).value)
    calls = OracleCalls(objective, 4_000)
    starts = [str(space.smiles[i]) for i in np.argsort(space.points[:, 0])[:8]]
    found = [improve(space, [head], calls, start, (0.0, 0.3, 0.6), seed=1) for start in starts]
    gains = []
    for delta in (0.0, 0.3, 0.6):
        rows = [each[delta] for each in found]
        for row in rows:
            assert not row.best or (
                Molecules([row.start]).nearest([row.best]).similarity[0] == row.similarity >= delta
                and row.after == objective.score([row.best]).value[0] > row.before
            )
        gains.append(success(rows))
    assert gains[0][3] == 1.0 and gains[0][0] > 1.0, gains
    assert [g[0] for g in gains] == sorted((g[0] for g in gains), reverse=True)


def test_to_lose_a_charge_or_a_centre_is_no_improvement(
    space: NearestMolecule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is decoded is the start without its charge, its salt or its stereocentre."""
    start, own = "C[C@H](N)c1ccccc1", ["C[C@@H](N)c1ccccc1", "CC(N)c1ccccc1"]
    monkeypatch.setattr(space, "decode", lambda z, seed: [own[i % 2] for i in range(len(z))])
    head = fit_head(space.points, space.points[:, 0], epochs=1)
    for written in ("C[C@H]([NH3+])c1ccccc1", f"{start}.Cl"):
        calls = OracleCalls(read_oracle(lambda text: float(-len(text))), 100)
        found = improve(space, [head], calls, written, (0.0, 0.6))
        assert [(each.start, each.best, each.gain) for each in found.values()] == [(start, "", 0.0)] * 2


def test_the_guard_tells_a_hacked_objective_from_a_sound_one(rng: np.random.Generator) -> None:
    n = 400
    quality = np.linspace(0, 3, n) + rng.normal(0, 1, n)
    sound = watch(quality, quality + rng.normal(0, 0.5, n))
    assert sound is not None and sound.parted is None and "rises with" in sound.sentence and sound.agreement > 0.8
    hacked = watch(np.where(np.arange(n) > 200, quality + np.linspace(0, 9, n), quality), rng.normal(0, 1, n))
    assert hacked is not None and hacked.parted is not None and f"part from call {hacked.parted}" in hacked.sentence
    flat = watch(-np.arange(n, dtype=float), quality)
    assert flat is not None and "hardly rose" in flat.sentence
    assert (sound.tag, hacked.tag, flat.tag) == (SOUND, PARTED, OPEN)
    assert watch(quality, quality, independent=False).tag == OPEN  # type: ignore[union-attr]
    blind = watch(quality, np.where(quality > np.quantile(quality, 0.7), 3 + 0.1 * rng.normal(size=n), quality))
    assert blind is not None and blind.parted is None and abs(blind.agreement_top) < 0.2 and blind.tag == OPEN
    assert "does not confirm the order of the best" in blind.sentence
    assert watch(quality[:5], quality[:5]) is None and watch(quality, np.full(n, np.nan)) is None
