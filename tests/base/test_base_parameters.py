"""Hyper-parameters are checked by type before anything is read, for whatever is registered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from molgraph.base import registry
from molgraph.base.errors import BadValueError, UnknownNameError
from molgraph.base.parameters import check_params, type_hints
from molgraph.train.make_method import make_method

NAMED = [(kind, name) for kind in ("method", "encoder") for name in registry.names(kind)]


class Everything:
    def __init__(
        self,
        whole: int = 1,
        number: float | None = None,
        word: Literal["a", "b"] | float = "a",
        switch: bool = False,
        inner: Mapping[str, Any] | None = None,
        widths: Sequence[int] = (),
        pair: tuple[int, str] = (1, "a"),
        many: tuple[float, ...] = (),
        free: Any = None,
        untyped=None,
    ) -> None: ...


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("whole", [4, np.int64(4)], ["four", "4", 4.0, True, None, [4]]),
        ("number", [4, 4.5, None, np.float32(1)], ["4", False, float("nan"), float("inf"), {}]),
        ("word", ["a", 0.5], ["c", None, True]),
        ("switch", [True, np.bool_(False)], [1, "true", None]),
        ("inner", [{"a": 1}, None], [[1], "a"]),
        ("widths", [[1, 2], (), (3,)], ["12", 1, [1, "2"]]),
        ("pair", [(1, "b"), [2, "c"]], [(1,), (1, 2), ("a", "b")]),
        ("many", [(1.0, 2)], [(1.0, "2"), 1.0]),
        ("free", [object(), None], []),
        ("untyped", [object(), None], []),
    ],
)
def test_values_by_type(name: str, good: list, bad: list) -> None:
    for value in good:
        check_params(Everything, {name: value})
    for value in bad:
        with pytest.raises(BadValueError, match=f"it: {name} is"):
            check_params(Everything, {name: value}, owner="it")


@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_every_registered_constructor_declares_its_types_and_refuses_others(kind: str, name: str) -> None:
    cls = registry.get(kind, name)
    hints = {k: v for k, v in type_hints(cls).items() if k not in ("return", "spec")}
    known = [p for p in Wrong.params(cls) if p not in ("spec",)]
    assert set(hints) == set(known), "an annotation that cannot be resolved checks nothing"
    for parameter in known:
        with pytest.raises(BadValueError, match=f"{name}: {parameter} is"):
            make_method(name, **{parameter: Wrong()})
    with pytest.raises(UnknownNameError, match="no_such_parameter"):
        make_method(name, no_such_parameter=1)


class Wrong:
    """A value of no type that any constructor takes."""

    @staticmethod
    def params(cls: type) -> list[str]:
        import inspect

        return [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
