"""Span corruption: replace spans of a text by sentinels and write the tokens that were there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Range, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.text_to_text import TextToText

SENTINELS = 100


@register(
    "objective",
    "span",
    systems=(
        SystemCard(
            "t5",
            left_out="the transformer as encoder and decoder, prefixes of tasks, mixtures of tasks",
            off="-s params.objective.mean_span=1",
            beside=("the encoder without training", "token counts"),
            command="molgraph pretrain dataset:nci -m tokens --objective span -o encoder.mgm",
            modules=("molgraph.train.text_to_text", "molgraph.nn.token_writer", "molgraph.models.tokens"),
        ),
    ),
    summary="write the spans of tokens that sentinels stand for (T5), for tokens",
    paper="Raffel et al. 2020, JMLR 21:140",
)
class Span(TextToText):
    """Span corruption, for pretraining an encoder of tokens.

    Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", sections
    3.1.4 and 3.3.4: a share ``rate`` of the tokens is dropped in spans of ``mean_span`` tokens on average, each of
    which leaves a sentinel of its own; the target is each sentinel with the tokens that it stands for, and one more
    sentinel: of ``CC(=O)Oc1`` the source is ``C<0>=O)Oc1`` and the target ``<0>C(<1>``. Numbers of tokens and spans are
    rounded up or down at random, so that both means hold for short texts too; spans begin anywhere and do not touch.

    Args:
        network: its encoder is ``tokens``.
        inputs: the one column that it reads.
        rate: share of the tokens that are dropped.
        mean_span: tokens of a span, on average.

    Raises:
        UnsupportedError: another encoder, or several columns.
    """

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        rate: Share = 0.15,
        mean_span: Annotated[float, Range(1, 64)] = 3.0,
    ) -> None:
        super().__init__(network, inputs, "span hides spans of tokens", SENTINELS)
        self.rate, self.mean_span = rate, mean_span

    def pair(self, text: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The text with sentinels, and what they stand for."""
        spans = noise_spans(len(text), self.rate, self.mean_span, rng)
        source, target, last = list[Any](), list[Any](), 0
        for sentinel, (start, stop) in enumerate(spans, self.end + 1):
            source += [text[last:start], [sentinel]]
            target += [[sentinel], text[start:stop]]
            last = stop
        target.append([self.end + 1 + len(spans)])
        return np.concatenate([*source, text[last:]]).astype(np.int64), np.concatenate(target).astype(np.int64)


def noise_spans(n: int, rate: float, mean_span: float, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Start and end of each span of a text of n tokens, ascending; none of a text of one token.

    Example:
        >>> spans = noise_spans(100, 0.15, 3.0, np.random.default_rng(0))
        >>> len(spans), sum(stop - start for start, stop in spans)
        (5, 15)
    """
    if n < 2:
        return []
    dropped = min(max(int(n * rate + rng.random()), 1), n - 1)
    number = min(max(int(dropped / mean_span + rng.random()), 1), n - dropped + 1, SENTINELS - 1)
    gaps = np.sort(rng.choice(n - dropped + 1, number, replace=False))  # kept tokens before each span
    cuts = np.sort(rng.choice(np.arange(1, dropped), number - 1, replace=False)) if number > 1 else np.zeros(0, int)
    ends = np.array([*cuts, dropped])
    return [(int(g + a), int(g + b)) for g, a, b in zip(gaps, [0, *ends[:-1]], ends, strict=True)]
