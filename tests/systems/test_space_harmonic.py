"""Harmonic convolution: windows at multiples of a period, peptides with a side, and an untrained prior of signals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from molgraph.auxiliary.study.untrained_prior import controls, denoise, gain
from molgraph.nn.sequence import make_sequence
from molgraph.nn.sequences.harmonic import HarmonicConvolution
from tests.systems.effect import Effect

SEEDS = (0, 1, 2)
APOLAR, POLAR = "LIVFAM", "KREDQNST"
LENGTH, N_TRAIN, N_TEST, FLIPPED = 24, 600, 1000, 0.1  # residues; peptides; share of residues on the wrong side


@pytest.mark.system("harmonic-convolution", rung="exact")
def test_it_is_the_sum_over_interpolated_places(off: str) -> None:
    """``y_t = b + sum_a sum_k K_a[k] x(t + k a)`` by loops; with the anchor 1 torch's own convolution."""
    torch.manual_seed(0)
    anchors = (1.0, 1.0) if off else (3.6, 2.0)
    layer, x = HarmonicConvolution(3, 4, anchors, 2).double(), torch.randn(1, 30, 3, dtype=torch.float64)
    expected = layer.bias.detach().repeat(30, 1)
    for t in range(30):
        for a, anchor in enumerate((3.6, 2.0)):
            for k in range(-2, 3):
                place = t + k * anchor
                low = int(np.floor(place + 1e-9))
                for at, share in ((low, 1 - (place - low)), (low + 1, place - low)):
                    if 0 <= at < 30:
                        expected[t] += share * (layer.weight[:, :, a, k + 2] @ x[0, at]).detach()
    torch.testing.assert_close(layer(x)[0], expected, rtol=0, atol=1e-6)
    plain, one = nn.Conv1d(3, 4, 5, padding=2).double(), HarmonicConvolution(3, 4, (1.0,), 2).double()
    one.weight.data[:, :, 0], one.bias.data[:] = plain.weight.data, plain.bias.data
    torch.testing.assert_close(one(x), plain(x.transpose(1, 2)).transpose(1, 2), rtol=0, atol=1e-6)


def peptides(n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Helices and strands, half of each amphipathic, the others of the same residues in random order."""
    rows, labels = [], rng.random(n) < 0.5
    for label in labels:
        phase, place = rng.uniform(0, 2 * np.pi), np.arange(LENGTH)
        helix = np.cos(2 * np.pi * place / 3.6 + phase) > 0
        side = (helix if rng.random() < 0.5 else (place + rng.integers(2)) % 2 == 0) ^ (rng.random(LENGTH) < FLIPPED)
        apolar, polar = rng.integers(len(APOLAR), size=LENGTH), rng.integers(len(POLAR), size=LENGTH)
        residues = np.where(side, apolar, len(APOLAR) + polar)
        rows.append(residues if label else rng.permutation(residues))
    return torch.from_numpy(np.array(rows)), torch.from_numpy(labels.astype(np.float32))


@cache
def auc(sequence: str, seed: int) -> float:
    """Of one layer with a mean over residues, on test peptides."""
    rng = np.random.default_rng(seed)
    (x, y), (x_test, y_test) = peptides(N_TRAIN, rng), peptides(N_TEST, rng)
    torch.manual_seed(seed)
    parts = nn.ModuleList([nn.Embedding(14, 8), make_sequence(sequence, 8, 16, 1), nn.Linear(16, 1)])
    optimiser = torch.optim.AdamW(parts.parameters(), 1e-2, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 400)

    def logits(tokens: Tensor) -> Tensor:
        embed, layers, line = parts
        return line(layers(embed(tokens))[0].mean(dim=1))[:, 0]  # type: ignore[no-any-return]

    for _ in range(400):
        batch = torch.randint(len(x), (64,))
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(logits(x[batch]), y[batch]).backward()
        optimiser.step(), schedule.step()
    with torch.no_grad():
        return float(roc_auc_score(y_test, logits(x_test)))


@pytest.mark.system("harmonic-convolution", rung="works")
def test_three_weights_at_helix_distance_tell_amphipathic_peptides(off: str, effect: Effect) -> None:
    """Beside a convolution of as many weights, three; wider ones, of more weights, reach as far and are as good."""
    names = ("harmonic([3.6], taps=1)", "convolution(window=3)", "convolution(window=5)", "convolution(window=7)")
    own, plain, *wider = ([auc(name, seed) for seed in SEEDS] for name in names)
    if off:
        own = [auc("harmonic([1], taps=1)", seed) for seed in SEEDS]
    assert np.mean(own) >= 0.9, own
    leads = [a - b for a, b in zip(own, plain, strict=True)]
    beside = {"AUC": own} | dict(zip(names[1:], (plain, *wider), strict=True))
    effect("AUC above a convolution of as many weights", leads, at_least=0.05, beside=beside)


@pytest.mark.system("harmonic-convolution", rung="works", null="ten weights side by side reach the periods too")
def test_ten_weights_at_both_periods_lead_a_window_of_ten(off: str, effect: Effect) -> None:
    own, plain = ([auc(name, seed) for seed in SEEDS] for name in ("harmonic", "convolution(window=10)"))
    leads = [a - b for a, b in zip(own, plain, strict=True)]
    effect(
        "AUC above a convolution of as many weights", leads, at_least=0.05, beside={"harmonic": own, "window 10": plain}
    )


@cache
def gains(anchor: float, signal: str, even: bool = True) -> list[float]:
    """Decibels that a noisy signal of 200 places gains at the step at which the places held out stop the fit."""
    found = []
    for seed in SEEDS:
        sine, noise, white = controls(3.6, seed)
        clean = sine if signal == "sine" else white
        found.append(
            gain(clean, clean + noise, denoise(clean + noise, (anchor,), 16, steps=400, seed=seed, even=even).values)
        )
    return found


@pytest.mark.system("harmonic-convolution", rung="works")
def test_an_untrained_network_denoises_a_periodic_signal_and_no_noise(off: str, effect: Effect) -> None:
    ours, white = gains(3.6, "sine"), gains(3.6, "white")
    plain = max((gains(1.0, "sine", even) for even in (True, False)), key=np.mean)  # the better of both starts
    own = plain if off else ours
    assert np.mean(own) >= np.mean(plain) + 2 and np.mean(white) < 2, (own, plain, white)
    beside = {"ordinary convolution": plain, "white noise": white}
    effect("decibels gained by a sine at 0 dB", own, at_least=5, beside=beside)
