"""SchNet with contributions of atoms: its equations by hand, and energies of molecules larger than those it learned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.contracts import Target
from molgraph.data.batch import GraphBatch
from molgraph.data.datasets import load_dataset
from molgraph.data.featurize_geometry import METHANE, WATER, Geometries
from molgraph.models.schnet import SchNet
from molgraph.nn import relations
from molgraph.nn.heads.atomwise import AtomwiseHead
from molgraph.train.method import GraphMethod
from tests.models.test_painn import batch_of, geometry
from tests.systems.effect import Effect
from tests.systems.test_molecule_and_graph_exact import silence

CUTOFF, N_BASIS, D = 3.0, 7, 5


def ssp(x: Tensor) -> Tensor:
    return F.softplus(x) - math.log(2)


def by_hand(own: SchNet, head: AtomwiseHead, batch: GraphBatch) -> Tensor:
    """The paper's energies, pair by pair."""
    at, graph_of = batch["atom"].arrays["position"], batch.graph_of("atom")
    x, centres = own.embed.weight.T[batch["atom"].code], torch.linspace(0, CUTOFF, N_BASIS).double()
    for block in own.blocks:
        first, last = block.filter[0], block.filter[2]
        sums = torch.zeros_like(x)
        for i in range(len(x)):
            for j in range(len(x)):
                d = (at[i] - at[j]).norm()
                if i != j and graph_of[i] == graph_of[j] and d < CUTOFF:
                    g = torch.exp(-((d - centres) / (CUTOFF / (N_BASIS - 1))).square() / 2)
                    filters = ssp(last(ssp(first(g)))) * (torch.cos(math.pi * d / CUTOFF) + 1) / 2
                    sums[i] += (block.send.weight @ x[j]) * filters
        x = x + block.update[2](ssp(block.update[0](sums)))
    one, two = head.layers
    contributions = two(F.silu(one(x)))
    return torch.stack([contributions[graph_of == g].sum(0) for g in range(batch.n_graphs)])


@pytest.mark.system("schnet", rung="exact")
def test_schnet_is_the_papers_equations_with_a_contribution_of_each_atom(off: str) -> None:
    torch.manual_seed(0)
    spec = Geometries().featurise([WATER]).spec
    own = SchNet(spec, d_hidden=D, depth=2, cutoff_angstrom=CUTOFF, n_basis=N_BASIS).double()
    head, batch = AtomwiseHead(D, (Target("energy"),), d_hidden=4).double(), batch_of(geometry(6), METHANE)
    known = by_hand(own, head, batch).detach()
    if off:
        silence(own.blocks[1].filter)
    raw = head(own(batch, rows=True).rows[0].h, members=relations.members(batch))
    torch.testing.assert_close(raw, known, rtol=0, atol=1e-6)


@pytest.mark.data
@pytest.mark.system("schnet", rung="works")
def test_energies_of_larger_molecules_are_those_of_their_atoms(off: str, effect: Effect) -> None:
    """Learned from molecules of up to 6 heavy atoms, tried on those of 7: GDB-7 at PBE0, kcal/mol."""
    table = load_dataset("gdb7_3d").table
    heavy = np.array([int((each.numbers > 1).sum()) for each in table.entities[0].values])
    errors: dict[str, list[float]] = {"contributions": [], "summed states": [], "composition alone": []}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        small, large = (rng.permutation(np.flatnonzero(which)) for which in (heavy < 7, heavy == 7))
        train, valid, test = (table.take(np.sort(rows)) for rows in (small[100:], small[:100], large[:500]))

        def error(head: str, epochs: int = 12, **params: Any) -> float:
            how: dict[str, Any] = {"head_width": 32, "batch_size": 32, "learning_rate": 3e-3, "threads": 1}
            params = {"d_hidden": 32, "n_basis": 25, **params}
            made = GraphMethod("schnet", params, head=head, epochs=epochs, seed=seed, **how).fit(train, valid)  # noqa: B023
            return float(np.abs(made.predict(test).value - test.y).mean())  # noqa: B023

        errors["summed states"].append(error("perceptron"))
        errors["contributions"].append(errors["summed states"][-1] if off else error("atomwise"))
        errors["composition alone"].append(error("atomwise", epochs=4, cutoff_angstrom=0.1))
    ratios = np.divide(errors["contributions"], errors["summed states"])
    effect("error for larger molecules / that of a head on summed states", [*ratios], at_most=0.3, beside=errors)
