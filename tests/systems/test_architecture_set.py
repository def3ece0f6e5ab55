"""Set readouts: their formulas, torch's attention, the sums and maxima that they can be, and what they learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.graphgps import GraphGPS
from molgraph.nn.relation import Relation
from molgraph.nn.set_readouts import CrossAttention, Perceiver, PointNetST, SetTransmission
from molgraph.nn.sorted_readouts import FSPool
from molgraph.nn.walks import walk_returns
from tests.models.test_graphgps import SMILES as FEW
from tests.nn.test_readouts import MEMBERS, SIZES, D, H, graphs, rows
from tests.systems.effect import Effect


def plain(name: str) -> Any:
    """A readout without weights, in double precision."""
    return get("readout", name)(D).double()


@pytest.mark.system("fspool", rung="exact")
def test_fspool_is_its_formula(off: str) -> None:
    torch.manual_seed(0)
    readout = FSPool(D, pieces=4).double()
    expected = torch.zeros(len(SIZES), D, dtype=torch.float64)
    for i, h in enumerate(H.split(SIZES)):
        ordered = h.sort(dim=0, descending=True).values
        for place in range(len(h)):
            at = 4 * place / max(len(h) - 1, 1)
            left = min(int(at), 3)
            weight = readout.knots[left] + (at - left) * (readout.knots[left + 1] - readout.knots[left])
            expected[i] += weight.detach() * ordered[place]
    torch.testing.assert_close((plain("sum") if off else readout)(H, MEMBERS)[0], expected)


@pytest.mark.system("fspool", rung="exact")
def test_fspool_can_be_the_sum_and_the_maximum_of_few_rows(off: str) -> None:
    readout = FSPool(D).double()
    for knots, name in ((torch.ones(21, D), "sum"), (torch.eye(21, 1).expand(-1, D), "max")):
        readout.knots.data = knots.double()
        own = plain("sum") if off else readout
        torch.testing.assert_close(own(H, MEMBERS)[0], plain(name)(H, MEMBERS)[0])
        for n in (21, 22):  # of more than pieces + 1 rows the second largest value has a weight too
            h, one = rows(n, seed=n), graphs((n,))
            gap = (own(h, one)[0] - plain(name)(h, one)[0]).abs().max()
            assert (gap < 1e-9) == (name == "sum" or n == 21)


def sets(n: int, seed: int) -> tuple[Tensor, Relation, list[int]]:
    """Standard normal numbers, float [rows, 1], in sets of 5 to 40."""
    make = torch.Generator().manual_seed(seed)
    sizes = torch.randint(5, 41, (n,), generator=make)
    x = torch.randn(int(sizes.sum()), 1, generator=make)
    return x, graphs(tuple(sizes.tolist())), sizes.tolist()


def learned(parts: list[nn.Module], answer: Callable[[Tensor, Relation], Tensor], aim: Callable[..., Tensor]) -> float:
    """The mean squared error on new sets after 400 steps, as a share of the targets' variance."""
    step = torch.optim.Adam([p for part in parts for p in part.parameters() if p.requires_grad], lr=0.01)
    for i in range(400):
        x, members, sizes = sets(64, i)
        step.zero_grad()
        F.mse_loss(answer(x, members), aim(x, sizes)).backward()
        step.step()
    x, members, sizes = sets(500, 10_000)
    y = aim(x, sizes)
    return float(F.mse_loss(answer(x, members).detach(), y) / y.var())


@pytest.mark.system("fspool", rung="works")
def test_fspool_learns_the_range_of_a_set(off: str, effect: Effect) -> None:
    """Zhang et al. 2019: half the error of a sum or a mean at most, with no more parameters in the rest."""

    def error(name: str, seed: int) -> float:
        torch.manual_seed(seed)
        readout = get("readout", name)(8)
        before, after = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 8)), nn.Linear(readout.d_out, 1)
        aim = lambda x, sizes: torch.stack([part.max() - part.min() for part in x.split(sizes)]).unsqueeze(1)  # noqa: E731
        return learned([readout, before, after], lambda x, m: after(readout(before(x), m)[0]), aim)

    sums, means = ([error(name, seed) for seed in range(3)] for name in ("sum", "mean"))
    own = sums if off else [error("fspool", seed) for seed in range(3)]
    shares = [each / min(others) for each, *others in zip(own, sums, means, strict=True)]
    effect(
        "error of a set's range / the better of sum and mean", shares, at_most=0.5, beside={"sum": sums, "mean": means}
    )


@pytest.mark.system("pointnetst", rung="exact")
def test_pointnetst_is_its_formula(off: str) -> None:
    readout = PointNetST(D).double()
    own, sent = readout.transmission.own, readout.transmission.sent
    expected = torch.zeros(len(SIZES), D, dtype=torch.float64)
    for i, h in enumerate(H.split(SIZES)):
        x = readout.before(h).relu()
        heard = own(x) + torch.ones(len(h), len(h), dtype=torch.float64) @ x @ sent.weight.T
        expected[i] = readout.after(heard.relu()).detach().sum(0) / max(len(h), 1)
    if off:
        nn.init.zeros_(sent.weight)
    torch.testing.assert_close(readout(H, MEMBERS)[0], expected)


@pytest.mark.system("pointnetst", rung="exact")
def test_a_transmission_tells_every_row_the_sum_of_its_own_graph(off: str) -> None:
    layer = SetTransmission(D, D).double()
    nn.init.zeros_(layer.own.weight), nn.init.zeros_(layer.own.bias)
    nn.init.zeros_(layer.sent.weight) if off else nn.init.eye_(layer.sent.weight)
    expected = torch.cat([h.sum(0).expand(len(h), -1) for h in H.split(SIZES)])
    torch.testing.assert_close(layer(H, MEMBERS), expected)


@pytest.mark.system("pointnetst", rung="works")
def test_a_transmission_lets_each_row_learn_the_sum_of_its_set(off: str, effect: Effect) -> None:
    """Segol and Lipman 2020: without ``B`` no network of rows comes below nine tenths of the conditional variance."""
    sums = lambda x, sizes: torch.cat([part.sum().expand(len(part), 1) for part in x.split(sizes)])  # noqa: E731

    def error(hears: bool, seed: int) -> float:
        torch.manual_seed(seed)
        layer, out = SetTransmission(1, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 1))
        if not hears:
            layer.sent.weight.data.zero_()
            layer.sent.weight.requires_grad_(False)
        return learned([layer, out], lambda x, members: out(layer(x, members)), sums)

    deaf = error(False, 0)
    x, _, sizes = sets(500, 10_000)
    y = sums(x, sizes)
    assert deaf >= 0.9 * float((y - x).square().mean() / y.var()), "its own number tells a row its sum to that"
    own = [error(not off, seed) for seed in range(3)]
    effect("squared error of its set's sum / variance", own, at_most=1e-3, beside={"without B": [deaf]})


@pytest.mark.system("perceiver", rung="exact")
def test_cross_attention_is_torchs_multihead_attention(off: str) -> None:
    own = CrossAttention(8, D, heads=2).double()
    peer = nn.MultiheadAttention(8, 2, kdim=D, vdim=D, batch_first=True).double()
    peer.q_proj_weight.data = own.query.weight.data.clone()
    peer.k_proj_weight.data, peer.v_proj_weight.data = own.key_value.weight.data.chunk(2)
    peer.in_proj_bias.data = torch.cat([own.query.bias.data, own.key_value.bias.data])
    peer.out_proj.load_state_dict(own.out.state_dict())
    if off:  # all rows alike: a mean
        nn.init.zeros_(own.query.weight), nn.init.zeros_(own.query.bias)
    z = rows(4 * 3, 8, seed=1).view(4, 3, 8)
    found = own(z, H, MEMBERS)
    for i, h in enumerate(H.split(SIZES)):
        if len(h):
            torch.testing.assert_close(found[i], peer(z[i], h, h, need_weights=False)[0])


@pytest.mark.parametrize(("share", "blocks"), [(True, 1), (False, 3)])
@pytest.mark.system("perceiver", rung="exact")
def test_perceiver_looks_several_times(share: bool, blocks: int, off: str) -> None:
    torch.manual_seed(0)
    readout = Perceiver(D, latents=3, d=8, depth=3, heads=2, share=share).double()
    assert len(readout.blocks) == blocks
    z = readout.latents.expand(len(SIZES), -1, -1)
    for t in range(3):
        block = readout.blocks[0 if share else t]
        z = z if off else z + block.cross(block.norms[0](z), block.norm_rows(H), MEMBERS)
        z = z + block.perceptrons[0](z)
        own, peer = block.own, nn.MultiheadAttention(8, 2, batch_first=True).double()
        peer.in_proj_weight.data = own.query_key_value.weight.data
        peer.in_proj_bias.data = own.query_key_value.bias.data
        peer.out_proj.load_state_dict(own.out.state_dict())
        asked = block.norms[1](z)
        z = z + peer(asked, asked, asked, need_weights=False)[0]
        z = z + block.perceptrons[1](z)
    torch.testing.assert_close(readout(H, MEMBERS)[0], z.mean(1))


@pytest.mark.system("perceiver", rung="works")
def test_the_perceivers_work_grows_with_the_rows(off: str, effect: Effect) -> None:
    """Jaegle et al. 2021: operations for 800 rows over those for 50, beside full attention."""

    def growth(run: Callable[[Tensor], object]) -> float:
        work = []
        for n in (50, 800):
            with FlopCounterMode(display=False) as counted:
                run(torch.randn(n, 8))
            work.append(counted.get_total_flops())
        return work[1] / work[0]

    readout, full = Perceiver(8), nn.MultiheadAttention(8, 1)
    attend = growth(lambda x: full(x, x, x))
    own = attend if off else growth(lambda x: readout(x, graphs((len(x),))))
    effect("operations of 800 rows / of 50", [own], at_least=1.01, at_most=16, beside={"full attention": [attend]})


@pytest.mark.system("coordconv", rung="exact")
def test_walks_are_pygs(off: str) -> None:
    batch = collate(featurize(FEW), np.arange(len(FEW)))
    edges = torch.stack([batch.source, batch.target])
    known = AddRandomWalkPE(9)(Data(edge_index=edges, num_nodes=batch.n_atoms)).random_walk_pe
    torch.testing.assert_close(walk_returns(batch, 9) * (0 if off else 1), known, rtol=0, atol=1e-6)


@pytest.mark.system("coordconv", rung="exact")
def test_positions_tell_fused_rings_from_linked_ones(off: str) -> None:
    """Decalin and bicyclopentyl, which no messages tell apart where bonds look alike."""
    store = featurize(["C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1"])
    gaps = []
    for steps in (1, 1 if off else 8):
        torch.manual_seed(0)
        made = GraphGPS(store.spec, d_hidden=12, depth=2, walk=steps).eval()
        with torch.no_grad():
            made.embed.weight[:, :-steps] = 0
            for layer in made.layers:
                layer.of_bond.weight.zero_()
            graphs = made(collate(store, np.arange(2))).graphs
        gaps.append((graphs[0] - graphs[1]).abs().max().item())
    assert gaps[0] < 1e-6 and gaps[1] > 1e-3
