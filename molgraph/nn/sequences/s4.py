"""Diagonal state spaces: a convolution over a whole sequence that is a recurrence token by token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, TypeAlias

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask, SequenceLayers, padded

PIECE = 64  # places that are convolved at once: the least work on sequences of some hundred tokens
SLOWEST, FASTEST = 1e-3, 1e-1  # steps of time that a token takes, at the start (section 4)


Powers: TypeAlias = Complex[Tensor, "d s length+1"]
State: TypeAlias = Complex[Tensor, "n d s"]


class StateSpace(nn.Module):
    """One layer: a diagonal linear state space of each channel, in the S4D-Lin form.

    ``x'(s) = A x(s) + u(s)``, ``y = 2 Re(C x) + D u`` with complex ``A_n = -exp(a_n) + i b_n``, held for a step ``dt``
    a token: ``x_t = exp(dt A) x_(t-1) + (exp(dt A) - 1) / A u_t``, so ``y = K * u + D u`` with the kernel
    ``K_l = 2 Re sum_n C_n exp(l dt A_n) (exp(dt A_n) - 1) / A_n``. A piece of a sequence is convolved with the kernel
    by the kernel's triangular Toeplitz matrix, in which what comes later has weights of exactly 0 (a Fourier transform
    rounds); the state goes on from piece to piece, so that time and memory are linear in the length.

    Args:
        d: channels.
        d_state: numbers of a channel's state, two for each complex one.
    """

    def __init__(self, d: int, d_state: int) -> None:
        super().__init__()
        n = max(d_state // 2, 1)
        spread = torch.rand(d) * (math.log(FASTEST) - math.log(SLOWEST))
        self.log_step = nn.Parameter(spread + math.log(SLOWEST))
        self.log_decay = nn.Parameter(torch.full((d, n), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(n).repeat(d, 1))
        self.output = nn.Parameter(torch.randn(d, n, 2) * math.sqrt(0.5))  # C, real and imaginary parts
        self.skip = nn.Parameter(torch.randn(d))

    def kernel(self, length: int) -> tuple[Float[Tensor, "d length"], Powers, Complex[Tensor, "d s"]]:
        """The kernel, the powers 0 to ``length`` of ``exp(dt A)``, and the weights of an input, complex [d, s]."""
        a = torch.complex(-self.log_decay.exp(), self.frequency)
        rate = a * self.log_step.exp().unsqueeze(1)
        powers = (rate.unsqueeze(2) * torch.arange(length + 1, device=a.device)).exp()
        enter = (powers[..., 1] - 1) / a
        c = torch.view_as_complex(self.output) * enter
        return 2 * torch.einsum("dn,dnl->dl", c, powers[..., :length]).real, powers, enter

    def forward(self, u: Float[Tensor, "n t d"], state: State | None = None) -> tuple[Float[Tensor, "n t d"], State]:
        """float [n, t, d] to the same shape, and the state after the last place."""
        length = min(PIECE, u.shape[1])
        kernel, powers, enter = self.kernel(length)
        c = torch.view_as_complex(self.output)
        matrix = F.pad(kernel, (length - 1, 0)).unfold(1, length, 1).flip(2)  # [d, to, from] = kernel[to - from]
        x = u.new_zeros(len(u), *enter.shape).to(enter.dtype) if state is None else state
        pieces = []
        for piece in u.transpose(1, 2).split(length, dim=2):  # [n, d, places]
            t = piece.shape[2]
            y = torch.einsum("ndj,dij->nid", piece, matrix[:, :t, :t])
            before = torch.einsum("nds,dsi->nid", x * c, powers[..., 1 : t + 1]).real
            pieces.append(y + 2 * before)
            into = torch.einsum("ndj,dsj->nds", piece.to(enter.dtype), powers[..., :t].flip(2))
            x = x * powers[..., t] + into * enter
        return torch.cat(pieces, dim=1) + self.skip * u, x


@register(
    "sequence",
    "s4",
    systems=(
        SystemCard(
            "s4",
            left_out="the low-rank term of the state matrix",
            off="convolution",
            beside=("lstm", "convolution"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=s4",
        ),
    ),
    summary="diagonal state space: a convolution to train, a recurrence to write",
    paper="Gu et al. 2022, NeurIPS (S4D); Gu, Goel and Re 2022, ICLR; Ozcelik et al. 2024, Nat. Commun. 15:6176",
)
class S4(SequenceLayers):
    """``h + GLU(W dropout(GELU(S4D(norm(h)))))``, ``n_layers`` times, from ``W x``.

    Gu, Gupta, Goel and Re 2022, "On the Parameterization and Initialization of Diagonal State Space Models". Left out
    of Gu, Goel and Re 2022: the low-rank term of the state matrix, which the later paper finds to add little.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        d_state: numbers of the state of each channel, even.
    """

    causal = True

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        d_state: Annotated[int, Range(2, 256, multiple_of=2)] = 32,
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.enter = nn.Linear(d_in, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(n_layers))
        self.spaces = nn.ModuleList(StateSpace(d, d_state) for _ in range(n_layers))
        self.mixes = nn.ModuleList(nn.Linear(d, 2 * d) for _ in range(n_layers))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Sequence[State] | None = None
    ) -> tuple[Float[Tensor, "n t d"], list[State]]:
        """float [n, t, d_in] to [n, t, d], and the state of each layer."""
        h, after = self.enter(x), []
        for i, (norm, space, mix) in enumerate(zip(self.norms, self.spaces, self.mixes, strict=True)):
            with torch.autocast(x.device.type, enabled=False):  # complex numbers have no half precision
                wide = torch.promote_types(h.dtype, next(space.parameters()).dtype)
                y, last = space(norm(h.to(wide)), None if state is None else state[i])
            after.append(last)
            h = h + F.glu(mix(self.dropout(F.gelu(y))), dim=2)
        return padded(h, mask), after
