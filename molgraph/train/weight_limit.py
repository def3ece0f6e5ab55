"""Stop the building of a network that asks for more weights than a file holds."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.nn.modules import module as hooks

from molgraph.base.errors import ModelFileError
from molgraph.base.size import Shapes

ROOM = 64  # modules and weights that a network may make beside those that it keeps
A_WEIGHT = 16  # modules for each weight: activations, dropout, containers


@contextmanager
def bounded_by(shapes: Shapes) -> Iterator[None]:
    """Raise as soon as the block makes more modules, weights or numbers than arrays of these shapes can fill.

    A constructor makes as many layers as it is told, of whatever width. Here it is stopped at the first weight too
    many, whoever wrote the constructor.

    Raises:
        ModelFileError: inside the block.

    Example:
        >>> from torch import nn
        >>> with bounded_by({"weight": (8, 8), "bias": (8,)}):
        ...     layer = nn.Linear(8, 8)
        >>> with bounded_by({"weight": (8, 8), "bias": (8,)}):
        ...     layer = nn.Linear(2_000, 2_000)
        Traceback (most recent call last):
        ...
        molgraph.base.errors.ModelFileError: the settings ask for weights of more or larger shapes than the file holds
    """
    here = threading.get_ident()
    weights, modules = 2 * len(shapes) + ROOM, A_WEIGHT * len(shapes) + ROOM
    numbers = 2 * sum(math.prod(shape) for shape in shapes.values()) + (1 << 20)

    def count(module: Any, name: str, value: Any) -> None:
        nonlocal weights, modules, numbers
        if threading.get_ident() != here or value is None:
            return
        if hasattr(value, "numel"):
            weights, numbers = weights - 1, numbers - value.numel()
        else:
            modules -= 1
        if min(weights, modules, numbers) < 0:
            raise ModelFileError("the settings ask for weights of more or larger shapes than the file holds")

    with ExitStack() as stack:
        stack.enter_context(hooks.register_module_parameter_registration_hook(count))
        stack.enter_context(hooks.register_module_buffer_registration_hook(count))
        stack.enter_context(hooks.register_module_module_registration_hook(count))
        yield
