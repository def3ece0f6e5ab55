"""A variational autoencoder of token sequences: convolutions or a GRU encode, GRUs write, a head knows properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.nn.bottleneck import make_bottleneck
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.ranked_axes import RankedAxes
from molgraph.nn.token_decoder import TokenDecoder
from molgraph.nn.token_encoders import ConvolutionEncoder, GRUEncoder


class ChemVAENetwork(nn.Module):
    """Encoder, bottleneck, decoder and property head over token sequences.

    Gomez-Bombarelli et al. 2018, "Automatic Chemical Design Using a Data-Driven Continuous Representation of
    Molecules", ACS Cent. Sci. 4:268.

    Args:
        n_tokens: distinct tokens, the edge among them.
        max_length: tokens of a text, at most.
        encoder: ``convolution`` or ``gru``.
        d_latent, d_embedding, d_hidden, n_layers, feedback: as ``TokenDecoder`` has them.
        posterior, prior: registered bottlenecks with their settings.
        n_rows: rows of the training part.
        n_properties: outputs of the property head.
        n_ranked: how many of the first latent axes learn from ranked pairs.
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
        posterior: str = "gaussian",
        prior: str = "normal",
        n_rows: int = 0,
        n_properties: int = 0,
        n_ranked: int = 0,
    ) -> None:
        super().__init__()
        self.encoder: nn.Module
        if encoder == "convolution":
            self.encoder = ConvolutionEncoder(n_tokens, max_length, d_hidden)
        else:
            self.encoder = GRUEncoder(n_tokens, d_embedding, d_hidden)
        self.bottleneck = make_bottleneck(posterior, d_hidden, d_latent, prior, n_rows)
        self.decoder = TokenDecoder(n_tokens, d_latent, d_embedding, d_hidden, n_layers, feedback)
        self.head = Perceptron(d_latent, d_hidden, n_properties) if n_properties else None
        self.ranks = RankedAxes(n_ranked) if n_ranked else None

    def prepare(self, sample: Any) -> None:
        """Nothing is made ahead."""

    def step(self, z: Float[Tensor, "rows d"]) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
        """``(token, state) -> (scores, state)``, to write token by token."""
        return lambda token, state: self.decoder(z, token, state)
