"""Put a table's ids into an explanation: under the drawings and beside the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from molgraph.explain.explanation import Explanation


def with_ids(found: Explanation, ids: Sequence[str]) -> Explanation:
    """The explanation with the ids of its molecules; ids that are row numbers, from 0, say nothing and are left out.

    Example:
        >>> import pandas as pd
        >>> values = pd.DataFrame({"molecule": [0], "value": [1.0]})
        >>> found = Explanation("clusters", ("CCO",), ("",), "atom", values, ("<svg/>",), ("CCO",))
        >>> with_ids(found, ["A-7"]).captions, with_ids(found, ["0"]).captions
        (('A-7: CCO',), ('CCO',))
    """
    if len(ids) != len(found.smiles) or all(id == str(i) for i, id in enumerate(ids)):
        return found
    captions, left = [], list(zip(ids, found.smiles, strict=True))
    for caption in found.captions:  # of molecules, in their order; those of fragments begin otherwise
        at = next((i for i, (_, text) in enumerate(left) if caption.startswith(text)), None)
        captions.append(caption if at is None else f"{left[at][0]}: {caption}")
        left = left if at is None else left[at + 1 :]
    values = found.values
    if "molecule" in values.columns and "id" not in values.columns and values["molecule"].isin(range(len(ids))).all():
        values = values.assign(id=[ids[int(i)] for i in values["molecule"]])
    return replace(found, captions=tuple(captions), values=values)
