"""A linear layer whose outputs stay the same while the scale moves on which it learns (PopArt)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

LEAST = 1e-4  # deviation, in those of the training part


class PopArtLinear(nn.Linear):
    """``(sigma (W h + b) + mu - mean) / scale``: a linear layer for values of mean mu and deviation sigma.

    van Hasselt et al. 2016, "Learning values across many orders of magnitude"; Hessel et al. 2018, equations 5 to 8.
    ``mean`` and ``scale`` are those of what reads the outputs. Where the moments move to mu' and sigma', the layer is
    rewritten, ``W' = sigma W / sigma'`` and ``b' = (sigma b + mu - mu') / sigma'``, which leaves its outputs. The first
    values of an output set its moments and rewrite nothing, since its weights have learned nothing.

    Args:
        d_in: width of the states.
        d_out: outputs.

    Example:
        >>> layer, h, known = PopArtLinear(3, 1), torch.ones(2, 3), torch.ones(2, 1, dtype=bool)
        >>> layer.move(torch.tensor([[5.0], [9.0]]), known, beta=0.5)
        >>> layer.mu.tolist(), layer.sigma.tolist()
        ([7.0], [2.0])
        >>> before = layer(h)
        >>> layer.move(torch.tensor([[50.0], [90.0]]), known, beta=0.5)
        >>> layer.mu.tolist(), torch.allclose(layer(h), before)
        ([38.5], True)
    """

    mu: Float[Tensor, " k"]
    nu: Float[Tensor, " k"]
    mean: Float[Tensor, " k"]
    scale: Float[Tensor, " k"]
    seen: Bool[Tensor, " k"]

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__(d_in, d_out)
        for name, value in (("mu", 0.0), ("nu", 1.0), ("mean", 0.0), ("scale", 1.0)):
            self.register_buffer(name, torch.full((d_out,), value, dtype=torch.float64))
        self.register_buffer("seen", torch.zeros(d_out, dtype=torch.bool))

    @property
    def sigma(self) -> Float[Tensor, " k"]:
        """float64 [d_out]: deviations, from the first two moments."""
        return (self.nu - self.mu.square()).sqrt()

    def forward(self, input: Float[Tensor, "n d"]) -> Float[Tensor, "n k"]:
        """Outputs on the scale of what reads them, [n, d_out]."""
        slope, shift = self.sigma / self.scale, (self.mu - self.mean) / self.scale
        return super().forward(input) * slope.to(input) + shift.to(input)

    @torch.no_grad()
    def move(self, y: Float[Tensor, "n k"], known: Bool[Tensor, "n k"], beta: float) -> None:
        """Move the moments a share ``beta`` to those of some values, of each output by its own; the first time wholly.

        Args:
            y: the values, in their own units.
            known: bool [n, d_out], those that are no gaps.
            beta: with 0 nothing moves.
        """
        n = known.sum(dim=0)
        if not beta or not n.any():
            return
        y = torch.where(known, y.double(), torch.zeros((), dtype=torch.float64, device=y.device))
        share = torch.where(self.seen, beta, 1.0) * (n > 0)
        first, second = (power / n.clamp(min=1) for power in (y.sum(dim=0), y.square().sum(dim=0)))
        mu, sigma = self.mu.clone(), self.sigma
        self.mu.lerp_(first, share.double())
        self.nu.lerp_(second, share.double())
        least = self.mu.square() + (LEAST * self.scale).square()
        self.nu.copy_(torch.where(share > 0, self.nu.maximum(least), self.nu))
        weight = (sigma / self.sigma)[:, None] * self.weight.double()
        bias = (sigma * self.bias.double() + mu - self.mu) / self.sigma
        self.weight.copy_(torch.where(self.seen[:, None], weight, self.weight))
        self.bias.copy_(torch.where(self.seen, bias, self.bias))
        self.seen |= n > 0
