"""Small transformers over tokens: what each token sees, operations counted, and a first token to recall."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from molgraph.nn.sequence import SequenceLayers, make_sequence

D = 8
PLAIN = "attention(causal=true)"
SEEDS = (0, 1, 2)
KEYS, NOISE = 4, 4  # kinds of the first token, and of all others


def layers(sequence: str, n_layers: int = 1, like: SequenceLayers | None = None) -> SequenceLayers:
    torch.manual_seed(0)
    made = make_sequence(sequence, D, D, n_layers).double().eval()
    if like is not None:
        made.load_state_dict(like.state_dict())
    return made


def tokens(n: int, t: int, seed: int = 0) -> Tensor:
    return torch.randn(n, t, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def reach(sequence: str, t: int, n_layers: int = 1) -> Tensor:
    """bool [to, from]: whether a change of one token changes another state; elsewhere the change is exactly 0."""
    made, x = layers(sequence, n_layers), tokens(1, t).expand(t, -1, -1)
    with torch.no_grad():
        changed = made(x + 3 * torch.eye(t, dtype=torch.float64)[:, :, None])[0] - made(x)[0]
    return (changed.abs().amax(dim=2) > 0).T


def places(t: int) -> tuple[Tensor, Tensor]:
    return torch.arange(t)[:, None], torch.arange(t)[None]


@cache
def operations(sequence: str, t: int, n_layers: int = 2) -> int:
    """Multiplications and additions of matrix products for one sequence of t tokens, width 64."""
    made = make_sequence(sequence, 8, 64, n_layers).eval()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        made(torch.zeros(1, t, 8))
    return counter.get_total_flops()


def cost(sequence: str, t: int = 2048, n_layers: int = 2) -> float:
    """Operations as a share of full attention's."""
    return operations(sequence, t, n_layers) / operations("attention", t, n_layers)


@cache
def recall(sequence: str, seed: int, n_layers: int, t: int = 32, steps: int = 150) -> float:
    """Accuracy at the last of 32 places: which of four kinds the first token was. Chance is 1/4."""
    torch.manual_seed(seed)
    parts = nn.ModuleList(
        [nn.Embedding(KEYS + NOISE, 16), make_sequence(sequence, 16, 32, n_layers), nn.Linear(32, KEYS)]
    )
    optimiser = torch.optim.AdamW(parts.parameters(), 3e-3)

    def logits(n: int) -> tuple[Tensor, Tensor]:
        first, others = torch.randint(KEYS, (n, 1)), KEYS + torch.randint(NOISE, (n, t - 1))
        embed, layers, line = parts
        return line(layers(embed(torch.cat([first, others], dim=1)))[0]), first.expand(n, t)

    for _ in range(steps):
        scores, labels = logits(32)
        optimiser.zero_grad()
        nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten()).backward()
        optimiser.step()
    with torch.no_grad():
        scores, labels = logits(500)
        return float((scores[:, -1].argmax(dim=1) == labels[:, -1]).float().mean())


def recalls(sequence: str, n_layers: int = 2) -> list[float]:
    return [recall(sequence, seed, n_layers) for seed in SEEDS]
