"""Measure molgraph on one GPU beside chemprop and PyG in eight minutes; write results.json and docs/gpu.md.

python pipelines/gpu/run.py            # on the card; each part is written when it is done, the next while time is left
python pipelines/gpu/run.py --small    # on any machine, small: whether the script runs
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "speed"), str(HERE.parent.parent)]

import dimenet_speed  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import pretraining_speed  # noqa: E402
import torch  # noqa: E402
from gpu_page import page  # noqa: E402
from model_speed import Ours, afresh, make_case  # noqa: E402
from predict_speed import molecules  # noqa: E402
from timing import in_turn  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import molgraph  # noqa: E402
from molgraph.base.errors import MolgraphError  # noqa: E402
from molgraph.base.paths import atomic_write  # noqa: E402
from molgraph.data.batch import GraphBatch, collate  # noqa: E402
from molgraph.data.feature_layout import MOLECULE_SPEC  # noqa: E402
from molgraph.data.featurize import featurize  # noqa: E402
from molgraph.data.loader import make_ahead  # noqa: E402

RESULTS, SECONDS = HERE / "results.json", 480.0
Row = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    device: str
    batches: tuple[int, ...] = (64, 1_024)
    n: int = 8_192
    qm9: tuple[int, ...] = (128,)
    pretraining: int = 2_048
    pretraining_batch: int = 512
    predicted: int = 100_000
    rounds: int = 5
    square: int = 8_192

    def clock(self) -> float:
        """Seconds, when the card has done what it was asked."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def in_turn(self, *works: Callable[[], None]) -> list[float]:
        """Median seconds of each."""
        return in_turn([*works], self.rounds, self.clock)


def passes(model: nn.Module, batches: Callable[[], Iterator[Any]], s: Sizes, *, low: bool, train: bool) -> Any:
    """A function that runs once over the batches: with gradients and Adam, or without."""
    model.train(train)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=s.device == "cuda")

    def run() -> None:
        for batch in batches():
            with torch.set_grad_enabled(train), torch.autocast(s.device, torch.bfloat16, enabled=low):
                out = model(batch)
            if train:
                optimiser.zero_grad()
                out.float().square().mean().backward()
                optimiser.step()

    return run


def both(s: Sizes) -> tuple[Ours, nn.Module]:
    """D-MPNN of molgraph and of chemprop on the card, at chemprop's sizes."""
    from chemprop.models import MPNN
    from chemprop.nn import BondMessagePassing, NormAggregation, RegressionFFN

    peer = MPNN(BondMessagePassing(), NormAggregation(), RegressionFFN(), batch_norm=False)
    return Ours(MOLECULE_SPEC).to(s.device), peer.to(s.device)


def dmpnn(s: Sizes) -> Iterator[tuple[str, Row]]:
    """Training steps and inference on batches that lie on the card."""
    smiles = molecules(s.n)[0]
    for size in s.batches:
        case, (ours, theirs) = make_case(smiles, size, s.n), both(s)
        mine = [_prepared(ours, batch).to(s.device) for batch in case.ours]
        for batch in case.theirs:
            batch.to(s.device)
        for train, low in ((True, False), (True, True), (False, False), (False, True)):
            how = {"low": low, "train": train}
            sides = (
                passes(ours, lambda b=mine: iter(b), s, **how),
                passes(theirs, lambda b=case.theirs: iter(b), s, **how),
            )
            word, kind = "training step" if train else "inference", "bfloat16" if low else "float32"
            yield f"D-MPNN {word}, {kind}, batches of {size} on the card", _row(case.n, *s.in_turn(*sides), "chemprop")


def loading(s: Sizes) -> Iterator[tuple[str, Row]]:
    """Training steps with their batches made meanwhile, of graphs that are ready on both sides."""
    from chemprop.data import MoleculeDatapoint, MoleculeDataset, build_dataloader

    smiles, size = molecules(s.n)[0], max(s.batches)
    store, (ours, theirs) = featurize(smiles), both(s)
    pieces = [np.arange(i, i + size) for i in range(0, len(smiles) - size + 1, size)]
    data = MoleculeDataset([MoleculeDatapoint.from_smi(text, y=np.zeros(1)) for text in smiles])
    data.cache = True

    def mine() -> Iterator[GraphBatch]:
        for batch in make_ahead(pieces, lambda rows: _prepared(ours, collate(store, rows))):
            yield batch.to(s.device, non_blocking=True)

    def other() -> Iterator[Any]:
        for batch in build_dataloader(data, batch_size=size, num_workers=0):
            batch.bmg.to(s.device)
            yield batch.bmg

    sides = [passes(net, make, s, low=True, train=True) for net, make in ((ours, mine), (theirs, other))]
    name = f"D-MPNN training step, bfloat16, batches of {size} made meanwhile"
    yield name, _row(size * len(pieces), *s.in_turn(*sides), "chemprop")


def dimenet(s: Sizes) -> Iterator[tuple[str, Row]]:
    """DimeNet++ on molecules of QM9, with the same weights on both sides."""
    own, peer = (net.to(s.device) for net in dimenet_speed.networks())
    for size in s.qm9:
        batches = [dimenet_speed.Given(each.batch.to(s.device)) for each in dimenet_speed.molecules(size, 2)]
        for word, make in (("training step", dimenet_speed.training), ("inference", dimenet_speed.inference)):
            sides = make(dimenet_speed.ours, own, batches), make(dimenet_speed.theirs, peer, batches)
            yield f"DimeNet++ {word}, float32, QM9, batches of {size}", _row(2 * size, *s.in_turn(*sides), "PyG")


def pretraining(s: Sizes) -> Iterator[tuple[str, Row]]:
    """Steps of the encoder that ships, and the share of the card's products that they reach."""
    x = torch.randn(s.square, s.square, device=s.device)
    (seconds,) = s.in_turn(lambda: [x @ x for _ in range(5)] and None)
    peak = 5 * 2 * s.square**3 / seconds
    encoder, objective, params, _ = pretraining_speed.CASES["dmpnn by descriptors"]
    how = (encoder, objective, params, s.pretraining)
    run, _ = pretraining_speed.step_of(*how, size=s.pretraining_batch, device=s.device)
    with FlopCounterMode(display=False) as counted:
        run()
    (took,) = s.in_turn(run)
    share = counted.get_total_flops() / took / peak
    name = f"pretraining step, dmpnn by descriptors, float32, batches of {s.pretraining_batch} made meanwhile"
    about = f"{peak / 1e12:.3g} TFLOP/s of products of {s.square:,} x {s.square:,}"
    yield name, {"molgraph": s.pretraining / took, "peer": None, "peer_name": about, "share": share}


def predict(s: Sizes) -> Iterator[tuple[str, Row]]:
    """`predict` of a csv file into a csv file, with and without intervals and domain."""
    model = molgraph.train("builtin:chembl2321810", model="dmpnn", epochs=1, baseline=False).model
    with tempfile.TemporaryDirectory() as folder:
        data, file = Path(folder) / "in.csv", model.save(Path(folder) / "m.mgm")
        pd.DataFrame({"smiles": molecules(s.predicted)[0]}).to_csv(data, index=False)
        for plain in (True, False):
            out = Path(folder) / f"{plain}.csv"
            done = molgraph.predict_file(file, data, out, plain=plain, running={"device": s.device})
            name = f"`predict` of {s.predicted:,} molecules, CSV to CSV{', `--plain`' if plain else ''}"
            yield name, {"molgraph": done.rows / done.seconds, "peer": None, "peer_name": ""}


def compiled(s: Sizes) -> Iterator[tuple[str, Row]]:
    """`torch.compile` of the D-MPNN beside itself as it is."""
    size = max(s.batches)
    case, (ours, _) = make_case(molecules(2 * size)[0], size, 2 * size), both(s)
    batches = [_prepared(ours, batch).to(s.device) for batch in case.ours]
    fast = torch.compile(ours, dynamic=True)
    for train in (True, False):
        sides = [passes(net, lambda: iter(batches), s, low=True, train=train) for net in (fast, ours)]
        word = "training step" if train else "inference"
        name = f"D-MPNN {word}, bfloat16, batches of {size} on the card, `torch.compile`"
        yield name, _row(case.n, *s.in_turn(*sides), "molgraph without it")


PARTS = (dmpnn, loading, dimenet, pretraining, predict, compiled)


def _prepared(model: Ours, batch: GraphBatch) -> GraphBatch:
    fresh = afresh(batch)
    model.encoder.prepare(fresh)
    return fresh


def _row(n: int, mine: float, other: float, peer: str) -> Row:
    return {"molgraph": n / mine, "peer": n / other, "peer_name": peer}


def main() -> None:
    """Measure part by part while time is left, and write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    if not card and not small:
        sys.exit("no GPU is here: --small tries the script on the CPU")
    tiny = {"batches": (16,), "n": 64, "qm9": (4,), "pretraining": 32, "pretraining_batch": 16, "predicted": 64}
    s = Sizes("cuda" if card else "cpu", **({**tiny, "rounds": 1, "square": 256} if small else {}))
    rows, begun = {}, time.perf_counter()
    for part in PARTS:
        if time.perf_counter() - begun > SECONDS * 0.75:
            rows[f"{part.__name__}: no time was left"] = {"molgraph": None, "peer": None, "peer_name": ""}
            continue
        try:
            rows.update(part(s))
        except (MolgraphError, RuntimeError, ImportError) as error:  # the other parts are measured
            rows[f"{part.__name__}: {' '.join(str(error).split())[:120]}"] = {
                "molgraph": None,
                "peer": None,
                "peer_name": "",
            }
        print(f"{part.__name__}: {time.perf_counter() - begun:.0f} s", flush=True)
        kept = {"card": card, "small": small, "torch": torch.__version__, "rows": rows}
        before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        if (card and not small) or not before.get("card"):  # a trial replaces no figures of a card
            for file, text in (
                (RESULTS, json.dumps(kept, indent=1) + "\n"),
                (HERE.parents[1] / "docs/gpu.md", page(kept)),
            ):
                with atomic_write(file, "w") as out:
                    out.write(text)


if __name__ == "__main__":
    main()
