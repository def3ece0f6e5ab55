"""Transformers that read long sequences: operations counted, and the first token recalled."""

from __future__ import annotations

import pytest

from tests.systems.effect import Effect
from tests.systems.token_layers import cost, operations, recalls


@pytest.mark.system("big-bird", rung="works")
def test_global_blocks_recall_the_first_token_at_a_cost_that_is_linear(off: str, effect: Effect) -> None:
    near = "big_bird(block=2, random=0, n_global=0)"
    own, window, full = (
        recalls(each) for each in (near if off else "big_bird(block=2, random=1, n_global=1)", near, "attention")
    )
    growth = operations("big_bird", 4096) / operations("big_bird", 1024)
    assert growth < 4.2 and cost("big_bird") <= 0.5, (growth, cost("big_bird"))
    effect("accuracy of the first token 31 places later", own, at_least=0.95,
           beside={"window alone": window, "attention": full, "operations at 2,048": [cost("big_bird")]})  # fmt: skip
