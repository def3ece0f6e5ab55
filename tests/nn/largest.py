"""Watch how large the tensors are that a computation makes."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """The most numbers that a tensor held which an operation made."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = out if isinstance(out, (tuple, list)) else (out,)
        self.most = max([self.most, *(each.numel() for each in made if isinstance(each, Tensor))])
        return out
