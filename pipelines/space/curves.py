"""Learning curves of models of atoms in space beside 2D models, on QM9 and QM7 (needs MOLGRAPH_DATA).

    MOLGRAPH_DATA=... python pipelines/space/curves.py          # train what curves.json lacks, then write the page
    python pipelines/space/curves.py --page                     # CURVES.md and curves.png of what is there

Every model sees the same training, validation and test molecules; the larger training sets hold the smaller ones. The
validation molecules choose the epoch. Networks are narrower and trained for fewer epochs than in the papers, so that
all takes about an hour on one core: the published figures beside them are of 110,000 molecules.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from molgraph.base.paths import data_dir, write_whole
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.make_method import make_method

HERE = Path(__file__).parent
SIZES, VALID, TEST = (250, 500, 1000, 2000), 250, 500
ENERGY = {"head": "atomwise"}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "dimenet_plus_plus": ("geometry", {"epochs": 10, "d_hidden": 64, "depth": 3, "d_atom": 64}),
    "painn": ("geometry", {"epochs": 12, "d_hidden": 64}),
    "schnet": ("geometry", {"epochs": 25}),
    "dmpnn": ("molecule", {"epochs": 30}),
    "random_forest": ("molecule", {}),
}
TARGETS = {  # data, unit, factor from the file's unit; whether it is an energy, which grows with the molecule
    "U0_atom": ("qm9/qm9_3d_3000.npz", "kcal/mol", 1.0, True),
    "gap": ("qm9/qm9_3d_3000.npz", "meV", 27211.386, False),
    "mu": ("qm9/qm9_3d_3000.npz", "D", 1.0, False),
    "E_pbe0": ("qm7/qm7_pbe0_7101.npz", "kcal/mol", 1.0, True),
}
WHOLE = ("U0_atom", "gap")  # targets at every size; the others at two
PUBLISHED = {  # mean absolute errors of 110,000 training molecules, in the units above; 1 meV is 0.02306 kcal/mol
    "U0_atom": {"dimenet_plus_plus": 6.32 * 0.02306, "painn": 5.85 * 0.02306, "schnet": 14 * 0.02306},
    "gap": {"dimenet_plus_plus": 32.6, "painn": 45.7, "schnet": 63.0},
    "mu": {"dimenet_plus_plus": 0.0297, "painn": 0.012, "schnet": 0.033},
    "E_pbe0": {},
}  # Gasteiger et al. 2020 (arXiv:2011.14115), table 1; Schuett et al. 2021 (arXiv:2102.03150), table 1
COLOURS = dict(zip(MODELS, ("#c44e52", "#dd8452", "#4878a8", "#55a868", "#8c8c8c"), strict=True))


def rows(target: str) -> Table:
    """The molecules with one target, in a random order that is always the same."""
    folder = data_dir()
    if folder is None:
        raise SystemExit("MOLGRAPH_DATA names no folder of datasets")
    file = TARGETS[target][0]
    columns = {"geometry": "geometry"} | ({"smiles": "smiles"} if file.startswith("qm9") else {})
    table = read_table(folder / file, targets=[target], **columns)
    table = replace(table, y=np.asarray(table.y) * TARGETS[target][2])
    return table.take(np.random.default_rng(0).permutation(len(table))[: max(SIZES) + VALID + TEST])


def fit(name: str, target: str, size: int, table: Table) -> dict[str, float] | None:
    """Mean absolute error on the test molecules, and CPU seconds; None where the file lacks what the model reads."""
    kind, settings = MODELS[name]
    entities = tuple(each for each in table.entities if each.kind == kind)
    if not entities:
        return None
    table = replace(table, entities=entities)
    if name != "random_forest":
        settings = settings | (ENERGY if TARGETS[target][3] else {"readout": "mean"})
        settings = settings | {"batch_size": 32, "threads": 1}
    train, last = table.take(np.arange(size)), max(SIZES)
    valid, test = table.take(np.arange(last, last + VALID)), table.take(np.arange(last + VALID, len(table)))
    start, method = time.process_time(), make_method(name, **settings)
    method.fit(train, valid)
    error = float(np.nanmean(np.abs(method.predict(test).value - test.y)))
    return {"mae": error, "seconds": round(time.process_time() - start, 1)}


def train_all(path: Path) -> dict[str, dict[str, float]]:
    """Every cell that is not in the file yet; the file is written after each."""
    cells: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    for target in TARGETS:
        table = rows(target)
        for size in SIZES if target in WHOLE else SIZES[1::2]:
            for name in MODELS:
                if (key := f"{target} {name} {size}") not in cells and (cell := fit(name, target, size, table)):
                    print(key, cell, flush=True)
                    cells[key] = cell
                    write_whole(path, json.dumps(cells, indent=1) + "\n")
    return cells


def picture(cells: dict[str, dict[str, float]]) -> Figure:
    """A curve for each model; published figures as grey lines."""
    figure = Figure(figsize=(13, 3.6), layout="constrained")
    shown = [(target, how[1]) for target, how in TARGETS.items() if any(key.startswith(target) for key in cells)]
    for axes, (target, unit) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        for name, colour in COLOURS.items():
            known = [(s, cells[k]["mae"]) for s in SIZES if (k := f"{target} {name} {s}") in cells]
            if known:
                axes.plot(*zip(*known, strict=True), "o-", color=colour, label=name, markersize=4)
        for name, error in PUBLISHED[target].items():
            axes.axhline(error, color="#bbbbbb", linewidth=0.8)
            axes.text(SIZES[0], error, f"{name}, 110,000", color="#999999", fontsize=7, va="bottom")
        axes.set(xscale="log", yscale="log", title=f"{target} ({unit})", xlabel="training molecules")
        axes.set_xticks(SIZES, [f"{s:,}" for s in SIZES])
        axes.minorticks_off()
    figure.axes[0].set_ylabel("mean absolute error")
    figure.axes[0].legend(frameon=False, fontsize=8, loc="center right")
    return figure


def page(cells: dict[str, dict[str, float]]) -> str:
    """The figures as tables."""
    lines = ["# Learning curves of models of atoms in space", ""]
    lines += [" ".join((__doc__ or "").split("\n\n")[2].split()), ""]
    lines += ["Mean absolute error on 500 molecules, one seed; in brackets CPU seconds of training and prediction.", ""]
    lines += ["![Curves](curves.png)", ""]
    for target, (file, unit, _, _) in TARGETS.items():
        if not any(key.startswith(target) for key in cells):
            continue
        lines += [f"## {target}, {unit} (`{file}`)", ""]
        lines += [f"| model | {' | '.join(f'{s:,}' for s in SIZES)} | published |"]
        lines += ["|---|" + "---:|" * (len(SIZES) + 1)]
        for name in MODELS:
            known = [cells.get(f"{target} {name} {size}") for size in SIZES]
            shown = ["" if c is None else f"{c['mae']:.3g} ({c['seconds']:.0f})" for c in known]
            quoted = PUBLISHED[target].get(name)
            if any(shown):
                lines.append(f"| {name} | {' | '.join(shown)} | {'' if quoted is None else f'{quoted:.3g}'} |")
        lines.append("")
    lines += ["Published: 110,000 training molecules; Gasteiger et al. 2020 (arXiv:2011.14115), table 1, for DimeNet++"]
    lines += ["and SchNet, and Schütt et al. 2021 (arXiv:2102.03150), table 1, for PaiNN. QM7's file has no SMILES, so"]
    lines += ["that 2D models cannot read it. Energies are sums over atoms (`head=atomwise`) in every network.", ""]
    return "\n".join(lines)


def main() -> None:
    """Train, then write the page."""
    path = HERE / "curves.json"
    cells = json.loads(path.read_text()) if sys.argv[1:] == ["--page"] else train_all(path)
    picture(cells).savefig(HERE / "curves.png", dpi=110)
    write_whole(HERE / "CURVES.md", page(cells))


if __name__ == "__main__":
    main()
