"""Train one model at several widths, and read a list of whole numbers such as ``8+32+128``."""

from __future__ import annotations

from typing import Any

from molgraph.base.contracts import Method
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.study.study import Subject
from molgraph.study.subject_model import fresh, is_name
from molgraph.train.make_method import method_class
from molgraph.train.method import GraphMethod


def whole_numbers(text: str | int) -> tuple[int, ...]:
    """The numbers of a list joined by ``+``, each once, in order of size.

    Raises:
        BadValueError: no list of whole numbers above 0.

    Example:
        >>> whole_numbers("32+8"), whole_numbers(64), whole_numbers("")
        ((8, 32), (64,), ())
    """
    try:
        found = tuple(sorted({int(part) for part in str(text).split("+") if part}))
    except ValueError:
        found = (0,)
    if found and found[0] < 1:
        raise BadValueError(f"{text!r} is no list of whole numbers", hint="write them with + between: 8+32+128")
    return found


def at_width(subject: Subject, width: int, seed: int, epochs: int = 0, **params: Any) -> Method:
    """The named method, not fitted; a graph network's encoder and head have this many hidden units, if not 0.

    Raises:
        UnsupportedError: a file, or a width of a method that is no graph network.
    """
    if not is_name(subject.model):
        raise UnsupportedError(f"{subject.model} cannot be trained anew", hint="name a model, such as -m gin")
    if width:
        name = str(subject.model).partition("(")[0]
        if not issubclass(method_class(name), GraphMethod):
            raise UnsupportedError(f"{name} has no width", hint="leave widths out, or name a graph network: -m gin")
        params |= {"d_hidden": width, "head_width": width}
    return fresh(subject, seed, epochs, **params)
