"""Define ``BlockOption``, the base class of options that encoders share, such as ``positions=walks(8)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import nn

from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.base.parts import make_part, read_part, settings_of
from molgraph.base.registry import get, names
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import Pooled, SharedStates
from molgraph.nn.encoder import Encoded, Encoder

#: hyper-parameters that name a block option, in the order in which options stand around an encoder
KEYS = ("positions", "frames", "symbols", "stack", "exit")


class BlockOption(nn.Module):
    """The base class of options that stand around an encoder's forward pass.

    A subclass names its hyper-parameter in ``key``, one of ``KEYS``, takes its settings as keyword arguments, and
    overrides what it changes: the features that the encoder is built for (``widen``), the batch that it reads
    (``change``), the whole pass (``around``), or how the states of rows become one state a graph (``pool``, of an
    ``AtomEncoder``). One with layers makes them in ``build``. An encoder that cannot take it is refused by name.
    """

    key: ClassVar[str]
    #: whether all layers of the encoder must have the same rows, so that rows that look alike are not shared
    same_rows: ClassVar[bool] = False

    @classmethod
    def missing(cls, encoder: type[Encoder], spec: InputSpec) -> str:
        """What an encoder of these graphs lacks for it, in a few words; empty where it lacks nothing."""
        return ""

    def widen(self, spec: InputSpec) -> InputSpec:
        """What the graphs hold once ``change`` has changed them."""
        return spec

    def build(self, encoder: Encoder) -> str:
        """Make the layers, from the widths of a new encoder; or what it lacks, as ``missing`` says it."""
        return ""

    def change(self, batch: GraphBatch) -> GraphBatch:
        """The batch that the encoder reads in place of this one."""
        return batch

    def around(self, call: Callable[..., Encoded], batch: GraphBatch, rows: bool) -> Encoded:
        """The encoder's answer: ``call(batch, rows=rows)``, once or several times."""
        return call(self.change(batch), rows=rows)

    def pool(self, call: Callable[[SharedStates], Pooled], found: SharedStates) -> Pooled:
        """One state a graph, with penalties: ``call(found)`` is the encoder's own."""
        return call(found)


def split_options(encoder: type[Encoder], params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Hyper-parameters that are the encoder's own, and those that name block options, in the order of ``KEYS``.

    A value ``none`` is no option.

    Raises:
        UsageError: an unknown option or setting, or an option of another key.
    """
    taken = inspect.signature(encoder.__init__).parameters
    settings = {name: value for name, value in params.items() if name not in KEYS or name in taken}
    options = {key: str(params[key]) for key in KEYS if key in params and key not in settings}
    options = {key: text for key, text in options.items() if text.lower() != "none"}
    for key, text in options.items():
        part = read_part(text, key)
        known = [name for name in names("block") if get("block", name).key == key]
        if part.name not in known:
            raise UnknownNameError(f"no option of {key} is named {part.name!r}", hint=f"known: {', '.join(known)}")
        settings_of(get("block", part.name), part)
    return settings, options


def with_options(
    make: Callable[[InputSpec], Encoder],
    encoder: type[Encoder],
    owner: str,
    spec: InputSpec,
    options: Mapping[str, str],
) -> Encoder:
    """An encoder with block options around it.

    Args:
        make: from what the graphs hold to the encoder.
        encoder: its class.
        owner: its name.
        spec: what the graphs hold.
        options: texts by key, as ``split_options`` gives them.

    Raises:
        UnsupportedError: an option that this encoder cannot take.
    """
    block_options: list[BlockOption] = [make_part("block", text) for text in options.values()]
    wide = spec
    for option in block_options:
        _refuse(owner, option, option.missing(encoder, spec))
        wide = option.widen(wide)
    built = make(wide)
    for option in block_options:
        _refuse(owner, option, option.build(built))
    if block_options:
        built.block_options = nn.ModuleList(block_options)
    return built


def _refuse(owner: str, option: BlockOption, lacking: str) -> None:
    if lacking:
        words = f"{owner} cannot take an option of {option.key}: it {lacking}"
        raise UnsupportedError(words, hint="leave it out, or choose another model")
