"""Predict the motion of a molecule several frames ahead by a temporal-difference autoencoder."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.ranges import Count, NotNegative, Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.torsions import heavy_torsions, torsion_angles
from molgraph.data.graph_values import Geometry
from molgraph.data.table import Table
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

FIRST, PAST, HIDDEN = 5, 16, 32  # frames that a belief has seen: at least, and for a prediction; its width
BATCH, LEAST, RATE, DRAWS = 32, 8, 0.01, 100  # windows of a step, and of a part; first learning rate; samples


class TDVAE(nn.Module):
    """A belief of the past, and the state that it leads to any number of frames later, in one jump.

    Gregor et al. 2019, "Temporal difference variational auto-encoder": ``b_t`` is the state of a recurrent network
    behind frame t; for two times t1 < t2 with ``z2 ~ p_B(b2)`` and ``z1 ~ q_S(z2, b1, b2)`` the loss is
    ``KL(q_S | p_B(b1)) + log p_B(z2 | b2) - log p_T(z2 | z1, t2 - t1) - log p_D(x2 | z2)``. All are Gaussian. ``p_T``
    begins as the identity; near times are drawn more often, t2 - t1 = k with a share of 1 / k, since far ones teach a
    belief to forget (the bound is not tight where ``b2`` knows more than ``b1`` and ``x2``).

    Args:
        d, d_latent, d_hidden: widths of a frame, of the state z, and of the belief and hidden layers.
        reach: frames that are jumped, at most.
        weight: of the temporal-difference terms, those of ``p_T``; 0 leaves persistence.
    """

    def __init__(self, d: int, d_latent: int, d_hidden: int, reach: int, weight: float = 1.0) -> None:
        super().__init__()
        self.reach, self.weight = reach, weight
        lagged = (d_latent + 1) * reach
        self.memory = nn.GRU(d, d_hidden, batch_first=True)
        self.belief = _Gaussian(d_hidden, d_latent, d_hidden)
        self.smoother = _Gaussian(lagged + 2 * d_hidden, d_latent, d_hidden)
        self.transition, self.decoder = _Gaussian(lagged, d_latent, d_hidden), _Gaussian(d_latent, d, d_hidden)
        same = torch.eye(d_latent).repeat_interleave(reach, dim=1)  # the state as it is, at every lag
        for part in (self.smoother, self.transition):
            part.line.weight = nn.Parameter(F.pad(same, (0, part.line.in_features - same.shape[1])))

    def at_lag(self, z: Float[Tensor, "*n z"], lag: Int[Tensor, "*n"]) -> Float[Tensor, "*n w"]:
        """The state at the place of its lag, and which that is: a linear map of it is one for each lag."""
        place = F.one_hot(lag - 1, self.reach).to(z.dtype)
        return torch.cat([(z.unsqueeze(-1) * place.unsqueeze(-2)).flatten(-2), place], dim=-1)

    def loss(self, x: Float[Tensor, "n t d"]) -> Float[Tensor, ""]:
        """The mean loss over pairs of times of windows, t2 drawn for each t1."""
        n, length, _ = x.shape
        beliefs, row = self.memory(x)[0], torch.arange(n)[:, None]
        first = torch.arange(FIRST - 1, length - self.reach).expand(n, -1)
        shares = 1 / torch.arange(1.0, self.reach + 1)
        lag = 1 + torch.multinomial(shares, first.numel(), replacement=True).view(first.shape)
        b1, b2 = beliefs[row, first], beliefs[row, first + lag]
        state, before = self.belief(b2), self.belief(b1)
        z2 = state.rsample()
        smoothed = self.smoother(self.at_lag(z2, lag), b1, b2)
        jump = state.log_prob(z2) - self.transition(self.at_lag(smoothed.rsample(), lag)).log_prob(z2)
        difference = self.weight * (kl_divergence(smoothed, before) + jump).sum(-1)
        return (difference - self.decoder(z2).log_prob(x[row, first + lag]).sum(-1)).mean()

    @torch.no_grad()
    def predict(self, x: Float[Tensor, "n t d"], lag: int, draws: int = DRAWS) -> Float[Tensor, "draws n d"]:
        """Samples of the frame ``lag`` frames behind the last one."""
        z = self.belief(self.memory(x)[0][:, -1]).sample((draws,))
        return self.decoder(self.transition(self.at_lag(z, torch.full(z.shape[:-1], lag))).sample()).sample()


class _Gaussian(nn.Module):
    """A normal law whose mean is a linear map and a perceptron of what it is given, and its deviation a perceptron."""

    def __init__(self, d_in: int, d: int, d_hidden: int) -> None:
        super().__init__()
        self.line = nn.Linear(d_in, d)
        self.bend = nn.Sequential(nn.Linear(d_in, d_hidden), nn.Tanh(), nn.Linear(d_hidden, 2 * d))

    def forward(self, *parts: Tensor) -> Normal:
        x = torch.cat(parts, dim=-1)
        mean, spread = self.bend(x).chunk(2, dim=-1)
        return Normal(self.line(x) + mean, F.softplus(spread) + 1e-3)


def train_td_vae(windows: np.ndarray, model: TDVAE, *, steps: int, seconds: float = SECONDS) -> int:
    """Train on windows, float [n, t, d]; how many steps there was CPU time for. Torch's seed is the caller's."""
    x, end = torch.from_numpy(windows.astype(np.float32)), time.process_time() + seconds
    optimiser = torch.optim.Adam(model.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for step in range(steps):
        if time.process_time() > end:
            return step
        optimiser.zero_grad()
        model.loss(x[torch.randint(len(x), (BATCH,))]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.step()
        schedule.step()
    return steps


@register(
    "study",
    "td-vae",
    summary="how far ahead the motion of a trajectory can be predicted",
    paper="Gregor et al. 2019, ICLR",
    systems=(
        SystemCard(
            "td-vae",
            left_out="several layers of states; images; the generator of whole sequences",
            off="td-vae(weight=0)",
            beside=("persistence", "the mean"),
            command="molgraph data trajectory CCCC -o traj.npz && molgraph study td-vae traj.npz -o ahead.csv",
        ),
    ),
)
class TDVAEStudy(Study):
    """The error of a frame predicted ahead, beside the last frame (persistence) and the mean of all frames.

    Rows are frames in the order of time. Of geometries of one molecule the torsion angles are predicted (their cosines
    and sines), of other tables the targets. The first 70% of the frames train, the others test. Controls: a noisy
    autoregressive series, and the same frames in random order. Errors are in standard deviations.

    Args:
        reach: frames ahead, at most.
        steps: of training.
        d_latent, weight: width of the state; weight of the temporal-difference terms.
    """

    reads = "trajectory"
    small = MappingProxyType({"steps": 80})

    def __init__(
        self,
        *,
        reach: Annotated[int, Range(1, 100)] = 8,
        steps: Count = 600,
        d_latent: Width = 4,
        weight: NotNegative = 1.0,
    ) -> None:
        self.reach, self.steps, self.d_latent, self.weight = reach, steps, d_latent, weight

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train three times: on the frames, and on both controls."""
        series, what = series_of(subject.table())
        rng = generator(seed, "td-vae")
        state, noise = np.zeros((len(series), 1)), rng.standard_normal((len(series), 2))
        for t in range(1, len(series)):
            state[t] = 0.9 * state[t - 1] + np.sqrt(1 - 0.9**2) * noise[t, :1]
        controls = state + 0.5 * noise[:, 1:], rng.permutation(series)
        frame, done = self.errors(series, seed, seconds / 3)
        positive, negative = (self.errors(control, seed, seconds / 3)[0] for control in controls)
        last, first, least = frame.iloc[-1], positive["error"].iloc[0], negative["error"].min()
        sentence = f"{self.reach} frames ahead the error of {what} is {last['error']:.2f} standard deviations, beside "
        sentence += f"{last['persistence']:.2f} of persistence and {last['mean']:.2f} of the mean."
        return Findings(
            f"TD-VAE of {len(series):,} frames", sentence, frame,
            Control("a noisy autoregressive series, 1 ahead", "below 0.95", f"{first:.2f}", first < 0.95),
            Control("the frames in random order", "above 0.9", f"{least:.2f}", least > 0.9),
            notes=(f"{done} of {self.steps} steps: more take more time",) * (done < self.steps),
        )  # fmt: skip

    def errors(self, series: np.ndarray, seed: int, seconds: float) -> tuple[pd.DataFrame, int]:
        """A row for each number of frames ahead, of the last 30% of a series; and the steps of training."""
        cut, length = round(0.7 * len(series)), PAST + self.reach
        if len(series) - cut < length + LEAST:
            words = f"{len(series)} frames are too few to predict {self.reach} ahead"
            raise EmptyError(words, hint=f"give {round((length + LEAST) / 0.3) + 1} frames, or a smaller reach")
        scaled = (series - series[:cut].mean(axis=0)) / np.maximum(series[:cut].std(axis=0), 1e-6)
        slide = np.lib.stride_tricks.sliding_window_view
        train, test = (slide(part, length, axis=0).swapaxes(1, 2) for part in (scaled[:cut], scaled[cut:]))
        with torch_settings(1, derive(seed, "td-vae")):
            model = TDVAE(series.shape[1], self.d_latent, HIDDEN, self.reach, self.weight)
            done = train_td_vae(train, model, steps=self.steps, seconds=seconds)
            past, rows = torch.from_numpy(test[:, :PAST].astype(np.float32)), []
            for ahead in range(1, self.reach + 1):
                draws, truth = model.predict(past, ahead).numpy(), test[:, PAST + ahead - 1]
                guesses = {"error": draws.mean(axis=0), "persistence": test[:, PAST - 1], "mean": 0 * truth}
                row = {name: float(np.sqrt(np.mean((guess - truth) ** 2))) for name, guess in guesses.items()}
                inside = float(np.mean(np.abs((draws < truth).mean(axis=0) - 0.5) <= 0.45))
                rows.append({"ahead": ahead, **row, "spread": float(draws.std(axis=0).mean()), "in 90%": inside})
        return pd.DataFrame(rows), done


def series_of(table: Table) -> tuple[np.ndarray, str]:
    """What is predicted of each readable row, float64 [frames, d], and its name."""
    table = table.take(np.flatnonzero(table.ok))
    shapes = next((e.values for e in table.entities if e.kind == "geometry"), None)
    if shapes is None or not len(table):
        if table.y is None or not np.isfinite(table.y).all() or not len(table):
            raise LabelError("no geometries and no targets without gaps to predict", hint="name them: -t COLUMN")
        return table.y, "the targets"
    first: Geometry = shapes[0]
    same = all(np.array_equal(first.numbers, shape.numbers) for shape in shapes)
    if not same or not len(atoms := heavy_torsions(first.numbers, first.positions)):
        raise LabelError("the rows are not frames of one molecule with a torsion", hint="such as those of butane, CCCC")
    angles = torsion_angles(np.stack([shape.positions for shape in shapes]), atoms)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1), "torsion angles"
