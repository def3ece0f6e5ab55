"""Compress frozen vectors to a short code by an autoencoder that no task trains."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.seeds import derive
from molgraph.train.runtime import torch_settings

HIDDEN, BATCH, RATE, STEPS = 128, 256, 1e-3, 600


class GroundedCode(nn.Module):
    """``m = enc(x)``, trained by ``|x - dec(m)|^2`` alone: neither x nor m carries another gradient.

    Lin et al. 2021, "Learning to ground multi-agent communication with autoencoders", section 4: features are not
    changed by the code, and the code is not changed by what reads it, so that a code means the same to all readers.
    Vectors are centred and divided by one scale first. The encoder and the decoder are a linear map and a perceptron,
    added; the maps begin as the principal components, the best linear autoencoder (Baldi and Hornik 1989).

    Args:
        d, d_code: widths of a vector and of its code.
        task_gradient: whether the loss of a task reaches the code, and the code's loss what makes the vectors (the
            paper's ablation, AE-RL-comm).
    """

    reads_atoms = False
    mean: Tensor
    scale: Tensor

    def __init__(self, d: int, d_code: int, *, task_gradient: bool = False) -> None:
        super().__init__()
        self.task_gradient = task_gradient
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("scale", torch.ones(d))
        self.encoder, self.decoder = _Map(d, d_code), _Map(d_code, d)

    @property
    def width(self) -> int:
        """Length of a code."""
        return int(self.encoder.line.out_features)

    def standardised(self, x: Tensor) -> Tensor:
        """float [n, d] centred and of one scale, without a gradient to what made them."""
        return ((x if self.task_gradient else x.detach()) - self.mean) / self.scale

    def forward(self, x: Tensor, extra: Tensor | None = None) -> Tensor:
        """The codes, float [n, d_code], of vectors [n, d], as a reader has them."""
        code = self.encoder(self.standardised(x))
        return code if self.task_gradient else code.detach()

    def loss(self, x: Tensor) -> Tensor:
        """The mean squared error of reconstructions, in variances of the vectors."""
        z = self.standardised(x)
        return F.mse_loss(self.decoder(self.encoder(z)), z)

    def values(self, raw: Tensor) -> tuple[Tensor, None]:
        """Codes as they are: what a network's head has."""
        return raw, None


class _Map(nn.Module):
    """A linear map, and a perceptron that begins with zeros, added."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.line = nn.Linear(d_in, d_out)
        last = nn.Linear(HIDDEN, d_out)
        nn.init.zeros_(last.weight), nn.init.zeros_(last.bias)
        self.bend = nn.Sequential(nn.Linear(d_in, HIDDEN), nn.ReLU(), last)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x) + self.bend(x)


def learn_code(x: np.ndarray, d_code: int, *, steps: int = STEPS, seed: int = 0) -> GroundedCode:
    """Train a code on vectors; the same seed gives the same one.

    Args:
        x: float [n, d].
        d_code: width of the code.
        steps: of Adam, in batches of 256.
        seed: of weights and batches.
    """
    with torch_settings(1, derive(seed, "code")):
        code, rows = _fresh(x, d_code), torch.from_numpy(np.asarray(x, dtype=np.float32))
        components = torch.linalg.svd(code.standardised(rows), full_matrices=False)[2][:d_code]
        code.encoder.line.weight.data[: len(components)] = components
        code.decoder.line.weight.data[:, : len(components)] = components.T
        nn.init.zeros_(code.encoder.line.bias), nn.init.zeros_(code.decoder.line.bias)
        optimiser = torch.optim.Adam(code.parameters(), RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        for _ in range(steps):
            optimiser.zero_grad()
            code.loss(rows[torch.randint(len(rows), (BATCH,))]).backward()
            optimiser.step()
            schedule.step()
    return code.eval()


def projection(x: np.ndarray, d_code: int, *, seed: int = 0) -> GroundedCode:
    """A random projection of the standardised vectors, in the form of a code: the baseline of a learned one."""
    with torch_settings(1, derive(seed, "projection")):
        code = _fresh(x, d_code)
        nn.init.normal_(code.encoder.line.weight, std=d_code**-0.5), nn.init.zeros_(code.encoder.line.bias)
    return code.eval()


def _fresh(x: np.ndarray, d_code: int) -> GroundedCode:
    code: Any = GroundedCode(x.shape[1], d_code)
    code.mean.copy_(torch.from_numpy(x.mean(axis=0)))
    spread = float(x.std(axis=0).mean())  # one for all columns: rescaled columns of noise would take up the code
    code.scale.fill_(spread if spread > 0 else 1.0)
    return code
