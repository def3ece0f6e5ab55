"""Repeat the JT-VAE paper's experiments of optimisation with any generator that has a latent space.

    MOLGRAPH_DATA=... python pipelines/jtvae/optimise.py jtvae.mgm          # stopped, it goes on
    MOLGRAPH_DATA=... python pipelines/jtvae/optimise.py chemvae.mgm --calls 200 --starts 40

Top molecules by Bayesian optimisation of penalized logP (each term scaled by ZINC-250k) and of QED, which begins from
molecules of ZINC-250k with their values, and plain sampling beside it; and constrained improvement of the 800 test
molecules with the lowest penalized logP (in its own units) at similarity 0, 0.2, 0.4 and 0.6, by a property head that
learns from the same molecules. Results stand in a folder beside the model, and in NAME.md in this one, with the paper's
figures in grey. The budget is in the options.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import molgraph  # noqa: E402
from molgraph.base.paths import atomic_write, data_dir  # noqa: E402
from molgraph.data.standardise import standardise  # noqa: E402
from molgraph.data.table import Table  # noqa: E402
from molgraph.generate.oracles.calls import OracleCalls  # noqa: E402
from molgraph.generate.oracles.read_oracle import read_oracle  # noqa: E402
from molgraph.generate.searches.head import Head, fit_head  # noqa: E402
from pipelines.jtvae.constrained import Improvement, improve, success  # noqa: E402

MOST_ATOMS = (
    38  # of the largest molecules of ZINC-250k: penalized logP has no upper end, it grows with a chain of rings
)
COLUMNS = {"values": "objective", "smiles": "smiles", "atoms": "atoms"}
DELTAS = (0.0, 0.2, 0.4, 0.6)
#: Jin et al. 2018; the QED of the same method as You et al. 2018 report it
PAPER_TOP = {"penalized_logp_zinc": "5.30, 4.93, 4.49", "qed": "0.925, 0.911, 0.910"}
PAPER_GAIN = {
    0.0: "+1.91 ± 2.04 | 97.5%",
    0.2: "+1.68 ± 1.85 | 97.1%",
    0.4: "+0.84 ± 1.45 | 83.6%",
    0.6: "+0.21 ± 0.71 | 46.4%",
}


def grey(text: str) -> str:
    """Markdown of a published figure."""
    return f'<span style="color:grey">{text}</span>'


def top(model: str, objective: str, how: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The three best molecules of a search that begins from known ones, and of as many samples."""
    path = folder / f"top-known-{objective}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found
    began, out = time.process_time(), {}
    for search, known in (("bayes", zinc(how)), ("sampling", None)):
        result = molgraph.optimise(
            model, objective, search=search, known=known, budget=how.calls, batch=how.batch, seed=how.seed,
            compare=False, journal=folder / f"{objective}-{search}.journal",
        )  # fmt: skip
        if result.interrupted:
            raise KeyboardInterrupt
        frame = result.to_frame()
        frame["atoms"] = [Chem.MolFromSmiles(text).GetNumHeavyAtoms() for text in frame["smiles"]]
        for name, rows in (
            (search, frame),
            (f"{search}, at most {MOST_ATOMS} atoms", frame[frame["atoms"] <= MOST_ATOMS]),
        ):
            best = rows.head(3)
            out[name] = {key: best[column].tolist() for key, column in COLUMNS.items()}
    out["cpu_seconds"] = time.process_time() - began
    write(path, json.dumps(out, indent=1))
    return out


def zinc(how: argparse.Namespace) -> Table:
    """Molecules of ZINC-250k, without values."""
    data = data_dir()
    assert data is not None, "MOLGRAPH_DATA names the folder of datasets"
    table = molgraph.read_table(data / "zinc250k" / "zinc250k_properties.csv.gz", smiles="smiles")
    return table.take(np.sort(np.random.default_rng(how.seed).permutation(len(table))[: how.head]))


def head_of(model: molgraph.Model, how: argparse.Namespace) -> Head:  # type: ignore[name-defined]
    """A property head that learned penalized logP on the latents of known molecules."""
    table = standardise(zinc(how), model.standardiser)
    latents = model.method.encode(table)
    score = read_oracle("penalized_logp").score([str(text) for text in table.smiles]).value
    ok = latents.ok & np.isfinite(score)
    return fit_head(latents.mean[ok], score[ok], seed=how.seed)


def constrained(model: str, how: argparse.Namespace, folder: Path) -> tuple[dict[float, list[Improvement]], int]:
    """What was found from each start, and how many starts cannot be encoded; a start that is done is read from disk."""
    data = data_dir()
    assert data is not None, "MOLGRAPH_DATA names the folder of datasets"
    lines = (data / "zinc250k" / "opt.test.logP-SA").read_text("utf-8").splitlines()
    starts = [line.split()[0] for line in lines][: how.starts]
    path = folder / f"improved-{how.rate:g}-{how.seed}.jsonl"
    done = {} if not path.exists() else {row["start"]: row for row in map(json.loads, path.read_text().splitlines())}
    if todo := [start for start in starts if start not in done]:
        loaded = molgraph.load(model)
        head, space = head_of(loaded, how), loaded.method
        with path.open("a", encoding="utf-8") as file:
            for i, start in enumerate(todo):
                row: dict[str, Any] = {"start": start}
                calls = OracleCalls(read_oracle("penalized_logp"), 10_000)
                try:
                    found = improve(space, [head], calls, start, DELTAS, rate=how.rate, seed=how.seed + i)
                    row["found"] = [[d, one.best, one.similarity, one.before, one.after] for d, one in found.items()]
                except molgraph.MolgraphError as error:
                    row["reason"] = error.message
                done[start] = row
                file.write(json.dumps(row) + "\n")
                file.flush()
    out: dict[float, list[Improvement]] = {delta: [] for delta in DELTAS}
    for start in starts:
        for delta, best, similarity, before, after in done[start].get("found", []):
            out[delta].append(Improvement(start, best, similarity, before, after))
    return out, sum("reason" in done[start] for start in starts)


def page(name: str, how: argparse.Namespace, tops: dict[str, Any], found: Any, unencoded: int) -> str:
    """The results as markdown."""
    lines = [f"# Optimisation in the latent space of {name}", ""]
    lines += [f"Written by `pipelines/jtvae/optimise.py`. Budget: {how.calls:,} oracle calls a search in batches of "]
    lines[-1] += (
        f"{how.batch}; {how.starts:,} of the 800 starts, 80 steps each. {how.head:,} molecules of ZINC-250k are known "
    )
    lines[-1] += "to `bayes`, and to the head that the starts are improved by. Figures "
    lines[-1] += (
        "of Jin et al. 2018 in grey: 250 calls of 10 repeats by a sparse Gaussian process, and a jointly trained "
    )
    lines[-1] += (
        "head. Similarity here is Tanimoto of 2,048 bits; a success is a better molecule that is similar enough. "
    )
    lines[-1] += "Starts are scored and compared as the generator writes molecules, without charges; what differs from "
    lines[-1] += "its start in stereochemistry alone is no success."
    words = "Penalized logP has no upper end, a chain of rings raises it without bound: rows of at most"
    lines += ["", f"{words} {MOST_ATOMS} heavy atoms stand beside."]
    lines += ["", "| objective | search | 1st | 2nd | 3rd | heavy atoms | the best |", "|---|---|---|---|---|---|---|"]
    for objective, result in tops.items():
        for search, best in result.items():
            if search != "cpu_seconds":
                values = [f"{v:.3f}" for v in best["values"]] + ["–"] * 3
                atoms = ", ".join(map(str, best["atoms"]))
                top = "".join(f"`{text}`" for text in best["smiles"][:1])
                lines.append(f"| {objective} | {search} | {' | '.join(values[:3])} | {atoms} | {top} |")
        paper = " | ".join(map(grey, PAPER_TOP[objective].split(", ")))
        lines.append(f"| {grey(objective)} | {grey('JT-VAE, paper')} | {paper} | | |")
    if equal := [
        objective for objective, result in tops.items() if _best(result, "sampling") >= _best(result, "bayes")
    ]:
        lines += ["", f"For {' and '.join(equal)} the search found nothing better than plain sampling did."]
    lines += ["", "| similarity | improvement | success | similarity of successes | " + grey("paper: improvement")]
    lines[-1] += " | " + grey("success") + " |"
    lines += ["|---|---|---|---|---|---|"]
    for delta, improvements in found.items():
        if improvements:
            mean, deviation, near, share = success(improvements)
            published = " | ".join(map(grey, PAPER_GAIN[delta].split(" | ")))
            lines.append(f"| {delta:g} | {mean:+.2f} ± {deviation:.2f} | {share:.1%} | {near:.2f} | {published} |")
    n = len(next(iter(found.values())))
    lines += ["", f"{n:,} starts were improved from; {unencoded:,} have no place in the generator's space.", ""]
    return "\n".join(lines)


def _best(result: dict[str, Any], search: str) -> float:
    return max(result[search]["values"], default=float("-inf"))


def write(path: Path, text: str) -> None:
    """Write a text under a temporary name first."""
    with atomic_write(path, "w") as file:
        file.write(text)


def main(words: Sequence[str] | None = None) -> Path:
    """Run what is not done yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a generator's file (.mgm)")
    parser.add_argument("--calls", type=int, default=500, help="oracle calls of a search")
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--starts", type=int, default=800, help="molecules to improve")
    parser.add_argument("--head", type=int, default=5_000, help="known molecules, which searches begin from")
    parser.add_argument("--rate", type=float, default=0.1, help="length of a step of the ascent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="the page; NAME.md beside this script if not given")
    how = parser.parse_args(words)
    model = Path(how.model)
    folder = model.with_suffix(f".optimise-{how.calls}-{how.batch}-{how.head}-{how.seed}")
    folder.mkdir(exist_ok=True)
    tops = {objective: top(str(model), objective, how, folder) for objective in PAPER_TOP}
    found, unencoded = constrained(str(model), how, folder)
    path = how.out or HERE / f"{model.stem}.md"
    write(path, page(model.stem, how, tops, found, unencoded))
    print(path.read_text("utf-8"))
    return path


if __name__ == "__main__":
    main()
