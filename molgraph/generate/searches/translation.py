"""Translate points of a latent space from one set to another by a CycleGAN, without pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.errors import DataError
from molgraph.base.seeds import derive
from molgraph.generate.searches.head import latent_samples
from molgraph.nn.perceptron import Perceptron
from molgraph.train.engine import fit_network
from molgraph.train.lookahead import Weights, looked_ahead, weights_of, with_weights
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.runtime import torch_settings
from molgraph.train.samples import Sample

HISTORY = 50  # fakes that the critics see again
RATE = 0.05  # of the gradient steps that are looked ahead
Lookahead = Literal["maps", "both"]
BATCH = 128  # points of both sets in a step


class Residual(nn.Module):
    """``z + f(z)``: it begins near the identity, so that what a point says is kept unless a critic objects."""

    def __init__(self, d_latent: int, width: int) -> None:
        super().__init__()
        self.change = Perceptron(d_latent, width, d_latent, n_layers=3, activation="leaky_relu")

    def forward(self, z: Tensor) -> Tensor:
        """float [n, d] to [n, d]."""
        output: Tensor = z + self.change(z)
        return output


class Translators(nn.Module):
    """The maps ``G`` (X to Y) and ``F`` (Y to X), and a critic of each set."""

    def __init__(self, d_latent: int, width: int) -> None:
        super().__init__()
        self.to_y, self.to_x = Residual(d_latent, width), Residual(d_latent, width)
        self.critic_x, self.critic_y = (
            Perceptron(d_latent, width, 1, n_layers=3, activation="leaky_relu") for _ in range(2)
        )

    def prepare(self, sample: Sample) -> None:
        """Nothing: a batch of vectors has no index work."""


class History(nn.Module):
    """Some fakes of earlier steps: half of those that a critic judges come from here (Shrivastava et al. 2017)."""

    fakes: Tensor
    filled: Tensor

    def __init__(self, d_latent: int, size: int = HISTORY) -> None:
        super().__init__()
        self.register_buffer("fakes", torch.zeros(size, d_latent))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))

    def swap(self, fresh: Tensor) -> Tensor:
        """As many fakes as are given: each by a coin's toss itself, or an older one whose place it takes."""
        fresh, n = fresh.detach().clone(), len(self.fakes)
        free = min(max(n - int(self.filled), 0), len(fresh))
        if free:
            self.fakes[int(self.filled) : int(self.filled) + free] = fresh[:free]
            self.filled += free
        rows = torch.arange(free, len(fresh))[torch.rand(len(fresh) - free) < 0.5]
        places = torch.randperm(n)[: len(rows)]
        rows = rows[: len(places)]
        older = self.fakes[places].clone()
        self.fakes[places] = fresh[rows]
        fresh[rows] = older
        return fresh


class CycleObjective(Objective):
    """The CycleGAN's loss with two optimisers, for the maps and for the critics (Zhu et al. 2017, equations 1 to 3).

    ``sum (D(G(x)) - 1)^2 + cycle |F(G(x)) - x| + identity |G(y) - y|``, both ways, least squares (Mao et al. 2017);
    critics: ``((D(y) - 1)^2 + D(fake)^2) / 2``. A row of label 0 is of X, one of label 1 of Y.

    With ``unroll`` the maps are trained against the critics as those would be after so many steps, through which
    gradients flow (Metz et al. 2017); with ``lookahead="both"`` the critics see fakes of maps after one such step too
    (Foerster et al. 2018).

    Args:
        d_latent: width of a vector.
        cycle, identity: weights.
        unroll: steps of the critics.
        lookahead: who looks ahead, the ``maps`` or ``both``.
    """

    def __init__(
        self,
        d_latent: int,
        *,
        cycle: float = 10.0,
        identity: float = 1.0,
        unroll: int = 0,
        lookahead: Lookahead = "maps",
    ) -> None:
        super().__init__()
        self.cycle, self.identity, self.unroll, self.lookahead = cycle, identity, unroll, lookahead
        self.history_x, self.history_y = History(d_latent), History(d_latent)

    def turns(self, network: Any) -> Sequence[Iterable[nn.Parameter]]:
        """The maps, then the critics."""
        maps, critics = (network.to_y, network.to_x), (network.critic_x, network.critic_y)
        return [[p for part in parts for p in part.parameters()] for parts in (maps, critics)]

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """The loss of the maps in turn 0, of the critics in turn 1."""
        assert batch.extra is not None and batch.y is not None
        of_y = batch.y[:, 0] > 0.5
        x, y, n = batch.extra[~of_y], batch.extra[of_y], len(batch.extra)
        if not len(x) or not len(y):
            return Loss(0.0 * sum(p.sum() for p in network.parameters()), n)
        fake_y, fake_x = network.to_y(x), network.to_x(y)
        if state.turn == 1 and self.unroll and self.lookahead == "both":
            seen = [
                critic_loss(critic, weights_of(critic), true, self.next_fakes(translator, critic, start))
                for critic, true, translator, start in self.games(network, x, y)
            ]
            whole = torch.stack(seen).sum()
            return Loss(0.5 * n * whole, n, {"critics": n * whole.detach()})
        if state.turn == 1:
            pairs = (
                (network.critic_x, x, self.history_x.swap(fake_x)),
                (network.critic_y, y, self.history_y.swap(fake_y)),
            )
            losses = [(critic(true) - 1).square().mean() + critic(fake).square().mean() for critic, true, fake in pairs]
            return Loss(0.5 * n * sum(losses), n, {"critics": n * sum(losses).detach()})
        adversarial = self.doubt(network.critic_y, y, fake_y) + self.doubt(network.critic_x, x, fake_x)
        back = (network.to_x(fake_y) - x).abs().mean() + (network.to_y(fake_x) - y).abs().mean()
        same = (network.to_y(y) - y).abs().mean() + (network.to_x(x) - x).abs().mean()
        total = adversarial + self.cycle * back + self.identity * same
        return Loss(n * total, n, {"adversarial": n * adversarial, "cycle": n * back, "identity": n * same})

    def doubt(self, critic: nn.Module, true: Tensor, fake: Tensor) -> Tensor:
        """``(D(fake) - 1)^2``, of the critic as it is or after ``unroll`` steps of its own."""
        if not self.unroll:
            return (critic(fake) - 1).square().mean()
        after = looked_ahead(
            lambda weights: 0.5 * critic_loss(critic, weights, true, fake), weights_of(critic), self.unroll, RATE
        )
        return (with_weights(critic, after, fake) - 1).square().mean()

    def games(self, network: Any, x: Tensor, y: Tensor) -> tuple[tuple[nn.Module, Tensor, nn.Module, Tensor], ...]:
        """Of each critic its true points, the map that it judges, and what that starts from."""
        return (network.critic_x, x, network.to_x, y), (network.critic_y, y, network.to_y, x)

    def next_fakes(self, translator: nn.Module, critic: nn.Module, start: Tensor) -> Tensor:
        """Fakes of a map after one step against a critic."""

        def loss(weights: Weights) -> Tensor:
            return (critic(with_weights(translator, weights, start)) - 1).square().mean()

        return with_weights(translator, looked_ahead(loss, weights_of(translator), 1, RATE), start)


def critic_loss(critic: nn.Module, weights: Weights, true: Tensor, fake: Tensor) -> Tensor:
    """``(D(true) - 1)^2 + D(fake)^2`` of a critic with some weights."""
    judged = with_weights(critic, weights, true), with_weights(critic, weights, fake)
    return (judged[0] - 1).square().mean() + judged[1].square().mean()


class LatentCycleGAN:
    """Translate latents of molecules that lack a property to latents of ones that have it (Maziarka et al. 2020).

    Points are scaled by the deviation of all that it learns from.

    Args:
        width: of the hidden layers.
        steps: of the training.
        cycle, identity: weights of the losses.
        unroll, lookahead: as ``CycleObjective`` has them.
        seed: the same one gives the same maps.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(64, 3)), rng.normal(size=(64, 3)) + [3, 0, 0]
        >>> LatentCycleGAN(steps=2).fit(x, y).translate(x).shape
        (64, 3)
    """

    def __init__(
        self,
        *,
        width: int = 128,
        steps: int = 1500,
        cycle: float = 10.0,
        identity: float = 1.0,
        unroll: int = 0,
        lookahead: Lookahead = "maps",
        seed: int = 0,
    ) -> None:
        self.width, self.steps, self.seed = width, steps, seed
        self.losses: dict[str, Any] = {"cycle": cycle, "identity": identity, "unroll": unroll, "lookahead": lookahead}

    def fit(self, x: np.ndarray, y: np.ndarray) -> LatentCycleGAN:
        """Learn from two sets of points, float [n, d] and [m, d], that are not paired."""
        if len(x) < 2 or len(y) < 2:
            raise DataError(f"{len(x)} and {len(y)} points are too few to translate", hint="give 2 or more of each")
        every = np.vstack([x, y])
        self.mean, self.scale = every.mean(axis=0), np.maximum(every.std(axis=0), 1e-6)
        with torch_settings(None, derive(self.seed, "translators")):
            self.network = Translators(x.shape[1], self.width)
            objective = CycleObjective(x.shape[1], **self.losses)
        # the smaller set is repeated, so that a batch has as many of each, and both so that an epoch has many steps
        n = max(len(x), len(y), min(self.steps, 16) * BATCH // 2)
        rows = np.vstack([x[np.arange(n) % len(x)], y[np.arange(n) % len(y)]])
        samples = latent_samples((rows - self.mean) / self.scale, np.repeat([0.0, 1.0], n))
        epochs = math.ceil(self.steps / math.ceil(2 * n / BATCH))
        how: dict[str, Any] = {"epochs": epochs, "batch_size": BATCH, "learning_rate": 2e-3, "schedule": "linear"}
        run = {"seed": self.seed, "device": "cpu", "precision": "float32", "checkpoint_seconds": 600.0}
        self.curves, *_ = fit_network(
            self.network, objective, samples, None, how | run, {}, workdir=None, label="latent CycleGAN"
        )
        self.network.eval()
        return self

    def translate(self, x: np.ndarray) -> np.ndarray:
        """``G(x)``: float64 [n, d]."""
        return self._map(self.network.to_y, x)

    def back(self, y: np.ndarray) -> np.ndarray:
        """``F(y)``: float64 [n, d]."""
        return self._map(self.network.to_x, y)

    def belongs(self, z: np.ndarray) -> np.ndarray:
        """``D_Y(z)``: float64 [n], about 1 for a point that the critic takes for one of Y."""
        with torch.no_grad():
            scores = self.network.critic_y(torch.from_numpy((z - self.mean) / self.scale).float())
        return np.asarray(scores.double().numpy()[:, 0])

    def _map(self, by: nn.Module, z: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            output = by(torch.from_numpy((z - self.mean) / self.scale).float()).double().numpy()
        return np.asarray(output * self.scale + self.mean)
