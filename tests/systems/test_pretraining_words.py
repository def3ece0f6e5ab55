"""Vectors of Morgan environments by their neighbours, and by the pieces that they are made of."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from torch.nn import functional as F

import molgraph
from molgraph.base.packed import offsets_of
from molgraph.data.batch import collate
from molgraph.data.featurize_environments import Environments
from molgraph.data.graph_store import GraphStore, Level
from molgraph.models.mol2vec import Mol2vec
from molgraph.train.objective import StepState
from molgraph.train.objectives.skip_gram import UNIFORM, SkipGram
from molgraph.train.samples import InputBatch, Sample
from tests.systems.by_hand import pretraining
from tests.systems.effect import Effect
from tests.systems.esol_probe import counts, esol, parts, rmse
from tests.tiny import series

WORDS, STEP = 20, StepState(0, 1, 0)
SEEDS = range(3)


def corpus(seed: int) -> GraphStore:
    """600 sentences of 12 words of 20, of which each sentence prefers some, the first ones more common."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(0.4 / np.arange(1, WORDS + 1), 5) + 0.01
    topics *= 1 / np.arange(1, WORDS + 1)
    topics /= topics.sum(axis=1, keepdims=True)
    words = np.array([rng.choice(WORDS, 12, p=topics[i % 5]) + 1 for i in range(600)], dtype=np.int32)
    levels = {
        "environment": Level(offsets_of([12] * 600), {"word": words.ravel()}),
        "piece": Level(np.zeros(601, np.int64), {"hash": np.zeros(0, np.int64), "word": np.zeros(0, np.int64)}),
    }
    settings = {str(i): i for i in range(1, WORDS + 1)}
    return GraphStore(levels, {}, np.full(600, "ok"), np.full(600, ""), "environments.1", settings=settings)


def of_store(store: GraphStore, seed: int, d: int, **params: Any) -> tuple[Any, Any, Sample]:
    """The objective, its network, and all sentences as a batch."""
    torch.manual_seed(seed)
    network = SimpleNamespace(encoder=Mol2vec(store.spec, d_hidden=d))
    network.encoder.measure(store)
    objective = SkipGram(network, [None], **params)  # type: ignore[arg-type, list-item]
    n = len(store)
    return objective, network, Sample((InputBatch(collate(store, np.arange(n)), None),), None, None, torch.ones(n, 1))


@pytest.mark.system("skip-gram", rung="exact")
def test_dot_products_are_the_shifted_mutual_information_of_two_words(off: str) -> None:
    """Levy and Goldberg 2014: u_c . v_w = PMI(w, c) - log k where negatives are drawn by the counts; off: uniformly."""
    store, k = corpus(0), 3
    objective, network, batch = of_store(store, 0, WORDS, window=2, negatives=k, power=0.0 if off else 1.0)
    both = [*network.encoder.parameters(), *objective.parameters()]
    rng, optimiser, n_steps = np.random.default_rng(0), torch.optim.Adam(both, 0.05), 400
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_steps)
    for _ in range(n_steps):
        loss = objective(network, objective.corrupt(batch, rng), STEP)
        optimiser.zero_grad()
        (loss.total / loss.count).backward()
        optimiser.step(), schedule.step()
    pairs = np.zeros((WORDS + 1, WORDS + 1))
    for sentence in store.levels["environment"].arrays["word"].reshape(600, 12):
        for i in range(12):
            for j in range(max(i - 2, 0), min(i + 3, 12)):
                pairs[sentence[i], sentence[j]] += i != j
    unigram = np.bincount(store.levels["environment"].arrays["word"], minlength=WORDS + 1) / 7200
    seen = pairs >= 20
    expected = (np.log(np.where(seen, pairs, 1) / pairs.sum() / np.outer(unigram, unigram).clip(1e-9)) - np.log(k))[
        seen
    ]
    dots = (network.encoder.words.weight @ objective.contexts.weight.T).detach().numpy()[seen]
    assert np.corrcoef(dots, expected)[0, 1] >= 0.95 and abs(np.mean(dots - expected)) < 0.1


@pytest.mark.system("skip-gram", rung="exact")
def test_the_loss_is_that_of_each_pair_and_its_negatives(off: str) -> None:
    """Mikolov et al. 2013, equation 4, pair by pair; a molecule that does not count; off: the positive terms alone."""
    run = pretraining(list(series(5).smiles), "skip-gram(window=3, negatives=2)", "mol2vec", d_hidden=6)
    encoder, objective = run.network.encoder, run.objective
    encoder.measure(run.samples.stores[0])
    torch.nn.init.normal_(encoder.words.weight), torch.nn.init.normal_(objective.contexts.weight)
    batch = run.batch(range(5))
    batch.weights[1] = 0.0
    graphs = batch.parts[0].batch
    word, uniform = (graphs["environment"].arrays[name] for name in ("word", UNIFORM))
    share = np.cumsum(encoder.counts.numpy().astype(float) ** 0.75)
    total, n, v, u = 0.0, 0, encoder.words.weight, objective.contexts.weight
    for g, (start, stop) in enumerate(pairwise(graphs["environment"].offsets.tolist())):
        for i in range(int(start), int(stop)):
            for place, step in enumerate((-3, -2, -1, 1, 2, 3)):
                if g == 1 or not start <= i + step < stop:
                    continue
                total -= F.logsigmoid(u[word[i + step]] @ v[word[i]]).item()
                drawn = np.searchsorted(share, uniform[i, place].double().numpy() * share[-1], side="right")
                total -= 0.0 if off else sum(F.logsigmoid(-u[each] @ v[word[i]]).item() for each in drawn)
                n += 1
    found = objective(run.network, batch, STEP)
    assert found.count == n and found.total.item() == pytest.approx(total, rel=1e-5)


def learned(texts: list[str], seed: int, **params: Any) -> Any:
    """A pretrained model of vectors."""
    epochs, rate = params.pop("epochs", 8), params.pop("learning_rate", 0.02)
    return molgraph.pretrain(texts, model="mol2vec", objective="skip-gram", params={"objective.window": 5, **params},
                             epochs=epochs, seed=seed, learning_rate=rate, batch_size=64, patience=None,
                             threads=1)  # fmt: skip


@cache
def texts() -> list[str]:
    return [str(text) for text in esol().smiles]


def atoms() -> np.ndarray:
    """How many atoms of each element a molecule has."""
    return counts([[a.GetSymbol() for a in Chem.MolFromSmiles(text).GetAtoms()] for text in texts()])


@cache
def error(seed: int, name: str) -> float:
    """Of a ridge regression on the sums of vectors, which ESOL's molecules taught."""
    how = {"epochs": 1, "learning_rate": 1e-9} if name == "untrained" else {}
    return rmse(molgraph.embed(learned(texts(), seed, d_hidden=100, **how), texts()).value, seed)


@pytest.mark.data
@pytest.mark.system("skip-gram", rung="works")
def test_vectors_of_environments_say_more_of_solubility_than_counts_of_atoms(off: str, effect: Effect) -> None:
    """Off: vectors without training."""
    errors = {name: [error(seed, name) for seed in SEEDS] for name in ("trained", "untrained")}
    errors["atom counts"] = [rmse(atoms(), seed) for seed in SEEDS]
    ours = errors["untrained" if off else "trained"]
    shares = [a / b for a, b in zip(ours, errors["atom counts"], strict=True)]
    effect("ridge error / that of atom counts", shares, at_most=1.0, beside=errors)


@pytest.mark.system("fasttext-subword-embeddings", rung="exact")
def test_a_vector_is_that_of_the_whole_and_the_sum_of_its_pieces(off: str) -> None:
    """Pieces listed by RDKit: elements, atoms, bonds to elements; an unseen environment is the pieces alone."""
    known, new = "CCOC(=O)c1ccncc1", "CC(=O)N[Se]C#N"
    spec = Environments().featurise([known]).spec
    torch.manual_seed(0)
    encoder = Mol2vec(spec, d_hidden=5, subwords=not off, buckets=500)
    z = torch.zeros(500, 5) if off else encoder.pieces.weight
    unseen = 0
    for text in (known, new):
        batch = collate(Environments().featurise([text], spec=spec), np.arange(1))
        mol = Chem.MolFromSmiles(Chem.CanonSmiles(text))
        extra = rdFingerprintGenerator.AdditionalOutput()
        extra.AllocateBitInfoMap()
        made = rdFingerprintGenerator.GetMorganGenerator(radius=1, includeRedundantEnvironments=True)
        made.GetSparseCountFingerprint(mol, additionalOutput=extra)
        key = {place: key for key, places in extra.GetBitInfoMap().items() for place in places}
        rows = []
        for atom in mol.GetAtoms():
            for radius in (0, 1):
                own = [f"{atom.GetAtomicNum()}", f"0:{key[atom.GetIdx(), 0]}"]
                for other in atom.GetNeighbors() if radius else ():
                    bond = mol.GetBondBetweenAtoms(atom.GetIdx(), other.GetIdx())
                    own += [f"{bond.GetBondType()}{other.GetAtomicNum()}", f"0:{key[other.GetIdx(), 0]}"]
                word = spec.settings.get(str(key[atom.GetIdx(), radius]), 0)
                unseen += word == 0
                whole = encoder.words.weight[word] if word else torch.zeros(5)
                rows.append(whole + sum(z[crc32(piece.encode()) % 500] for piece in own))
        torch.testing.assert_close(encoder.vectors(batch), torch.stack(rows))
        torch.testing.assert_close(encoder(batch).graphs[0], torch.stack(rows).sum(dim=0))
    assert unseen >= 5


@pytest.mark.data
@pytest.mark.system("fasttext-subword-embeddings", rung="works")
def test_no_environment_of_new_scaffolds_is_without_a_vector_that_was_learned(off: str, effect: Effect) -> None:
    """Vectors of the training part of ESOL's scaffolds; a vector was learned where training has moved it."""
    shares, words, outside = list[float](), list[float](), list[float]()
    for seed in SEEDS[:1]:
        train, test = parts(seed)
        how = {"d_hidden": 20, "subwords": not off}
        whole, fresh = (
            learned([texts()[i] for i in train], seed, **how, **more).method.ready()
            for more in ({"epochs": 1}, {"epochs": 1, "learning_rate": 1e-12})
        )
        spec = whole.inputs[0].spec
        batch = collate(Environments().featurise([texts()[i] for i in test], spec=spec), np.arange(len(test)))
        with torch.no_grad():
            moved = whole.network.encoder.vectors(batch) - fresh.network.encoder.vectors(batch)
        shares.append(float((moved.abs().amax(dim=1) < 1e-4).float().mean()))
        outside.append(float((batch["environment"].arrays["word"] == 0).float().mean()))
        words.append(float(len(Counter(batch["environment"].arrays["word"].tolist()))))
    effect("share of environments without a learned vector", shares, at_most=0.0,
           beside={"outside the vocabulary": outside, "environments": words})  # fmt: skip


@cache
def error_of(seed: int, subwords: bool) -> float:
    """Of a ridge regression on vectors of width 20 that the training part alone taught."""
    model = learned([texts()[i] for i in parts(seed)[0]], seed, d_hidden=20, subwords=subwords)
    return rmse(molgraph.embed(model, texts()).value, seed)


@pytest.mark.data
@pytest.mark.system("fasttext-subword-embeddings", rung="works")
def test_pieces_say_more_of_solubility_on_new_scaffolds_than_whole_environments(off: str, effect: Effect) -> None:
    errors = {name: [error_of(seed, name == "pieces") for seed in SEEDS] for name in ("pieces", "whole")}
    ours = errors["whole" if off else "pieces"]
    shares = [a / b for a, b in zip(ours, errors["whole"], strict=True)]
    beside = {**errors, "atom counts": [rmse(atoms(), seed) for seed in SEEDS]}
    effect("ridge error / that of whole environments", shares, at_most=0.9, beside=beside)
