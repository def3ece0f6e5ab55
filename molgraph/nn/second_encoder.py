"""Build a second encoder of the same graphs by its name, such as a generator or a tokeniser, and read its atoms."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.registry import get
from molgraph.data.graph_store import InputSpec
from molgraph.nn.encoder import Encoded, Encoder, check_input


def second_encoder(text: str, spec: InputSpec, does: str) -> Encoder:
    """A registered encoder with its settings, for graphs that another encoder reads too.

    Args:
        text: such as ``gin(d_hidden=64, depth=3)``.
        spec: what the graphs hold.
        does: begins the message, as in "replaced-atoms has a generator".

    Raises:
        UsageError: an unknown name or setting, graphs that it cannot read, or no states of atoms.
    """
    name = read_part(text, "encoder").name
    check_input(get("encoder", name), spec, name)
    encoder: Encoder = make_part("encoder", text, spec)
    if not encoder.d_rows or "atom" not in spec.widths:
        words = f"{does} that reads the states of atoms, which {name} does not give"
        raise UnsupportedError(words, hint="choose an encoder that does, such as gin, dmpnn or mpnn")
    return encoder


def atom_states(encoded: Encoded) -> Float[Tensor, "n d"]:
    """The states of a batch's atoms."""
    (h,) = (rows.h for rows in encoded.rows if rows.level == "atom")
    return h
