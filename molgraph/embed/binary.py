"""Learn binary codes of vectors that keep nearest neighbours, and compare them by Hamming distance."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.seeds import derive
from molgraph.embed.search import unit
from molgraph.train.runtime import torch_settings

BATCH, RATE, STEPS, SHARPNESS = 256, 3e-3, 600, 0.05


class BinaryCode(nn.Module):
    """``b = sign(W (x / |x| - m) / s + c)``, -1 or 1 in each of the bits.

    Args:
        d, bits: widths of a vector and of its code.
    """

    reads_atoms = False
    mean: Tensor
    scale: Tensor

    def __init__(self, d: int, bits: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("scale", torch.ones(()))
        self.line = nn.Linear(d, bits)

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.line.out_features

    def standardised(self, x: Tensor) -> Tensor:
        """float [n, d]: vectors of length 1, centred and of one scale; distances stand for their cosines."""
        return (F.normalize(x, dim=1) - self.mean) / self.scale

    def forward(self, x: Tensor, extra: Tensor | None = None) -> Tensor:
        """float [n, bits], -1 or 1; the gradient is that of ``tanh(h / mean |h|)``, straight through the sign."""
        h = self.line(self.standardised(x))
        soft = torch.tanh(h / h.detach().abs().mean().clamp(min=1e-12))
        return soft + (torch.where(h > 0, 1.0, -1.0) - soft).detach()

    def loss(self, x: Tensor) -> Tensor:
        """How far the neighbours by codes are from those by vectors, within a batch [n, d].

        The cross-entropy of ``softmax_j(b_i b_j / (bits t))`` under ``softmax_j(-|z_i - z_j|^2 / (d t))``, z being the
        standardised vectors, j not i, and t 0.05: a teacher's similarities of rows, as the student matches them.
        """
        z, code = self.standardised(x), self(x)
        eye = torch.eye(len(x), dtype=torch.bool)
        wanted = torch.cdist(z, z).square().div(-z.shape[1] * SHARPNESS).masked_fill(eye, -torch.inf).softmax(dim=1)
        log_p = (code @ code.T / (self.width * SHARPNESS)).masked_fill(eye, -torch.inf).log_softmax(dim=1)
        return -(wanted * log_p.masked_fill(eye, 0.0)).sum(dim=1).mean()

    def values(self, raw: Tensor) -> tuple[Tensor, None]:
        """Codes as they are: what a network's head has."""
        return raw.sign(), None


def learn_bits(x: np.ndarray, bits: int, *, steps: int = STEPS, seed: int = 0) -> BinaryCode:
    """Train a binary code on vectors, which teach it their neighbours; the same seed gives the same one.

    Martinez et al. 2020, "Training binary neural networks with real-to-binary convolutions": signs in the forward pass,
    gradients straight through them, and a real-valued teacher whose similarities the binary student matches. There each
    layer of a network is binary; here the one behind a frozen encoder, whose rows' similarities are matched.

    Known limit: on 20,000 molecules of ZINC 256 bits keep 62% of the hundred nearest by the cosine of the shipped
    encoder's 900 numbers (random hyperplanes: 51%); draw more rows than needed and rank them by the vectors.

    Args:
        x: float [n, d].
        bits: width of the code.
        steps: of Adam, in batches of 256.
        seed: of weights and batches.
    """
    with torch_settings(1, derive(seed, "binary")):
        code, rows = _fresh(x, bits), torch.from_numpy(np.asarray(x, dtype=np.float32))
        optimiser = torch.optim.Adam(code.parameters(), RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        size = min(BATCH, len(rows))
        for _ in range(steps):
            optimiser.zero_grad()
            code.loss(rows[torch.randperm(len(rows))[:size]]).backward()
            optimiser.step()
            schedule.step()
    return code.eval()


def hyperplanes(x: np.ndarray, bits: int, *, seed: int = 0) -> BinaryCode:
    """Signs of random projections of the standardised vectors (Charikar 2002): the baseline of a learned code."""
    with torch_settings(1, derive(seed, "binary")):
        return _fresh(x, bits).eval()


def _fresh(x: np.ndarray, bits: int) -> BinaryCode:
    code, rows = BinaryCode(x.shape[1], bits), unit(x)
    code.mean.copy_(torch.from_numpy(rows.mean(axis=0)))
    spread = float((rows - rows.mean(axis=0)).std())
    code.scale.fill_(spread if spread > 0 else 1.0)
    nn.init.normal_(code.line.weight, std=x.shape[1] ** -0.5), nn.init.zeros_(code.line.bias)
    return code


def packed_bits(codes: np.ndarray) -> np.ndarray:
    """uint8 [n, bits / 8] of codes [n, bits], a bit that is set where a value is above 0.

    Example:
        >>> packed_bits(np.array([[1, -1, -1, -1, -1, -1, -1, 1]])).tolist()
        [[129]]
    """
    return np.packbits(np.asarray(codes) > 0, axis=1)


def bit_cosines(queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """float32 [n, m]: ``1 - 2 h / bits``, h the Hamming distance; the cosine of the codes of -1 and 1.

    Args:
        queries, rows: uint8 [n, bytes] and [m, bytes], as ``packed_bits`` gives them.

    Example:
        >>> bit_cosines(np.array([[255]], np.uint8), np.array([[255], [0], [15]], np.uint8)).tolist()
        [[1.0, -1.0, 0.0]]
    """
    bits = 8 * rows.shape[1]
    a, b = _words(queries), _words(rows)
    cosines: Any = np.empty((len(a), len(b)), dtype=np.float32)
    for i, query in enumerate(a):
        cosines[i] = 1 - 2 * np.bitwise_count(b ^ query).sum(axis=1, dtype=np.int32) / bits
    return np.asarray(cosines)


def _words(x: np.ndarray) -> np.ndarray:
    """uint64 [n, words]: the bytes of each row, eight by eight."""
    return np.pad(x, ((0, 0), (0, -x.shape[1] % 8))).view(np.uint64)
