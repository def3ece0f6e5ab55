"""Condition a language model on properties such as logP: a vector of them is added to each token's embedding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.errors import BadValueError, UnknownNameError, UnsupportedError, nearest
from molgraph.chem.quality import PROPERTIES, measure

UNASKED = 0.1  # share of the molecules of a batch that are learned without their properties


class Conditions(nn.Module):
    """``W ((y - mean) / sd) + b`` of k properties y, a vector of a token's width.

    Args:
        n: properties.
        d: width of the vector.
    """

    mean: Tensor
    sd: Tensor

    def __init__(self, n: int, d: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))
        self.register_buffer("sd", torch.ones(n))
        self.linear = nn.Linear(n, d)

    def standardise(self, y: np.ndarray) -> None:
        """Take mean and deviation from float [n, k], the training molecules' values."""
        self.mean.copy_(torch.from_numpy(y.mean(axis=0)))
        self.sd.copy_(torch.from_numpy(y.std(axis=0) + 1e-6))

    def forward(self, y: Float[Tensor, "n k"]) -> Float[Tensor, "n d"]:
        """float [n, d]; while training, a tenth of the rows are 0, so that the model also writes unasked."""
        embedding: Tensor = self.linear((y - self.mean) / self.sd)
        if self.training:
            embedding = embedding * (torch.rand(len(y), 1, device=y.device) >= UNASKED)
        return embedding


def check_condition(names: Sequence[str]) -> None:
    """Raise ``UnknownNameError`` for a property that is not computed from a structure."""
    for name in names:
        if name not in PROPERTIES:
            raise UnknownNameError(f"no property is named {name!r}", hint=nearest(name, [*PROPERTIES]))


def properties(smiles: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """float32 [n, k], the properties of molecules.

    Each molecule is an example of a text that was asked for with its own properties: the goal that it reached is the
    goal it is labelled with (hindsight, as Ding et al. 2019 relabel demonstrations).

    Example:
        >>> properties(["CCO"], ["logp", "mw"]).round().tolist()
        [[-0.0, 46.0]]
    """
    return np.stack([measure(name, smiles)[0] for name in names], axis=1).astype(np.float32)


def read_want(text: str) -> dict[str, float]:
    """Values by property of words such as ``logp=3,qed=0.8``.

    Raises:
        BadValueError: something else.

    Example:
        >>> read_want("logp=3, qed=.8")
        {'logp': 3.0, 'qed': 0.8}
    """
    out = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if not re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", value, re.IGNORECASE):
            raise BadValueError(f"{part.strip()!r} asks for no value of a property", hint="write it as logp=3,qed=0.8")
        out[name.strip()] = float(value)
    return out


@contextmanager
def wanted(generator: Any, want: Mapping[str, float] | str | None) -> Iterator[None]:
    """A language model writes molecules with these properties while this lasts; others are as in its training.

    Raises:
        UnsupportedError: a generator that was trained without them.
    """
    if not want:
        yield
        return
    values = read_want(want) if isinstance(want, str) else dict(want)
    known = [*getattr(generator, "condition", ())]
    for name in values:
        if name not in known:
            there = f"this one takes {', '.join(known)}" if known else "this one was trained without properties"
            hint = f"train one: train-generator LIB -m language -s 'params.condition=[\"{name}\"]'"
            raise UnsupportedError(f"the generator cannot be asked for {name!r}: {there}", hint=hint)
    generator.want = values
    try:
        yield
    finally:
        generator.want = None
