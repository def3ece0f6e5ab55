"""``molgraph train``: learn from a table of molecules, write a model file and say how good it is.

Checkpoints stand in a folder beside the model file until it is written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from molgraph.base.errors import BusyError, ConflictError, FileKeptError, StorageError, UnknownNameError, UsageError
from molgraph.base.locks import Claims
from molgraph.base.paths import check_names_file, storage_error
from molgraph.base.recipe_keys import KEYWORDS
from molgraph.cli.options import argument, check_word, check_writable
from molgraph.cli.recipe_options import Assignments, RecipeFile, output, recipe_values, takes_recipe

if TYPE_CHECKING:
    from molgraph.base.run_config import RunConfig

_DATA = "csv, csv.gz, tsv, parquet, sdf, smi, xyz, npz, - for standard input, or dataset:NAME; else the recipe's path."
KEEP = ("all", "model", "baseline", "best")
Data: TypeAlias = Annotated[str | None, argument(_DATA)]
Out: TypeAlias = Annotated[
    Path | None, output("--out", "-o", help="The model, written over if it is there.", default="a new model.mgm")
]
Keep: TypeAlias = Annotated[
    str,
    output(
        metavar="all|model|baseline|best",
        help="What is written: the model and, beside it, its baseline; one of them; or the better one by the"
        " validation part.",
        default="all",
    ),
]
Report: TypeAlias = Annotated[Path | None, output(help="An HTML report.")]
SaveRecipe: TypeAlias = Annotated[Path | None, output(help="The whole recipe, for --recipe.")]
CLAIM = "claim"  # the file whose lock says that a training is at work
KEPT = re.compile(  # what trainings write into a working folder
    rf"{CLAIM}|early\.mgm|\.early\.mgm\.\w+\.tmp|([0-9a-f]{{16}}/)?\w+\.jsonl"
    r"|[0-9a-f]{16}(/final)?((/member-\d+)?(/training\.ckpt(\.tmp)?)?|/(corpus|labels|auto)(/.+)?)"
)


@takes_recipe(KEYWORDS)
def train(
    data: Data = None,
    *,
    recipe: RecipeFile = None,
    set_: Assignments = None,
    out: Out = None,
    keep: Keep = "all",
    report: Report = None,
    save_recipe: SaveRecipe = None,
    **options: Any,
) -> None:
    """Learn from a table of molecules, compare with a baseline, keep both.

    The table is split into train, valid and test; the test part is used
    once, for the scores. dmpnn, the default, reads RDKit's descriptors
    beside the graph in tables of up to 10,000 rows (without them:
    -s params.descriptors=none). A random forest on fingerprints and
    descriptors is trained beside a graph model, because on small data it
    often wins; it is written beside the model as NAME.baseline.mgm. Beside
    a model of pairs or complexes the same model is trained on each side
    alone (ligand alone, protein alone), and a sentence says whether both
    sides were used. --cv 5x5 learns 25 folds anew first, for scores with
    intervals; --final trains the kept model on all rows at the end. A run
    that was stopped goes on when the same command is given again.

    Examples:
        molgraph train assay.csv --target pIC50 -o assay.mgm
        molgraph train assay.csv -t pIC50 --keep best -o assay.mgm
        molgraph train assay.csv -t pIC50 --model auto --budget 10m
        molgraph train assay.csv -t pIC50 --test later.csv
        molgraph train assay.csv -t logS -t active --split random
        molgraph train assay.csv -t class:multiclass  # words or 0, 1, 2
        molgraph train charges.csv -t charge:atom  # a list in each cell
        molgraph train curves.csv -t response:curve --concentration dose_uM
        molgraph train assay.csv -t pIC50 -s params.depth=4 --report r.html
        molgraph train dataset:esol -m random_forest  # molgraph data list
        molgraph train assay.csv -t pIC50 -m maplight --descriptors encoder.mgm
        molgraph train assay.csv -t pIC50 --cv 5x5 --final --report r.html
        molgraph train pairs.csv --smiles drug --sequence protein -t Kd -m dmpnn+deepdta
        molgraph train --recipe runs/assay.toml --seed 1
    """
    from molgraph.cli.show import show_result

    values = recipe_values(KEYWORDS, {"path": data, **options})
    config, out = check_outputs(values, recipe, set_, out, keep, report, save_recipe)
    result, written = learn(config, out, keep)
    show_result(result, keep)
    tell_written(result, out, written, keep, save_recipe, report, result.report)


def check_outputs(
    values: dict[str, Any],
    recipe: Path | None,
    assignments: list[str] | None,
    out: Path | None,
    keep: str,
    report: Path | None,
    save_recipe: Path | None,
) -> tuple[RunConfig, Path]:
    """The configuration that a training's options ask for, and its model file; what cannot be written is refused."""
    from molgraph.run.config import check_report, config_of, split_file

    check_word("--keep", keep, KEEP)
    config = config_of(recipe, values).override(*assignments or [])
    fresh, out = out is None, model_file(out or Path("model.mgm"))
    files = (out, baseline_file(out)) if keep == "all" and config.training.baseline else (out,)
    if fresh and (existing := [path for path in files if path.exists()]):
        raise UsageError(f"{existing[0]} is there already", hint=f"name another file, or write over it: -o {out}")
    check_writable(*files, report, save_recipe, inputs=(config.data.path, config.data.test, recipe, split_file(config)))
    if report is not None:
        check_report(config)
    return config, out


def tell_written(
    result: Any,
    out: Path,
    written: dict[str, Path],
    keep: str,
    save_recipe: Path | None,
    report: Path | None,
    write_report: Callable[[Path], Path],
) -> None:
    """Write the recipe and the report of a training, say what was written, and which commands read it."""
    from molgraph.base.printable import count
    from molgraph.cli.show import command, say

    config = result.recipe
    if keep == "best":
        say(result.choice.sentence, err=True)
    for name, path in written.items():
        say(f"{name} written to {path}", err=True)
    if kept := result.model.n_kept:
        say(f"it holds {count(kept, 'training molecule')}, to name the nearest; --private keeps none", "dim", err=True)
    if (former := baseline_file(out)) not in written.values() and former.exists():
        say(f"{former} is the baseline of an earlier training", "yellow", err=True)
    if save_recipe is not None:
        config.to_toml(save_recipe)
        say(f"recipe written to {save_recipe}", err=True)
    if report is not None:
        say(f"report written to {write_report(report)}", err=True)
    kinds = dict(result.model.columns_read).keys()
    if "graph" not in kinds:  # which no file has
        say("next:", err=True)
        command(["molgraph", "predict", out, f"new.{ending(result.model, config)}", "-o", "predicted.csv"], err=True)
        more_commands(result.model, out, f"new.{ending(result.model, config)}")
        if result.model.kind == "structpool" and kinds == {"molecule"}:
            code = f'import molgraph; molgraph.draw_clusters({json.dumps(str(out))}, "CCO").save("clusters.svg")'
            command(["python", "-c", code], "the learned clusters", err=True)


def more_commands(model: Any, out: Path, data: str) -> None:
    """Print what a model can do beside predicting: give forces, or place the atoms of molecules in space."""
    from molgraph.cli.show import command
    from molgraph.train.abilities import gives_forces, places_atoms

    if gives_forces(model.method):
        code = f"import molgraph; print(molgraph.forces({json.dumps(str(out))}, {json.dumps(data)})[0])"
        command(["python", "-c", code], "the forces of each row; in ASE molgraph.ase_calculator", err=True)
    if places_atoms(model.method):
        command(["molgraph", "conformers", out, data, "-o", "conformers.sdf"], err=True)


def ending(model: Any, config: RunConfig) -> str:
    """The ending of a file like the one that a model learned from: sdf where that held molecules in space, no text."""
    from molgraph.base.contracts import PredictsGraphs

    inputs = model.method.graph_inputs() if isinstance(model.method, PredictsGraphs) else ()
    texts = str(config.data.path).endswith((".csv", ".parquet")) or any(part.whole for part in inputs)
    return "sdf" if "geometry" in dict(model.columns_read) and not texts else "csv"


def model_file(out: Path) -> Path:
    """The name of a model file: ``.mgm`` is added where there is no ending, another one is refused."""
    check_names_file(out)
    if out.suffix.lower() not in ("", ".mgm"):
        hint = f"model files end in .mgm: {out.stem}.mgm"
        raise UnknownNameError(f"a model cannot be written to {out.name!r}", hint=hint)
    return out if out.suffix else out.with_suffix(".mgm")


def baseline_file(out: Path) -> Path:
    """The name of the baseline's file beside a model file: ``runs/assay.baseline.mgm`` beside ``runs/assay.mgm``."""
    return out.with_name(f"{out.stem}.baseline.mgm")


def learn(config: RunConfig, out: Path, keep: str = "model") -> tuple[Any, dict[str, Path]]:
    """Train and write model files, by ``--keep``; the result, and the files that were written by what is in them."""
    from molgraph import api
    from molgraph.run.baselines import check_keep  # imports torch: what needs none has been checked

    check_keep(config, keep)
    with resumable(out) as workdir:
        result = api.train(recipe=config, workdir=workdir)
        return result, write_models(result, out, keep)


def write_models(result: Any, out: Path, keep: str) -> dict[str, Path]:
    """Write a training's model files, by ``--keep``; the files that were written by what is in them."""
    if keep == "baseline" and result.baseline is None:
        hint = "leave out --keep baseline: the training is kept, and goes on from its end"
        raise ConflictError("there is no baseline to keep: none was trained for this table", hint=hint)
    main = {"baseline": result.baseline, "best": result.best_model if keep == "best" else None}.get(keep)
    save(main or result.model, out)
    written = {"baseline" if keep == "baseline" else "model": out}
    if keep == "all" and result.baseline is not None:
        written["baseline"] = baseline_file(out)
        save(result.baseline, written["baseline"])
    return written


@contextmanager
def resumable(out: Path) -> Iterator[Path]:
    """The folder of a training's checkpoints, which Ctrl-C leaves, and says so; what the training says is printed."""
    from molgraph.cli.show import steps

    with working_folder(out) as workdir:
        try:
            with steps():
                yield workdir
        except KeyboardInterrupt as stop:
            if not any(has_progress(workdir)):
                stop.add_note("before the first step of the training: nothing was kept")
            elif not str(stop):  # between two fits: a fit says it itself
                stop.add_note(f"kept: {workdir}; the same command goes on from its last checkpoint")
            raise


def save(model: Any, out: Path) -> None:
    """Write the model file; where that cannot be (a disk that has filled up), keep it elsewhere and say where."""
    import tempfile

    try:
        model.save(out)
    except StorageError as error:
        for folder in (Path.cwd, tempfile.gettempdir, Path.home):
            try:
                file = Path(folder()) / f"{out.stem}-{os.getpid()}.mgm"
                model.save(file)
            except (StorageError, OSError, RuntimeError):  # there need be no such folder
                continue
            raise type(error)(error.message, hint=f"the model is kept: make room, then: mv {file} {out}") from error
        raise


@contextmanager
def working_folder(out: Path) -> Iterator[Path]:
    """The folder for the checkpoints of one training at a time; after a failure it stays where it holds some."""
    workdir = out.with_name(out.name + ".work")
    check_workdir(workdir)
    claims, kept = Claims(workdir), False
    try:
        if not claims.take(CLAIM):
            hint = "wait until it ends, or choose another --out"
            raise BusyError(f"another training is writing {out} and keeps its checkpoints in {workdir}", hint=hint)
    except OSError as error:
        raise storage_error(f"cannot write into {workdir}", error) from error
    try:
        yield workdir
    except BaseException:
        kept = any(has_progress(workdir))
        raise
    finally:
        claims.close()
        if not kept:
            shutil.rmtree(workdir, ignore_errors=True)


def has_progress(workdir: Path) -> Iterator[Path]:
    """The checkpoints, journals, labels and folds in a working folder, from which the same command goes on."""
    for names in ("*.ckpt", "*.jsonl", "labels/*.npy", "fold-*.json"):
        yield from workdir.rglob(names)


def check_workdir(workdir: Path) -> None:
    """Refuse a working folder that training would write into, and remove at the end, though it is not its own."""
    if not workdir.is_symlink() and not workdir.exists():
        return
    reason = "it is a link" if workdir.is_symlink() else "" if workdir.is_dir() else "it is a file"
    for path in () if reason else sorted(workdir.rglob("*")):
        name = path.relative_to(workdir).as_posix()
        if path.is_symlink() or not KEPT.fullmatch(name):
            reason = f"it holds {name}, which is no checkpoint"
            break
    if reason:
        hint = (
            "move it or choose another --out: checkpoints are kept there and the folder is removed after the training"
        )
        raise FileKeptError(f"cannot write into {workdir}: {reason}", hint=hint)
