"""Time pretraining steps against their matrix products alone, and a fine-tuning step of GROVER against DeepChem's.

The peer of a pretraining step is every matrix product of that step (forward and backward) done again on matrices of the
same shapes, one after the other, and nothing else: the rate that no implementation on this machine comes above.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from timing import cpu_seconds, in_turn
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import molgraph.models  # noqa: F401 - registers the encoders
from molgraph.base.registry import get
from molgraph.base.table import Target
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.nn.heads.agreement import AgreementHead
from molgraph.train.descriptor_labels import DescriptorLabels
from molgraph.train.network import build_network
from molgraph.train.objective import StepState, make_objective, what_is_read, with_parts
from molgraph.train.optimizers import make_optimizer
from molgraph.train.outputs import Outputs
from molgraph.train.preparation import prepare
from molgraph.train.samples import Sample, Samples

MOLECULES, SIZE, ROUNDS, HOPS = 1_024, 128, 5, 6
READOUT = 'concat(parts="norm(norm=10)+max+mean")'  # of the encoder that ships
CASES: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "dmpnn by descriptors": ("dmpnn", "descriptors", {"readout": READOUT}, MOLECULES),
    "grover (small) by its objective": ("grover", "grover", {"size": "small"}, 128),
}
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")


class Recorder(TorchDispatchMode):
    """Keep the matrix products that run, with their shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, list[torch.Size]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in PRODUCTS:
            shapes = [each.shape for each in args if isinstance(each, Tensor)][-2:]
            self.calls.append((torch.mm if len(shapes[0]) == 2 else torch.bmm, shapes))
        return func(*args, **(kwargs or {}))


def replay(calls: list[tuple[Any, list[torch.Size]]]) -> Callable[[], None]:
    """The same products on random matrices, which are made once for each shape."""
    made: dict[torch.Size, Tensor] = {shape: torch.randn(shape) for _, shapes in calls for shape in shapes}

    def run() -> None:
        with torch.no_grad():
            for product, shapes in calls:
                product(*(made[shape] for shape in shapes))

    return run


def table() -> Table:
    """Molecules that can be read."""
    found = read_table("builtin:nci")
    return found.take(np.flatnonzero(found.ok)[:MOLECULES])


def step_of(
    encoder: str, objective: str, params: dict[str, Any], n: int, size: int = SIZE, device: str = "cpu"
) -> tuple[Callable[[], None], Samples]:
    """A pass over n molecules with an objective: batches made, forward, backward, Adam; labels are made before."""
    given = dict(params)
    reads = what_is_read(objective, given, views=None, descriptors="none")
    made = prepare(table().take(np.arange(n)), None, encoder, None, None, {"objective": objective}, None, 1, **reads)
    torch.manual_seed(0)
    network = with_parts(build_network(made.inputs, params, joiner="concat", d_extra=0), objective, given)
    network.measure(made.train.stores)
    learns = make_objective(objective, given, network, made.inputs, Outputs((), np.zeros(0), np.ones(0)))
    network.to(device), learns.to(device)
    optimiser = make_optimizer("adamw", [*network.parameters(), *learns.parameters()], 1e-4, 0.0)
    network.train(), learns.train()

    def run() -> None:
        for first in range(0, n, size):
            sample: Sample = made.train.sample(np.arange(first, min(first + size, n)))
            network.prepare(sample)
            sample = sample.to(torch.device(device))
            optimiser.zero_grad()
            loss = learns(network, sample, StepState(0, 1, 0))
            (loss.total / loss.count).backward()
            optimiser.step()

    return run, made.train


def against_products(name: str) -> dict[str, Any]:
    """A row: molecules a second of a step, and of its matrix products."""
    *how, n = CASES[name]
    run, _ = step_of(*how, n)
    torch.manual_seed(1)
    run()
    with Recorder() as seen:
        run()
    ours, alone = in_turn([run, replay(seen.calls)], ROUNDS, cpu_seconds)
    return {
        "molgraph": n / ours, "peer": n / alone, "ratio": alone / ours, "floor": 0.5, "unit": "molecules/s",
        "peer_name": "its matrix products alone",
    }  # fmt: skip


def label_making() -> dict[str, dict[str, Any]]:
    """Rows: labels of descriptors read back from where they are kept, and made by RDKit, beside the step of dmpnn."""
    *how, n = CASES["dmpnn by descriptors"]
    run, samples = step_of(*how, n)
    texts, maker = [str(text) for text in table().smiles], DescriptorLabels(1024)
    maker.fit(texts, 1)
    kept = samples.y

    def read() -> None:
        assert kept is not None
        for first in range(0, n, SIZE):
            torch.from_numpy(kept[np.arange(first, min(first + SIZE, n))]).float()

    step, reading, making = in_turn([run, read, lambda: maker.make(texts, 1)], ROUNDS, cpu_seconds)
    peer = {"peer": n / step, "floor": 10, "unit": "molecules/s", "peer_name": "the step"}
    return {
        f"labels of descriptors {name}, beside a pretraining step of dmpnn": {
            "molgraph": n / seconds, "ratio": step / seconds, **peer
        }
        for name, seconds in (("read back", reading), ("made once by RDKit", making))
    }  # fmt: skip


def peer_batches(smiles: list[str], y: np.ndarray, folder: Path) -> tuple[Any, Any]:
    """DeepChem's model at the size ``small``, and its data, featurised before.

    Its fine-tuning model takes no depth and would pass no message at all; it is given that of six hops, as ours has.
    """
    import deepchem as dc
    import deepchem.models.torch_models.grover as peer
    from deepchem.feat.vocabulary_builders import GroverAtomVocabularyBuilder, GroverBondVocabularyBuilder

    peer.GroverEmbedding = partial(peer.GroverEmbedding, depth=HOPS + 1)
    pd.DataFrame({"smiles": smiles, "y": y}).to_csv(folder / "rows.csv", index=False)
    plain = dc.data.CSVLoader(["y"], featurizer=dc.feat.DummyFeaturizer(), feature_field=["smiles"])
    rows = plain.create_dataset(str(folder / "rows.csv"))
    atoms, bonds = GroverAtomVocabularyBuilder(), GroverBondVocabularyBuilder()
    atoms.build(rows), bonds.build(rows)
    maker = dc.feat.GroverFeaturizer(features_generator=dc.feat.CircularFingerprint())
    graphs = dc.data.CSVLoader(["y"], featurizer=maker, feature_field="smiles").create_dataset(str(folder / "rows.csv"))
    sizes: dict[str, Any] = {"node_fdim": 151, "edge_fdim": 165, "features_dim": 2048, "hidden_size": 256}
    model = peer.GroverModel(
        **sizes, atom_vocab=atoms, bond_vocab=bonds, mode="regression", task="finetuning", self_attention=True,
        num_attn_heads=4, batch_size=32, model_dir=str(folder / "model"),
    )  # fmt: skip
    return model, graphs


def fine_tuning(n: int = 64, size: int = 32) -> dict[str, Any]:
    """A row: an epoch of n molecules by both libraries, featurised before."""
    rows = table().take(np.arange(n))
    smiles, y = [str(text) for text in rows.smiles], np.random.default_rng(0).normal(size=n)
    with tempfile.TemporaryDirectory() as folder:
        model, graphs = peer_batches(smiles, y, Path(folder))
        run = ours(rows, y, size)
        mine, other = in_turn([run, lambda: model.fit(graphs, nb_epoch=1, checkpoint_interval=0)], ROUNDS, cpu_seconds)
    return {
        "molgraph": n / mine, "peer": n / other, "ratio": other / mine, "floor": 3, "unit": "molecules/s",
        "peer_name": "DeepChem's GroverModel",
    }  # fmt: skip


def ours(rows: Table, y: np.ndarray, size: int) -> Callable[[], None]:
    """An epoch of fine-tuning ``grover`` of width 256 with its two-branch head."""
    made = prepare(rows, None, "grover", None, None, {}, targets=False)
    torch.manual_seed(0)
    encoder = get("encoder", "grover")(made.inputs[0].spec, size="small", hops=HOPS)
    head = AgreementHead(encoder.d_out, [Target("y")])
    whole = nn.ModuleList([encoder, head]).train()
    optimiser, labels = torch.optim.Adam(whole.parameters(), lr=1e-4), torch.from_numpy(y).float()[:, None]

    def run() -> None:
        for first in range(0, len(y), size):
            part = np.arange(first, min(first + size, len(y)))
            batch = made.train.sample(part).parts[0].batch
            encoder.prepare(batch)
            optimiser.zero_grad()
            head.losses(head(encoder(batch).graphs), labels[part]).mean().backward()
            optimiser.step()

    return run


def pretraining_speed() -> dict[str, dict[str, Any]]:
    """Rows of the speed table."""
    rows = {f"pretraining step, {name}": against_products(name) for name in CASES}
    rows |= label_making()
    return rows | {"fine-tuning step of GROVER, width 256, batches of 32": fine_tuning()}
