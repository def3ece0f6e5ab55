"""The prior of an associative compression network: a Gaussian around the code of a similar molecule."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.nn.bottleneck import Bottleneck, LatentState
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.variational import Gaussian, bounded, standard_normal

SPREAD = 0.5  # that is p(z|c) itself


@register(
    "bottleneck",
    "acn",
    summary="a prior that is conditioned on a similar row's code, and noise of variance 1",
    paper="Graves, Menick and van den Oord 2018, arXiv:1804.02476",
    command="molgraph train-generator dataset:chembl2321810 -m chemvae -s params.prior=acn -o generator.mgm",
)
class AssociativePrior(Bottleneck):
    """``p(z|c')``, where c' is one of the nearest codes in a bank of the training set's, and never the row's own.

    Graves, Menick and van den Oord 2018, "Associative Compression Networks for Representation Learning": the loss
    ``E[KL(q(z|x) || p(z|c')) - log r(x|z)]`` is the cost of sending the data in an order of similarity, so that a
    decoder that could do without codes still uses them. There is no prior of the whole: a sample begins with a code of
    the bank. Posteriors have the variance 1.

    Args:
        d_in, d, prior, n_rows: as ``Bottleneck`` has them; states are codes.
        n_neighbours: K; c' is one of these nearest, each as likely.
        bank_size: codes in the bank at most, those of the training part's first rows; they stand in the model file.
        d_hidden: width of the prior network.
    """

    is_prior = True
    unit_variance = True
    bank: Float[Tensor, "n d"]

    def __init__(
        self,
        d_in: int,
        d: int,
        prior: Bottleneck | None = None,
        n_rows: int = 0,
        n_neighbours: Annotated[int, Range(1, 1000)] = 5,
        bank_size: Annotated[int, Range(1, 100_000)] = 10_000,
        d_hidden: Width = 128,
    ) -> None:
        super().__init__(d_in, d, prior, n_rows)
        self.n_neighbours = n_neighbours
        self.network = Perceptron(d, d_hidden, 2 * d, n_layers=3, activation="silu")
        self.register_buffer("bank", torch.randn(min(n_rows, bank_size), d) * 0.01)

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

    def density(self, code: Float[Tensor, "rows d"], state: LatentState) -> Gaussian:
        """``p(z|c')`` of each row, c' drawn among its neighbours; a standard normal where the bank has no other.

        While it trains, the bank then takes the rows' own codes.
        """
        row = torch.full((len(code),), -1, device=code.device) if state.row is None else state.row
        near, prior = self.nearest(code.detach(), row), standard_normal(code)
        if near.shape[1]:
            pick = torch.randint(near.shape[1], (len(code), 1), device=code.device)
            prior = self.given(self.bank[near.gather(1, pick)[:, 0]])
        if self.training:
            self.refresh(code.detach(), row)
        return prior

    def sample(self, n: int, seed: int) -> Float[Tensor, "n d"]:
        """A vector of ``p(z|c)`` for codes c that are drawn from the bank."""
        pick = torch.from_numpy(generator(seed, "prior", "codes").integers(len(self.bank), size=n))
        noise = torch.from_numpy(generator(seed, "prior").standard_normal((n, self.d)))
        return self.around(self.bank[pick.to(self.bank.device)], noise)

    def around(
        self, code: Float[Tensor, "n d"], noise: Float[Tensor, "n d"], spread: float = SPREAD
    ) -> Float[Tensor, "n d"]:
        """A vector of ``p(z|c)`` for each code, ``spread`` apart by its own measure."""
        code = code.to(self.bank)
        return self.given(code).draw(spread / SPREAD * noise.to(code))

    @torch.no_grad()
    def refresh(self, code: Float[Tensor, "rows d"], row: Int[Tensor, " rows"]) -> None:
        """Put the codes of rows into the bank, those that it has a place for."""
        inside = (row >= 0) & (row < len(self.bank))
        self.bank[row[inside]] = code[inside].to(self.bank.dtype)
