"""Episodes: support and query share no row, have both classes, and tell nothing by order."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.errors import LabelError
from molgraph.base.seeds import generator
from molgraph.data.featurize import featurize
from molgraph.train.episodes import Episodes, EpisodeSampler
from molgraph.train.samples import Samples


def rows(n: int = 300, tasks: int = 40, seed: int = 0) -> Samples:
    """Rare positives, at the end of the table, most labels missing, and three tasks that cannot be learned."""
    rng = np.random.default_rng(seed)
    y = np.float32(np.arange(n)[:, None] >= n * rng.uniform(0.85, 0.97, tasks))
    weights = np.float32((rng.random((n, tasks)) < 0.4) * rng.uniform(0.5, 2, (n, 1)))
    y[:, 0], weights[:, 1], weights[1:, 2] = 0, 0, 0  # one class, no label, at most one label
    y[weights == 0] = 0
    store = featurize(["C" * (1 + i % 7) for i in range(n)])
    return Samples((store,), np.arange(n)[:, None], np.float32(np.arange(n)[:, None]), y, weights)


def sampler(**changes: int) -> EpisodeSampler:
    return EpisodeSampler(rows(), Episodes(**{"n_tasks": 4, "shots": 8, "queries": 6, "classes": True, **changes}))  # type: ignore[arg-type]


def test_a_batch_has_few_tasks_whose_parts_share_no_row_and_have_both_classes() -> None:
    drawn, chosen = sampler(), set[int]()
    assert drawn.tasks.min() > 2
    for seed in range(60):
        batch = drawn.sample(generator(seed))
        assert batch.weights is not None and batch.y is not None and batch.extra is not None
        support, query = batch.weights.numpy() > 0
        tasks = np.flatnonzero(support.any(axis=0))
        chosen |= {*tasks.tolist()}
        assert len(tasks) == 4 and not (support & query).any() and (support | query).any(axis=1).all()
        assert (support.sum(axis=0)[tasks] == 8).all() and (query.sum(axis=0)[tasks] == 6).all()
        for part in (support, query):
            assert all({*batch.y.numpy()[part[:, task], task].tolist()} == {0.0, 1.0} for task in tasks)
        table = batch.extra[:, 0].numpy().astype(int)  # the rows' numbers
        assert len({*table.tolist()}) == len(table)
        known = drawn.samples.weights[table]  # type: ignore[index]
        np.testing.assert_array_equal(batch.weights.numpy().sum(axis=0), np.where(support | query, known, 0))
    assert chosen == {*drawn.tasks.tolist()}, "all of the tasks come"


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    drawn = sampler()
    one, two, other = (drawn.sample(generator(0, "episodes", *at)) for at in ((0, 3), (0, 3), (1, 3)))
    assert one.weights is not None and two.weights is not None and other.weights is not None
    assert one.weights.equal(two.weights) and one.extra.equal(two.extra)  # type: ignore[union-attr, arg-type]
    assert one.extra.shape != other.extra.shape or not one.extra.equal(other.extra)  # type: ignore[union-attr, arg-type]


def test_order_tells_nothing_of_labels_and_parts() -> None:
    """Positives stand at the end of the table; in batches their mean place is the middle, as is the support's."""
    drawn, places = sampler(), dict[str, list[float]](positive=[], support=[])
    for seed in range(300):
        batch = drawn.sample(generator(seed))
        assert batch.weights is not None and batch.y is not None
        place = np.linspace(-1, 1, len(batch.y))
        support, query = batch.weights.numpy() > 0
        task = int(np.flatnonzero(support.any(axis=0))[0])
        own = support[:, task] | query[:, task]
        places["positive"].append(place[own & (batch.y.numpy()[:, task] > 0)].mean())
        places["support"].append(place[support[:, task]].mean())
    for values in places.values():
        assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(len(values))


def test_judging_takes_each_task_once_and_few_labels_make_small_parts() -> None:
    drawn = sampler(shots=1000, queries=1000)
    turns = drawn.turns()
    assert sorted(np.concatenate(turns).tolist()) == drawn.tasks.tolist() and max(map(len, turns)) <= 4
    batch = drawn.sample(generator(0), turns[0])
    support, query = batch.weights.numpy() > 0  # type: ignore[union-attr]
    n = drawn.known.sum(axis=0)[turns[0]]
    assert (support.sum(axis=0)[turns[0]] == n // 2).all() and ((support | query).sum(axis=0)[turns[0]] == n).all()


def test_tasks_without_two_labels_are_a_sentence() -> None:
    part = rows(n=1)
    with pytest.raises(LabelError):
        EpisodeSampler(part, Episodes(4, 8, 8))
