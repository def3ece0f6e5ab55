"""Time DimeNet++ of molgraph and of PyG on molecules of QM9, with the same weights and outputs (needs MOLGRAPH_DATA).

Both sides begin with positions. molgraph's time includes its pairs, triplets and their order, which are made afresh for
every batch; PyG is given the pairs, and triplets by a function of its own signature that needs no torch-sparse.
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric.nn.models.dimenet as pyg
from model_speed import afresh
from timing import cpu_seconds, in_turn
from torch import Tensor, nn

import molgraph.models  # noqa: F401 - registers the encoders
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.datasets import load_dataset
from molgraph.data.featurize_geometry import Geometries
from molgraph.nn import relations
from molgraph.nn.dimenet_checkpoint import load_dimenet

PUBLISHED = {
    "hidden_channels": 128, "out_channels": 1, "num_blocks": 4, "int_emb_size": 64, "basis_emb_size": 8,
    "out_emb_channels": 256, "num_spherical": 7, "num_radial": 6, "output_initializer": "glorot_orthogonal",
}  # fmt: skip
EPOCH = 110_000  # molecules that the papers train on


def triplets(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, ...]:
    """PyG's function of that name without torch-sparse, for edges that are sorted by target."""
    source, target = edge_index
    degree = torch.bincount(target, minlength=num_nodes)
    n, start = degree[source], (degree.cumsum(0) - degree)[source]
    ji = torch.repeat_interleave(n)
    kj = torch.arange(len(ji), device=ji.device) - (n.cumsum(0) - n)[ji] + start[ji]
    keep = source[kj] != target[ji]
    kj, ji = kj[keep], ji[keep]
    return target, source, target[ji], source[ji], source[kj], kj, ji


class Given:
    """A batch as both sides read it."""

    def __init__(self, batch: GraphBatch) -> None:
        self.batch, self.near = batch, relations.radius(batch, 5.0)
        self.edges = torch.stack([self.near.source, self.near.target])
        self.peer = batch["atom"].code.long(), batch["atom"].arrays["position"], batch.graph_of("atom")


def molecules(size: int, batches: int) -> list[Given]:
    """Batches of QM9."""
    table = load_dataset("qm9@geometry").table
    column = next(each for each in table.entities if each.kind == "geometry")
    rows = np.random.default_rng(0).permutation(len(table))[: size * batches]
    store = Geometries().featurise([column.values[i] for i in rows])
    return [Given(collate(store, np.arange(i, i + size))) for i in range(0, size * batches, size)]


def networks() -> tuple[nn.Module, nn.Module]:
    """DimeNet++ at its published sizes on both sides, with the same weights."""
    torch.manual_seed(0)
    peer = pyg.DimeNetPlusPlus(**PUBLISHED)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(peer.state_dict(), Path(folder) / "net.pt")
        return load_dimenet(Path(folder) / "net.pt"), peer


@contextmanager
def in_place_of_pyg(given: Given) -> Iterator[None]:
    """Pairs and triplets of this batch in the place of those that need PyG's optional libraries."""
    kept = pyg.radius_graph, pyg.triplets
    pyg.radius_graph, pyg.triplets = lambda *_, **__: given.edges, triplets
    try:
        yield
    finally:
        pyg.radius_graph, pyg.triplets = kept


def ours(network: nn.Module, given: Given) -> Tensor:
    """float [molecules, 1]."""
    graphs: Tensor = network(afresh(given.batch)).graphs
    return graphs


def theirs(network: nn.Module, given: Given) -> Tensor:
    """float [molecules, 1]."""
    with in_place_of_pyg(given):
        out: Tensor = network(*given.peer)
    return out


Call = Callable[[nn.Module, Given], Tensor]


def training(call: Call, network: nn.Module, batches: list[Given]) -> Callable[[], None]:
    """Forward, mean square and backward over the batches."""

    def run() -> None:
        for given in batches:
            network.zero_grad()
            call(network, given).square().mean().backward()

    return run


def inference(call: Call, network: nn.Module, batches: list[Given]) -> Callable[[], None]:
    """Forward over the batches without gradients."""

    def run() -> None:
        with torch.inference_mode():
            for given in batches:
                call(network, given)

    return run


def _peak(side: int, size: int) -> float:
    """Most memory of a process that trains one step on one side, in GB."""
    given, network = molecules(size, 1)[0], networks()[side]
    training((ours, theirs)[side], network, [given])()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def peaks(size: int) -> list[float]:
    """Most memory of both sides, each in a process of its own, in GB."""
    found = []
    for side in (0, 1):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found.append(round(pool.apply(_peak, (side, size)), 2))
    return found


def dimenet_speed(sizes: tuple[int, ...] = (32, 128), rounds: int = 5) -> dict[str, dict[str, Any]]:
    """Rows of the speed table: molecules a second of both sides, their ratio and the floor asked for.

    Seconds are those of the processor on as many threads as torch has.
    """
    rows: dict[str, dict[str, Any]] = {}
    own, peer = networks()
    for size in sizes:
        batches = molecules(size, max(1, 64 // size))
        n = size * len(batches)
        with torch.no_grad():
            torch.testing.assert_close(ours(own, batches[0]), theirs(peer, batches[0]), rtol=1e-4, atol=1e-4)
        memory = peaks(size)
        for word, make in (("training step", training), ("inference", inference)):
            mine, other = in_turn([make(ours, own, batches), make(theirs, peer, batches)], rounds, cpu_seconds)
            rows[f"DimeNet++ {word}, QM9, batches of {size}"] = {
                "molgraph": n / mine, "peer": n / other, "ratio": other / mine, "floor": 2, "peer_name": "PyG",
                "unit": "molecules/s",
            }  # fmt: skip
            if make is training:
                rows[f"DimeNet++ {word}, QM9, batches of {size}"] |= {
                    "memory_gb": memory, "epoch": EPOCH, "gflops": sum(map(operations, batches)) / mine / 1e9,
                    "gflops_alone": products(),
                }  # fmt: skip
        mine, other = in_turn([lambda b=batches: _ours(b), lambda b=batches: _theirs(b)], 3 * rounds, cpu_seconds)
        rows[f"triplets of pairs, QM9, batches of {size}"] = {
            "molgraph": n / mine, "peer": n / other, "ratio": other / mine, "floor": 3, "peer_name": "PyG's in torch",
            "unit": "molecules/s",
        }  # fmt: skip
    return rows


def _ours(batches: list[Given]) -> None:
    for given in batches:
        relations.triplets(given.near)


def _theirs(batches: list[Given]) -> None:
    for given in batches:
        triplets(given.edges, given.batch.n_atoms)


def products() -> float:
    """Billions of operations a second of this machine's matrix products of the network's size, 2,000 x 128 x 128."""
    x, w = torch.randn(2000, 128), torch.randn(128, 128)
    (seconds,) = in_turn([lambda: [x @ w for _ in range(100)] and None], 5, cpu_seconds)
    return 100 * 2 * 2000 * 128 * 128 / seconds / 1e9


def operations(given: Given) -> float:
    """Operations of the products of one training step on a batch of pairs: forward once, backward twice."""
    pairs, blocks, d = given.edges.shape[1], PUBLISHED["num_blocks"], PUBLISHED["hidden_channels"]
    per_pair = 2 * d * d * (1 + 9 * blocks) + 2 * 2 * d * PUBLISHED["int_emb_size"] * blocks
    return 3.0 * pairs * per_pair
