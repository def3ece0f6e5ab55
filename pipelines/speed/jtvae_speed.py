"""Measure molgraph's JT-VAE and its authors' published code on the same molecules, at the same sizes, in turn.

Seconds are those of the processor, all processes counted, on one thread.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np
import torch
from jtvae_peer import Theirs, without_peer
from predict_speed import molecules
from rdkit import Chem
from timing import cpu_seconds, in_turn

import molgraph
from molgraph.base.registry import get
from molgraph.chem.smiles import quiet
from molgraph.data.table import make_table

SIZES = {"d_hidden": 450, "d_latent": 56}  # the published ones; the depths are those of the defaults
BATCHES = (32, 8)  # the published one, and the one at which the authors' code is fastest on a CPU
FLOORS = {"preprocessing": 3.0, "training": 8.0, "sampling": 5.0}
N = {"preprocessing": 256, "training": 128, "sampling": 64}  # molecules a round
FIRST = 32  # the molecules before hold two on which the authors' code takes a minute, which would flatter molgraph
EPOCHS = 8  # of molgraph's, which are shorter
SIZES_AT, AT_SIZE = (10, 20, 30, 40, 50, 60), 32  # heavy atoms, and the molecules nearest to each
CORPORA = ("chembl_sample/chembl.validation.smi.gz", "guacamol_sample/guacamol_10k.smiles")  # with large molecules
PEER_UPTO = 40  # heavy atoms: from there on the authors' code takes over 10 s and 6 GB a molecule
PEER = "authors' code"


class Side(Protocol):
    """The works that are measured, of either code."""

    def prepare(self, smiles: list[str]) -> Any:
        """All that is made once of each molecule before training."""

    def epoch_seconds(self, smiles: list[str], batch: int) -> float:
        """Seconds of an epoch on prepared molecules; the model is kept."""

    def sample(self, n: int) -> list[str]:
        """Molecules from the prior of the model that is kept."""


class Ours:
    """molgraph's ``jtvae``."""

    def prepare(self, smiles: list[str]) -> Any:
        """Trees, their vocabulary, the candidates of every attachment, and the molecules' graphs."""
        return get("generator", "jtvae")(threads=1).read(make_table(smiles), None)

    def epoch_seconds(self, smiles: list[str], batch: int) -> float:
        """The difference that further epochs make, which leaves out all that is done once; after a fit to warm up."""
        _, one, more = (self.fit_seconds(smiles, batch, epochs) for epochs in (1, 1, 1 + EPOCHS))
        return (more - one) / EPOCHS

    def fit_seconds(self, smiles: list[str], batch: int, epochs: int) -> float:
        """``train_generator`` on one thread; its model is kept."""
        start = cpu_seconds()
        self.model = molgraph.train_generator(
            smiles, model="jtvae", params=SIZES, epochs=epochs, batch_size=batch, threads=1
        )
        return cpu_seconds() - start

    def sample(self, n: int) -> list[str]:
        """Texts from the prior of the model file that MOLGRAPH_JTVAE names, or else of what was fitted last."""
        path = os.environ.get("MOLGRAPH_JTVAE")
        return (molgraph.load(path) if path else self.model).method.sample(n)


def sides() -> dict[str, Side]:
    """molgraph, and the authors' code where it is here."""
    return {"molgraph": Ours()} if without_peer() else {"molgraph": Ours(), PEER: Theirs(**SIZES)}


def seconds(both: dict[str, Side], work: Callable[[Side], Any], rounds: int) -> list[float]:
    """Median seconds of a work of each side, in turn."""
    return in_turn([lambda side=side: work(side) for side in both.values()], rounds, cpu_seconds)


def training_seconds(both: dict[str, Side], smiles: list[str], rounds: int, batch: int) -> list[float]:
    """Median seconds of an epoch of each side, in turn."""
    taken = [[side.epoch_seconds(smiles, batch) for side in both.values()] for _ in range(rounds)]
    return [median(each) for each in zip(*taken, strict=True)]


def heavy_atoms(smiles: list[str]) -> float:
    """Mean number of heavy atoms of those that are molecules."""
    found = [mol.GetNumHeavyAtoms() for mol in map(Chem.MolFromSmiles, smiles) if mol]
    return round(float(np.mean(found)), 1) if found else 0.0


def row(work: str, n: int, taken: list[float]) -> dict[str, Any]:
    """One row of the table from the seconds of both."""
    ours, peer = taken
    facts = {"molgraph": n / ours, "peer": n / peer, "ratio": peer / ours, "floor": FLOORS[work]}
    return facts | {"peer_name": PEER, "unit": "molecules/s"}


def rates(both: dict[str, Side], rounds: int) -> dict[str, dict[str, Any]]:
    """Rows of the table on the first molecules of ZINC-250k; none where only molgraph is here."""
    smiles, where = molecules(FIRST + max(N.values()))
    smiles = smiles[FIRST:]
    few, drawn, rows = smiles[: N["training"]], N["sampling"], {}

    def add(work: str, words: str, taken: list[float]) -> None:
        print(f"{work}{words}: " + ", ".join(f"{s} {N[work] / t:.3g}/s" for s, t in zip(both, taken, strict=True)))
        if len(both) > 1:
            rows[f"JT-VAE {work}{words}, {where}"] = row(work, N[work], taken)

    add("preprocessing", "", seconds(both, lambda side: side.prepare(smiles[: N["preprocessing"]]), rounds))
    for batch in BATCHES:
        add("training", f", batches of {batch}", training_seconds(both, few, rounds, batch))
    size = " and ".join(f"{heavy_atoms(side.sample(drawn)):g}" for side in both.values())
    add("sampling", f", molecules of {size} heavy atoms", seconds(both, lambda side: side.sample(drawn), rounds))
    return rows


def of_sizes() -> dict[int, list[str]]:
    """For each of ``SIZES_AT`` the molecules of ``CORPORA`` that are nearest to it; empty where one is missing."""
    paths = [Path(os.environ.get("MOLGRAPH_DATA", ""), name) for name in CORPORA]
    if missing := [path.parent.name for path in paths if not path.exists()]:
        print(f"JT-VAE against molecule size is left out: MOLGRAPH_DATA has no {missing[0]}")
        return {}
    texts: dict[str, int] = {}
    for path in paths:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            for text in file.read().split():
                mol = None if "." in text else Chem.MolFromSmiles(text)
                texts |= {} if mol is None else {text: mol.GetNumHeavyAtoms()}
    return {n: sorted(texts, key=lambda text, n=n: abs(texts[text] - n))[:AT_SIZE] for n in SIZES_AT}


def by_size(both: dict[str, Side], rounds: int) -> list[dict[str, Any]]:
    """Milliseconds a molecule of each side against the number of heavy atoms, medians of the rounds."""
    out = []
    for size, chosen in of_sizes().items():
        here = both if size < PEER_UPTO else {"molgraph": both["molgraph"]}
        works = {
            "preprocessing": seconds(here, lambda side, chosen=chosen: side.prepare(chosen), rounds),
            "training": training_seconds(here, chosen, rounds, min(BATCHES)),
        }
        taken = {
            work: {side: round(1e3 * s / len(chosen), 2) for side, s in zip(here, found, strict=True)}
            for work, found in works.items()
        }
        facts = {"from": "ChEMBL and GuacaMol", "molecules": len(chosen), "batch": min(BATCHES)}
        out.append({"heavy_atoms": heavy_atoms(chosen), **facts, **taken})
        print(out[-1], flush=True)
    return out


def exponent(rows: list[dict[str, Any]], work: str, side: str) -> float:
    """The power of the number of heavy atoms with which time grows: the slope of a line through the logarithms."""
    points = [(row["heavy_atoms"], row[work][side]) for row in rows if side in row[work]]
    atoms, taken = np.log(np.array(points)).T
    return round(float(np.polyfit(atoms, taken, 1)[0]), 2)


def jtvae_rates(rounds: int = 3) -> dict[str, dict[str, Any]]:
    """Rows of the speed table."""
    with one_thread():
        return rates(sides(), rounds)


def jtvae_sizes(rounds: int = 3) -> list[dict[str, Any]]:
    """Milliseconds a molecule against its size."""
    with one_thread():
        return by_size(sides(), rounds)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch, and no words of RDKit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with quiet():
            yield
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    started = time.perf_counter()
    jtvae_rates()
    jtvae_sizes()
    print(f"{time.perf_counter() - started:.0f} s")
