"""Losses of two views without negatives (whitening, Barlow Twins), replay of an earlier corpus, and WPC."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import molgraph
from molgraph.base.errors import ShapeError
from molgraph.nn.barlow_twins import barlow_twins
from molgraph.nn.contrastive import info_nce
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.wasserstein import gradient_penalty
from molgraph.nn.whitening import Whitening
from molgraph.train.replay import Replay, reservoir
from tests.systems.contrasts import STEP, VIEWS, made, molecules, pretrained, top_1
from tests.systems.effect import Effect


@pytest.mark.system("lwm-with-w-mse", rung="exact")
def test_the_covariance_of_whitened_rows_is_the_identity_and_the_loss_is_their_distance(off: str) -> None:
    learns: Any
    learns, network, batch = made("contrast(loss=whitening, width=5)")
    if off:
        learns.whiten = nn.Identity()
    z = learns.project(network.encoder(batch.parts[0].batch).graphs)
    v = learns.whiten(z)
    torch.testing.assert_close(v.T.cov(), torch.eye(5), rtol=0, atol=2e-3)
    wide = torch.randn(64, 5, generator=torch.Generator().manual_seed(0)) @ torch.randn(5, 5) + 3
    torch.testing.assert_close(learns.whiten(wide).T.cov(), torch.eye(5), rtol=0, atol=1e-4)
    u = F.normalize(v, dim=1)
    known = 2 * sum(float((u[i] - u[i + 4]).square().sum()) for i in range(4))
    assert learns(network, batch, STEP).total.item() == pytest.approx(known, rel=1e-4)
    learns.eval()
    judged = learns(network, batch, STEP._replace(training=False)).total
    assert math.isfinite(judged.item()) and judged.item() != pytest.approx(known, rel=1e-4), "by running means"


@pytest.mark.system("lwm-with-w-mse", rung="exact")
def test_fewer_rows_than_numbers_are_refused(off: str) -> None:
    whiten: Any = nn.Identity() if off else Whitening(5)
    words = ""
    try:
        whiten(torch.randn(5, 5))
    except ShapeError as error:
        words = str(error)
    assert "5 rows of 5 numbers" in words


@pytest.mark.system("lwm-with-w-mse", rung="works")
def test_states_do_not_collapse(off: str, effect: Effect) -> None:
    """Standard deviation of the projected states after 150 steps; off: their squared distance as they are."""
    spreads, losses = [], []
    for seed in range(3):
        learns: Any
        learns, network, batch = made("contrast(loss=whitening, width=8)", molecules()[64 * seed : 64 * seed + 64])
        optimizer = torch.optim.Adam([*network.encoder.parameters(), *learns.parameters()], lr=3e-3)
        for _ in range(150):
            if off:
                a, b = learns.project(network.encoder(batch.parts[0].batch).graphs).chunk(2)
                loss = (a - b).square().sum(dim=1).mean()
            else:
                loss = learns(network, batch, STEP).total / 128
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        z = learns.project(network.encoder(batch.parts[0].batch).graphs)
        spreads.append(float(z.detach().std(dim=0).min()))
        losses.append(float(loss.detach()))
    effect("smallest standard deviation of a column", spreads, at_least=0.1, beside={"loss": losses})


@pytest.mark.system("lump", rung="exact")
def test_barlow_twins_is_nothing_for_equal_views_without_correlation(off: str) -> None:
    signs = torch.tensor([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=torch.float64)
    assert barlow_twins(signs * 3 + 1, signs).item() == pytest.approx(0, abs=1e-9)
    torch.manual_seed(0)
    a, b = torch.randn(2, 9, 3, dtype=torch.float64)
    c = np.corrcoef(a.numpy().T, b.numpy().T)[:3, 3:]
    known = sum((1 - c[i, i]) ** 2 for i in range(3))
    known += 0.01 * sum(c[i, j] ** 2 for i in range(3) for j in range(3) if i != j)
    assert barlow_twins(a, b.roll(1, 0) if off else b, 0.01).item() == pytest.approx(known, rel=1e-6)


@pytest.mark.system("lump", rung="exact")
def test_states_are_mixed_with_those_of_the_buffer_and_a_share_of_1_is_the_plain_loss(
    off: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.smi"
    path.write_text("\n".join(molecules()[:40]))
    learns, network, batch = made(f"contrast(loss=barlow, width=4, kept=10, replay={path})")
    plain, _, _ = made("contrast(loss=barlow, width=4)")
    monkeypatch.setattr(Replay, "share", lambda _: 1.0)
    known = plain(network, batch, STEP).total
    assert torch.equal(learns(network, batch, STEP).total, known), "bit for bit"
    monkeypatch.setattr(Replay, "share", lambda _: 1.0 if off else 0.3)
    torch.manual_seed(1)
    found = learns(network, batch, STEP).total
    torch.manual_seed(1)
    old = network.encoder(learns.replay.batch(4)).graphs
    new = network.encoder(batch.parts[0].batch).graphs
    z = learns.project(0.3 * new + 0.7 * old)
    torch.testing.assert_close(found, 8 * barlow_twins(*z.chunk(2)), rtol=1e-5, atol=1e-5)
    store, column = learns.replay.kept
    assert len(store) == 10 == len(column.entities.values) and not torch.equal(*old.chunk(2)), "two views"


@pytest.mark.system("lump", rung="exact")
def test_each_molecule_is_as_likely_in_the_reservoir(off: str) -> None:
    counts = np.zeros(20)
    for seed in range(2000):
        kept = [str(i) for i in range(5)] if off else reservoir(map(str, range(20)), 5, np.random.default_rng(seed))
        counts[[int(each) for each in kept]] += 1
    assert np.abs(counts / 2000 - 0.25).max() < 0.05


@pytest.mark.system("lump", rung="works")
def test_less_of_the_earlier_corpus_is_forgotten(off: str, effect: Effect, tmp_path: Any) -> None:
    """Molecules of many rings, then those without rings: top-1 among held-out molecules of rings.

    The new corpus alone forgets nothing here (0.36 before and after); with replay the encoder goes on to learn.
    """
    ringed = [text for text in molecules() if text.count("1") >= 2 and text.count("2") >= 2]
    open_ = [text for text in molecules() if "1" not in text]
    old, held, new = ringed[:600], ringed[600:800], open_[:600]
    path = tmp_path / "old.smi"
    path.write_text("\n".join(old))
    shares: dict[str, list[float]] = {"first": [], "plain": [], "replay": []}
    barlow = "contrast(loss=barlow, width=32"
    for seed in range(3):
        model = molgraph.pretrain(old, model="gin", params={"d_hidden": 32, "depth": 3}, objective=f"{barlow})",
            seed=seed, epochs=6, batch_size=64, threads=1, learning_rate=1e-3, views=VIEWS)  # fmt: skip
        file = model.save(tmp_path / f"{seed}.mgm")
        shares["first"].append(top_1(model.method.fitted.network.encoder, held))  # type: ignore[attr-defined]
        how: dict[str, Any] = {"init": str(file), "params": None, "model": "gin"}
        for name in ("plain", "replay"):
            more = f", replay={path}" if name == "replay" and not off else ""
            encoder = pretrained(f"{barlow}{more})", seed, new, **how)
            shares[name].append(top_1(encoder, held))
    saved = [a - b for a, b in zip(shares["replay"], shares["plain"], strict=True)]
    first = {"top-1 before": shares["first"], "after the new corpus alone": shares["plain"]}
    effect("top-1 of 399 above the new corpus alone's", saved, at_least=0.02, beside=first)


@pytest.mark.system("wdm-wasserstein-predictive-coding", rung="exact")
def test_the_penalty_is_that_of_the_gradients_length_and_without_it_the_loss_is_info_nce(off: str) -> None:
    torch.manual_seed(0)
    x, y, share = torch.randn(7, 3).double(), torch.randn(7, 3).double(), torch.rand(7, 1).double()
    found = gradient_penalty(lambda a, b: (a * b).sum(dim=1), x, y.roll(1, 0) if off else y, share)
    between = [(1 - float(share[i])) * y[i] + float(share[i]) * y[(i + 1) % 7] for i in range(7)]
    known = [(math.sqrt(float(x[i] @ x[i] + between[i] @ between[i])) - 1) ** 2 for i in range(7)]
    assert found.item() == pytest.approx(sum(known) / 7, rel=1e-9)
    plain, network, batch = made("contrast")
    own, _, _ = made(f"contrast(bound=wpc, penalty={1 if off else 0})")
    assert torch.equal(own(network, batch, STEP).total, plain(network, batch, STEP).total)
    learned, network, batch = made("contrast(bound=wpc)")
    loss = learned(network, batch, STEP)
    assert float(loss.parts["bound"]) <= float(loss.parts["ceiling"]) == pytest.approx(8 * math.log(7))
    loss.parts["gradient"].backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in learned.project.parameters())


def pairs(nats: float, n: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Normal vectors of 20 numbers with that mutual information."""
    rho = math.sqrt(1 - math.exp(-2 * nats / 20))
    x, noise = torch.randn(2, n, 20, generator=rng)
    return x, rho * x + math.sqrt(1 - rho**2) * noise


def estimate(nats: float, seed: int, penalty: float) -> tuple[float, float]:
    """The bound of InfoNCE and the Wasserstein dependency of held-out pairs; the score is learned of batches of 64."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    parts = nn.ModuleList(Perceptron(20, 64, 32, n_layers=2) for _ in range(2))

    def score(a: Tensor, b: Tensor) -> Tensor:
        return (parts[0](a) * parts[1](b)).sum(dim=1)

    optimizer = torch.optim.Adam(parts.parameters(), lr=2e-3)
    for _ in range(300):
        x, y = pairs(nats, 64, rng)
        loss = info_nce(parts[0](x) @ parts[1](y).T, torch.arange(64)).losses.mean()
        if penalty:
            loss = loss + penalty * gradient_penalty(score, x, y, torch.rand(64, 1, generator=rng))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    bounds, distances = [], []
    with torch.no_grad():
        for _ in range(20):
            x, y = pairs(nats, 64, rng)
            scores = parts[0](x) @ parts[1](y).T
            bounds.append(float(info_nce(scores, torch.arange(64)).bound))
            distances.append(float(scores.diagonal().mean() - scores.mean()))
    return float(np.mean(bounds)), float(np.mean(distances))


@pytest.mark.system("wdm-wasserstein-predictive-coding", rung="works")
def test_more_information_than_a_batch_holds_is_still_seen(off: str, effect: Effect) -> None:
    """The rise from 6 to 8 nats as a share of that from 4 to 6, of batches of 64 pairs, which hold 4.16."""
    rises, others = [], []
    for seed in range(5):
        nce = [estimate(nats, seed, 0.0)[0] for nats in (4, 6, 8)]
        assert max(nce) <= math.log(64)
        own = nce if off else [estimate(nats, seed, 10.0)[1] for nats in (4, 6, 8)]
        rises.append((own[2] - own[1]) / (own[1] - own[0]))
        others.append((nce[2] - nce[1]) / (nce[1] - nce[0]))
    effect("share", rises, at_least=0.6, beside={"InfoNCE": others})
