"""``molgraph compress``: make a trained model smaller or faster, and say what that cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from molgraph.cli import options as opt


def compress(
    model: opt.ModelFile,
    data: Annotated[str, opt.argument("A table that has the model's target columns, gaps allowed.")],
    how: Annotated[str, opt.option("NAME", "A compressor with its settings: molgraph models --kind compressor.")] = (
        "born_again"
    ),
    seed: Annotated[int, opt.option("N", "Of the split and of what is trained.")] = 0,
    smiles: opt.Smiles = None,
    qualifiers: opt.Qualifiers = None,
    decimal: opt.Decimal = None,
    unit: opt.Unit = None,
    out: Annotated[Path | None, opt.out_option("The new model's file (.mgm).")] = None,
) -> None:
    """Make a model smaller or faster, and measure what that costs.

    born_again teaches a student the model's predictions beside the labels: a
    single network in the place of an ensemble, a smaller model, or one of
    another kind; predictions stand in for missing labels. depth(4) cuts a
    network that was trained with layer_drop; magnitude(0.5) removes the
    smallest half of the hidden units of dmpnn or gin and trains on; heads(0.5)
    and l0-heads remove attention heads of graphgps or grover; snip(0.9) trains
    the network anew with a tenth of its weights; quantise(bits=4) trains on
    with weights of 4 bits on average in the place of 32, and the file holds
    just those. A tenth of the rows, of other scaffolds and not learnt by the
    model, is kept out: bytes of the file, molecules/s and the error of both
    models on them are printed, with the interval of the difference.

    Examples:
        molgraph compress ensemble.mgm assay.csv -o single.mgm
        molgraph compress dmpnn.mgm assay.csv --how 'born_again(student=gin)' -o small.mgm
        molgraph compress big.mgm assay.csv --how 'born_again(library=zinc.smi)' -o small.mgm
        molgraph compress deep.mgm assay.csv --how 'depth(4)' -o short.mgm
        molgraph compress dmpnn.mgm assay.csv --how 'quantise(bits=4)' -o packed.mgm
        molgraph compress dmpnn.mgm assay.csv --how 'magnitude(0.5)' -o narrow.mgm
    """
    opt.check_writable(out, inputs=(model, data))
    from molgraph import api
    from molgraph.base.paths import check_ending
    from molgraph.cli.show import say, steps

    check_ending(out, ".mgm")
    columns: dict[str, Any] = {"smiles": smiles, "qualifiers": qualifiers, "decimal": decimal, "unit": unit}
    if out is None:
        say("the new model will not be kept: to keep it, name a file with -o", err=True)
    with steps():
        result = api.compress(model, data, how, seed=seed, **{name: value for name, value in columns.items() if value})
        if out is not None:
            result.save(out)
    say(repr(result))
    if out is not None:
        say(f"written to {out}", err=True)
