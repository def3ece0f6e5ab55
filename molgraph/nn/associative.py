"""A prior on each code given a similar one: the associative compression network's bank and prior network."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.nn.perceptron import Perceptron
from molgraph.nn.variational import Gaussian, bounded, standard_normal


class AssociativePrior(nn.Module):
    """``p(z|c')``, where c' is one of the nearest codes in a bank of the training set's, and never the row's own.

    Graves, Menick and van den Oord 2018, "Associative Compression Networks for Representation Learning": the loss
    ``E[KL(q(z|x) || p(z|c')) - log r(x|z)]`` is the cost of sending the data in an order of similarity, so that a
    decoder that could do without codes still uses them. There is no prior of the whole: a sample begins with a code of
    the bank.

    Args:
        d: width of a code.
        n_bank: codes in the bank, those of the training part's first rows.
        n_neighbours: K; c' is one of these nearest, each as likely.
        d_hidden: width of the prior network.
    """

    bank: Float[Tensor, "n d"]

    def __init__(self, d: int, n_bank: int, n_neighbours: int = 5, d_hidden: int = 128) -> None:
        super().__init__()
        self.n_neighbours = n_neighbours
        self.network = Perceptron(d, d_hidden, 2 * d, n_layers=3, activation="silu")
        self.register_buffer("bank", torch.randn(n_bank, d) * 0.01)

    def given(self, code: Float[Tensor, "rows d"]) -> Gaussian:
        """``p(z|c)`` of each code: a shift of it, and a variance."""
        shift, log_variance = self.network(code).chunk(2, dim=1)
        return Gaussian(code + shift, bounded(log_variance))

    @torch.no_grad()
    def nearest(
        self, code: Float[Tensor, "rows d"], row: Int[Tensor, " rows"], n: int | None = None
    ) -> Int[Tensor, "rows k"]:
        """Rows of the bank of the nearest codes, nearest first; never the own.

        Args:
            code: of each row.
            row: its own row of the bank; below 0, or beyond the bank, where it has none.
            n: how many; ``n_neighbours`` if not given, fewer where the bank has no more.
        """
        distance = torch.cdist(code, self.bank)
        inside = ((row >= 0) & (row < len(self.bank))).nonzero()[:, 0]
        distance[inside, row[inside]] = torch.inf
        k = max(min(self.n_neighbours if n is None else n, len(self.bank) - 1), 0)
        return distance.topk(k, dim=1, largest=False).indices

    def forward(
        self, code: Float[Tensor, "rows d"], row: Int[Tensor, " rows"], generator: torch.Generator | None = None
    ) -> Gaussian:
        """``p(z|c')`` of each row, c' drawn among its neighbours; a standard normal where the bank has no other."""
        near = self.nearest(code.detach(), row)
        if not near.shape[1]:
            return standard_normal(code)
        pick = torch.randint(near.shape[1], (len(code), 1), generator=generator, device=code.device)
        return self.given(self.bank[near.gather(1, pick)[:, 0]])

    @torch.no_grad()
    def refresh(self, code: Float[Tensor, "rows d"], row: Int[Tensor, " rows"]) -> None:
        """Put the codes of rows into the bank, those that it has a place for."""
        inside = (row >= 0) & (row < len(self.bank))
        self.bank[row[inside]] = code[inside].to(self.bank.dtype)
