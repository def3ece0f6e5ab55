"""Draw a structure as SVG, with a labelled empty box for a SMILES that cannot be read."""

from __future__ import annotations

import re
from html import escape

from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D

from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.smiles import parse_smiles, quiet

WIDTH, HEIGHT = 220, 160
_STYLE = "font-family:system-ui,sans-serif;font-size:13px;fill:#1d2733"
# RDKit's yellow, cyan and light green cannot be read on white
_PALETTE = {9: (0.0, 0.45, 0.3), 16: (0.6, 0.42, 0.0), 17: (0.0, 0.45, 0.1), 15: (0.75, 0.4, 0.0)}
_HEADER = re.compile(r"^.*?<svg[^>]*>", re.DOTALL)


def draw_molecule(smiles: str, *, width: int = WIDTH, height: int = HEIGHT) -> str:
    """One structure as an SVG element that can stand inside an HTML page.

    Args:
        smiles: the molecule.
        width: of the picture, pixels.
        height: of the picture, pixels.

    Returns:
        An ``<svg>`` element; where the SMILES cannot be read, an empty box that says so.

    Example:
        >>> draw_molecule("CCO").startswith("<svg"), "cannot be read" in draw_molecule("C(C")
        (True, True)
    """
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    asked = smiles, width, height
    try:
        inner, reason = bounded(_drawn, asked) if is_hard(smiles) else _drawn(asked)
    except TooHardError as error:
        inner, reason = "", f"{error} to draw"
    if not inner:
        said = "cannot be read" if reason else "cannot be drawn"
        return (
            f'{frame} role="img"><title>{escape(said + (": " + reason if reason else ""))}</title>'
            f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="6" fill="none" stroke="#b6bec8" '
            f'stroke-dasharray="5 4"/><text x="{width // 2}" y="{height // 2}" text-anchor="middle" '
            f'style="{_STYLE}">{said}</text></svg>'
        )
    return f'{frame} role="img"><title>{escape(smiles)}</title>{inner}</svg>'


def _drawn(asked: tuple[str, int, int]) -> tuple[str, str]:
    mol, reason = parse_smiles(asked[0])
    return ("", reason) if mol is None else (_strokes(mol, *asked[1:]), "")


def _strokes(mol: Chem.Mol, width: int, height: int) -> str:
    """What RDKit draws, without its own frame; empty where it cannot."""
    drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
    options = drawer.drawOptions()
    options.clearBackground = False
    options.bondLineWidth = 1.4
    options.padding = 0.06
    options.fixedBondLength = 26  # small molecules are not blown up
    options.updateAtomPalette(_PALETTE)
    with quiet():
        try:
            rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol)
        except (RuntimeError, ValueError):  # a bond order or a ring that it cannot lay out
            return ""
    drawer.FinishDrawing()
    return _HEADER.sub("", drawer.GetDrawingText()).replace("</svg>", "").replace("<!-- END OF HEADER -->", "").strip()
