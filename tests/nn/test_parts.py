"""Readouts, messages, updates and the perceptron against PyG's layers and plain loops."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import NNConv
from torch_geometric.nn import Set2Set as PygSet2Set

from molgraph.base.errors import BadValueError, MolgraphError, UnknownNameError
from molgraph.base.parts import Part, make_part, read_parts
from molgraph.base.registry import get, names
from molgraph.nn.attention_readouts import Set2Set
from molgraph.nn.messages import EdgeNetwork
from molgraph.nn.perceptron import ACTIVATIONS, Perceptron, make_activation
from molgraph.nn.propagate import propagate
from molgraph.nn.readouts import NormReadout
from molgraph.nn.relation import Relation
from molgraph.nn.updates import GRU
from molgraph.train.optimizers import make_optimizer

GRAPH_OF = torch.tensor([0, 0, 0, 2, 2])
TO_GRAPHS = Relation.from_pairs(torch.arange(5), GRAPH_OF, 5, 3)


def rows_of(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_set2set_is_pygs() -> None:
    peer, own = PygSet2Set(4, processing_steps=4).double(), Set2Set(4, steps=4).double()
    own.lstm.load_state_dict({name.removesuffix("_l0"): w for name, w in peer.lstm.state_dict().items()})
    x = rows_of(5, 4)
    torch.testing.assert_close(own(x, TO_GRAPHS)[0], peer(x, GRAPH_OF, dim_size=3), rtol=0, atol=1e-9)


def test_edge_network_is_pygs_nnconv() -> None:
    own = EdgeNetwork(3, 4, d_hidden=6).double()
    first, last = own.network.layers
    peer = NNConv(4, 4, torch.nn.Sequential(first, torch.nn.ReLU(), last), aggr="add", root_weight=False, bias=False)
    edges = torch.tensor([[0, 1, 2, 3, 1], [1, 0, 1, 2, 4]])
    table, kind = rows_of(2, 3, seed=1), torch.tensor([1, 0, 1, 1, 0])
    x = rows_of(5, 4)
    expected = peer(x, edges, table[kind])
    by_kind = kind.argsort(stable=True)
    said = own.by_kind(x[edges[0]][by_kind], table, kind.bincount().tolist())
    speakers = Relation.from_pairs(torch.arange(5), edges[1][by_kind], 5, 5)
    torch.testing.assert_close(propagate(said, speakers), expected, rtol=0, atol=1e-9)


def test_edge_network_without_edges() -> None:
    assert EdgeNetwork(3, 4).by_kind(torch.zeros(0, 4), torch.zeros(0, 3), ()).shape == (0, 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", lambda h: h.sum(0)),
        ("mean", lambda h: h.mean(0)),
        ("norm", lambda h: h.sum(0) / 100),
    ],
)
def test_plain_readouts(name: str, expected) -> None:
    x = rows_of(5, 4)
    out, _ = get("readout", name)(4)(x, TO_GRAPHS)
    torch.testing.assert_close(out[0], expected(x[:3]))
    torch.testing.assert_close(out[2], expected(x[3:]))
    assert (out[1] == 0).all()  # a graph without rows


def test_readouts_are_known_by_name() -> None:
    assert {"mean", "norm", "set2set", "sum"} <= set(names("readout"))
    with pytest.raises(UnknownNameError, match="set2set"):
        get("readout", "set2sets")
    assert NormReadout(4, norm=2.0)(torch.ones(5, 4), TO_GRAPHS)[0][0].tolist() == [1.5] * 4


def test_set2set_and_gru_have_finite_gradients_for_a_graph_without_rows() -> None:
    readout, update = Set2Set(4), GRU(4, 4)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    readout(update(x, x), TO_GRAPHS)[0].sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in (*readout.parameters(), *update.parameters()))
    assert x.grad is not None and x.grad.isfinite().all()


def test_perceptron_is_its_formula() -> None:
    net, x = Perceptron(3, 5, 2, n_layers=3, activation="silu").double(), rows_of(4, 3)
    h = x
    for i, layer in enumerate(net.layers):
        h = (torch.nn.functional.silu(h) if i else h) @ layer.weight.T + layer.bias
    torch.testing.assert_close(net(x), h)
    assert [tuple(layer.weight.shape) for layer in net.layers] == [(5, 3), (5, 5), (2, 5)]
    assert [tuple(layer.weight.shape) for layer in Perceptron(3, 5, 2, n_layers=1).layers] == [(2, 3)]


def test_perceptron_drops_while_training_only() -> None:
    torch.manual_seed(0)
    net, x = Perceptron(3, 64, 2, dropout=0.5), rows_of(4, 3).float()
    assert not net(x).equal(net(x))
    assert net.eval()(x).equal(net(x))


def test_wrong_words_are_answered() -> None:
    with pytest.raises(ValueError, match="n_layers=0"):
        Perceptron(3, n_layers=0)
    with pytest.raises(ValueError, match="'relu'"):
        make_activation("relo")
    layers = [torch.nn.Linear(1, 1)]
    assert all(make_activation(name, layers)(torch.zeros(1)).isfinite() for name in ACTIVATIONS)
    with pytest.raises(ValueError, match="weights"):
        make_activation("siren")


@pytest.mark.parametrize("kind", ["readout", "norm"])
def test_settings_beside_a_name_are_those_of_the_constructor(kind: Any) -> None:
    """Each of them at its default, and none where there is none."""
    for name in names(kind):
        settings = dict(list(inspect.signature(get(kind, name)).parameters.items())[1:])
        text = ", ".join(f"{key}={each.default!r}" for key, each in settings.items())
        made, plain = make_part(kind, f"{name}({text})", 64), make_part(kind, name, 64)
        assert type(made) is type(plain) is get(kind, name) and str(made) == str(plain)
    assert make_part("readout", "set2set(steps=5)", 8).steps == 5


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("set2set(step=5)", UnknownNameError, "'step'"),
        ("set2set(steps=0)", BadValueError, "steps is 0"),
        ("set2set(steps='5')", BadValueError, "steps is '5'"),
        ("set2set(steps=five)", BadValueError, "steps is 'five'"),
        ("set2st(steps=5)", UnknownNameError, "'set2st'"),
        ("set2set(steps=", BadValueError, "cannot be read"),
        ("set2set(5, steps=5) + mean", BadValueError, "2 parts"),
        ("set2set(5, 6, 7, 8)", BadValueError, "4 values"),
        ("set2set(steps=5, steps=6)", BadValueError, "cannot be read"),
        ("set2set(steps=[5)]", BadValueError, "cannot be read"),
        ("set2set(steps=print())", BadValueError, "steps is 'print()'"),
        ("set2set(**{'steps': 5})", BadValueError, "steps is"),
        ("set2set(" + "(" * 10_000, BadValueError, "cannot be read"),
    ],
)
def test_settings_that_cannot_be_are_refused(text: str, error: type[MolgraphError], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        make_part("readout", text, 8)


@pytest.mark.parametrize(
    ("text", "name", "settings", "values"),
    [
        ("mean", "mean", {}, ()),
        ("a-b( x = 1e-3 , y=[1, 2] )", "a-b", {"x": 1e-3, "y": [1, 2]}, ()),
        ("contrast(views=mask+drop(p=0.1), loss='a,b')", "contrast", {"views": "mask+drop(p=0.1)", "loss": "a,b"}, ()),
        ("walks(8, mode=true, other=None)", "walks", {"mode": True, "other": None}, (8,)),
        ("similarity(CC(=O)O)", "similarity", {}, ("CC(=O)O",)),
        ("cluster/butina(similarity=.5)", "cluster/butina", {"similarity": 0.5}, ()),
    ],
)
def test_one_grammar(text: str, name: str, settings: dict, values: tuple) -> None:
    assert read_parts(text) == [Part(name, settings, values)]
    assert read_parts(f"{text}+{text}") == [Part(name, settings, values)] * 2


def test_optimisers_and_schedules_take_settings() -> None:
    weights = [torch.nn.Parameter(torch.ones(2))]
    made = make_optimizer("sgd(momentum=0.5)", weights, 0.1, 0.0)
    assert (made.defaults["momentum"], made.defaults["lr"]) == (0.5, 0.1)
    with pytest.raises(UnknownNameError, match="momentun"):
        make_optimizer("sgd(momentun=0.5)", weights, 0.1, 0.0)
