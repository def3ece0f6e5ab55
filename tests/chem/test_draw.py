"""Structures as SVG: well-formed, one a molecule, inert whatever the text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from molgraph.chem.draw import BOND_COLOUR, draw_molecule, group_colour

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


def test_groups_are_coloured_and_named_in_a_legend() -> None:
    root = ElementTree.fromstring(draw_molecule("CCO", groups=[7, 7, 12]))
    squares = [each.get("fill") for each in root.iter(f"{SVG}rect") if each.get("rx") == "3"]
    assert squares == [group_colour(7), group_colour(12)]
    assert [each.text for each in root.iter(f"{SVG}text")] == ["7", "12"]
    discs = [each.get("style", "") for each in root.iter(f"{SVG}ellipse")]
    assert [sum(group_colour(group).upper() in style for style in discs) for group in (7, 12)] == [2, 1]
    assert "cannot be read" in draw_molecule("C(C", groups=[0, 0])
    with pytest.raises(ValueError, match="2 groups"):
        draw_molecule("CCO", groups=[0, 1])
    pale = ElementTree.fromstring(draw_molecule("CCO", groups=[7, 7, 12], shares=[0.5, 1, 1]))
    discs = [each.get("style", "") for each in pale.iter(f"{SVG}ellipse")]
    colours = ("#F7D3EA", group_colour(7).upper(), group_colour(12).upper())  # the first 0.6 of the second on white
    assert [sum(colour in style for style in discs) for colour in colours] == [1, 1, 1]
    with pytest.raises(ValueError, match="1 shares"):
        draw_molecule("CCO", groups=[7, 7, 12], shares=[0.5])


def test_bonds_are_marked_paler_where_less() -> None:
    root = ElementTree.fromstring(draw_molecule("CCO", bonds={(0, 1): 1.0, (2, 1): 0.0}))
    fills = " ".join(each.get("style", "") for each in root.iter(f"{SVG}path"))
    assert BOND_COLOUR.upper() in fills and "#FFFFFF" in fills
    with pytest.raises(ValueError, match="0 and 2"):
        draw_molecule("CCO", bonds={(0, 2): 1.0})
