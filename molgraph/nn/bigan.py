"""BiGAN: a generator and an encoder that a discriminator of pairs makes each other's inverse."""

from __future__ import annotations

from itertools import chain

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.seeds import derive


def _layers(d_in: int, width: int, d_out: int) -> nn.Sequential:
    slope = 0.2
    return nn.Sequential(
        nn.Linear(d_in, width), nn.LeakyReLU(slope), nn.Linear(width, width), nn.LeakyReLU(slope),
        nn.Linear(width, d_out),
    )  # fmt: skip


class BiGAN(nn.Module):
    """``min_{G,E} max_D E_x log D(x, E(x)) + E_z log(1 - D(G(z), z))`` with z ~ N(0, 1).

    Donahue et al. 2017, ICLR, equation 3. Where D cannot tell the two kinds of pairs, E and G are inverses of each
    other. G and E descend on the loss with the labels exchanged, as in the paper's appendix.

    Args:
        d_x, d_z: widths of data and noise.
        width: of hidden layers.
        seed: of the weights.
        learning_rate: of Adam.
    """

    def __init__(self, d_x: int, d_z: int, width: int, seed: int, learning_rate: float = 1e-3) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(derive(seed, "networks"))
            self.generator, self.encoder = _layers(d_z, width, d_x), _layers(d_x, width, d_z)
            self.discriminator = _layers(d_x + d_z, width, 1)
        self.d_z = d_z
        both = chain(self.generator.parameters(), self.encoder.parameters())
        self.descent = torch.optim.Adam(both, learning_rate, betas=(0.5, 0.999))
        self.judging = torch.optim.Adam(self.discriminator.parameters(), learning_rate, betas=(0.5, 0.999))

    def judge(self, x: Float[Tensor, "n d"], z: Float[Tensor, "n e"]) -> Float[Tensor, " n"]:
        """The logit of D that a pair is one of data and code."""
        return self.discriminator(torch.cat([x, z], dim=1))[:, 0]

    def features(self, x: Float[Tensor, "n d"], z: Float[Tensor, "n e"]) -> Float[Tensor, "n w"]:
        """The last hidden layer of D."""
        return self.discriminator[:-1](torch.cat([x, z], dim=1))

    def loss(self, x: Float[Tensor, "n d"], z: Float[Tensor, "n e"]) -> Float[Tensor, ""]:
        """What D minimises: the negative of the objective, for rows of data and of noise."""
        real_score, other = self.judge(x, self.encoder(x)), self.judge(self.generator(z), z)
        return F.softplus(-real_score).mean() + F.softplus(other).mean()

    def learn(self, x: Float[Tensor, "n d"]) -> None:
        """A step of D, and one of G and E."""
        z = torch.randn(len(x), self.d_z)
        self.judging.zero_grad()
        self.loss(x, z).backward()
        self.judging.step()
        self.descent.zero_grad()
        real_score, other = self.judge(x, self.encoder(x)), self.judge(self.generator(z), z)
        (F.softplus(real_score).mean() + F.softplus(-other).mean()).backward()
        self.descent.step()

    def round_trip(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """``G(E(x))``."""
        return self.generator(self.encoder(x))

    def forward(self, x: Float[Tensor, "n d"], share: float = 0.9) -> Float[Tensor, " n"]:
        """``a |x - G(E(x))| + (1 - a) |f_D(x, E(x)) - f_D(G(E(x)), E(x))|``, both sums of absolute values.

        Zenati et al. 2018, arXiv:1802.06222, equation 3.
        """
        z = self.encoder(x)
        again = self.generator(z)
        feature = (self.features(x, z) - self.features(again, z)).abs().sum(dim=1)
        return share * (x - again).abs().sum(dim=1) + (1 - share) * feature
