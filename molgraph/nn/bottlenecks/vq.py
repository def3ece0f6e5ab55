"""Vector quantisation: put the nearest vectors of a learned codebook in the place of a latent vector's parts."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import NotNegative, Probability, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.bottleneck import Bottleneck
from molgraph.nn.code_bottleneck import CodeBottleneck, Quantised, parts_of
from molgraph.nn.codebook import Codebook

_MODULES = ("molgraph.nn.codebook", "molgraph.nn.code_bottleneck", "molgraph.nn.code_prior")


@register(
    "bottleneck",
    "vq",
    summary="codes of a learned codebook, at one level or two",
    paper="van den Oord et al. 2017, NeurIPS; Razavi et al. 2019, NeurIPS",
    systems=(
        SystemCard(
            "vq-vae",
            left_out="images and sound; the prior is a GRU that is fitted along with the codes",
            off="-s params.posterior=gaussian",
            beside=("posterior=gaussian", "elements as targets"),
            command="molgraph train-generator dataset:chembl2321810 -m chemvae -s params.posterior=vq -o generator.mgm",
            modules=_MODULES,
        ),
    ),
)
class VectorQuantisation(CodeBottleneck):
    """``z_q = e_k``, ``k = argmin_j ||z_e - e_j||``, of each part of ``z_e = W h + b``; the gradient is copied to z_e.

    Van den Oord, Vinyals and Kavukcuoglu 2017, "Neural Discrete Representation Learning", equations 1 to 3: the price
    ``commitment`` is ``beta ||z_e - sg(e)||^2``. The codebook follows running means (``nn.codebook.Codebook``), or,
    with ``ema=False``, the price ``codebook``, ``||sg(z_e) - e||^2``. All parts share one codebook.

    With ``levels=2``, Razavi, van den Oord and Vinyals 2019, "Generating Diverse High-Fidelity Images with VQ-VAE-2",
    section 3.1: the states of a group of rows (the atoms of a fragment) have a mean whose code comes first, and the
    rows' codes are of their states beside that code's vector; both make z, half of it each. Where no groups are known,
    as of whole molecules, each row is one.

    Args:
        d_in, d, prior, n_rows: as ``Bottleneck`` has them; there is no prior beside it.
        n_codes: vectors of a codebook, k.
        parts: that a vector is cut into, each with a code: as many as divide its width evenly, and no more than this.
        levels: 1, or 2 for a code of the group before those of its rows.
        beta: of the commitment.
        decay: of the running means.
        dead: codes that stand for less than this share of an even part of the inputs take random inputs; 0 for none.
        ema: whether the codebook follows running means.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        prior: Bottleneck | None = None,
        n_rows: int = 0,
        n_codes: Annotated[int, Range(2, 65_536)] = 512,
        parts: Annotated[int, Range(1, 256)] = 8,
        levels: Annotated[int, Range(1, 2)] = 1,
        beta: NotNegative = 0.25,
        decay: Probability = 0.99,
        dead: Probability = 0.1,
        ema: bool = True,
    ) -> None:
        super().__init__(d_in, d, None, n_rows)
        if levels == 2 and d < 2:
            raise BadValueError(f"two levels in a vector of width {d}", hint="choose a width of 2 or more, or levels=1")
        self.beta, above = beta, d // 2 if levels == 2 else 0
        widths = [above, d - above] if above else [d]  # the group's first
        self.widths, self.columns = widths, [parts_of(width, parts) for width in widths]
        self.linears: Any = nn.ModuleList([nn.Linear(d_in + above * (i > 0), width) for i, width in enumerate(widths)])
        how: dict[str, Any] = {"decay": decay, "dead": dead, "ema": ema}
        self.books: Any = nn.ModuleList(
            Codebook(n_codes, w // n, **how) for w, n in zip(widths, self.columns, strict=True)
        )
        self.with_prior(n_codes, sum(self.columns))

    def quantise(self, h: Float[Tensor, "n d_in"], group: Int[Tensor, " n"] | None = None) -> Quantised:
        """Codes of the rows; of two levels those of their groups before them."""
        if len(self.books) == 1:
            return self._level(0, self.linears[0](h))
        group = torch.arange(len(h), device=h.device) if group is None else group
        size = torch.bincount(group)
        mean = h.new_zeros(len(size), h.shape[1]).index_add(0, group, h) / size.clamp(min=1).to(h)[:, None]
        above = self._level(0, self.linears[0](mean))
        z, code = above.z[group], above.code[group]
        below = self._level(1, self.linears[1](torch.cat([h, z.to(h.dtype)], dim=1)))
        prices = {name: torch.cat([above.prices[name][group], price], dim=1) for name, price in below.prices.items()}
        return Quantised(torch.cat([z, below.z], dim=1), torch.cat([code, below.code], dim=1), prices)

    def _level(self, i: int, z_e: Float[Tensor, "n d"]) -> Quantised:
        """One level's codes, from the vectors before."""
        book, z_e = self.books[i], z_e.float().unflatten(1, (self.columns[i], -1))
        rows = z_e.detach().flatten(0, 1)
        if self.training:
            book.start(rows)
        code = book.nearest(z_e.detach())
        e = book.vectors[code]
        prices = {"commitment": self.beta * (z_e - e.detach()).square().sum(dim=2)}
        if not book.ema:
            prices["codebook"] = (z_e.detach() - e).square().sum(dim=2)
        z = z_e + (e - z_e).detach()
        if self.training:
            book.update(rows, code.flatten())
        return Quantised(z.flatten(1), code, prices)

    def vectors(self, code: Int[Tensor, "n columns"]) -> Float[Tensor, "n d"]:
        """The vectors of the codebooks side by side."""
        pieces = zip(self.books, code.split(self.columns, dim=1), strict=True)
        return torch.cat([book.vectors[part].flatten(1) for book, part in pieces], dim=1)

    def snap(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest vectors of the codebooks, part by part."""
        pieces = zip(self.books, z.split(self.widths, dim=1), self.columns, strict=True)
        return self.vectors(torch.cat([book.nearest(x.unflatten(1, (n, -1))) for book, x, n in pieces], dim=1))
