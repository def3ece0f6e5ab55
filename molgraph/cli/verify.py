"""``molgraph verify``: check that a model file still answers as on the day it was saved."""

from __future__ import annotations

from molgraph.cli.options import ModelFile


def verify(
    model: ModelFile,
) -> None:
    """Check that a model file is whole and still predicts what it did.

    The file's own test molecules are predicted again, and compared with
    what it said when it was saved; a generator draws its test samples again.
    Its checksums are compared too. Nothing in a model file is run, so a
    stranger's may be verified.

    It cannot tell who made a file: who changes a model can write new
    checksums and answers. Nor does it see a change that none of the 25 test
    molecules meets, such as leaves of a forest that they do not reach.

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
    say(f"ok: {checked.sentence}", "bold green")
