"""Make a method by its name, or a graph method by the name of its encoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from molgraph.base import registry
from molgraph.base.contracts import Method
from molgraph.base.errors import UnknownNameError, UnsupportedError, nearest
from molgraph.base.parameters import check_params
from molgraph.base.parts import split_model
from molgraph.nn.block import split_options
from molgraph.train.inputs import encoder_names, own_params
from molgraph.train.method import GraphMethod
from molgraph.train.network import encoder_params


def make_method(name: str, **params: Any) -> Method:
    """A method by its name, or a graph method by its encoder's name.

    Args:
        name: a registered method (``random_forest``) or encoder (``dmpnn``).
        params: hyper-parameters of the method; for an encoder its own ones too, such as ``depth``.

    Raises:
        UnknownNameError: no such name or parameter; the hint has the nearest known ones.

    Example:
        >>> method = make_method("dmpnn", depth=4, epochs=10)
        >>> method.params, method.epochs
        ({'depth': 4}, 10)
        >>> make_method("gin(depth=3)").params
        {'depth': 3}
    """
    name, params = split_model(name, params)
    cls = method_class(name)
    if name in registry.names("method"):
        check_params(cls, params, owner=name)
        return cls(**params)
    names, inner = set(GraphMethod.param_names()) - {"encoder"}, encoder_params(name)
    _check_names(name, params, (*inner, *sorted(names)))
    nested = dict(params.pop("params", None) or {})
    nested |= {key: params.pop(key) for key in list(params) if key not in names}
    _check_names(name, nested, inner)
    for one in encoder_names(name):
        make = registry.get("encoder", one)
        own_names, _ = split_options(make, own_params(nested, one, len(encoder_names(name))))
        check_params(make, own_names, owner=one)
    check_params(GraphMethod, params, owner=name)
    return GraphMethod(encoder=name, params=nested, **params)


def method_class(name: str) -> type[Method]:
    """The class of a model's method, without making one: that of the method, or of all encoders.

    Raises:
        UnknownNameError: no such name; the hint has the nearest known ones.

    Example:
        >>> method_class("gin").name, method_class("random_forest").name
        ('graph', 'random_forest')
    """
    if name in registry.names("method"):
        cls: type[Method] = registry.get("method", name)
        return cls
    if set(encoder_names(name)) <= set(registry.names("encoder")):
        return GraphMethod
    if registry.full_name("generator", name) in registry.names("generator"):
        hint = f"to propose molecules: molgraph train-generator CORPUS -m {name}"
        raise UnsupportedError(f"{name} is a generator, which learns no targets", hint=hint)
    known = sorted({*registry.names("method"), *registry.names("encoder")} - {GraphMethod.name})
    raise UnknownNameError(f"no model is named {name!r}", hint=nearest(name, known))


def _check_names(owner: str, params: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in params:
        if name not in known and name.partition(".")[0] not in ("joiner", "objective"):  # they know their own
            raise UnknownNameError(f"{owner} has no parameter {name!r}", hint=nearest(name, known))
