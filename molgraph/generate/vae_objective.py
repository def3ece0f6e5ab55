"""The loss of a variational autoencoder of token sequences: reconstruction, divergence from the prior, properties."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.generate.next_token import PAD, shifted
from molgraph.nn.bottleneck import LatentState
from molgraph.nn.variational import beyond_free
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample
from molgraph.train.warmup import sigmoid

WARM = 0.99  # of the final weight of the divergence: from here on epochs can be compared
VALID_NOISE = 0  # seed of the points at which a validation part is judged, the same in every epoch


class SequenceELBO(Objective):
    """``-log p(x|z) + beta KL(q(z|x) || p(z))`` of each molecule in nats, and the error of its properties.

    Kingma and Welling 2014; the weight of the divergence rises as a sigmoid (Gomez-Bombarelli et al. 2018), and is
    ``beta`` where a validation part is judged. Its curves have the shares ``reconstruction``, ``kl`` (without its
    weight, so that a collapse can be seen), other prices of the bottleneck, which count as they are, and
    ``properties``.

    Args:
        beta: the weight of the divergence in the end.
        start, slope: of its rise, in shares of the training (``train.warmup.sigmoid``); beta from the start where
            ``slope`` is 0.
        free_bits: nats of each dimension that cost nothing (``nn.variational.elbo``); of a flow, of all together.
        property_weight: of the squared error of the scaled properties.
    """

    labelled = False

    def __init__(
        self, beta: float, start: float, slope: float, free_bits: float = 0.0, property_weight: float = 0.0
    ) -> None:
        super().__init__()
        self.beta, self.start, self.slope, self.free_bits = beta, start, slope, free_bits
        self.property_weight = property_weight

    def weight(self, state: StepState) -> float:
        """Of the divergence, now."""
        return sigmoid(state, self.beta, self.start, self.slope) if self.slope else self.beta

    def warming_up(self, state: StepState) -> bool:
        """Whether the divergence has not nearly its final weight."""
        return self.weight(state) < WARM * self.beta

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the molecules of a batch."""
        (part,) = batch.parts
        level, texts = part.batch["token"], part.batch["text"]
        rows, lengths = texts.arrays["row"].long(), texts.arrays.get("length", level.offsets.diff())
        inputs, target = shifted(level.code.long(), F.pad(lengths.cumsum(0), (1, 0)))
        counts = torch.ones(len(inputs), device=inputs.device)
        if batch.weights is not None:
            counts = batch.weights[:, 0].repeat_interleave(texts.offsets.diff())
        h = network.encoder(inputs[:, 1:], lengths)
        rng = None if state.training else torch.Generator(inputs.device).manual_seed(VALID_NOISE)
        noise = torch.randn((len(h), network.bottleneck.d), generator=rng, device=inputs.device)
        z, prices = network.bottleneck(h, LatentState(noise, rows))
        total = (text_nats(network.decoder, z, inputs, target) * counts).sum()
        parts = {"reconstruction": total}
        for name, price in prices.items():
            parts[name] = cost = (price.sum(dim=1) * counts).sum()
            if name == "kl":
                cost = self.weight(state) * (beyond_free(price, self.free_bits).sum(dim=1) * counts).sum()
            total = total + cost
        for name, cost in self.costs(network, z, batch).items():
            parts[name] = cost
            total = total + cost
        return Loss(total, int((counts > 0).sum()), parts)

    def costs(self, network: Any, z: Tensor, batch: Sample) -> dict[str, Tensor]:
        """What the latent vectors of a batch's texts cost beside: the error of their properties."""
        if network.head is None or batch.y is None or batch.weights is None:
            return {}
        known = batch.parts[0].batch["text"].arrays  # of pairs, each text has its own
        y, weights = (known["y"], known["weight"]) if "y" in known else (batch.y, batch.weights[:, 1:])
        error = (network.head(z).float() - y).square() * weights
        return {"properties": self.property_weight * error.sum()}


def text_nats(decoder: Any, z: Tensor, given: Tensor, target: Tensor) -> Tensor:
    """float32 [n], ``-log p(x|z)`` of texts: the sum of the cross-entropies of their tokens and ends.

    Args:
        decoder: ``(z [n, d], given) -> (scores [n, length, n_tokens], state)``.
        z: float [n, d], latent vectors.
        given, target: int64 [n, length], as ``next_token.shifted`` gives them.
    """
    scores, _ = decoder(z, given)
    return F.cross_entropy(scores.float().transpose(1, 2), target, ignore_index=PAD, reduction="none").sum(dim=1)
