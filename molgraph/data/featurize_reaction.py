"""Featurise mapped reactions as condensed graphs of reaction: both sides in one graph of atoms and bonds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from rdkit.Chem import Mol

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.handedness import centre_tags
from molgraph.chem.parallel import map_texts
from molgraph.chem.reaction import Reaction, is_hard_reaction, parse_reaction
from molgraph.chem.smiles import quiet
from molgraph.data.condense import CondensedGraphs, condense
from molgraph.data.feature_layout import ATOM_BLOCKS, D_ATOM, atom_rows, bond_rows, chiral_tags, with_chiral_tags
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.featurize import rdkit_version
from molgraph.data.featurize_rdkit import pack_molecules
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.packing import PackedGraphs, pack

MODES = tuple(f"{columns}{more}" for columns in ("reac_prod", "reac_diff", "prod_diff") for more in ("", "_balance"))
ELEMENTS = ATOM_BLOCKS[0]  # columns of the element, which stand once: both sides have the same
NOTHING = Reaction(Mol(), Mol(), (), ("", ""))
_VERSION = "reaction.1:"


@register("featuriser", "reaction", summary="a mapped reaction as one graph of both sides (CGR)")
class Reactions(Featuriser):
    """The condensed graph of a reaction, with the levels and index arrays of molecules.

    Heid and Green 2022, J. Chem. Inf. Model. 62:2101, in the layout of chemprop 2: an atom of the graph is one of the
    reactants with its partner, the atom of the products that has the same map number, or one of the products without a
    partner, after those. Two atoms are bonded that are so on either side. With the features ``r`` of the reactants'
    side and ``p`` of the products' (a missing bond has the column ``null``), a row is

    - ``reac_prod``: ``[r, p]``; ``reac_diff``: ``[r, p - r]``; ``prod_diff``: ``[p, p - r]``,

    where the columns of the element stand once, 106 columns an atom and 28 a bond. An atom that stands on one side
    alone has on the other its element and no further feature, and its bonds are absent there; with ``_balance`` it has
    there what it has on its own side, and so have its bonds to others without a partner.

    Atoms that look alike have equal features however the texts are written, as those of ``v2``: the tags of stereo
    centres are chemprop's only where no centre is tetrahedral.

    Args:
        mode: ``reac_prod``, ``reac_diff`` (chemprop's default), ``prod_diff``, or one of them with ``_balance``.

    Raises:
        UnknownNameError: no such mode.

    Example:
        >>> store = Reactions("reac_prod").featurise(["[CH3:1][Br:2]>>[CH3:1][OH:3]", "CBr>>CO"])
        >>> store.levels["atom"].offsets.tolist(), store.spec.widths, store.status.tolist()
        ([0, 3, 3], {'atom': 106, 'bond': 28}, ['ok', 'unreadable'])
    """

    name = "reaction"
    kind: ClassVar[EntityKind] = "reaction"
    examples = (
        "[CH3:1][Br:2].[OH-:3]>>[CH3:1][OH:3].[Br-:2]",
        "[CH3:1][C:2](=[O:3])[OH:4].[NH2:5][CH3:6]>>[CH3:1][C:2](=[O:3])[NH:5][CH3:6].[OH2:4]",
        "[CH2:1]=[CH:2][CH:3]=[CH2:4].[CH2:5]=[CH2:6]>>[CH2:1]1[CH:2]=[CH:3][CH2:4][CH2:5][CH2:6]1",
    )

    def __init__(self, mode: str = "reac_diff") -> None:
        if mode not in MODES:
            raise UnknownNameError(f"no mode of reactions is named {mode!r}", hint=nearest(mode, MODES))
        self.mode, self.version = mode, f"{_VERSION}{mode}"

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """The mode's, and RDKit's."""
        return self.version, rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a reaction; one that cannot be read, or has no mapped atom, is ``unreadable``."""
        reason = np.array([why_no_text(value, self.kind) for value in values], dtype=object)
        texts = ["" if problem else value for value, problem in zip(values, reason, strict=True)]
        balance = self.mode.endswith("_balance")
        read = map_texts(partial(_condensed, balance), texts, label="reactions", workers=workers)
        details = [problem for _, reasons in read for problem in reasons]
        reason = np.array([problem or detail for problem, detail in zip(reason, details, strict=True)], dtype=object)
        batch = CondensedGraphs.joined([graphs for graphs, _ in read])
        atoms, atom_code = np.unique(batch.atom_keys, axis=0, return_inverse=True)
        bonds, bond_code = np.unique(batch.bond_keys, axis=0, return_inverse=True)
        packed = PackedGraphs.from_bonds(batch.n_atoms, atom_code.ravel(), bond_code.ravel(), batch.ends)
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        rows = [lambda codes: self._both(_atom_sides(atoms[codes]), ELEMENTS)]
        rows += [lambda codes: self._both([bond_rows(bonds[codes, side]) for side in (0, 1)], 0)]
        return pack([packed], status, reason, self.version, *rows)

    def _both(self, sides: Sequence[np.ndarray], shared: int) -> np.ndarray:
        """float32 [n, 2 d - shared]: the rows of both sides in the mode's columns, the first ``shared`` once."""
        (before, after), (first, second) = sides, self.mode.split("_")[:2]
        columns = {"reac": before, "prod": after, "diff": after - before}
        return np.concatenate([columns[first], columns[second][:, shared:]], axis=1)


def _condensed(balance: bool, texts: Sequence[str]) -> list[tuple[CondensedGraphs, list[str]]]:
    """The condensed graphs of some texts, one without atoms where there is a reason against it."""
    with quiet():
        parsed = [parse_reaction(text) for text in texts]
        reasons = [reaction if isinstance(reaction, str) else "" for reaction in parsed]
        read = [NOTHING if isinstance(reaction, str) else reaction for reaction in parsed]
        mols = [mol for reaction in read for mol in (reaction.reactants, reaction.products)]
        sides = [side for reaction in read for side in reaction.texts]
        packed = pack_molecules(mols, sides)
        tags, offsets = chiral_tags(packed.atom_key), offsets_of(packed.n_atoms)
        handed = np.flatnonzero((tags == 1) | (tags == 2))  # clockwise and counterclockwise
        for graph in np.unique(np.searchsorted(offsets, handed, side="right") - 1):
            start, end = offsets[graph : graph + 2]
            centres = handed[(handed >= start) & (handed < end)]
            tags[centres] = centre_tags(mols[graph], (centres - start).tolist(), hard=is_hard_reaction(sides[graph]))
    packed = replace(packed, atom_key=with_chiral_tags(packed.atom_key, tags))
    product_of = [np.array(reaction.product_of, dtype=np.int64) for reaction in read]
    return [(condense(packed, product_of, balance=balance), reasons)]


def _atom_sides(keys: np.ndarray) -> list[np.ndarray]:
    """float32 [n, 72] of each side; a key below 0 is an element alone."""
    rows = []
    for side in keys.T:
        features = atom_rows(np.maximum(side, 0))
        features[side < 0] = np.eye(ELEMENTS, D_ATOM, dtype=np.float32)[-1 - side[side < 0]]
        rows.append(features)
    return rows
