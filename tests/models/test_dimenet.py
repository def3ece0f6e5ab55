"""DimeNet and DimeNet++ against PyG's networks, published files, and geometries on which gradients often fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn.models.dimenet as pyg
from torch import Tensor

from molgraph.base.errors import CannotReadError, FormatError, MissingFileError
from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize_geometry import Geometries
from molgraph.data.graph_values import Geometry
from molgraph.nn import relations
from molgraph.nn.dimenet_checkpoint import load_dimenet
from molgraph.nn.directional import Directional

NETWORKS = ("dimenet", "dimenet_plus_plus")
SIZES: dict[str, dict[str, Any]] = {
    "dimenet": {"hidden_channels": 16, "num_blocks": 2, "num_bilinear": 4},
    "dimenet_plus_plus": {
        "hidden_channels": 16, "num_blocks": 2, "int_emb_size": 8, "basis_emb_size": 4, "out_emb_channels": 24,
    },
}  # fmt: skip


def geometry(n: int, seed: int, nearest: float = 1.0) -> Geometry:
    """Atoms in a ball, none nearer to another than so many angstrom."""
    rng, at = np.random.default_rng(seed), np.zeros((1, 3))
    while len(at) < n:
        new = rng.normal(size=3) * n ** (1 / 3)
        if np.linalg.norm(at - new, axis=1).min() > nearest:
            at = np.vstack([at, new])
    return Geometry(rng.choice([1, 6, 7, 8], n).astype(np.uint8), at.astype(np.float32))


def double(batch: GraphBatch) -> GraphBatch:
    """The batch in double precision."""
    atoms = batch["atom"]
    assert atoms.table is not None
    return batch.with_level("atom", position=atoms.arrays["position"].double(), table=atoms.table.double())


def batch_of(*geometries: Geometry) -> GraphBatch:
    return double(collate(Geometries().featurise(geometries), np.arange(len(geometries))))


def placed(batch: GraphBatch, *positions: Any) -> GraphBatch:
    """The batch with its atoms elsewhere."""
    return batch.with_level("atom", position=torch.tensor(positions, dtype=torch.float64))


def triplets(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, ...]:
    """PyG's function of that name without torch-sparse, for edges that are sorted by target."""
    source, target = edge_index
    degree = torch.bincount(target, minlength=num_nodes)
    n, start = degree[source], (degree.cumsum(0) - degree)[source]
    ji = torch.repeat_interleave(n)
    kj = torch.arange(len(ji)) - (n.cumsum(0) - n)[ji] + start[ji]
    keep = source[kj] != target[ji]
    kj, ji = kj[keep], ji[keep]
    return target, source, target[ji], source[ji], source[kj], kj, ji


def peer_of(name: str, monkeypatch: pytest.MonkeyPatch, **sizes: Any) -> torch.nn.Module:
    """PyG's network with random outputs, without its optional libraries."""
    monkeypatch.setattr(pyg, "triplets", triplets)
    make = {"dimenet": pyg.DimeNet, "dimenet_plus_plus": pyg.DimeNetPlusPlus}[name]
    torch.manual_seed(0)
    given = {"out_channels": 3, "num_spherical": 5, "num_radial": 4, "output_initializer": "glorot_orthogonal"}
    return make(**{**SIZES[name], **given, **sizes})


def of_peer(peer: torch.nn.Module, batch: GraphBatch, monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """What PyG's network makes of a batch: float [graphs, d]."""
    near, atoms = relations.radius(batch, peer.cutoff), batch["atom"]
    monkeypatch.setattr(pyg, "radius_graph", lambda *_, **__: torch.stack([near.source, near.target]))
    with torch.no_grad():
        return peer.double()(atoms.code.long(), atoms.arrays["position"], batch.graph_of("atom"))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_state_dict_of_pyg_gives_pygs_outputs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, peer = batch_of(geometry(9, 0), geometry(1, 1), geometry(14, 2)), peer_of(name, monkeypatch)
    torch.save(peer.state_dict(), tmp_path / "net.pt")
    network = load_dimenet(tmp_path / "net.pt").double()
    assert isinstance(network, get("encoder", name))
    torch.testing.assert_close(network(batch).graphs, of_peer(peer, batch, monkeypatch), rtol=0, atol=1e-5)


TENSORFLOW = {  # the authors' names of some weights
    "rbf.freq": "rbf_layer/frequencies", "emb.emb.weight": "emb_block/embeddings",
    "emb.lin_rbf.weight": "emb_block/dense_rbf/kernel", "emb.lin.bias": "emb_block/dense/bias",
    "output_blocks.1.lins.0.weight": "output_blocks/1/dense_layers/0/kernel",
    "output_blocks.2.lin.weight": "output_blocks/2/dense_final/kernel",
    "interaction_blocks.1.layers_after_skip.1.lin2.bias": "int_blocks/1/layers_after_skip/1/dense_2/bias",
    "interaction_blocks.0.lin.weight": "int_blocks/0/final_before_skip/kernel",
    "interaction_blocks.0.W": "int_blocks/0/bilinear",
    "interaction_blocks.0.lin_sbf1.weight": "int_blocks/0/dense_sbf1/kernel",
    "interaction_blocks.0.lin_down.weight": "int_blocks/0/down_projection/kernel",
}  # fmt: skip


def tensorflow_name(name: str) -> str:
    """The authors' name of a weight of PyG's network."""
    for ours, theirs in (
        ("emb.emb.weight", "emb_block/embeddings"), ("rbf.freq", "rbf_layer/frequencies"), (".W", "/bilinear"),
        ("emb.", "emb_block/"), ("interaction_blocks", "int_blocks"), (".lin_down", "/down_projection"),
        (".lin_up", "/up_projection"), (".lins.", "/dense_layers/"), ("_skip.0.lin", "_skip/0/dense_"),
        ("_skip.1.lin", "_skip/1/dense_"), (".lin_", "/dense_"), ("block/lin_", "block/dense_"),
        ("emb_block/lin.", "emb_block/dense/"), ("weight", "kernel"),
    ):  # fmt: skip
        name = name.replace(ours, theirs)
    last = "dense_final" if "output" in name else "final_before_skip"
    return name.replace(".lin/", f"/{last}/").replace(".lin.", f"/{last}/").replace(".", "/")


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_variables_of_the_authors_code_give_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = peer_of(name, monkeypatch)
    weights = peer.state_dict()
    named = {
        tensorflow_name(key): value.t() if "lin" in key and value.ndim == 2 else value for key, value in weights.items()
    }
    assert {TENSORFLOW[key] for key in weights.keys() & TENSORFLOW.keys()} <= named.keys()
    ends = {f"{key}/.ATTRIBUTES/VARIABLE_VALUE": value.numpy() for key, value in named.items()}
    np.savez(tmp_path / "ckpt.npz", save_counter=np.array(3), **ends)
    torch.save(weights, tmp_path / "net.pt")
    both = [load_dimenet(tmp_path / file).state_dict() for file in ("ckpt.npz", "net.pt")]
    assert all(torch.equal(both[0][key], both[1][key]) for key in both[1])


@pytest.mark.slow
def test_files_of_other_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, weights = tmp_path / "net.pt", peer_of("dimenet_plus_plus", monkeypatch).state_dict()
    with pytest.raises(MissingFileError, match=r"net\.pt"):
        load_dimenet(path)
    path.write_bytes(b"no weights")
    with pytest.raises(CannotReadError, match=r"net\.pt"):
        load_dimenet(path)
    torch.save({"weight": torch.zeros(2)}, path)
    with pytest.raises(FormatError, match="DimeNet"):
        load_dimenet(path)
    torch.save({key: value for key, value in weights.items() if key != "interaction_blocks.1.lin_up.weight"}, path)
    with pytest.raises(FormatError, match=r"blocks\.1\.up\.weight"):
        load_dimenet(path)
    torch.save({**weights, "interaction_blocks.1.lin_up.weight": torch.zeros(3, 4)}, path)
    with pytest.raises(FormatError, match="shape"):
        load_dimenet(path)


def network(name: str, **params: Any) -> Directional:
    torch.manual_seed(0)
    make = get("encoder", name)
    return make(Geometries().featurise([geometry(3, 0)]).spec, **{**make.small, **params}).double()


@pytest.mark.parametrize("name", NETWORKS)
def test_forces_and_their_gradients_are_finite_where_atoms_meet_or_stand_in_a_line(name: str) -> None:
    batch = batch_of(Geometry(np.array([6, 8, 1, 1], np.uint8), np.zeros((4, 3), np.float32)))
    net = network(name)
    line, met = [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [3.5, 0, 0]], [[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 0]]
    for places in (line, met):
        at = torch.tensor(places, dtype=torch.float64).requires_grad_()
        (force,) = torch.autograd.grad(net(batch.with_level("atom", position=at)).graphs.sum(), at, create_graph=True)
        force.square().sum().backward()
        gradients = [at.grad, *(p.grad for p in net.parameters() if p.grad is not None)]
        assert force.isfinite().all() and all(each.isfinite().all() for each in gradients)


@pytest.mark.parametrize("name", NETWORKS)
def test_forces_are_the_gradient(name: str) -> None:
    batch, net = batch_of(geometry(4, 3)), network(name)
    at = batch["atom"].arrays["position"].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda at: net(batch.with_level("atom", position=at)).graphs, at, fast_mode=True)


@pytest.mark.parametrize("name", NETWORKS)
def test_parts_of_a_batch_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, net = batch_of(*(geometry(n, n) for n in (4, 1, 6, 3, 7, 1, 2))), network(name)
    whole, found = net(batch, rows=True), []
    for pairs in (1, 20, 50):
        monkeypatch.setattr(net, "at_once", lambda pairs=pairs: pairs)
        found.append(net(batch, rows=True))
    for each in found:
        torch.testing.assert_close(each.graphs, whole.graphs)
        torch.testing.assert_close(each.rows[0].h, whole.rows[0].h)


def test_the_papers_angle_of_dimenet_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(geometry(5, 3))
    published, paper = (network("dimenet", angle=angle)(batch).graphs for angle in ("published", "paper"))
    assert not torch.allclose(published, paper)
