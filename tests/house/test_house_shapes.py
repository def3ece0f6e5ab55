"""Shapes are checked once for each pattern: a wrong one is found after any number of right ones."""

# ruff: noqa: F722 - shapes in annotations
from __future__ import annotations

from typing import Any

import jaxtyping
import pytest
import torch
from beartype import beartype
from jaxtyping import Float
from torch import Tensor, nn

from tests.shapes import jaxtyped


@jaxtyped(typechecker=beartype)
def first(x: Float[Tensor, "n d"], n: int, mean: Any = None) -> Float[Tensor, "n d"]:
    """As many rows as ``n`` says, which are too few where it is smaller."""
    return x[:n] if mean is None else mean(x)


class Wide(nn.Module):
    """As many columns as it was told, wherever they come from."""

    def __init__(self, d: int, late: int = 10**9) -> None:
        super().__init__()
        self.d, self.late = d, late

    @jaxtyped(typechecker=beartype)
    def forward(self, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n {self.d}"]:
        """Of another width from so many rows on."""
        return x[:, : self.d - (len(x) >= self.late)]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 70])
def test_right_calls_go_through_and_a_wrong_one_after_them_does_not(n: int) -> None:
    for rows in (*range(2, 8), n, n):
        assert len(first(torch.zeros(rows, 2), rows)) == rows
    with pytest.raises(jaxtyping.TypeCheckError):
        first(torch.zeros(n + 1, 2), n)
    with pytest.raises(jaxtyping.TypeCheckError):
        first(torch.zeros(n, 2), n, lambda x: x.sum(dim=1))
    with pytest.raises(jaxtyping.TypeCheckError):
        first(torch.zeros(n, 2, dtype=torch.long), n)
    with pytest.raises(jaxtyping.TypeCheckError):
        first(torch.zeros(n), n)


@pytest.mark.parametrize("late", [2, 100])
def test_each_object_is_checked_and_each_size_of_a_batch(late: int) -> None:
    right, other, tall = Wide(3), Wide(5), Wide(3, late)
    for _ in range(2):
        assert right(torch.zeros(4, 4)).shape == (4, 3)
        assert tall(torch.zeros(1, 4)).shape == (1, 3)
    with pytest.raises(jaxtyping.TypeCheckError):
        other(torch.zeros(4, 4))  # which has too few columns for it
    with pytest.raises(jaxtyping.TypeCheckError):
        tall(torch.zeros(late, 4))
