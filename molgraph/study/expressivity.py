"""Measure which molecules a graph encoder cannot tell apart, and whether its depth spans their diameters."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated

import numpy as np
import pandas as pd
import torch

from molgraph.base.contracts import Method
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import get, register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.chem.bare_graphs import BareGraphs, bare_graphs
from molgraph.data.batch import collate
from molgraph.data.color_refinement import atom_colors
from molgraph.evaluate.report_diameters import diameters
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.inputs import Input, featuriser_of, own_params
from molgraph.train.method import GraphMethod

SAME = 1e-4  # difference of two molecules' states, as a share of the usual one, below which they are the same
RINGS, CHAINS = ("C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1"), ("CCCC", "CC(C)C")


@register(
    "study",
    "expressivity",
    summary="molecules that an encoder cannot tell apart, and its depth beside their diameters",
    paper="Loukas 2020, ICLR",
    systems=(
        SystemCard(
            "gnn-depth-width-bounds",
            left_out="lower bounds of depth times width for problems on graphs such as colouring",
            beside=("the Weisfeiler-Leman test",),
            modules=("molgraph.chem.bare_graphs", "molgraph.data.color_refinement"),
            command="molgraph study expressivity dataset:esol -m gin -o diameters.csv",
        ),
    ),
    command="molgraph study expressivity dataset:esol -m gin -o diameters.png",
)
class Expressivity(Study):
    """A network of fewer layers than a molecule's diameter has atoms that never hear each other.

    Loukas 2020, "What graph neural networks cannot learn: depth vs width": a message passing network can compute
    whatever can be computed if nodes have identities, its depth reaches the diameter of the graph, and its layers are
    wide enough; without identities it sees no more than the Weisfeiler-Leman test. The study counts the pairs of
    different molecules with equal Weisfeiler-Leman colours (by elements, charges and bond orders), and those of them
    whose states are equal in the network with fresh weights: features of atoms such as rings tell some apart, and
    ``params.positions=canonical`` or ``walks`` the others. Controls: decalin and bicyclopentyl have equal colours,
    butane and isobutane do not.

    Args:
        n: molecules, at most.
    """

    needs = ("data", "graph_model")
    small = {"n": 50}  # noqa: RUF012 # settings of trials

    def __init__(self, *, n: Annotated[int, Range(2, LARGEST)] = 2000) -> None:
        self.n = n

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Colour the molecules, and compare the states of those of one colouring."""
        graphs = bare_graphs(subject.table().smiles, self.n)
        if len(graphs.texts) < 2:
            raise EmptyError("the table has no two different molecules", hint="name a larger table")
        pairs = _equal(colourings(graphs))
        states, depth = _states(subject.make(), graphs.texts, seed)
        same = [pair for pair in pairs if _close(states, pair)]
        texts, spans = graphs.texts, graphs.diameters
        far = None if depth is None else float(np.mean(spans > depth))
        frame = pd.DataFrame(
            [
                ("molecules", len(texts)),
                ("atoms, median", float(np.median(graphs.n_atoms))),
                ("atoms, largest", graphs.n_atoms.max()),
                ("diameter, median", float(np.median(spans))),
                ("diameter, largest", spans.max()),
                ("layers", depth),
                ("layers x width", None if depth is None else depth * states.shape[1]),
                ("share beyond the layers", far),
                ("pairs of equal colours", len(pairs)),
                ("of them equal states", len(same)),
            ],
            columns=["measure", "value"],
        )
        shown = [f"the same to the network: {texts[a]} and {texts[b]}" for a, b in same[:5]]
        rings, chains = (len({*colourings(bare_graphs(pair, 2))}) for pair in (RINGS, CHAINS))
        return Findings(
            f"Expressivity of {subject.model} on {len(texts):,} molecules",
            f"{len(same):,} of {len(pairs):,} pairs of equal Weisfeiler-Leman colours are one molecule to the network"
            + ("." if far is None else f"; {far:.0%} of the molecules have a diameter above its {depth} layers."),
            frame,
            Control("colourings of butane and isobutane", "2", str(chains), chains == 2),
            Control("colourings of decalin and bicyclopentyl", "1", str(rings), rings == 1),
            lambda form: diameters(spans, depth, form),
            (*shown, *([f"and {len(same) - 5:,} more pairs"] if len(same) > 5 else [])),
        )


def colourings(graphs: BareGraphs) -> list[bytes]:
    """The colours of each molecule's atoms when the Weisfeiler-Leman test ends, in ascending order.

    Message passing from the same features gives molecules of one colouring the same states (Xu et al. 2019, "How
    powerful are graph neural networks?", lemma 2).
    """
    rounds = int(graphs.n_atoms.max(initial=0))
    colours = atom_colors(graphs.atom_code, graphs.bond_code, graphs.source, graphs.offsets, rounds)[-1]
    return [np.sort(part).tobytes() for part in np.split(colours, np.cumsum(graphs.n_atoms)[:-1])]


def _equal(colourings: Sequence[object]) -> list[tuple[int, int]]:
    """The pairs of one colouring."""
    members = defaultdict[object, list[int]](list)
    for i, colouring in enumerate(colourings):
        members[colouring].append(i)
    return [pair for group in members.values() for pair in combinations(group, 2)]


def _states(method: Method, texts: list[str], seed: int) -> tuple[np.ndarray, int | None]:
    """Float [molecules, d]: states of the encoder with fresh weights; and its layers, where it has a number of them."""
    if not isinstance(method, GraphMethod) or "molecule" not in get("encoder", method.encoder).reads:
        raise UnsupportedError(f"{method.name} has no encoder of molecules", hint="name a graph model: -m gin")
    store = featuriser_of(method.encoder, "molecule", method.params or {}).featurise(texts)
    torch.manual_seed(derive(seed, "expressivity"))
    network = method.build((Input("molecule", "molecule", method.encoder, store.spec),), d_extra=0, targets=()).eval()
    encoder = network.encoders[0]
    with torch.no_grad():
        pieces = np.array_split(np.arange(len(store)), -(-len(store) // 256))
        states = torch.cat([encoder(collate(store, rows)).graphs for rows in pieces]).numpy()
    settings = {k: v.default for k, v in inspect.signature(get("encoder", method.encoder)).parameters.items()}
    settings |= own_params(method.params or {}, method.encoder, 1)
    return states, next((settings[name] for name in ("depth", "rounds", "n_layers") if name in settings), None)


def _close(states: np.ndarray, pair: tuple[int, int]) -> bool:
    usual = np.abs(states - states.mean(axis=0)).mean()
    return bool(np.abs(states[pair[0]] - states[pair[1]]).max() < SAME * usual)
