"""Cut a trained graph model to fewer of its encoder's layers, without training it again."""

from __future__ import annotations

from typing import Literal

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import read_part, settings_of
from molgraph.nn.blocks.layer_drop import LayerDrop
from molgraph.train.method import GraphMethod
from molgraph.train.rebuild import rebuilt


def cut_depth(method: GraphMethod, depth: int, keep: Literal["every", "first"] = "every") -> GraphMethod:
    """A copy of a fitted method whose encoder runs ``depth`` of its layers alone, and holds no weights of the others.

    Fan et al. 2020, section 3.2. The layers that stay and the head are as they were, so that a model should be trained
    for it, with ``params.stack=layer_drop(p=0.3)``; one that was not loses more. A model that is cut already is cut by
    the number of its first training.

    Args:
        method: fitted, of one encoder with a stack of layers of one width, such as gin.
        depth: layers that stay.
        keep: ``every`` second, third, ... one, or the ``first``.

    Raises:
        UnsupportedError: an encoder without such a stack, or with another way through it.
        BadValueError: more layers than there are.
    """
    fitted, params = method.ready(), dict(method.params or {})
    part = read_part(str(params.get("stack") or "none"), "stack")
    if part.name not in ("none", "layer_drop"):
        words = f"the layers of this {method.encoder} are run by {part.name}, which needs all of them"
        raise UnsupportedError(words, hint="train one with params.stack=layer_drop(p=0.3)")
    if len(fitted.inputs) != 1:
        words = f"the model has an encoder for each of {len(fitted.inputs)} columns"
        raise UnsupportedError(words, hint="cut a model of one column")
    settings = settings_of(LayerDrop, part) if part.name == "layer_drop" else {"p": 0.0}
    settings |= {"depth": depth, "keep": keep}
    params["stack"] = f"layer_drop({', '.join(f'{name}={value}' for name, value in settings.items())})"
    try:
        return rebuilt(method, fitted.network.state_dict(), f"cut to {depth} layers of its encoder", params=params)
    except UnsupportedError as error:
        if part.name != "none":
            raise
        words = f"{method.encoder} has no stack of layers of one width that could be cut"
        raise UnsupportedError(words, hint="teach a smaller model: --how 'born_again(student=gin)'") from error
