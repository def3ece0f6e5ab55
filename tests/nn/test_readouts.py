"""Readouts against PyG's and torch's layers, plain loops and the papers' special cases."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import SortAggregation

from molgraph.base.registry import get, names
from molgraph.nn.attention_readouts import Gated, SelfAttentive
from molgraph.nn.relation import Relation
from molgraph.nn.set_readouts import CrossAttention, Perceiver, PointNetST, SetTransmission
from molgraph.nn.sorted_readouts import FSPool, Sort, first_rows
from tests.nn.largest import Largest

D, SIZES = 6, (13, 0, 1, 5)


def rows(n: int = sum(SIZES), d: int = D, seed: int = 0) -> Tensor:
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def graphs(sizes: tuple[int, ...] = SIZES) -> Relation:
    graph_of = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return Relation.from_pairs(torch.arange(len(graph_of)), graph_of, len(graph_of), len(sizes))


H, MEMBERS = rows(), graphs()


def double(module: nn.Module) -> Any:
    return module.double()


def test_gated_is_its_formula() -> None:
    readout = double(Gated(D))
    expected = [(readout.gate(h).sigmoid() * readout.value(h)).sum(0) for h in H.split(SIZES)]
    torch.testing.assert_close(readout(H, MEMBERS)[0], torch.stack(expected))


def test_self_attentive_is_its_formula() -> None:
    torch.manual_seed(0)
    readout = double(SelfAttentive(D, heads=3, d_hidden=5))
    out, apart = torch.zeros(len(SIZES), 3 * D, dtype=torch.float64), []
    for i, h in enumerate(H.split(SIZES)):
        if len(h):
            a = torch.softmax(readout.w_2.weight @ torch.tanh(readout.w_1.weight @ h.T), dim=1)
            out[i] = (a @ h).flatten()
            apart.append((a @ a.T - torch.eye(3, dtype=torch.float64)).norm() ** 2)
    found, penalties = readout(H, MEMBERS)
    torch.testing.assert_close(found, out)
    torch.testing.assert_close(penalties["attention"], torch.stack(apart).mean())


@pytest.mark.parametrize("k", [10, 31])
def test_sort_is_dgcnns_layers_of_pyg_and_torch(k: int) -> None:
    readout = double(Sort(D, k=k))
    each = nn.Conv1d(1, 16, D, D).double()
    each.weight.data, each.bias.data = readout.each.weight.data.unsqueeze(1), readout.each.bias.data
    peer = nn.Sequential(each, nn.ReLU(), nn.MaxPool1d(2, 2), readout.convolve, nn.ReLU(), nn.Flatten())
    found, _ = readout(H, MEMBERS)
    torch.testing.assert_close(found, peer(SortAggregation(k)(H, MEMBERS.target, dim_size=4).unsqueeze(1)))
    assert found.shape[1] == readout.d_out


def test_sort_breaks_ties_by_the_channels_before() -> None:
    h = torch.tensor([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0], [9.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    assert first_rows(h, graphs((4,)), 3)[0].equal(h[[3, 1, 0]])
    assert first_rows(h[[2, 0, 3, 1]], graphs((4,)), 3)[0].equal(h[[3, 1, 0]])
    assert first_rows(h, graphs((1, 3)), 2).equal(torch.stack([torch.stack([h[0], 0 * h[0]]), h[[3, 1]]]))


def test_fspool_is_its_formula() -> None:
    torch.manual_seed(0)
    readout = double(FSPool(D, pieces=4))
    expected = torch.zeros(len(SIZES), D, dtype=torch.float64)
    for i, h in enumerate(H.split(SIZES)):
        ordered = h.sort(dim=0, descending=True).values
        for place in range(len(h)):
            at = 4 * place / max(len(h) - 1, 1)
            left = min(int(at), 3)
            weight = readout.knots[left] + (at - left) * (readout.knots[left + 1] - readout.knots[left])
            expected[i] += weight.detach() * ordered[place]
    torch.testing.assert_close(readout(H, MEMBERS)[0], expected)


def test_fspool_can_be_the_sum_and_the_maximum_of_few_rows() -> None:
    readout = double(FSPool(D))
    for knots, name in ((torch.ones(21, D), "sum"), (torch.eye(21, 1).expand(-1, D), "max")):
        readout.knots.data = knots.double()
        torch.testing.assert_close(readout(H, MEMBERS)[0], get("readout", name)(D)(H, MEMBERS)[0])
        for n in (21, 22):  # of more than pieces + 1 rows the second largest value has a weight too
            h, one = (
                torch.rand(n, D).double(),
                Relation.from_pairs(torch.arange(n), torch.zeros(n, dtype=torch.long), n, 1),
            )
            gap = (readout(h, one)[0] - get("readout", name)(D)(h, one)[0]).abs().max()
            assert (gap < 1e-9) == (name == "sum" or n == 21)


def test_pointnetst_is_its_formula() -> None:
    readout = double(PointNetST(D))
    own, sent = readout.transmission.own, readout.transmission.sent
    expected = torch.zeros(len(SIZES), D, dtype=torch.float64)
    for i, h in enumerate(H.split(SIZES)):
        x = readout.before(h).relu()
        heard = own(x) + torch.ones(len(h), len(h), dtype=torch.float64) @ x @ sent.weight.T
        expected[i] = readout.after(heard.relu()).sum(0) / max(len(h), 1)
    torch.testing.assert_close(readout(H, MEMBERS)[0], expected)


def test_a_transmission_tells_every_row_the_sum_of_its_own_graph() -> None:
    layer = double(SetTransmission(D, D))
    nn.init.zeros_(layer.own.weight), nn.init.zeros_(layer.own.bias), nn.init.eye_(layer.sent.weight)
    expected = torch.cat([h.sum(0).expand(len(h), -1) for h in H.split(SIZES)])
    torch.testing.assert_close(layer(H, MEMBERS), expected)


def test_cross_attention_is_torchs_multihead_attention() -> None:
    own = double(CrossAttention(8, D, heads=2))
    peer = nn.MultiheadAttention(8, 2, kdim=D, vdim=D, batch_first=True).double()
    peer.q_proj_weight.data = own.query.weight.data
    peer.k_proj_weight.data, peer.v_proj_weight.data = own.key_value.weight.data.chunk(2)
    peer.in_proj_bias.data = torch.cat([own.query.bias.data, own.key_value.bias.data])
    peer.out_proj.load_state_dict(own.out.state_dict())
    z = rows(4 * 3, 8, seed=1).view(4, 3, 8)
    found = own(z, H, MEMBERS)
    for i, h in enumerate(H.split(SIZES)):
        if len(h):
            torch.testing.assert_close(found[i], peer(z[i], h, h, need_weights=False)[0])


@pytest.mark.parametrize(("share", "blocks"), [(True, 1), (False, 3)])
def test_perceiver_looks_several_times(share: bool, blocks: int) -> None:
    torch.manual_seed(0)
    readout = double(Perceiver(D, latents=3, d=8, depth=3, heads=2, share=share))
    assert len(readout.blocks) == blocks
    z = readout.latents.expand(len(SIZES), -1, -1)
    for t in range(3):
        block = readout.blocks[0 if share else t]
        z = z + block.cross(block.norms[0](z), block.norm_rows(H), MEMBERS)
        z = z + block.perceptrons[0](z)
        own, peer = block.own, nn.MultiheadAttention(8, 2, batch_first=True).double()
        peer.in_proj_weight.data, peer.in_proj_bias.data = (
            own.query_key_value.weight.data,
            own.query_key_value.bias.data,
        )
        peer.out_proj.load_state_dict(own.out.state_dict())
        asked = block.norms[1](z)
        z = z + peer(asked, asked, asked, need_weights=False)[0]
        z = z + block.perceptrons[1](z)
    torch.testing.assert_close(readout(H, MEMBERS)[0], z.mean(1))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="k must be 10 or more, got 9"):
        Sort(D, k=9)
    with pytest.raises(ValueError, match="heads 3"):
        Perceiver(D, d=8, heads=3)


def largest(name: str, sizes: tuple[int, ...]) -> int:
    with Largest() as seen:
        h = rows(sum(sizes)).requires_grad_()
        double(get("readout", name)(D))(h, graphs(sizes))[0].sum().backward()
    return seen.most


@pytest.mark.parametrize("name", names("readout"))
def test_memory_grows_as_the_rows_do(name: str) -> None:
    """No rows x graphs and no rows x rows, where there are many graphs, few large ones, or one large among small."""
    for few, many in (((1,) * 200, (1,) * 800), ((200,), (800,)), ((100, *(1,) * 100), (400, *(1,) * 400))):
        assert largest(name, many) <= 4 * max(largest(name, few), 10_000)
