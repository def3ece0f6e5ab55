"""Packed weights: whole numbers come back, and a damaged file is refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.base.contracts import State
from molgraph.base.errors import DamagedModelError
from molgraph.train.packed_weights import Steps, dequantised, pack, packed_state, quantised_of, unpack, unpacked_state


@given(st.integers(2, 16), st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_whole_numbers_come_back(bits: int, seed: int, n: int) -> None:
    most = 2 ** (bits - 1) - 1
    codes = np.random.default_rng(seed).integers(-most, most + 1, n)
    np.testing.assert_array_equal(unpack(pack(codes, bits), bits), codes)


def packed() -> tuple[dict[str, np.ndarray], State]:
    """Arrays, and the state that a file has of them."""
    rng = np.random.default_rng(0)
    steps = {"a.weight": Steps(3, 0.1), "b.weight": Steps(5, 0.037)}
    arrays = {"network.a.weight": dequantised(rng.integers(-3, 4, (5, 7)), 0.1)}
    arrays |= {"network.b.weight": dequantised(rng.integers(-15, 16, (3, 1, 2)), 0.037)}
    arrays["network.a.bias"] = rng.normal(size=5).astype(np.float32)
    found, meta = packed_state(arrays, steps)
    return arrays, State(found, meta)


def test_a_state_comes_back_to_the_bit() -> None:
    arrays, state = packed()
    assert {*state.arrays} == {"packed", "network.a.bias"}
    assert state.arrays["packed"].nbytes == -(-(35 * 3 + 6 * 5) // 8)
    again = unpacked_state(state)
    assert {*again.arrays} == {*arrays}
    for name, value in arrays.items():
        assert again.arrays[name].dtype == np.float32 and again.arrays[name].tobytes() == value.tobytes()
    assert quantised_of(state.meta)["b.weight"].bits == 5
    assert packed_state(arrays, {})[1] == {} and unpacked_state(State(arrays, {})).arrays is arrays


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 1},
        {"bits": 0},
        {"bits": 40},
        {"bits": 3.0},
        {"bits": True},
        {"bits": 4},
        {"shape": [5, -7]},
        {"shape": [5, 8]},
        {"shape": [1 << 40, 1 << 40]},
        {"shape": [5, 7.0]},
        {"shape": []},
        {"step": 0.0},
        {"step": -1.0},
        {"step": 1e-300},
        {"step": 1e300},
        {"name": 3},
        {"name": "a.bias"},
    ],
)
def test_a_damaged_list_is_refused_before_anything_is_made(change: dict[str, object]) -> None:
    _, state = packed()
    listed = [{**state.meta["packed"][0], **change}, *state.meta["packed"][1:]]
    with pytest.raises(DamagedModelError, match=r"packed weight|stands twice"):
        unpacked_state(State(state.arrays, {"packed": listed}))


def test_a_stream_of_another_length_or_kind_is_refused() -> None:
    _, state = packed()
    stream = state.arrays["packed"]
    for wrong in (stream[:-1], np.append(stream, np.uint8(0)), stream.astype(np.float32), stream[None]):
        with pytest.raises(DamagedModelError, match="packed weights have"):
            unpacked_state(State({**state.arrays, "packed": wrong}, state.meta))
    with pytest.raises(DamagedModelError, match="packed weights have"):
        unpacked_state(State({"network.a.bias": np.zeros(5)}, state.meta))
