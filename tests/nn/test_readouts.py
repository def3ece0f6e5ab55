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
from molgraph.nn.set_readouts import Perceiver
from molgraph.nn.sorted_readouts import Sort, first_rows
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


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="got 9"):
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
