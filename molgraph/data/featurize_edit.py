"""Turn a molecule and its edit (MOLECULE>>PRODUCT) into a graph of the molecule with features that mark changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.bounded import TooHardError, bounded
from molgraph.chem.pair_edit import ORDERS, read_edit
from molgraph.chem.parallel import map_texts
from molgraph.chem.reaction import is_hard_reaction
from molgraph.chem.smiles import unmapped
from molgraph.data.feature_layout import ATOM_BLOCKS, D_ATOM, D_BOND, atom_rows, bond_rows, with_chiral_tags
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.featurize import rdkit_version
from molgraph.data.featurize_rdkit import pack_molecules
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.packing import PackedGraphs, pack

ELEMENTS = ATOM_BLOCKS[0]
COLUMN = np.full(119, ELEMENTS - 1)  # of an atomic number
COLUMN[[*range(1, 37), 53]] = np.arange(37)
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of atoms [n, d], rows of bonds [b, d], ends of bonds [2, b]
NOTHING: Arrays = (
    np.zeros((0, D_ATOM + ELEMENTS + 1), np.float32), np.zeros((0, D_BOND + len(ORDERS)), np.float32),
    np.zeros((2, 0), np.int64),
)  # fmt: skip


@register(
    "featuriser",
    "edit",
    summary="a molecule and its edit, MOLECULE>>PRODUCT, as the molecule's graph with marks: edit(marked=true)",
    paper="Oh et al. 2017, NeurIPS 30 (Value Prediction Network)",
    systems=(
        SystemCard(
            "vpn",
            left_out="V, which matched pairs do not teach, for they are one step long: rewards are learned, and V of a "
            "molecule is 0 in the plan; transitions are RDKit's, and the discount is a number",
            off="'edit(marked=false)'",
            beside=("the molecule without the edit", "shuffled edits"),
            command="molgraph train edits.csv --reaction 'from>>to' -m gin -s params.featuriser=edit",
            modules=("molgraph.chem.pair_edit", "molgraph.generate.edit_plan"),
        ),
    ),
)
class Edits(Featuriser):
    """The graph of the molecule, with what the edit changes beside the features of its atoms and bonds.

    The options of Oh et al. 2017, "Value Prediction Network": the outcome ``r = f_out(s, o)`` of an option is read from
    the state and the option, and not from the state that it leads to. A table of matched pairs, with a column of
    molecules, one of their products and the change of a value, trains any model of graphs to score edits:
    ``--reaction 'from>>to'``. The edit is the difference of both graphs (``chem.pair_edit``); of the product
    its elements and bonds are known, and neither its aromaticity nor its hydrogens, so that a search can score edits
    without building their products (``generate.edit_plan``).

    An atom has 72 columns of ``v2`` (an added one the element alone), 38 of the element after less that before, and
    one, the change of the sum of its bonds' orders. A bond has 14 columns of ``v2`` (an added one ``null``), and 5 for
    what it becomes: removed, single, double, triple, aromatic; none where it stays.

    Args:
        marked: whether the edit is read; without it this is the molecule alone.

    Example:
        >>> store = Edits().featurise(["Cc1ccccc1>>CCc1ccccc1", "CCO"])
        >>> store.levels["atom"].offsets.tolist(), store.spec.widths, store.status.tolist()
        ([0, 8, 8], {'atom': 111, 'bond': 19}, ['ok', 'unreadable'])
    """

    name = "edit"
    kind: ClassVar[EntityKind] = "reaction"
    examples = ("Cc1ccccc1>>Fc1ccccc1", "CCC(=O)O>>CCC(=O)N", "CCCCC>>C1CCCC1", "CC=CC>>CCCC")

    def __init__(self, marked: bool = True) -> None:
        self.marked, self.version = marked, f"edit.1:{'marked' if marked else 'molecule'}"

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """What is read, and RDKit's."""
        return self.version, rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph an edit; a text that cannot be read, or two molecules with nothing in common, is ``unreadable``."""
        reason = np.array([why_no_text(value, self.kind) for value in values], dtype=object)
        texts = ["" if problem else value for value, problem in zip(values, reason, strict=True)]
        edits = map_texts(_read, texts, label="edits", workers=workers)
        reason = np.array([problem or item[1] for problem, item in zip(reason, edits, strict=True)], dtype=object)
        graphs = [NOTHING if problem else item[0] for problem, item in zip(reason, edits, strict=True)]
        if not self.marked:
            graphs = [without_marks(*item) for item in graphs]
        atoms, bonds = (np.concatenate([NOTHING[i], *(item[i] for item in graphs)]) for i in (0, 1))
        n_atoms = np.array([len(item[0]) for item in graphs], dtype=np.int64)
        first = offsets_of(n_atoms)
        ends = np.concatenate([NOTHING[2], *(item[2] + at for item, at in zip(graphs, first, strict=False))], axis=1)
        (atom_table, atom_code), (bond_table, bond_code) = (
            np.unique(rows, axis=0, return_inverse=True) for rows in (atoms, bonds)
        )
        packed = PackedGraphs.from_bonds(n_atoms, atom_code.ravel(), bond_code.ravel(), ends)
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        return pack([packed], status, reason, self.version, atom_table.__getitem__, bond_table.__getitem__)


def _read(texts: Sequence[str]) -> list[tuple[Arrays, str]]:
    """The marked graph of each text, or the reason why there is none."""
    out: list[tuple[Arrays, str]] = []
    for text in texts:
        try:
            result = bounded(marked_graph, text) if is_hard_reaction(text) else marked_graph(text)
        except TooHardError as error:
            result = f"{error} to read"
        out.append((NOTHING, result) if isinstance(result, str) else (result, ""))
    return out


def marked_graph(text: str) -> Arrays | str:
    """The rows of atoms and bonds of ``MOLECULE>>PRODUCT``, or the reason why it has none."""
    edit = read_edit(text)
    if isinstance(edit, str):
        return edit
    (mol, elements, orders, changed), side = edit, text.partition(">")[0]
    graph = pack_molecules([unmapped(mol)], [side])
    n, m = len(graph.atom_key), len(elements)
    once = graph.source < graph.target
    ends = np.stack([graph.source[once], graph.target[once]]).astype(np.int64)
    place = {(a, b): i for i, (a, b) in enumerate(ends.T.tolist())}
    added = [pair for pair in changed if pair not in place]
    place |= {pair: len(place) + i for i, pair in enumerate(added)}
    atoms, bonds = (np.zeros((k, part.shape[1]), np.float32) for k, part in zip((m, len(place)), NOTHING, strict=False))
    atoms[:n, :D_ATOM] = atom_rows(with_chiral_tags(graph.atom_key, np.zeros(n, np.int64)))  # tags need all neighbours
    after = np.array(elements)
    atoms[np.arange(n, m), COLUMN[after[n:]]] = 1
    atoms[:n, D_ATOM : D_ATOM + ELEMENTS] -= atoms[:n, :ELEMENTS]
    stays = np.flatnonzero(after >= 0)
    atoms[stays, D_ATOM + COLUMN[after[stays]]] += 1
    atoms[:, -1] = np.clip(orders, -4, 4)
    bonds[: len(once.nonzero()[0]), :D_BOND] = bond_rows(graph.bond_key[once])
    bonds[len(place) - len(added) :, 0] = 1
    for pair, order in changed.items():
        bonds[place[pair], D_BOND + order] = 1
    return atoms, bonds, np.concatenate([ends, np.array(added, np.int64).reshape(-1, 2).T], axis=1)


def without_marks(atoms: np.ndarray, bonds: np.ndarray, ends: np.ndarray) -> Arrays:
    """The molecule alone: its own atoms, which have hydrogens and a hybridisation, and its own bonds."""
    n, mask = int((atoms[:, ELEMENTS:D_ATOM] != 0).any(axis=1).sum()), bonds[:, 0] == 0
    atoms, bonds = atoms[:n].copy(), bonds[mask].copy()
    atoms[:, D_ATOM:], bonds[:, D_BOND:] = 0, 0
    return atoms, bonds, ends[:, mask]
