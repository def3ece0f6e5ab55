"""Define ``SequenceLayers``, the base class of layers over tokens, used by encoders and by language models."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.parts import make_part, read_part
from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch
from molgraph.nn.penalties import Penalties

Mask: TypeAlias = Bool[Tensor, "n t"]  # which places of each sequence are tokens: the first ones


class SequenceLayers(nn.Module):
    """The base class of sequence layers: ``(x [n, t, d_in], mask [n, t], state) -> (h [n, t, d], state)``.

    Tokens stand at the first places of a row, padding behind them, which changes no token's state. ``causal`` says
    that a state depends on its own token and those before it alone: such layers can write. They go on from the state
    that they gave last, so that a sequence in pieces, down to one token, has the states that it has as a whole. The
    state is that after the last place: it is of use where no row is padded. ``lower_weights``: whether they can draw
    with weights of bfloat16. A subclass sets ``causal`` and writes ``forward``; hyper-parameters of its own are keyword
    arguments with defaults. One of the name ``causal`` says that layers can be either: a generator sets it.

    Args:
        d_in: width of a token's vector.
        d: width of a token's state.
        n_layers: layers, one on the other.
        dropout: probability of dropping a value between layers while training.
    """

    causal: bool = False
    lower_weights: bool = False

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float) -> None:
        super().__init__()

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], Any]:
        """The states of the tokens, zeros at padded places, and the state to go on from, None where not causal."""

    def penalised(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None
    ) -> tuple[Float[Tensor, "n t d"], Penalties]:
        """The states, and scalars to add to the objective by name: none by default."""
        return self(x, mask)[0], {}

    def rows(self, state: Any, index: Int[Tensor, " m"]) -> Any:
        """The state of some sequences alone: int64 [m], which of the n; a subclass says where they stand in its own."""
        if isinstance(state, Tensor):
            return state.index_select(0, index)
        return [self.rows(part, index) for part in state]


def make_sequence(
    sequence: str, d_in: int, d: int, n_layers: int = 2, dropout: float = 0.0, *, writes: bool = False
) -> SequenceLayers:
    """Registered sequence layers, such as ``s4(d_state=16)``.

    With ``writes`` those that can be causal are, unless their setting ``causal`` says otherwise.

    Raises:
        UsageError: unknown layers, or a value that a setting cannot have.

    Example:
        >>> h, _ = make_sequence("gru", 3, 5)(torch.ones(2, 7, 3))
        >>> h.shape
        torch.Size([2, 7, 5])
    """
    part = read_part(sequence, "sequence")
    free = "causal" not in part.settings and can_be_causal(get("sequence", part.name))
    fixed = {"causal": True} if writes and free else {}
    layers: SequenceLayers = make_part("sequence", sequence, d_in, d, n_layers, dropout, **fixed)
    return layers


def can_be_causal(layers: type[SequenceLayers]) -> bool:
    """Whether layers can be causal or not, by their setting ``causal``."""
    return "causal" in inspect.signature(layers).parameters


def padded(h: Float[Tensor, "n t d"], mask: Mask | None) -> Float[Tensor, "n t d"]:
    """float [n, t, d], zeros where the mask is false."""
    return h if mask is None else h * mask.unsqueeze(2).to(h.dtype)


def embedded_tokens(
    batch: GraphBatch, embed: Callable[..., Any], max_tokens: int
) -> tuple[Float[Tensor, "n t d"], Bool[Tensor, "n t"]]:
    """The first ``max_tokens`` tokens of each sequence of a batch, embedded and padded, and the mask of the tokens.

    There is a place at least, so that sequences without tokens have states too.
    """
    token_level = batch["token"]
    assert token_level.table is not None
    lengths = token_level.offsets.diff()
    tokens = embed(token_level.table).index_select(0, token_level.code)
    if not len(tokens):
        x = tokens.new_zeros(batch.n_graphs, 1, tokens.shape[1]) + 0 * tokens.sum()
    else:
        x = pad_sequence([text[:max_tokens] for text in tokens.split(lengths.tolist())], batch_first=True)
    return x, torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)
