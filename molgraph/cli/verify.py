"""``molgraph verify``: a model file in, whether it still answers as on the day it was saved out."""

from __future__ import annotations

from typing import Annotated

import typer


def verify(
    model: Annotated[str, typer.Argument(help="A model file (.mgm).")],
) -> None:
    """Check that a model file is whole and still predicts what it did.

    The file's own test molecules are predicted again, and compared with
    what it said when it was saved. Its checksums are compared too. Nothing
    in a model file is run, so a stranger's may be verified.

    Examples:
        molgraph verify model.mgm
    """
    from molgraph import api
    from molgraph.cli.show import say

    checked = api.verify(model)
    for name, value in checked.model.summary().items():
        say(f"{name:13s} {value}")
    if checked.model.card.scores:
        main = [
            f"{row.get('target', '')} {row.get('metric', '')} {row['value']:.3f}"
            for row in checked.model.card.scores
            if row.get("value") is not None
        ]
        say(f"{'test scores':13s} {', '.join(main)}")
    gap = f"largest relative difference {checked.largest_gap:.1e}, allowed {checked.tolerance:.0e}"
    say(f"ok: {checked.n_molecules} test molecules answered as saved ({gap})", "bold green")
