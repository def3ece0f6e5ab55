"""``molgraph predict`` and ``molgraph embed``: predictions or vectors of the molecules of a file, or of typed ones."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from molgraph.base.printable import count
from molgraph.base.recipe_keys import PRECISION
from molgraph.cli import options as opt


def predict(
    model: opt.ModelFile,
    data: Annotated[
        list[str], opt.argument("csv, csv.gz, tsv, parquet, xlsx, sdf, smi, xyz, npz, - for stdin; SMILES.")
    ],
    out: Annotated[str, opt.out_option("csv, tsv, parquet, xlsx or sdf, csv.gz ...; - for the screen.")] = "-",
    smiles: opt.Smiles = None,
    sequence: opt.Sequence = None,
    geometry: opt.Geometry = None,
    reaction: opt.Reaction = None,
    id: opt.Ids = None,
    decimal: opt.Decimal = None,
    keep_columns: Annotated[
        bool, typer.Option("--keep-columns", help="Write the input's own columns before the predictions.")
    ] = False,
    coverage: Annotated[
        float | None, opt.option("X", "Share of measured values that intervals should hold. (0.9)")
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Values alone: no intervals, grade and nearest training molecule.")
    ] = False,
    parent: Annotated[
        str | None, opt.option("FILE", "Measured molecules by which the numbers of their analogues are corrected.")
    ] = None,
    parent_share: Annotated[
        float | None, opt.option("X", "Weight of one of them, 0 (plain) to 1; estimated from FILE if not given.")
    ] = None,
    on_error: Annotated[str, opt.option("keep|drop|stop", "Rows that cannot be predicted.")] = "keep",
    device: opt.Device = None,
    threads: opt.Threads = None,
    views: Annotated[
        int | None, opt.option("N", "Random SMILES of each molecule: their mean, and a column view_std.")
    ] = None,
    precision: Annotated[str | None, opt.option("TYPE", f"{PRECISION}; as trained if not given.")] = None,
    engine: Annotated[str, opt.option("NAME", "local, or ray for a Ray cluster.")] = "local",
) -> None:
    """Predict the molecules of a file of any size, row for row and in order.

    A molecule that cannot be read stays a row, with its reason; so does
    what RDKit reads and is no molecule (*CCO, [Na+], ferrocene). Classifiers
    give the probability of class 1, or of each class; ensembles their spread
    too. Beside each value stand its interval (..._low, ..._high; of classes
    those that are not ruled out, ..._set, and calibrated probabilities,
    ..._calibrated), a grade (domain: inside, edge,
    outside), the Tanimoto distance to the nearest training molecule, and that
    molecule with its measured value. A molecule of a sort that no training
    molecule is of, such as one with another metal, has no value. Where the
    input has a column of a target's name, the prediction's is called
    ..._predicted. Values of atoms or bonds are lists, in the order
    of the SMILES as given. Output grows in OUT.parts: a run that was stopped goes
    on when the same command is given again, and gives the same bytes. Memory
    does not grow with the file. Numbers are written as float32 (7 digits).
    --engine ray predicts on a Ray cluster, the one that RAY_ADDRESS names,
    else on this machine's cores: the same bytes as with --threads 1.

    --parent measured.csv has values of the model's targets that were measured
    after its training. What the model misses by on the nearest of them (up to
    five, of Tanimoto similarity 0.4 or more) is likely to be missed on their
    analogues too: a share of it, which the file itself tells, is added. Beside
    the corrected number stand ..._plain, the model's own, ..._sd, the standard
    deviation of the error, ..._parents, their number, and ..._parent, the id
    of the nearest. Classes stay as they are.

    Ids and kept columns are written as they stand in the input. A spreadsheet
    may take one like =cmd() for a formula: open a stranger's as text.

    Examples:
        molgraph predict model.mgm new.csv -o predicted.csv --keep-columns
        molgraph predict model.mgm new.sdf -o predicted.sdf
        molgraph predict model.mgm CCO c1ccccc1O --coverage 0.8
        molgraph predict model.mgm "book.xlsx::Plate 2" -o predicted.xlsx
        molgraph predict model.mgm CCO c1ccccc1O
        molgraph predict model.mgm ideas.csv --parent measured.csv -o predicted.csv
        molgraph predict smiles.mgm new.csv --views 8  # mean, and view_std
        molgraph predict model.mgm library.smi -o predicted.parquet
        RAY_ADDRESS=head:6379 molgraph predict model.mgm library.parquet --engine ray -o predicted.parquet
        echo CCO | molgraph predict model.mgm -
    """
    _stream("predict", locals())


def embed(**given: Any) -> None:
    """Write the vector that a model's encoder makes of each row of a file.

    MODEL is a pretrained encoder (`molgraph pretrain`) or any graph model.
    Rows stay in order; one that cannot be read stays a row, with its reason.
    A run that was stopped goes on when the same command is given again. OUT
    may end in .npy too: one float32 array, NaN where there is no vector.

    --align turns the vectors of a new encoder into the frame of older ones,
    by the molecules that both have, so that an index made before stays of
    use. --code 32 writes codes of 32 numbers in place of the vectors, of an
    autoencoder that no task trains, and OUT.code.npz, which codes further
    tables alike. With --code-by binary it has N bits, learned to keep the
    neighbours of the vectors; OUT may end in .bits then, a file of N/8 bytes
    a row. `molgraph nearest` searches in vectors and in bits.

    Examples:
        molgraph embed encoder.mgm library.smi -o vectors.parquet
        molgraph embed new.mgm library.smi --align vectors.parquet -o new.parquet
        molgraph embed encoder.mgm library.smi --code 32 -o codes.parquet
        molgraph embed encoder.mgm new.csv --code codes.parquet.code.npz -o more.parquet
        molgraph embed encoder.mgm library.smi --code 256 --code-by binary -o library.bits
        molgraph embed model.mgm new.csv -o vectors.npy
        molgraph embed model.mgm CCO c1ccccc1O
        molgraph embed graphs.mgm dataset:mutag -o vectors.npy
    """
    _stream("embed", given)


def _more(
    align: Annotated[str | None, opt.option("FILE", "Turn them into the frame of older vectors; or none.")] = None,
    code: Annotated[str | None, opt.option("N", "Compress vectors to N numbers; or the .npz file of a code.")] = None,
    code_by: Annotated[
        str, opt.option("autoencoder|binary|projection|hyperplanes", "How; binary: of N bits; the last two: random.")
    ] = "autoencoder",
    seed: Annotated[int, opt.option("N", "Of the code.")] = 0,
) -> None: ...


OWN = ("coverage", "plain", "parent", "parent_share")  # options of predict alone
_shared, _added = signature(predict, eval_str=True), signature(_more, eval_str=True)
embed.__signature__ = _shared.replace(  # type: ignore[attr-defined]
    parameters=[*(p for p in _shared.parameters.values() if p.name not in OWN), *_added.parameters.values()]
)
embed.__annotations__ = {**get_type_hints(predict, include_extras=True), **get_type_hints(_more, include_extras=True)}


def _stream(verb: str, given: dict[str, Any]) -> None:
    """Predict or embed, and say what came of it."""
    from molgraph.base.errors import DataError, UnknownNameError, nearest

    model, data, out, on_error = (given[name] for name in ("model", "data", "out", "on_error"))
    if on_error not in (known := ("keep", "drop", "stop")):
        raise UnknownNameError(f"--on-error {on_error!r} is not known", hint=nearest(on_error, known))
    opt.check_whole("--threads", given["threads"])
    opt.check_whole("--views", given["views"])
    source = source_of(data)
    more = _changes(given) if verb == "embed" else {name: given[name] for name in OWN}
    opt.check_writable(out, inputs=(model, *data, *filter(None, (more.get("align"), more.get("parent")))))
    from molgraph import api
    from molgraph.cli.show import command, say

    columns: dict[str, Any] = {
        name: given[name] for name in ("smiles", "sequence", "geometry", "reaction", "id", "decimal") if given[name]
    }
    running = {name: given[name] for name in ("device", "threads", "precision") if given[name] is not None}
    running |= {} if given["views"] is None else {"predict_views": given["views"]}
    work: Any = api.predict_file if verb == "predict" else api.embed
    try:
        done = work(
            model,
            source,
            out,
            on_error=on_error,
            keep_columns=given["keep_columns"],
            running=running,
            engine=given["engine"],
            **more,
            **columns,
        )
    except DataError as error:
        raise type(error)(error.message, hint="\n".join(filter(None, (error.hint, _left(out, on_error))))) from error
    if done.note:
        say(f"note: {done.note}", "yellow", err=True)
    rate = (done.rows - done.resumed) / max(done.seconds, 1e-9)
    resumed = f", {done.resumed:,} of them by the run before" if done.resumed else ""
    where = "" if out == "-" else f" to {out}"
    speed = f" ({rate:,.0f} rows/s)" if done.rows - done.resumed > 1000 else ""
    say(f"{count(done.rows, 'row')}{resumed}{where}, {done.seconds:.1f} s{speed}", err=True)
    if done.spread:
        say("The spread is not calibrated: the error of a prediction is usually far larger.", "dim", err=True)
    if done.coverage is not None and verb == "predict":
        words = f"The intervals hold {done.coverage:.0%} of the values measured on molecules like the training's."
        say(words, "dim", err=True)
    if done.forces and verb == "predict":
        words = f"Energies alone are written. Forces, in Python: molgraph.forces({model!r}, DATA); in ASE:"
        say(f"{words} atoms.calc = molgraph.ase_calculator({model!r}, unit=UNIT)", "dim", err=True)
    if done.failed:
        fate = "left out" if on_error == "drop" else "kept, with the reason"
        say(
            f"{done.failed:,} without a {'prediction' if verb == 'predict' else 'vector'} ({fate}):", "yellow", err=True
        )
        for reason, n in list(done.reasons.items())[:3]:
            say(f"  {n:,} x {reason}", "dim", err=True)
    if done.rows and done.failed == done.rows:
        say("Every row failed. Where texts could not be read, is the column the right one?", err=True)
        if isinstance(source, str):
            say("See also:", err=True)
            command(["molgraph", "data", "audit", source], err=True)


def _changes(given: dict[str, Any]) -> dict[str, Any]:
    """What is done to the vectors: aligned, or coded."""
    opt.check_word("--code-by", given["code_by"], ("autoencoder", "binary", "projection", "hyperplanes"))
    align, code = given["align"], given["code"]
    width = int(code) if code is not None and code.isdigit() else code
    return {
        "align": None if align == "none" else align,
        "code": width,
        "code_by": given["code_by"],
        "seed": given["seed"],
    }


def source_of(data: list[str]) -> str | list[str]:
    """The file that is named, or the molecules that are typed.

    One word is a molecule where it is no file, has no ending of one, and can be read; several are molecules all.
    """
    from molgraph.base.errors import ConflictError
    from molgraph.chem.reaction import is_reaction
    from molgraph.chem.smiles import parse_smiles
    from molgraph.data.reading.formats import names_file

    files = [word for word in data if names_file(word)]
    if len(data) == 1:
        return data[0] if files or not (parse_smiles(data[0]).mol or is_reaction(data[0])) else data
    if files:
        raise ConflictError(f"{files[0]!r} is one of {len(data)} words", hint="name one file, or give SMILES alone")
    return data


def _left(out: str, on_error: str) -> str:
    """What a run that data stopped leaves beside its output, in words."""
    parts = Path(f"{os.path.realpath(out)}.parts")
    if out == "-" or not parts.is_dir():
        return ""
    again = "; --on-error keep goes on from there" if on_error == "stop" else ""
    return f"what came before is kept in {parts.name}{again}"
