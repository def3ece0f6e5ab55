"""``molgraph train``: learn from a table of molecules, write a model file and say how good it is."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from molgraph.base.errors import StorageError, UsageError
from molgraph.cli.options import PRECISION, check_word, check_writable, numbers
from molgraph.cli.working_folder import working_folder

if TYPE_CHECKING:
    from molgraph.base.recipe import Recipe


def _option(panel: str, *names: str, metavar: str | None = None, help: str = "", default: str = "") -> Any:
    """An option of that panel of the help; its default, which the recipe knows, stands behind its help."""
    text = f"{help} [dim]({default})[/dim]" if default else help
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, rich_help_panel=panel)


_column = partial(_option, "Columns", metavar="COLUMN")
_learning = partial(_option, "Learning")
_result = partial(_option, "Result", metavar="FILE")
_DATA = "csv, csv.gz, tsv, parquet, sdf, smi, - for standard input, or dataset:NAME; else the recipe's path."
Text: TypeAlias = str | None
Many: TypeAlias = list[str] | None
Whole: TypeAlias = int | None
KEEP = ("all", "model", "baseline", "best")


def train(
    data: Annotated[Text, typer.Argument(help=_DATA)] = None,
    test: Annotated[
        Text, _option("Columns", metavar="FILE", help="A table to test on; all of DATA is then train and valid.")
    ] = None,
    target: Annotated[
        Many,
        _column(
            "--target",
            "-t",
            help="To learn; again for several. NAME:multiclass, NAME:binary or NAME:regression says its kind.",
        ),
    ] = None,
    smiles: Annotated[Many, _column(help="SMILES; found if not given; again for several a row.")] = None,
    sequence: Annotated[Many, _column(help="A protein sequence; again for several.")] = None,
    input: Annotated[Many, _column(help="A molecule or sequence column to read; all if not given.")] = None,
    id: Annotated[Text, _column("--id", help="Ids, kept as text.")] = None,
    weight: Annotated[Text, _column(help="Row weights.")] = None,
    feature: Annotated[Many, _column(help="A descriptor; again for several.")] = None,
    split_column: Annotated[
        Text, _column(help="Words train, valid, test, or folds 0, 1, ...; or what --split time or group reads.")
    ] = None,
    on_error: Annotated[
        Text, _column(metavar="keep|drop|stop", help="Rows that cannot be read.", default="keep")
    ] = None,
    duplicates: Annotated[
        Text,
        _column(
            metavar="keep|mean|median|drop",
            help="Rows of one molecule: learned as they are, or merged.",
            default="keep",
        ),
    ] = None,
    qualifiers: Annotated[
        Text, _column(metavar="refuse|drop|strip", help="Labels such as >8.0: left out, or 8.0.", default="refuse")
    ] = None,
    decimal: Annotated[Text, _column(metavar="SIGN", help="A comma where values have decimal commas.")] = None,
    unit: Annotated[
        Text, _column(metavar="UNIT", help="Bring values with units (251 nM, or a column units) to this one.")
    ] = None,
    log: Annotated[bool | None, _column("--log", metavar="", help="Learn log10 of the target.")] = None,
    standardise: Annotated[
        Text, _column(metavar="PRESET", help="none, desalt or standard; kept with the model.", default="standard")
    ] = None,
    model: Annotated[
        Text, _learning("--model", "-m", metavar="NAME", help="See `molgraph models`.", default="dmpnn")
    ] = None,
    split: Annotated[
        Text,
        _learning(metavar="RECIPE", help="A split recipe, or a .json or .csv of rows.", default="scaffold/balanced"),
    ] = None,
    fractions: Annotated[
        Text, _learning(metavar="A,B,C", help="Shares of train, valid, test.", default="0.8,0.1,0.1")
    ] = None,
    epochs: Annotated[Whole, _learning(metavar="N", help="Passes over the data, at most.", default="50")] = None,
    batch_size: Annotated[Whole, _learning(metavar="N", help="Molecules in a step.", default="64")] = None,
    learning_rate: Annotated[
        float | None, _learning(metavar="X", help="Highest step size of gradient descent.", default="0.001")
    ] = None,
    patience: Annotated[
        Whole, _learning(metavar="N", help="Epochs without gain before it stops.", default="15")
    ] = None,
    ensemble: Annotated[
        Whole, _learning(metavar="N", help="Models to average; their spread is kept, not calibrated.", default="1")
    ] = None,
    baseline: Annotated[
        bool | None, _learning("--baseline/--no-baseline", help="A random forest beside a graph model.", default="on")
    ] = None,
    seed: Annotated[Whole, _learning(metavar="N", help="Of split and training.", default="0")] = None,
    device: Annotated[Text, _learning(metavar="NAME", help="cpu, cuda or auto.", default="cpu")] = None,
    threads: Annotated[Whole, _learning(metavar="N", help="CPU threads; all if not given.")] = None,
    precision: Annotated[Text, _learning(metavar="TYPE", help=f"{PRECISION}.", default="float32")] = None,
    store: Annotated[Text, _learning(metavar="FOLDER", help="Keeps graphs for later runs; auto: in the cache.")] = None,
    recipe: Annotated[
        Path | None, _learning("--recipe", "-r", metavar="FILE", help="TOML; options override it.")
    ] = None,
    set_: Annotated[Many, _learning("--set", "-s", metavar="KEY=VALUE", help="A recipe key, or params.NAME.")] = None,
    out: Annotated[
        Path | None, _result("--out", "-o", help="The model, written over if it is there.", default="a new model.mgm")
    ] = None,
    keep: Annotated[
        str,
        _option(
            "Result",
            metavar="all|model|baseline|best",
            help="What is written: the model and, beside it, its baseline; one of them; or the better one by the"
            " validation part.",
            default="all",
        ),
    ] = "all",
    report: Annotated[Path | None, _result(help="An HTML report.")] = None,
    save_recipe: Annotated[Path | None, _result(help="The whole recipe, for --recipe.")] = None,
) -> None:
    """Learn from a table of molecules, compare with a baseline, keep both.

    The table is split into train, valid and test; the test part is used
    once, for the scores. A random forest on fingerprints is trained beside
    a graph model, because on small data it often wins; it is written beside
    the model as NAME.baseline.mgm. A run that was stopped goes on when the
    same command is given again.

    Examples:
        molgraph train assay.csv --target pIC50 -o assay.mgm
        molgraph train assay.csv -t pIC50 --keep best -o assay.mgm
        molgraph train assay.csv -t pIC50 --test later.csv
        molgraph train assay.csv -t logS -t active --split random
        molgraph train assay.csv -t class:multiclass  # words or 0, 1, 2
        molgraph train assay.csv -t pIC50 -s params.depth=4 --report r.html
        molgraph train dataset:esol -m random_forest  # molgraph data list
        molgraph train pairs.csv --smiles drug --sequence protein -t Kd -m dmpnn+deepdta
        molgraph train --recipe runs/assay.toml --seed 1
    """
    given: dict[str, Any] = {
        "path": data,
        "test": test,
        "targets": tuple(target) if target else None,
        "features": tuple(feature) if feature else None,
        "smiles": None if not smiles else smiles[0] if len(smiles) == 1 else tuple(smiles),
        "sequence": tuple(sequence) if sequence else None,
        "inputs": tuple(input) if input else None,
        "fractions": None if fractions is None else numbers("--fractions", fractions),
    }
    named: dict[str, Any] = {
        "id": id,
        "weight": weight,
        "split_column": split_column,
        "on_error": on_error,
    }
    named |= {"duplicates": duplicates, "qualifiers": qualifiers, "decimal": decimal, "unit": unit, "log": log}
    named |= {"standardise": standardise, "model": model, "split": split, "epochs": epochs, "batch_size": batch_size}
    named |= {"learning_rate": learning_rate, "patience": patience, "ensemble": ensemble, "baseline": baseline}
    named |= {"seed": seed, "device": device, "threads": threads, "precision": precision, "store": store}
    from molgraph.api.run_config import check_report, recipe_of, split_file
    from molgraph.cli.scores import show_result
    from molgraph.cli.show import command, say

    check_word("--keep", keep, KEEP)
    plan = recipe_of(recipe, {k: v for k, v in (given | named).items() if v is not None}).override(*set_ or [])
    fresh, out = out is None, model_file(out or Path("model.mgm"))
    models = (out, baseline_file(out)) if keep == "all" and plan.training.baseline else (out,)
    if fresh and (there := [path for path in models if path.exists()]):
        raise UsageError(f"{there[0]} is there already", hint=f"name another file, or write over it: -o {out}")
    check_writable(*models, report, save_recipe, inputs=(plan.data.path, plan.data.test, recipe, split_file(plan)))
    if report is not None:
        check_report(plan)
    result, written = learn(plan, out, keep)
    show_result(result, keep)
    if keep == "best":
        say(result.choice.sentence, err=True)
    for name, path in written.items():
        say(f"{name} written to {path}", err=True)
    if save_recipe is not None:
        result.recipe.to_toml(save_recipe)
        say(f"recipe written to {save_recipe}", err=True)
    if report is not None:
        say(f"report written to {result.report(report)}", err=True)
    say("next:", err=True)
    command(["molgraph", "predict", out, "new.csv", "-o", "predicted.csv"], err=True)


def model_file(out: Path) -> Path:
    """The name of a model file: ``.mgm`` is added where there is no ending, another one is refused."""
    if out.suffix.lower() not in ("", ".mgm"):
        raise UsageError(f"a model cannot be written to {out.name!r}", hint=f"model files end in .mgm: {out.stem}.mgm")
    return out if out.suffix else out.with_suffix(".mgm")


def baseline_file(out: Path) -> Path:
    """The name of the baseline's file beside a model file.

    Example:
        >>> baseline_file(Path("runs/assay.mgm")).as_posix()
        'runs/assay.baseline.mgm'
    """
    return out.with_name(f"{out.stem}.baseline.mgm")


def learn(plan: Recipe, out: Path, keep: str = "model") -> tuple[Any, dict[str, Path]]:
    """Train and write model files.

    Args:
        plan: the whole run.
        out: the model file; a resume's folder stands beside it until it is written.
        keep: ``model``; ``baseline``; ``best``, the one of them that the validation part prefers; or ``all``, the
            baseline in a file beside the model's.

    Returns:
        The result, and the files that were written, by what is in them.
    """
    from molgraph import api
    from molgraph.api.baselines import check_keep  # imports torch: what needs none has been checked
    from molgraph.cli.show import steps

    check_keep(plan, keep)

    with working_folder(out) as workdir:
        try:
            with steps():
                result = api.train(recipe=plan, workdir=workdir)
        except KeyboardInterrupt as stop:
            if not any(workdir.rglob("*.ckpt")):
                stop.add_note("before the first step of the training: nothing was kept")
            elif not str(stop):  # between two fits: a fit says it itself
                stop.add_note(f"kept: {workdir}; the same command goes on from its last checkpoint")
            raise
        if keep == "baseline" and result.baseline is None:
            hint = "leave out --keep baseline: the training is kept, and goes on from its end"
            raise UsageError("there is no baseline to keep: none was trained for this table", hint=hint)
        main = {"baseline": result.baseline, "best": result.best_model if keep == "best" else None}.get(keep)
        save(main or result.model, out)
        written = {"baseline" if keep == "baseline" else "model": out}
        if keep == "all" and result.baseline is not None:
            written["baseline"] = baseline_file(out)
            save(result.baseline, written["baseline"])
    return result, written


def save(model: Any, out: Path) -> None:
    """Write the model file; where that cannot be (a disk that has filled up), keep it elsewhere and say where.

    Raises:
        StorageError: it could not be written to ``out``; the hint says where the model is, if anywhere.
    """
    import tempfile

    try:
        model.save(out)
    except StorageError as error:
        for folder in (Path.cwd, tempfile.gettempdir, Path.home):
            try:
                kept = Path(folder()) / f"{out.stem}-{os.getpid()}.mgm"
                model.save(kept)
            except (StorageError, OSError, RuntimeError):  # there need be no such folder
                continue
            raise StorageError(error.message, hint=f"the model is kept: make room, then: mv {kept} {out}") from error
        raise
