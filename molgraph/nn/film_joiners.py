"""FiLM2: the states of a pair scale and shift each other, layer by layer, as a molecule and its assay or protein do."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Count, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.joiners import Joiner, JoinPart


class Film2Layer(nn.Module):
    """``relu((1 + gamma(b)) * W a + beta(b)) + relu((1 + gamma'(a)) * W' b + beta'(a))``, all maps linear.

    Args:
        d_a, d_b: widths of the two states.
        width: of the output.
    """

    def __init__(self, d_a: int, d_b: int, width: int) -> None:
        super().__init__()
        self.values = nn.ModuleList([nn.Linear(d_a, width), nn.Linear(d_b, width)])
        self.films = nn.ModuleList([nn.Linear(d_b, 2 * width), nn.Linear(d_a, 2 * width)])  # gamma and beta of each

    def forward(self, a: Float[Tensor, "n d_a"], b: Float[Tensor, "n d_b"]) -> Float[Tensor, "n width"]:
        """The sum of both sides, each conditioned on the other."""
        sides = []
        for value, film, x, condition in zip(self.values, self.films, (a, b), (b, a), strict=True):
            gamma, beta = film(condition).chunk(2, dim=1)
            sides.append(((1 + gamma) * value(x) + beta).relu())
        return sides[0] + sides[1]


@register(
    "joiner",
    "film2",
    summary="two states scale and shift each other, layer by layer",
    paper="Zhong et al. 2020, ICLR",
    systems=(
        SystemCard(
            "txt2pi-with-film-2",
            left_out="texts and attention over them, grids and their pooling, reinforcement learning: the states of "
            "two entities condition each other, not those of their atoms and tokens",
            off="concat",
            beside=("concat with a linear head", "bilinear"),
        ),
    ),
)
class Film2(Joiner):
    """FiLM2 layers on the states of two entities: ``y_1 = film2(a, b)``, ``y_(l+1) = film2(y_l, b)``.

    Zhong et al. 2020, "RTFM: Generalising to New Environment Dynamics via Reading", section 4.1, equations 1 to 7: each
    side is modulated by the other, and the output is their sum; the second entity, a text there, is read again by every
    layer.

    Use it where a molecule's effect depends on the assay or the protein, as in one model of many assays.

    Args:
        widths: of the two parts' states.
        width: of each layer.
        depth: layers.

    Raises:
        ValueError: not two parts.
    """

    def __init__(self, widths: Sequence[int], *, width: Width = 128, depth: Count = 2) -> None:
        super().__init__()
        if len(widths) != 2:
            raise ValueError(f"two states condition each other, and there are {len(widths)} parts: choose concat")
        first, second = widths
        self.layers = nn.ModuleList(Film2Layer(width if k else first, second, width) for k in range(depth))
        self.d_out = width

    def forward(self, parts: Sequence[JoinPart]) -> Float[Tensor, "n {self.d_out}"]:
        """float [n, width]."""
        a, b = (part.states for part in parts)
        for layer in self.layers:
            a = layer(a, b)
        out: Float[Tensor, "n _"] = a
        return out
