"""Draw structures as SVG or PNG, with a labelled empty box for a SMILES that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Literal, overload

from rdkit import Chem
from rdkit.Chem.Draw import rdMolDraw2D

from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.smiles import parse_smiles, quiet

WIDTH, HEIGHT = 220, 160
LINE = 18  # height of a label's line
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


@overload
def draw_molecules(
    smiles: Sequence[str], labels: Sequence[str] | None = ..., *, columns: int = ..., kind: Literal["svg"] = ...
) -> str: ...
@overload
def draw_molecules(
    smiles: Sequence[str], labels: Sequence[str] | None = ..., *, columns: int = ..., kind: Literal["png"]
) -> bytes: ...
def draw_molecules(
    smiles: Sequence[str],
    labels: Sequence[str] | None = None,
    *,
    columns: int = 4,
    kind: Literal["svg", "png"] = "svg",
) -> str | bytes:
    """A grid of structures with a label under each; needs no display.

    Args:
        smiles: n molecules.
        labels: n texts, a line break starts a new line; None for none.
        columns: structures side by side.
        kind: ``svg`` (text) or ``png`` (bytes).

    Raises:
        ValueError: labels and SMILES differ in number, or there are no columns.

    Example:
        >>> draw_molecules(["CCO", "c1ccccc1"], ["ethanol", "benzene"]).count("<title>")
        2
    """
    labels = [""] * len(smiles) if labels is None else [str(label) for label in labels]
    if len(labels) != len(smiles) or columns < 1:
        raise ValueError(f"{len(labels)} labels for {len(smiles)} molecules in {columns} columns")
    if kind == "png":
        return _png(smiles, labels, columns)
    lines = max((label.count("\n") + 1 for label in labels if label), default=0)
    cell = HEIGHT + LINE * lines + 10
    width, height = WIDTH * min(columns, max(len(smiles), 1)), cell * -(-len(smiles) // columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    ]
    for i, (text, label) in enumerate(zip(smiles, labels, strict=True)):
        parts.append(f'<g transform="translate({WIDTH * (i % columns)} {cell * (i // columns)})">')
        parts.append(draw_molecule(text))
        for k, line in enumerate(label.split("\n") if label else []):
            middle, base = WIDTH // 2, HEIGHT + LINE * (k + 1) - 4
            parts.append(f'<text x="{middle}" y="{base}" text-anchor="middle" style="{_STYLE}">{escape(line)}</text>')
        parts.append("</g>")
    return "".join(parts) + "</svg>"


def _style(options: rdMolDraw2D.MolDrawOptions) -> None:
    options.clearBackground = False
    options.bondLineWidth = 1.4
    options.padding = 0.06
    options.fixedBondLength = 26  # small molecules are not blown up
    options.updateAtomPalette(_PALETTE)


def _drawn(asked: tuple[str, int, int]) -> tuple[str, str]:
    mol, reason = parse_smiles(asked[0])
    return ("", reason) if mol is None else (_strokes(mol, *asked[1:]), "")


def _strokes(mol: Chem.Mol, width: int, height: int) -> str:
    """What RDKit draws, without its own frame; empty where it cannot."""
    drawer = rdMolDraw2D.MolDraw2DSVG(width, height)
    _style(drawer.drawOptions())
    with quiet():
        try:
            rdMolDraw2D.PrepareAndDrawMolecule(drawer, mol)
        except (RuntimeError, ValueError):  # a bond order or a ring that it cannot lay out
            return ""
    drawer.FinishDrawing()
    return _HEADER.sub("", drawer.GetDrawingText()).replace("</svg>", "").replace("<!-- END OF HEADER -->", "").strip()


def _png(smiles: Sequence[str], labels: Sequence[str], columns: int) -> bytes:
    mols = [parse_smiles(text).mol for text in smiles]
    said = [label if mol is not None else f"{label} (cannot be read)" for mol, label in zip(mols, labels, strict=True)]
    rows = max(-(-len(mols) // columns), 1)
    drawer = rdMolDraw2D.MolDraw2DCairo(WIDTH * columns, (HEIGHT + LINE) * rows, WIDTH, HEIGHT + LINE)
    _style(drawer.drawOptions())
    drawer.drawOptions().clearBackground = True
    with quiet():
        drawer.DrawMolecules([Chem.Mol() if mol is None else mol for mol in mols], legends=said)
    drawer.FinishDrawing()
    return drawer.GetDrawingText()
