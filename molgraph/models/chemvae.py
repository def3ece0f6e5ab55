"""A variational autoencoder of token sequences: convolutions or a GRU encode, GRUs write, a head knows properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.nn.associative import AssociativePrior
from molgraph.nn.flows import FlowPosterior
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.token_encoders import ConvolutionEncoder, GRUEncoder
from molgraph.nn.variational import Gaussian, bounded, elbo, standard_normal


class Drawn(NamedTuple):
    """A point of each row's posterior.

    Args:
        z: the points.
        kl: the divergence of posterior from prior: exact for a Gaussian, else ``log q(z|x) - log p(z)`` at the point.
        paid: the same with free bits.
    """

    z: Float[Tensor, "rows d"]
    kl: Float[Tensor, " rows"]
    paid: Float[Tensor, " rows"]


class TokenDecoder(nn.Module):
    """Scores of each next token, given the latent vector and the tokens before it.

    With ``feedback="all"`` every GRU layer reads the tokens before. With ``"last"``, as in the paper, only the last one
    does: those below it unroll the latent vector, which costs more and, in as many steps, reconstructs less.

    Args:
        n_tokens: distinct tokens, the edge among them.
        d_latent, d_embedding, d_hidden: widths.
        n_layers: GRU layers.
        feedback: which layers read the tokens before.
    """

    def __init__(
        self,
        n_tokens: int,
        d_latent: int,
        d_embedding: int,
        d_hidden: int,
        n_layers: int,
        feedback: Literal["last", "all"] = "last",
    ) -> None:
        super().__init__()
        below = n_layers - 1 if feedback == "last" else 0
        self.embedding = nn.Embedding(n_tokens, d_embedding)
        self.below = nn.GRU(d_latent, d_hidden, below, batch_first=True) if below else None
        self.top = nn.GRU((d_hidden if below else d_latent) + d_embedding, d_hidden, n_layers - below, batch_first=True)
        self.scores = nn.Linear(d_hidden, n_tokens)

    def forward(
        self, z: Float[Tensor, "rows d"], given: Int[Tensor, "rows length"], state: Any = None
    ) -> tuple[Float[Tensor, "rows length n_tokens"], Any]:
        """The scores after each of the given tokens, and the state to go on from."""
        under, over = (None, None) if state is None else state
        h = z[:, None].expand(-1, given.shape[1], -1)
        if self.below is not None:
            h, under = self.below(h, under)
        h, over = self.top(torch.cat([h, self.embedding(given)], dim=2), over)
        return self.scores(h), (under, over)


class ChemVAENetwork(nn.Module):
    """Encoder, posterior, decoder and property head over token sequences.

    Gomez-Bombarelli et al. 2018, "Automatic Chemical Design Using a Data-Driven Continuous Representation of
    Molecules", ACS Cent. Sci. 4:268.

    Args:
        n_tokens: distinct tokens, the edge among them.
        max_length: tokens of a text, at most.
        encoder: ``convolution`` or ``gru``.
        d_latent, d_embedding, d_hidden, n_layers, feedback: as ``TokenDecoder`` has them.
        flow, n_maps: ``planar`` or ``radial`` maps of the posterior's points and how many; none where empty.
        n_bank, n_neighbours: of ``AssociativePrior``; a standard normal prior where the bank has no place.
        n_properties: outputs of the property head.
    """

    def __init__(
        self,
        n_tokens: int,
        max_length: int,
        encoder: Literal["convolution", "gru"],
        d_latent: int,
        d_embedding: int,
        d_hidden: int,
        n_layers: int,
        feedback: Literal["last", "all"] = "last",
        flow: str = "",
        n_maps: int = 0,
        n_bank: int = 0,
        n_neighbours: int = 5,
        n_properties: int = 0,
    ) -> None:
        super().__init__()
        self.encoder: nn.Module
        if encoder == "convolution":
            self.encoder = ConvolutionEncoder(n_tokens, max_length, d_hidden)
        else:
            self.encoder = GRUEncoder(n_tokens, d_embedding, d_hidden)
        self.posterior = nn.Linear(d_hidden, d_latent if n_bank else 2 * d_latent)
        self.flow = FlowPosterior(d_latent, n_maps, flow) if flow else None
        self.prior = AssociativePrior(d_latent, n_bank, n_neighbours) if n_bank else None
        self.decoder = TokenDecoder(n_tokens, d_latent, d_embedding, d_hidden, n_layers, feedback)
        self.head = Perceptron(d_latent, d_hidden, n_properties) if n_properties else None

    def prepare(self, sample: Any) -> None:
        """Nothing is made ahead."""

    def encode(self, code: Int[Tensor, "rows length"], lengths: Int[Tensor, " rows"]) -> Gaussian:
        """The Gaussian part of each text's posterior, of variance 1 beside an associative prior, as in its paper.

        With a variance of its own a posterior can be as wide as the prior of a neighbour, and its code says nothing.
        """
        found = self.posterior(self.encoder(code, lengths)).float()
        if self.prior is not None:
            return Gaussian(found, torch.zeros_like(found))
        mean, log_variance = found.chunk(2, dim=1)
        return Gaussian(mean, bounded(log_variance))

    def draw(
        self,
        q: Gaussian,
        noise: Float[Tensor, "rows d"],
        row: Int[Tensor, " rows"] | None = None,
        free_bits: float = 0.0,
    ) -> Drawn:
        """A point of each posterior, and its divergence from the prior.

        Args:
            q: the Gaussian parts.
            noise: standard normal.
            row: of the prior's bank, for an associative prior; below 0 for rows that are not in it.
            free_bits: nats of each dimension that cost nothing, of posteriors without a flow.
        """
        z = start = q.draw(noise)
        prior = None
        if self.prior is not None:
            row = torch.full((len(z),), -1, device=z.device) if row is None else row
            prior = self.prior(q.mean, row)
        if self.flow is None:
            bound = elbo(torch.zeros_like(z[:, 0]), q, prior, free_bits=free_bits)
            return Drawn(z, bound.kl.sum(dim=1), -bound.elbo)
        z, log_det = self.flow(start)
        p = standard_normal(z) if prior is None else prior
        kl = q.log_prob(start) - log_det - p.log_prob(z)
        return Drawn(z, kl, kl)

    def step(self, z: Float[Tensor, "rows d"]) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
        """``(token, state) -> (scores, state)``, to write token by token."""
        return lambda token, state: self.decoder(z, token, state)
