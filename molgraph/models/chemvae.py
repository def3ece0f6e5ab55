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
from molgraph.nn.token_decoder import TokenDecoder
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
