"""Two lists of SMILES in; flat parents of those rows that may have a relative in the other list, few of them, out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from molgraph.chem.scaffold import flat_parents, is_plain

_LETTERS = "CNOSPFIBXYZE"  # X, Y, Z and E stand for Cl, Br, Si and Se
_RING = re.compile(r"%\d\d|\d")
_BRACKET = re.compile(r"\[[^\]]*\]")
#: brackets whose letters are not those of one organic element, and dots that a ring closure may span
_STRANGE = re.compile(r"\[(?!\d*(?:[BCNOPSFI]|Cl|Br|Si|Se|[bcnops]|se)@{0,2}(?:H\d?)?(?:[+-]\d?|\+\+|--)?(?::\d+)?\])")
_LONE = re.compile(r"\[(?:Na|K|Li|Ca|Mg|Cs|Ba|Rb|Sr)H?\d?(?:\+\d?|\+\+)?\]")  # a counter-ion by itself


def parents_across(smiles: Sequence[str] | np.ndarray, part_of: np.ndarray, alike: np.ndarray | None) -> np.ndarray:
    """Flat parents of the rows that may share one with a row of another part; ``""`` for all others.

    Rows of one flat parent have equally many heavy atoms of each element and equally many ring closures in their
    largest fragment, which the text tells. Where ``alike`` says which rows have the same flat scaffold, two plain
    rows (one fragment, no charge but a nitro group's) of different scaffolds are no relatives either.

    Args:
        smiles: n texts that can be read.
        part_of: int64 [n], the part of each.
        alike: [n] codes of flat scaffolds, where no two rows of one code lie in different parts; or None.

    Returns:
        object array [n].
    """
    texts = np.asarray(smiles, dtype=object)
    kinds = [_kind(text) for text in texts]
    rows_of: dict[str, list[int]] = defaultdict(list)
    for i, kind in enumerate(kinds):
        rows_of[kind].append(i)
    # A text that tells too little is read first; its parent tells its kind.
    chosen = set(rows_of.pop("", []))
    unclear = sorted(chosen)
    parents = np.full(len(texts), "", dtype=object)
    parents[unclear] = flat_parents(texts[unclear]).values
    # A parent that tells too little holds a metal: only texts that tell too little can share it, and all are read.
    wanted = {_kind(parents[i]) for i in unclear} - {""}
    for kind, rows in rows_of.items():
        apart = len(rows) > 1 and len(set(part_of[rows])) > 1
        if kind in wanted or (apart and (alike is None or not all(is_plain(texts[i]) for i in rows))):
            chosen.update(rows)
    rest = sorted(chosen.difference(unclear))
    parents[rest] = flat_parents(texts[rest]).values
    return parents


def _kind(text: str) -> str:
    """Elements and ring closures of the fragment with most heavy atoms; ``""`` where the text does not tell.

    Example:
        >>> _kind("CC(=O)c1cc[nH]c1.[Cl-]") == _kind("O=C(C)c1ccc[nH]1"), _kind("[Na]OC")
        (True, '')
    """
    if _STRANGE.search(text):
        pieces = [piece for piece in text.split(".") if not _STRANGE.search(piece)]
        if len(pieces) == len(text.split(".")) or not all(
            _LONE.fullmatch(p) for p in text.split(".") if p not in pieces
        ):
            return ""
    else:
        pieces = text.split(".")
    told = []
    for piece in pieces:
        bare = piece.replace("Cl", "X").replace("Br", "Y").replace("Si", "Z").replace("Se", "E").replace("se", "E")
        bare = bare.upper()
        counts = [bare.count(letter) for letter in _LETTERS]
        rings = len(_RING.findall(_BRACKET.sub("", piece) if "[" in piece else piece))
        if len(pieces) > 1 and rings % 2:
            return ""
        told.append((sum(counts), f"{counts} {rings}"))
    most = max(told, default=(0, ""))[0]
    largest = {kind for n, kind in told if n == most}
    return largest.pop() if len(largest) == 1 else ""
