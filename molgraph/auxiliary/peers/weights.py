"""Convert a torch module's weights to arrays and back, checking names, shapes and numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from molgraph.base.errors import ModelFileError


def weights_of(module: torch.nn.Module) -> dict[str, np.ndarray]:
    """Every weight and buffer, on the CPU."""
    return {name: value.detach().cpu().numpy().copy() for name, value in module.state_dict().items()}


def put_weights(module: torch.nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Put arrays in; raises ``ModelFileError`` where one is missing, foreign, of another shape or not finite."""
    own = module.state_dict()
    if set(own) != set(arrays):
        odd = sorted(set(own) ^ set(arrays))[:3]
        raise ModelFileError(f"the network's weights are not whole: {odd}", hint="fetch the file again")
    for name, value in own.items():
        given = np.asarray(arrays[name])
        if given.shape != tuple(value.shape) or given.dtype.kind not in "fiub":
            raise ModelFileError(f"the weight {name!r} is of shape {given.shape}", hint="fetch the file again")
        if given.dtype.kind == "f" and not np.isfinite(given).all():
            raise ModelFileError(f"the weight {name!r} is not finite", hint="fetch the file again")
    module.load_state_dict({name: torch.from_numpy(np.array(arrays[name])).to(own[name].dtype) for name in own})
