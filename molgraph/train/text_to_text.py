"""Define ``TextToText``, the base class of objectives that read one text of tokens and write another."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.errors import UnsupportedError
from molgraph.base.packed import offsets_of
from molgraph.data.graph_store import InputSpec
from molgraph.models.tokens import Tokens
from molgraph.nn.token_writer import TokenWriter
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

PADDING = -1


def token_encoder(network: Network, inputs: Sequence[Input], does: str) -> Tokens:
    """The encoder of a network that reads one column of tokens; ``does`` names the objective first.

    Raises:
        UnsupportedError: it is another encoder, or there are several columns.
    """
    if len(inputs) != 1 or not isinstance(network.encoder, Tokens):
        read = " and ".join(f"{each.column} ({each.encoder})" for each in inputs)
        raise UnsupportedError(f"{does}, and the model reads {read}", hint="choose -m tokens and one column")
    return network.encoder


class TextToText(Objective):
    """The base class: an encoder ``tokens`` reads a source, and a decoder with attention writes the target.

    A subclass writes ``pair``. The loss is the cross-entropy of the target's tokens, each after those before it; the
    decoder is left behind after training. Codes from ``self.end`` on are tokens of the objective's own: ``end``, which
    begins the decoder's text and may end it, and ``n_further`` more after it, which the source may have too.

    Args:
        network: its encoder is ``tokens``.
        inputs: the one column that it reads.
        does: the objective's name and what it does, for errors.
        n_further: tokens of its own beside ``end``.
    """

    labelled = False
    unused_parameters = True  # those of ``further`` that no text has

    def __init__(self, network: Network, inputs: Sequence[Input], does: str, n_further: int = 0) -> None:
        super().__init__()
        encoder = token_encoder(network, inputs, does)
        self.end = 1 + inputs[0].spec.width("token")
        n = 1 + n_further
        self.further = nn.Parameter(torch.randn(n, encoder.embed.out_features) * encoder.embed.weight.detach().std())
        self.writer = TokenWriter(self.end + n, encoder.d_tokens, encoder.d_tokens)

    @abstractmethod
    def pair(self, text: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The source and the target of a text, each int64 [its tokens]; the text is int64 [tokens]."""

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch of sources; ``y`` holds the targets, int64 [n, tokens], -1 behind each."""
        return with_pairs(batch, self.pair, rng)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the tokens of the targets."""
        assert batch.y is not None and batch.weights is not None
        target = batch.y
        states, mask = network.encoder.states(batch.parts[0].batch, self.further)
        encoded = network.encoder.read(states, mask)
        before = torch.cat([torch.full_like(target[:, :1], self.end), target[:, :-1]], dim=1).clamp(min=0)
        scores = self.writer(states, mask, encoded.graphs, before)
        losses = F.cross_entropy(scores.float().transpose(1, 2), target, ignore_index=PADDING, reduction="none")
        weights = batch.weights[:, :1] * (target != PADDING)
        return Loss((losses * weights).sum(), int((weights > 0).sum())).with_penalties(encoded.penalties)


def padded_codes(texts: Sequence[Tensor]) -> Tensor:
    """int64 [n, longest], -1 behind each text."""
    return pad_sequence([*texts], batch_first=True, padding_value=PADDING)


def with_pairs(
    batch: Sample,
    pair: Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]],
    rng: np.random.Generator,
) -> Sample:
    """The batch with the source of each text in its place, and the targets as ``y``, int64 [n, tokens], padded with -1.

    ``pair``: from the codes of a text, int64 [tokens], to those of its source and its target.
    """
    (part,) = batch.parts
    own = part.batch["token"]
    texts = np.split(own.code.numpy(), own.offsets[1:-1].numpy())
    pairs = [pair(text, rng) for text in texts[: part.batch.n_graphs]]
    code = np.concatenate([np.zeros(0, np.int64), *(source for source, _ in pairs)])
    offsets = torch.from_numpy(offsets_of([len(source) for source, _ in pairs]))
    made = copy(batch)
    made.y = padded_codes([torch.from_numpy(target) for _, target in pairs])
    graphs = part.batch.with_level("token", code=torch.from_numpy(code), offsets=offsets)
    made.parts = (part._replace(batch=graphs),)
    return made


def vocabulary(spec: InputSpec) -> tuple[str, ...]:
    """The tokens of SMILES or SELFIES by their codes; the first stands for all others, and is empty."""
    return ("", *sorted(spec.settings, key=lambda token: spec.settings[token]))
