"""``molgraph demo``: train, compare, predict and report on molecules that need no download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from molgraph.cli.options import check_writable, option, out_option

DATA = "builtin:chembl2321810"
# Variations on the series (aryl sulfonamides that block the sodium channel Nav1.7), and one typing error.
NEW = (
    ("new-1", "Fc1ccc(Oc2ccc(cc2C#N)S(=O)(=O)Nc2nccs2)cc1"),
    ("new-2", "Clc1ccc(Oc2ccc(cc2C#N)S(=O)(=O)Nc2ncns2)cc1C(F)(F)F"),
    ("new-3", "O=S(=O)(Nc1ncns1)c1ccc(Oc2ccccc2C2CCNCC2)c(F)c1"),
    ("new-4", "CC(=O)Oc1ccccc1C(=O)O"),
    ("new-5", "Clc1ccc(Oc2ccc(cc2C#N"),
)


def demo(
    out: Annotated[Path, out_option("Where everything is written.", "FOLDER")] = Path("demo"),
    epochs: Annotated[int | None, option("N", "Fewer are faster and worse.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of split and training.")] = 0,
) -> None:
    """The whole story on 1,017 measured molecules that need no download.

    Reads a ChEMBL series, splits it by scaffold, trains a D-MPNN and a random
    forest, compares both with the mean, keeps a model file, predicts five new
    molecules and writes a report. Each step shows the command that does it.

    Examples:
        molgraph demo
        molgraph demo --out /tmp/demo --epochs 5
    """
    from molgraph import api
    from molgraph.base.errors import CannotWriteError
    from molgraph.base.paths import storage_error
    from molgraph.cli.show import command, console, say, show_result, table
    from molgraph.cli.train import learn
    from molgraph.run.config import config_of

    def heading(text: str, words: list[Any]) -> None:
        say("")
        say(text, "bold")
        command(words)

    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise CannotWriteError(f"cannot write {out}: it is a file", hint="name a folder with --out") from None
    except OSError as error:
        raise storage_error(f"cannot write {out}", error) from error
    model, new, predicted, report = (out / n for n in ("model.mgm", "new.csv", "predicted.csv", "report.html"))
    check_writable(model, new, predicted, report)
    _write_new(new, model, predicted, report)
    say("The ChEMBL series CHEMBL2321810: 1,017 molecules and their measured activity (pActivity, -log10 of molar),")
    say("from inside the rdkit package. The same works with your own csv.")
    options: dict[str, Any] = {"seed": seed} | ({} if epochs is None else {"epochs": epochs})
    words = ["molgraph", "train", DATA, *(w for k, v in options.items() for w in (f"--{k}", v) if v)]
    heading("1. Learn, and compare with a forest and with the mean", [*words, "-o", model, "--report", report])
    result, _ = learn(config_of(None, options | {"path": DATA}), model)
    show_result(result)
    heading("2. Predict new molecules", ["molgraph", "predict", model, new, "-o", predicted])
    api.predict_file(model, new, predicted)
    prediction = api.load(model).predict(new)
    frame = prediction.to_frame().set_index("id")
    room = max(console().width - 70, 24)
    frame["reason"] = [text if len(text) <= room else text[: room - 3] + "..." for text in frame["reason"]]
    table(frame.drop(columns="status").rename(columns={"input": "smiles"}))
    say("The last one is not a molecule: it stays a row, with the reason, and nothing stops.", "dim")
    result.report(report, new=prediction)
    say("")
    say(f"Written to {out}: {', '.join(sorted(p.name for p in out.iterdir()))}", "bold green")
    say(f"Open {report} in a browser: parity plot, worst errors drawn, what a repeat needs.")
    say("")
    say("Next", "bold")
    command(["molgraph", "verify", model], "the file still answers as it was saved")
    command(["molgraph", "data", "audit", "yours.csv", "--target", "Y"], "look before you learn")
    command(["molgraph", "train", "yours.csv", "--target", "Y", "--ensemble", "5"], "your own, with a spread")
    command(["molgraph", "models"], "what else there is")


def _write_new(new: Path, *others: Path) -> None:
    """Write the new molecules first, as the mark of a demo's folder; refuse files of these names in another one."""
    import pandas as pd

    from molgraph.base.csv_text import csv_text, write_csv
    from molgraph.base.errors import FileKeptError

    frame = pd.DataFrame(NEW, columns=["id", "smiles"])
    if new.is_file() and new.read_bytes() == csv_text(frame).encode():
        return
    for path in (new, *others):
        if path.is_file():
            raise FileKeptError(f"{path} is no file of an earlier demo", hint="name another folder with --out")
    write_csv(new, frame)
