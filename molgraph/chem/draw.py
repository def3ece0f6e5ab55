"""Draw a structure as SVG, with atoms or bonds in colours, or an empty box for a SMILES that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D

from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.smiles import parse_smiles, quiet

WIDTH, HEIGHT = 220, 160
_STYLE = "font-family:system-ui,sans-serif;font-size:13px;fill:#1d2733"
# RDKit's yellow, cyan and light green cannot be read on white
_PALETTE = {9: (0.0, 0.45, 0.3), 16: (0.6, 0.42, 0.0), 17: (0.0, 0.45, 0.1), 15: (0.75, 0.4, 0.0)}
# pale, so that bonds and letters stay readable on them; neighbours in the list differ in hue
GROUP_COLOURS = (
    "#9ecbf0", "#fdc48a", "#a6dba0", "#f4a9a8", "#cbb8e8", "#f3e08a", "#a5dfe0", "#f2b6dc", "#d3c0a9", "#c5cbd3",
)  # fmt: skip
BOND_COLOUR = "#f28e2b"
_LEGEND = 22  # pixels under the structure
_HEADER = re.compile(r"^.*?<svg[^>]*>", re.DOTALL)


def draw_molecule(
    smiles: str,
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    groups: Sequence[int] = (),
    shares: Sequence[float] = (),
    bonds: Mapping[tuple[int, int], float] = MappingProxyType({}),
    atoms: Collection[int] = (),
) -> str:
    """One structure as an SVG element that can stand inside an HTML page.

    Args:
        smiles: the molecule.
        width: of the picture, pixels.
        height: of the picture, pixels.
        groups: the group of each atom, 0 or more, in the order of the SMILES: drawn in a colour for each group, with a
            legend under the structure; empty for a plain drawing.
        shares: how much of each atom is in its group, 0 to 1: its colour is paler where less is; empty for all of it.
        bonds: pair of atoms to a share, 0 to 1: the bond between them is marked, paler where less; without groups.
        atoms: atoms that are marked, with the bonds between them; without groups and bonds.

    Returns:
        An ``<svg>`` element; where the SMILES cannot be read, an empty box that says so.

    Raises:
        ValueError: not one group, or share, for each atom, or no bond between two atoms.

    Example:
        >>> draw_molecule("CCO").startswith("<svg"), "cannot be read" in draw_molecule("C(C")
        (True, True)
        >>> "#fdc48a" in draw_molecule("CCO", groups=[0, 0, 1])
        True
    """
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    marked = tuple((int(a), int(b), float(share)) for (a, b), share in bonds.items())
    room = height - _LEGEND * bool(len(groups))
    asked = smiles, width, room, tuple(map(int, groups)), tuple(map(float, shares)), marked, tuple(map(int, atoms))
    try:
        inner, reason = bounded(_drawn, asked) if is_hard(smiles) else _drawn(asked)
    except TooHardError as error:
        inner, reason = "", f"{error} to draw"
    if not inner:
        message = "cannot be read" if reason else "cannot be drawn"
        return (
            f'{frame} role="img"><title>{escape(message + (": " + reason if reason else ""))}</title>'
            f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="6" fill="none" stroke="#b6bec8" '
            f'stroke-dasharray="5 4"/><text x="{width // 2}" y="{height // 2}" text-anchor="middle" '
            f'style="{_STYLE}">{message}</text></svg>'
        )
    return f'{frame} role="img"><title>{escape(smiles)}</title>{inner}{_legend(groups, width, height)}</svg>'


def group_colour(group: int) -> str:
    """The colour of a group; after ten they come again, which the number in the legend tells apart."""
    return GROUP_COLOURS[group % len(GROUP_COLOURS)]


def _legend(groups: Sequence[int], width: int, height: int) -> str:
    """A square and a number for each group that there is, as many as have room."""
    labels = sorted({*map(int, groups)})
    step = 34
    shown = labels[: max(1, (width - 8) // step)]
    left, y = (width - step * len(shown)) // 2, height - 16
    return "".join(
        f'<rect x="{left + step * i}" y="{y}" width="12" height="12" rx="3" fill="{group_colour(group)}"/>'
        f'<text x="{left + step * i + 16}" y="{y + 10.5}" style="{_STYLE};font-size:12px">{group}</text>'
        for i, group in enumerate(shown)
    )


def _drawn(asked: tuple[Any, ...]) -> tuple[str, str]:
    mol, reason = parse_smiles(asked[0])
    return ("", reason) if mol is None else (_strokes(mol, *asked[1:]), "")


def _strokes(
    mol: Chem.Mol,
    width: int,
    height: int,
    groups: tuple[int, ...],
    shares: tuple[float, ...],
    bonds: tuple[tuple[int, int, float], ...],
    atoms: tuple[int, ...],
) -> str:
    """The drawing of RDKit without its own frame; empty where it cannot draw."""
    drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
    options = drawer.drawOptions()
    options.clearBackground = False
    options.bondLineWidth = 1.4
    options.padding = 0.06
    options.fixedBondLength = 26  # small molecules are not blown up
    options.updateAtomPalette(_PALETTE)
    if atoms:  # one group, as the others have none
        highlights = _highlights(mol, tuple(0 if i in atoms else -1 for i in range(mol.GetNumAtoms())), (), options)
    else:
        highlights = _marked_bonds(mol, bonds, options) or _highlights(mol, groups, shares, options)
    with quiet():
        try:
            rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol, **highlights)
        except (RuntimeError, ValueError):  # a bond order or a ring that it cannot lay out
            return ""
    drawer.FinishDrawing()
    return _HEADER.sub("", drawer.GetDrawingText()).replace("</svg>", "").replace("<!-- END OF HEADER -->", "").strip()


def _highlights(mol: Chem.Mol, groups: tuple[int, ...], shares: tuple[float, ...], options: Any) -> dict[str, Any]:
    """Colours of the atoms that have a group (0 or more), and of the bonds within one."""
    if not groups:
        return {}
    shares = shares or (1.0,) * len(groups)
    for what, values in (("groups", groups), ("shares", shares)):
        if len(values) != mol.GetNumAtoms():
            raise ValueError(f"{len(values)} {what} for {mol.GetNumAtoms()} atoms: give one for each")
    options.highlightBondWidthMultiplier = 16
    options.atomHighlightsAreCircles = True
    options.highlightRadius = 0.34
    rgb = [_faded(group_colour(group), share) for group, share in zip(groups, shares, strict=True)]
    ends = {bond.GetIdx(): (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()}
    within = {
        bond: _faded(group_colour(groups[a]), min(shares[a], shares[b]))
        for bond, (a, b) in ends.items()
        if groups[a] == groups[b] >= 0
    }
    coloured = {atom: rgb[atom] for atom, group in enumerate(groups) if group >= 0}
    return {
        "highlightAtoms": [*coloured],
        "highlightAtomColors": coloured,
        "highlightBonds": [*within],
        "highlightBondColors": within,
    }


def _marked_bonds(mol: Chem.Mol, bonds: tuple[tuple[int, int, float], ...], options: Any) -> dict[str, Any]:
    """Colours of the bonds between pairs of atoms."""
    if not bonds:
        return {}
    options.highlightBondWidthMultiplier = 16
    colours = {}
    for a, b, share in bonds:
        bond = mol.GetBondBetweenAtoms(a, b) if max(a, b) < mol.GetNumAtoms() else None
        if bond is None:
            raise ValueError(f"atoms {a} and {b} have no bond")
        colours[bond.GetIdx()] = _faded(BOND_COLOUR, share, least=0.0)
    return {"highlightAtoms": [], "highlightBonds": [*colours], "highlightBondColors": colours}


def _faded(colour: str, share: float, least: float = 0.2) -> tuple[float, ...]:
    """A colour as red, green and blue, mixed with white where the share is below 1; ``least`` of it stays."""
    rgb = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(1 - (least + (1 - least) * share) * (1 - channel) for channel in rgb)
