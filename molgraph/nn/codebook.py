"""A codebook: replace vectors by their nearest code vectors, and move those by running means of what they stand for."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

EPS = 1e-5  # of the additive smoothing of counts


class Codebook(nn.Module):
    """``k`` vectors, each the running mean of the inputs that are nearest to it.

    Van den Oord, Vinyals and Kavukcuoglu 2017, "Neural Discrete Representation Learning", equation 1
    (``code = argmin_j ||z - e_j||``) and appendix A.1, equations 6 to 8: ``N_j <- g N_j + (1 - g) n_j``,
    ``m_j <- g m_j + (1 - g) sum z`` over the n_j inputs of code j, ``e_j = m_j / N_j`` (counts are smoothed by ``EPS``,
    so that none is 0). With g = 0 that is one step of k-means. The first batch in training gives the first vectors.

    Args:
        n_codes: k.
        d: width.
        decay: g.
        dead: codes that stand for less than this share of an even part of the inputs take random inputs; 0 for none.
        ema: False for vectors that are parameters, which a loss moves in the place of means.
    """

    vectors: Float[Tensor, "k d"]
    counts: Float[Tensor, " k"]
    sums: Float[Tensor, "k d"]
    started: Bool[Tensor, ""]

    def __init__(self, n_codes: int, d: int, *, decay: float = 0.99, dead: float = 0.1, ema: bool = True) -> None:
        super().__init__()
        self.decay, self.dead, self.ema = decay, dead, ema
        first = torch.randn(n_codes, d)
        if ema:
            self.register_buffer("vectors", first)
            self.register_buffer("sums", first.clone())
        else:
            self.vectors = nn.Parameter(first)
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("started", torch.tensor(False))

    def nearest(self, z: Float[Tensor, "*n d"]) -> Int[Tensor, " *n"]:
        """The code of each vector."""
        square = self.vectors.square().sum(dim=1)
        return (square - 2 * z @ self.vectors.T).argmin(dim=-1)  # the vector's own square is the same for all codes

    @torch.no_grad()
    def start(self, z: Float[Tensor, "n d"]) -> None:
        """Take random inputs as the vectors, once."""
        if not self.started and len(z):
            self._take(torch.ones_like(self.counts, dtype=torch.bool), z, 1.0)
            self.started.fill_(True)

    @torch.no_grad()
    def update(self, z: Float[Tensor, "n d"], code: Int[Tensor, " n"]) -> None:
        """Move counts, sums and vectors towards a batch; then codes that hardly any input has take random inputs."""
        if not len(z):
            return
        z = z.to(self.vectors.dtype)
        self.counts.lerp_(torch.bincount(code, minlength=len(self.counts)).to(self.counts), 1 - self.decay)
        if self.ema:
            self.sums.lerp_(torch.zeros_like(self.sums).index_add(0, code, z), 1 - self.decay)
            total = self.counts.sum()
            smoothed = (self.counts + EPS) / (total + len(self.counts) * EPS) * total
            self.vectors.copy_(self.sums / smoothed[:, None])
        even = float(self.counts.mean())
        self._take(self.counts < self.dead * even, z, even)

    def _take(self, codes: Bool[Tensor, " k"], z: Float[Tensor, "n d"], count: float) -> None:
        """Random inputs as the vectors of some codes, each of which counts as much."""
        number = int(codes.sum())
        drawn = z[torch.randint(len(z), (number,), device=z.device)].to(self.vectors.dtype)
        self.vectors.data[codes] = drawn
        self.counts[codes] = count
        if self.ema:
            self.sums[codes] = drawn * count


def perplexity(code: Int[Tensor, " n"], n_codes: int) -> float:
    """How many codes are used as if evenly: the exponential of the entropy of their shares.

    Example:
        >>> round(perplexity(torch.tensor([0, 1, 2, 0, 1, 2]), 8), 6)
        3.0
    """
    share = torch.bincount(code, minlength=n_codes).double() / max(len(code), 1)
    return float(torch.special.entr(share).sum().exp())
