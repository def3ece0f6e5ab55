"""Recurrent layers: gated recurrent units and long short-term memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.registry import register
from molgraph.nn.sequence import Mask, SequenceLayers, padded


class _Recurrent(SequenceLayers):
    """One of torch's recurrent networks."""

    causal = True
    lower_weights = True
    cell: Any

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.layers = self.cell(d_in, d, n_layers, batch_first=True, dropout=dropout if n_layers > 1 else 0.0)

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], Any]:
        """float [n, t, d_in] to [n, t, d], and the last states of each layer."""
        h, state = self.layers(x, state)
        return padded(h, mask), state

    def rows(self, state: Any, index: Int[Tensor, " m"]) -> Any:
        """The state of some sequences, [layers, n, d] each."""
        if isinstance(state, Tensor):
            return state.index_select(1, index)
        return tuple(self.rows(part, index) for part in state)


@register("sequence", "gru", summary="gated recurrent units", paper="Cho et al. 2014, EMNLP, 1724")
class GRU(_Recurrent):
    """``h_t = (1 - u_t) n_t + u_t h_(t-1)``, with gates ``r_t``, ``u_t`` and ``n_t = tanh(W x_t + r_t (U h_(t-1)))``.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
    """

    cell = nn.GRU


@register(
    "sequence", "lstm", summary="long short-term memory", paper="Hochreiter and Schmidhuber 1997, Neural Comput. 9:1735"
)
class LSTM(_Recurrent):
    """``c_t = f_t c_(t-1) + i_t g_t`` and ``h_t = o_t tanh(c_t)``, with gates ``f_t``, ``i_t``, ``o_t``.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
    """

    cell = nn.LSTM

    @property
    def lower_weights(self) -> bool:  # type: ignore[override] # of this processor
        """Whether weights of bfloat16 can be computed with."""
        return _has_bfloat16()

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], Any]:
        """As the base class has it; in single precision where the processor has no such layer in bfloat16."""
        if x.device.type != "cpu" or _has_bfloat16():
            return super().forward(x, mask, state)
        with torch.autocast("cpu", enabled=False):
            return super().forward(x.float() if x.dtype == torch.bfloat16 else x, mask, state)


@cache
def _has_bfloat16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
