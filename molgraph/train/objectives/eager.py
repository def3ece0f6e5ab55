"""Eager translation: write the canonical SMILES while a random one is read, token for token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.atom_order import shuffled_atoms
from molgraph.chem.tokens import tokens_of
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample
from molgraph.train.text_to_text import PADDING, token_encoder, vocabulary, with_pairs

_ATOM = re.compile(r"[A-Za-z\[*]")


@register(
    "objective",
    "eager",
    systems=(
        SystemCard(
            "eager-translation",
            left_out="languages, the aligner (atoms are aligned by RDKit), beam search",
            off="translation",
            beside=("the token that was read last",),
            command="molgraph pretrain dataset:nci -m tokens -s params.sequence=lstm --objective eager -o encoder.mgm",
            modules=("molgraph.train.text_to_text", "molgraph.chem.atom_order", "molgraph.models.tokens"),
        ),
    ),
    summary="write the canonical SMILES while a random one is read, without attention, for tokens",
    paper="Press and Smith 2018, arXiv:1810.13409",
)
class Eager(Objective):
    """Layers that read and write at once, for pretraining an encoder of tokens that reads from the left.

    Press and Smith 2018, "You May Not Need Attention", sections 2 and 3: at step i the layers read the token of
    the source and the last one of the target, ``h_i = f(E s_i + F t_(i-1), h_(i-1))``, and ``softmax(W h_i)`` is the
    next token of the target or padding. Paddings are put in so that each atom of the target comes at the place of its
    atom in the source or later, and ``delay`` of them at the start; the source has paddings behind its end. Memory does
    not depend on the length. The source is a random SMILES, the target the canonical one.

    Args:
        network: its encoder is ``tokens``, of SMILES, with sequence layers that read from the left alone.
        inputs: the one column of molecules that it reads.
        delay: paddings at the start of each target.

    Raises:
        UnsupportedError: another encoder, several columns, other tokens, or layers that see what comes later.
    """

    labelled = False
    unused_parameters = True  # those of a readout

    def __init__(self, network: Network, inputs: Sequence[Input], *, delay: Annotated[int, Range(0, 64)] = 3) -> None:
        super().__init__()
        encoder, spec = token_encoder(network, inputs, "eager writes molecules while they are read"), inputs[0].spec
        if not spec.featuriser.startswith("smiles.") or not encoder.sequence.causal:
            words = "eager reads tokens of SMILES, from the left alone"
            raise UnsupportedError(words, hint="choose -m 'tokens(sequence=lstm)'")
        self.delay, self.place, self.end = delay, dict(spec.settings), 1 + spec.width("token")
        self.tokens = vocabulary(spec)
        d = encoder.embed.out_features
        self.padding = nn.Parameter(torch.randn(1, d) * encoder.embed.weight.detach().std())
        self.previous = nn.Embedding(self.end + 2, d)  # the target's tokens, its end, padding
        self.scores = nn.Linear(encoder.d_tokens, self.end + 2)

    def pair(self, text: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The source and the target of a text, int64 of one length; the code of padding is ``end`` in the source.

        It is ``end + 1`` in the target. A text with a token outside the vocabulary is its own source.
        """
        names = [self.tokens[code] for code in text]
        source, after = names, np.arange(len(names))
        shuffled = shuffled_atoms("".join(names), rng) if text.min(initial=1) > 0 else None
        if shuffled is not None:
            read = tokens_of(shuffled[0])
            at, atoms = (np.flatnonzero([bool(_ATOM.match(token)) for token in some]) for some in (read, names))
            if len(at) == len(atoms) == len(shuffled[1]):
                source, after = read, np.zeros(len(names), np.int64)
                after[atoms[shuffled[1]]] = at
        target = with_padding(np.append(text, self.end), np.append(after, 0) + self.delay, self.end + 1)
        codes = np.full(max(len(target), len(source)), self.end)
        codes[: len(source)] = text if source is names else [self.place.get(token, 0) for token in source]
        return codes, np.append(target, np.full(len(codes) - len(target), self.end + 1))

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch of sources; ``y`` holds the targets, int64 [n, tokens], -1 behind each."""
        return with_pairs(batch, self.pair, rng)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the places of the targets."""
        assert batch.y is not None and batch.weights is not None
        target = batch.y[:, : network.encoder.max_tokens]
        before = F.pad(target, (1, -1), value=self.end + 1).clamp(min=0)
        states, _ = network.encoder.states(batch.parts[0].batch, self.padding, self.previous(before))
        losses = F.cross_entropy(
            self.scores(states).float().transpose(1, 2), target, ignore_index=PADDING, reduction="none"
        )
        weights = batch.weights[:, :1] * (target != PADDING)
        return Loss((losses * weights).sum(), int((weights > 0).sum()))


def with_padding(text: np.ndarray, after: np.ndarray, padding: int) -> np.ndarray:
    """The text with padding between its tokens, so that token j is at place ``after[j]`` or later.

    Example:
        >>> with_padding(np.array([7, 8, 9]), np.array([0, 3, 1]), 0).tolist()
        [7, 0, 0, 8, 9]
    """
    places = np.maximum.accumulate(after - np.arange(len(after))) + np.arange(len(after))
    spaced = np.full(places[-1] + 1, padding)
    spaced[places] = text
    return spaced
