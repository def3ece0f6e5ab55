"""Denoise one signal along a sequence by fitting an untrained network to it and stopping early (deep prior)."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import nn

from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.nn.sequences.harmonic import Anchors, Harmonic
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

WIDTH, LAYERS, RATE = 24, 2, 3e-3
HELD, LEAST, LENGTH = 0.2, 20, 200  # share of places that stop it; places at least; of the controls' signals
LEAST_SHARE = 0.005  # of the variance: what is below is told as none
GAIN, NOISE = 3.0, 2.0  # decibels above which a signal is denoised, and below which noise is not


class Denoised(NamedTuple):
    """A fitted signal.

    Args:
        values: float64 [t], at the step at which the places held out were fitted best.
        explained: share of the variance of the places held out that is explained there; below 0 where it is worse
            than their mean.
        curve: float64 [steps, t], the signal at all steps.
    """

    values: np.ndarray
    explained: float
    curve: np.ndarray


def denoise(
    signal: np.ndarray,
    anchors: Anchors,
    taps: int,
    *,
    steps: int,
    seed: int,
    seconds: float = SECONDS,
    even: bool = True,
) -> Denoised:
    """``min_theta ||f_theta(z) - x||^2`` with fixed random z, stopped where the places held out are fitted best.

    Zhang et al. 2020, "Deep audio priors emerge from harmonic convolutional networks", equation 3, after Ulyanov et al.
    2018, "Deep image prior". The network is two harmonic layers and a line; a kernel begins with equal weights at all
    its places, so that the signals that it fits first are equal a period apart.

    Args:
        signal: float [t]; NaN where nothing is known.
        anchors, taps: of the layers; ``[1]`` is an ordinary convolution.
        steps: of Adam.
        seed: of z, the weights and the places held out.
        seconds: of CPU time.
        even: whether kernels begin with equal weights; else with random ones.
    """
    known = np.isfinite(signal)
    held = known & (generator(seed, "held out").random(len(signal)) < HELD)
    mean, spread = signal[known & ~held].mean(), signal[known & ~held].std() + 1e-12
    x = torch.from_numpy(((np.where(known, signal, mean) - mean) / spread).astype(np.float32))
    fitted, curve, end = torch.from_numpy(known & ~held), [], time.process_time() + seconds
    with torch_settings(1, derive(seed, "untrained-prior")):
        z, layers = torch.randn(1, len(x), WIDTH), Harmonic(WIDTH, WIDTH, LAYERS, 0.0, anchors, taps)
        for kernels in (weight for weight in layers.parameters() if even and weight.dim() > 1):
            kernels.data.copy_(kernels.data.sum(dim=-1, keepdim=True) / kernels.shape[-1] ** 0.5)
        line = nn.Linear(WIDTH, 1)
        optimiser = torch.optim.Adam([*layers.parameters(), *line.parameters()], RATE)
        for _ in range(steps):
            y = line(layers(z)[0])[0, :, 0]
            curve.append(y.detach().numpy() * spread + mean)
            optimiser.zero_grad()
            (y - x)[fitted].square().mean().backward()
            optimiser.step()
            if time.process_time() > end:
                break
    steps_of = np.array(curve, dtype=np.float64)
    errors = ((steps_of - signal)[:, held] ** 2).mean(axis=1)
    best = int(errors.argmin())
    return Denoised(steps_of[best], float(1 - errors[best] / signal[held].var()), steps_of)


def gain(clean: np.ndarray, noisy: np.ndarray, denoised: np.ndarray) -> float:
    """Decibels by which the ratio of signal to noise grows."""
    return float(10 * np.log10(((noisy - clean) ** 2).mean() / ((denoised - clean) ** 2).mean()))


@register(
    "study",
    "untrained-prior",
    summary="denoise a profile along a sequence, such as hydrophobicity, by its period",
    paper="Zhang et al. 2020, ICLR; Ulyanov et al. 2018, CVPR",
    command="molgraph study untrained-prior profile.csv --sequence residue -t hydropathy -o denoised.csv",
)
class UntrainedPrior(Study):
    """The first target in the order of the rows, such as a profile along a peptide, denoised without any training data.

    Use it where the order of the rows means something: ``profile.csv`` has a row for each residue of one peptide, with
    the columns ``residue`` (such as K) and ``hydropathy`` (such as -3.9); of the helix LL-37, whose 37 residues have
    Kyte and Doolittle's values, 56% is explained by the period. A table of molecules has no such order.

    The findings have each place's value, and its denoised one by the period and by an ordinary convolution. A fifth of
    the places are held out: they stop the fit, and what is explained of them says whether there is such a period.
    Controls: a sine of the first period under as much noise, and noise alone.

    Args:
        anchors: periods in rows: 3.6 residues of a helix, 2 of a strand.
        taps: multiples of a period that a layer sees on each side.
        steps: of the fit.
    """

    small = MappingProxyType({"steps": 120, "taps": 8})

    def __init__(
        self,
        *,
        anchors: Anchors = (3.6,),
        taps: Annotated[int, Range(1, 32)] = 16,
        steps: Count = 400,
    ) -> None:
        self.anchors, self.taps, self.steps = anchors, taps, steps

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit four times: the signal by both layers, and both controls."""
        table = subject.table()
        if table.y is None:
            raise LabelError("no target to denoise", hint="name it: -t COLUMN")
        signal, name = table.y[:, 0].astype(np.float64), table.targets[0].name
        if np.isfinite(signal).sum() < LEAST:
            raise EmptyError(f"{name} has fewer than {LEAST} values", hint="give a longer profile")
        how: dict[str, Any] = {"steps": self.steps, "seed": seed, "seconds": seconds / 4}
        ours = denoise(signal, self.anchors, self.taps, **how)
        plain = denoise(signal, (1.0,), self.taps, even=False, **how)
        sine, noise, white = controls(self.anchors[0], seed)
        first, second = (
            gain(item, item + noise, denoise(item + noise, self.anchors, self.taps, **how).values)
            for item in (sine, white)
        )
        periods = " and ".join(f"{item:g}" for item in self.anchors)
        return Findings(
            f"{name} along {len(signal):,} places, denoised by an untrained network",
            told(periods, ours.explained, plain.explained),
            pd.DataFrame({name: signal, "denoised": ours.values, "ordinary convolution": plain.values}),
            Control("a sine under as much noise", f"a gain above {GAIN:g} dB", f"{first:.1f} dB", first > GAIN),
            Control("noise alone", f"a gain below {NOISE:g} dB", f"{second:.1f} dB", second < NOISE),
        )


def told(periods: str, explained: float, plain: float) -> str:
    """What is explained of the places held out by the period, and by an ordinary convolution, in words.

    Example:
        >>> told("3.6", 0.4, -0.2)
        'With the period 3.6, 40% of the variance of places held out is explained, and none by an ordinary convolution.'
        >>> told("3.6", -0.1, 0.2).partition(":")[0]
        'Nothing shows the period 3.6'
    """
    other = f"{plain:.0%}" if plain >= LEAST_SHARE else "none"
    if explained >= LEAST_SHARE:
        words = f"With the period {periods}, {explained:.0%} of the variance of places held out is explained"
        return f"{words}, and {other} by an ordinary convolution."
    words = f"Nothing shows the period {periods}: it explains none of the variance of places held out"
    return f"{words}, since the fit is no better than their mean; an ordinary convolution explains {other}."


def controls(period: float, seed: int, length: int = LENGTH) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sine of a period, noise of the same power, and white noise in the place of the sine."""
    rng = generator(seed, "untrained-prior")
    sine = np.sqrt(2) * np.cos(2 * np.pi * (np.arange(length) / period + rng.random()))
    return sine, rng.standard_normal(length), rng.standard_normal(length)
