"""Build a PyTorch Geometric convolution by its class name, and test it on a small graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnknownNameError, UnsupportedError, nearest

N_TRIAL = 5
TESTED = (  # by the tests; others of the same manner work too
    "CGConv", "EdgeConv", "FeaStConv", "FiLMConv", "GATConv", "GATv2Conv", "GCNConv", "GENConv", "GINConv", "GINEConv",
    "GeneralConv", "GraphConv", "NNConv", "PDNConv", "ResGatedGraphConv", "SAGEConv", "TAGConv", "TransformerConv",
)  # fmt: skip


def find_conv(name: str) -> type[nn.Module]:
    """The class of that name in ``torch_geometric.nn``."""
    import torch_geometric.nn as pyg

    kind = getattr(pyg, name, None) if name.endswith("Conv") else None
    if not inspect.isclass(kind) or not issubclass(kind, nn.Module):
        known = [conv for conv in dir(pyg) if conv.endswith("Conv")]
        raise UnknownNameError(f"PyG has no convolution {name!r}", hint=nearest(name, known))
    return kind


def takes(kind: type[nn.Module]) -> Mapping[str, inspect.Parameter]:
    """The arguments of a convolution's constructor."""
    return inspect.signature(kind.__init__).parameters


def edge_argument(kind: type[nn.Module]) -> str:
    """What a convolution calls features of the bonds; empty where it takes none (a weight a bond is no feature)."""
    asked = inspect.signature(kind.forward).parameters
    reads = kind.__name__ == "NNConv" or {"edge_dim", "dim"} & {*takes(kind)}
    return "edge_attr" if "edge_attr" in asked and reads else ""


def build_conv(kind: type[nn.Module], d_hidden: int, d_bond: int, heads: int, options: Mapping[str, Any]) -> nn.Module:
    """One convolution from d_hidden to d_hidden, tried on a star of five nodes.

    Heads side by side are ``d_hidden`` wide together, and others each; a network that it asks for reads one node or
    the pair of both ends, whichever it runs with.

    Raises:
        UnsupportedError: it cannot be built or run so, with PyG's own words.
        ValueError: heads that do not divide the width.
    """
    if options.get("cached"):
        words = f"{kind.__name__} with cached keeps the edges of its first batch"
        raise UnsupportedError(words, hint="leave cached out")
    heads, network, forms = _forms(kind, heads, options)
    if len(forms) > 1 and forms[0][1] != 1 and d_hidden % heads:
        raise ValueError(f"heads is {heads}, d_hidden {d_hidden}: heads must divide d_hidden")
    unready, nets, reason = torch.empty(0).device.type == "meta", [], ""  # meta: a file is measured before it is loaded

    def make(form: tuple[int, int], d: int) -> nn.Module:
        have: dict[str, Any] = dict.fromkeys(("in_channels", "channels", "hidden_channels"), d)
        have |= {"out_channels": d // form[1], "heads": heads}
        if network:
            read, out = (d_bond, d * d) if kind.__name__ == "NNConv" else (d * form[0], d)
            have["nn"] = nn.Sequential(nn.Linear(read, d), nn.ReLU(), nn.Linear(d, out))
        if edge_argument(kind):
            have |= {"edge_dim": d_bond, "dim": d_bond}
        kwargs = dict(options)
        if isinstance(kwargs.get("deg"), list):  # PNAConv's histogram of degrees, which a recipe writes as a list
            kwargs["deg"] = torch.tensor(kwargs["deg"])
        return kind(**{key: value for key, value in have.items() if key in takes(kind)} | kwargs)

    for form in forms:
        try:
            nets.append(make(form, d_hidden))
            if unready:
                with torch.device("cpu"), torch.random.fork_rng(devices=[]):
                    d = 4 * max(parts for _, parts in forms)
                    shape = _try(make(form, d), d, d_bond)
            else:
                d, shape = d_hidden, _try(nets[-1], d_hidden, d_bond)
            if shape == (N_TRIAL, d):
                return _with_small_batches(nets[-1])
            reason = reason or f"it gives values of shape {shape}, and {(N_TRIAL, d)} was asked for"
        except Exception as error:  # it is somebody else's code, which may raise anything
            reason = reason or f"{type(error).__name__}: {error}".removesuffix(": ")
    if unready and nets:  # options of a certain width; it ran when it was written
        return _with_small_batches(nets[0])
    words = f"{kind.__name__} cannot be used with {sorted(options) or 'its defaults'} ({' '.join(reason.split())})"
    hint = f"these work: {', '.join(TESTED)}; options={{...}} hands a convolution what it asks for"
    raise UnsupportedError(words, hint=hint)


class SmallBatchNorm(nn.BatchNorm1d):
    """Batch norm that takes its running statistics for a batch of fewer than two rows."""

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        if len(x) > 1 or not self.training:
            return super().forward(x)
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


def _with_small_batches(conv: nn.Module) -> nn.Module:
    for module in conv.modules():
        if type(module) is nn.BatchNorm1d and module.track_running_stats:
            module.__class__ = SmallBatchNorm
    return conv


def _forms(kind: type[nn.Module], heads: int, options: Mapping[str, Any]) -> tuple[int, bool, list[tuple[int, int]]]:
    """Heads, whether a network is asked for, and what to try: its input and the parts of an output, in d_hidden."""
    asked, heads = takes(kind), options.get("heads", heads)
    beside = "heads" in asked and options.get("concat", True) is True and isinstance(heads, int) and heads > 0
    network = "nn" in asked and asked["nn"].default is inspect.Parameter.empty
    reads = (1, 2) if network and kind.__name__ != "NNConv" else (1,)
    return heads, network, [*product(reads, (heads, 1) if beside else (1,))]


def _try(conv: nn.Module, d_hidden: int, d_bond: int) -> tuple[int, ...]:
    """The shape of what it gives for a star of five nodes; raises where the order of nodes and edges matters."""
    edges = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 0, 0, 0, 0]])
    kwargs = {name: torch.ones(8, d_bond) for name in filter(None, [edge_argument(type(conv))])}
    rows = torch.arange(N_TRIAL * d_hidden).view(N_TRIAL, d_hidden).sin()
    with torch.no_grad():
        out = conv.eval()(rows, edges, **kwargs)
        backwards = conv(rows.flip(0), N_TRIAL - 1 - edges.roll(1, 1), **kwargs).flip(0)
    conv.train()
    if out.shape == backwards.shape and not torch.allclose(out, backwards, rtol=1e-3, atol=1e-3, equal_nan=True):
        raise ValueError("it reads the order of nodes and edges")
    return tuple(out.shape)
