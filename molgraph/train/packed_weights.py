"""Pack quantised weights into a model file, as whole numbers of few bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.contracts import State
from molgraph.base.errors import DamagedModelError

PACKED, PREFIX = "packed", "network."
FEWEST, MOST = 2, 16  # bits of a weight
SHORTEST, LONGEST = 1e-30, 1e30  # steps


class Steps(NamedTuple):
    """Weights that are ``step`` times whole numbers from ``-(2^(bits - 1) - 1)`` to ``2^(bits - 1) - 1``."""

    bits: int
    step: float


def dequantised(codes: np.ndarray, step: float) -> np.ndarray:
    """float32: the weights of whole numbers, the same on every machine."""
    return codes.astype(np.float32) * np.float32(step)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """bool [n * bits]: whole numbers [n] of that many bits, each above 0 by ``2^(bits - 1)``, the highest bit first.

    Example:
        >>> pack(np.array([-1, 0, 1]), 2).astype(int).tolist()
        [0, 1, 1, 0, 1, 1]
    """
    shifted = codes.ravel().astype(np.int64) + (1 << (bits - 1))
    return (shifted[:, None] >> np.arange(bits - 1, -1, -1) & 1).astype(bool).ravel()


def unpack(stream: np.ndarray, bits: int) -> np.ndarray:
    """int64 [n]: the whole numbers that ``pack`` wrote.

    Example:
        >>> unpack(pack(np.array([-7, 0, 5]), 4), 4).tolist()
        [-7, 0, 5]
    """
    values = stream.reshape(-1, bits).astype(np.int64) @ (1 << np.arange(bits - 1, -1, -1))
    return np.asarray(values - (1 << (bits - 1)))


def packed_state(
    arrays: Mapping[str, np.ndarray], steps: Mapping[str, Steps]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays of a file with the quantised weights as one stream of bits, uint8 [bytes], and the JSON that unpacks them.

    Args:
        arrays: of a network, by their names in a file.
        steps: of quantised weights, by their names in the network.
    """
    kept, listed, streams = dict(arrays), list[dict[str, Any]](), list[np.ndarray]()
    for name, (bits, step) in steps.items():
        value = kept.pop(f"{PREFIX}{name}", None)
        if value is None:  # a part that is not kept, such as a head
            continue
        streams.append(pack(np.rint(value.astype(np.float64) / np.float32(step)), bits))
        listed.append({"name": name, "shape": [*value.shape], "bits": bits, "step": float(np.float32(step))})
    if not listed:
        return kept, {}
    return kept | {PACKED: np.packbits(np.concatenate(streams))}, {PACKED: listed}


def unpacked_state(state: State) -> State:
    """The state with its packed weights as float32 arrays; sizes are compared with the stream before any is made.

    Raises:
        DamagedModelError: what is listed is not what the stream holds.
    """
    listed = state.meta.get(PACKED)
    if not listed:
        return state
    arrays = dict(state.arrays)
    stream = np.asarray(arrays.pop(PACKED, np.zeros(0)))
    sizes = [_size(entry) for entry in listed]
    total = sum(size * entry["bits"] for size, entry in zip(sizes, listed, strict=True))
    if stream.dtype != np.uint8 or stream.shape != (-(-total // 8),):
        words = f"the model's packed weights have {stream.size:,} bytes of {stream.dtype} for {total:,} bits"
        raise DamagedModelError(words)
    start = 0
    for size, entry in zip(sizes, listed, strict=True):
        end, name = start + size * entry["bits"], f"{PREFIX}{entry['name']}"
        if name in arrays:
            raise DamagedModelError(f"the model's weight {entry['name'][:60]!r} stands twice")
        stretch = np.unpackbits(stream[start // 8 : -(-end // 8)])[start % 8 :][: end - start]
        arrays[name] = dequantised(unpack(stretch, entry["bits"]), entry["step"]).reshape(entry["shape"])
        start = end
    return State(arrays, state.meta)


def quantised_of(meta: Mapping[str, Any]) -> dict[str, Steps]:
    """The bits and steps of a file's weights by their names in the network; none of a file without."""
    return {entry["name"]: Steps(entry["bits"], entry["step"]) for entry in meta.get(PACKED, ())}


def _size(each: Any) -> int:
    """The number of weights of an entry that is sound."""
    name, shape, bits, step = (each[key] for key in ("name", "shape", "bits", "step"))
    whole = type(bits) is int and FEWEST <= bits <= MOST and all(type(n) is int and n > 0 for n in shape)
    if not whole or not isinstance(name, str) or not SHORTEST / 2 < float(step) < LONGEST:
        words = f"the model's packed weight {str(name)[:60]!r} has impossible bits, shape or step"
        raise DamagedModelError(words)
    return math.prod(shape)
