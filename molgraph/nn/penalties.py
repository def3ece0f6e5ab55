"""Penalties: named scalars, such as a KL term, that parts of a network add to what training minimises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

Penalties: TypeAlias = Mapping[str, Float[Tensor, ""]]


def add_penalties(parts: Iterable[Penalties]) -> dict[str, Float[Tensor, ""]]:
    """The penalties of several parts; those of one name are added up.

    Example:
        >>> import torch
        >>> add_penalties([{"kl": torch.tensor(1.0)}, {"kl": torch.tensor(2.0), "balance": torch.tensor(4.0)}])
        {'kl': tensor(3.), 'balance': tensor(4.)}
    """
    total: dict[str, Float[Tensor, ""]] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + value if name in total else value
    return total
