"""Structures as SVG and PNG: well-formed, one a molecule, inert whatever the text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from molgraph.chem.draw import draw_molecule, draw_molecules

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('1')</script>&\"]]>"


@pytest.mark.parametrize(
    "smiles", ["CCO", "[H+]", "*", "C" * 400, "OC[PH](CO)(CO)CO", "[Cu+2].[O-]S(=O)(=O)[O-]", "Cl[Pt](Cl)(N)N"]
)
def test_a_molecule_is_drawn_as_well_formed_xml(smiles: str) -> None:
    root = ElementTree.fromstring(draw_molecule(smiles, width=200, height=120))
    assert (root.get("width"), root.get("height")) == ("200", "120")
    assert root.findtext(f"{SVG}title") == smiles
    assert len(list(root.iter())) > 2


@pytest.mark.parametrize("smiles", ["", "C(C", "CN(C)(C)C", EVIL])
def test_what_cannot_be_read_is_an_empty_box_that_says_so(smiles: str) -> None:
    text = draw_molecule(smiles)
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG}text") == "cannot be read"
    assert not list(root.iter(f"{SVG}path"))
    assert "<script" not in text


def test_a_grid_has_a_cell_and_a_label_each() -> None:
    root = ElementTree.fromstring(draw_molecules(["CCO", "bad", "C"], ["one\ntwo lines", EVIL, ""], columns=2))
    cells = root.findall(f"{SVG}g")
    places = [cell.get("transform") for cell in cells]
    assert len(set(places)) == len(cells) == 3
    assert [t.text for t in cells[0].findall(f"{SVG}text")] == ["one", "two lines"]
    assert cells[1].findtext(f"{SVG}text") == EVIL


def test_png_and_wrong_sizes() -> None:
    assert draw_molecules(["CCO", "bad"], ["a", "b"], kind="png").startswith(b"\x89PNG")
    assert ElementTree.fromstring(draw_molecules([])).tag == f"{SVG}svg"
    with pytest.raises(ValueError, match="1 labels for 2 molecules"):
        draw_molecules(["C", "CC"], ["a"])
