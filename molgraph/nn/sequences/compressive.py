"""Compressive transformer: what leaves the memory of a segment is kept in fewer, compressed places."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask
from molgraph.nn.sequences.xl import RelativeAttention, Segment
from molgraph.nn.transformer import HeadCount, HeadStates, Span, Transformer
from molgraph.nn.windows import in_blocks, places_of


class CompressiveAttention(RelativeAttention):
    """Attention of a segment to compressed memory, memory and itself: ``[cm, m, h]``, one after the other.

    Rae et al. 2020, "Compressive Transformers for Long-Range Sequence Modelling", algorithm 1: the memory is the
    segment before (n_m = n_s); what leaves it becomes ``f_c(old) [segment / rate, d]``, a convolution whose window and
    stride are the rate, and the last ``slots`` of these are kept. ``f_c`` begins as the mean. It learns by the
    attention-reconstruction loss alone (algorithm 2): ``||attn(h, old) - attn(h, f_c(old))||_2`` with the weights and
    all states without gradients, by content and without positions; here the mean over tokens.

    Args:
        d, heads, segment: as ``RelativeAttention`` has them.
        rate: places that become one.
        slots: compressed places that are kept.
        weight: of the reconstruction loss.
    """

    def __init__(self, d: int, heads: int, segment: int, rate: int, slots: int, weight: float) -> None:
        super().__init__(d, heads, segment, segment)
        self.rate, self.slots, self.weight = rate, slots, weight
        self.compress = nn.Conv1d(d, d, rate, rate)
        nn.init.zeros_(self.compress.bias)  # type: ignore[arg-type]
        with torch.no_grad():
            self.compress.weight.copy_(torch.eye(d).unsqueeze(2) / rate)

    def forward(
        self, h: Float[Tensor, "n t d"], span: Span, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], tuple[Float[Tensor, "n kept d"], Float[Tensor, "n slots d"]]]:
        """float [n, t, d] to the same shape, and the states and compressed states that later tokens see."""
        s, lead, t = self.segment, span.start % self.segment, h.shape[1]
        kept, old_slots = (None, h.new_zeros(len(h), self.slots, h.shape[2])) if state is None else state
        past = self.remembered(h, kept)  # from the start of the segment before
        whole = past[:, : past.shape[1] // s * s]
        made = self.compress(whole.transpose(1, 2)).transpose(1, 2)
        compressed = torch.cat([old_slots.to(made.dtype), made.detach()], dim=1)
        q = in_blocks(self.queries(h), s, lead)
        pairs = zip(self.keys_values(h), self.keys_values(past), self.keys_values(compressed), strict=True)
        k, v = (
            torch.cat([self.window_of_slots(slots, q.shape[2]), self.memory_and_segment(live, before, lead)], dim=3)
            for live, before, slots in pairs
        )
        at, of = places_of(span.start, q.shape[2], s, s, h.device)
        oldest = of[:, :, :1] - self.rate * torch.arange(self.slots, 0, -1, device=h.device)  # first place of each slot
        of = torch.cat([oldest, of], dim=2)
        out = self.scored(q, k, v, (of <= at) & (of >= 0)).flatten(2, 3)[:, :, lead : lead + t]
        if span.penalties is not None:
            own = made[:, s // self.rate : q.shape[2] * s // self.rate]  # of all segments but the last
            span.penalise("reconstruction", self.weight * self.reconstruction(h.detach(), own, span.mask))
        left, ended = s + (span.start + t) % s, (lead + t) // s * (s // self.rate)
        state = past[:, past.shape[1] - left :], compressed[:, ended : ended + self.slots]
        return self.joined(out), state

    def window_of_slots(self, slots: Float[Tensor, "n heads c e"], n_blocks: int) -> Float[Tensor, "n heads b slots e"]:
        """Keys or values of the compressed places that each segment sees: those that left its memory last."""
        return slots.unfold(2, self.slots, self.segment // self.rate)[:, :, :n_blocks].transpose(3, 4)

    def reconstruction(
        self, h: Float[Tensor, "n t d"], made: Float[Tensor, "n fewer d"], mask: Mask | None
    ) -> Float[Tensor, ""]:
        """Mean over tokens of the distance between what they read of the segment before, and of it compressed.

        Args:
            h: states of whole sequences, without gradients.
            made: what each segment but the last is compressed to.
            mask: bool [n, t], the tokens.
        """
        s, t = self.segment, h.shape[1]
        if t <= s:
            return 0 * made.sum()
        (q,), read = self._projected(h[:, s:], self.q, 1), []
        for states, size in ((h[:, : made.shape[1] * self.rate], s), (made, s // self.rate)):
            k, v = (in_blocks(each, size) for each in self._projected(states, self.kv, 2))
            read.append(F.scaled_dot_product_attention(in_blocks(q, s), k, v))
        gap = torch.linalg.vector_norm(read[0] - read[1], dim=(1, 4)).flatten(1)[:, : t - s]  # of all heads together
        real = gap.new_ones(gap.shape) if mask is None else mask[:, s:].to(gap.dtype)
        return (gap * real).sum() / real.sum().clamp(min=1)

    def _projected(self, states: Tensor, layer: nn.Linear, parts: int) -> tuple[HeadStates, ...]:
        out = F.linear(states, layer.weight.detach()).unflatten(2, (parts, self.heads, -1))
        return tuple(each.transpose(1, 2) for each in out.unbind(2))


@register(
    "sequence",
    "compressive",
    systems=(
        SystemCard(
            "compressive-transformer",
            left_out="other compressions than a convolution (pooling, dilated convolutions, most used places)",
            off="xl",
            beside=("xl", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=compressive",
            modules=("molgraph.nn.transformer", "molgraph.nn.windows", "molgraph.nn.sequences.xl"),
        ),
    ),
    summary="Transformer-XL whose old memory is compressed and not forgotten",
    paper="Rae et al. 2020, ICLR",
)
class Compressive(Transformer):
    """Attention within segments, to the segment before, and to ``slots`` compressed places of what was before that.

    A token of layer l depends on those up to ``l * (segment + rate * slots)`` tokens before its segment. The penalty
    ``reconstruction`` trains the compression, and nothing else.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        rate: tokens that become one compressed place.
        segment: tokens of a segment, a multiple of the rate.
        slots: compressed places.
        weight: of the reconstruction loss.
        heads: of an attention.

    Raises:
        BadValueError: a segment that is no multiple of the rate.
    """

    causal = True

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        rate: Annotated[int, Range(1, 64)] = 4,
        segment: Segment = 32,
        slots: Annotated[int, Range(1, 4096)] = 32,
        weight: NotNegative = 1.0,
        heads: HeadCount = 4,
    ) -> None:
        if segment % rate:
            words = f"segments of {segment} tokens cannot be compressed by {rate}"
            raise BadValueError(words, hint=f"choose a segment that is a multiple of {rate}, such as {8 * rate}")
        how = (d, heads, segment, rate, slots, weight)
        super().__init__(d_in, d, n_layers, dropout, lambda _: CompressiveAttention(*how))
