"""Named rules make the products of the textbook, with the same element at both ends of every number."""

from __future__ import annotations

import pytest
from rdkit import Chem

from molgraph.base.errors import UnknownNameError
from molgraph.chem.make_reactions import apply_rule, make_reactions
from molgraph.chem.reaction import read_reaction
from molgraph.chem.reaction_rules import RULES, rules_named

TEXTBOOK = {
    "amide": (("CC(=O)O", "CNc1ccccc1"), "CC(=O)N(C)c1ccccc1"),
    "ester": (("OC(=O)c1ccccc1", "OCC"), "CCOC(=O)c1ccccc1"),
    "hydrolysis": (("CCC(=O)OC",), "CCC(=O)O.CO"),
    "sulfonamide": (("CS(=O)(=O)Cl", "NCC"), "CCNS(C)(=O)=O"),
    "urea": (("CN=C=O", "NCC"), "CCNC(=O)NC"),
    "reductive_amination": (("O=Cc1ccccc1", "NC1CC1"), "c1ccc(CNC2CC2)cc1"),
    "alkylation": (("CCBr", "C1CCNCC1"), "CCN1CCCCC1"),
    "ether": (("BrCc1ccccc1", "Oc1ccncc1"), "c1ccc(COc2ccncc2)cc1"),
    "suzuki": (("OB(O)c1ccccc1", "Brc1ccncc1"), "c1ccc(-c2ccncc2)cc1"),
    "buchwald": (("Brc1ccccc1", "NC1CC1"), "c1ccc(NC2CC2)cc1"),
    "sonogashira": (("C#CC1CC1", "Ic1ccccc1"), "C(#CC1CC1)c1ccccc1"),
    "heck": (("C=CC(=O)OC", "Brc1ccccc1"), "COC(=O)C=Cc1ccccc1"),
    "click": (("CCN=[N+]=[N-]", "C#CCO"), "CCn1cc(CO)nn1"),
    "diels_alder": (("C=CC=C", "C=CC(C)=O"), "CC(=O)C1CC=CCC1"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_makes_the_product_of_the_textbook(name: str) -> None:
    blocks, product = TEXTBOOK[name]
    made = apply_rule(name, [Chem.MolFromSmiles(text) for text in blocks])
    assert not isinstance(made, str) and made.product == product
    assert made.reactants == ".".join(sorted(Chem.CanonSmiles(text) for text in blocks))
    read = read_reaction(made.reaction)  # checks that numbers are single and elements equal
    assert sum(place >= 0 for place in read.product_of) >= read.products.GetNumAtoms() - 1
    assert len(RULES[name].reactants) == len(blocks)


def test_made_reactions_are_drawn_by_seed_and_say_what_is_lacking() -> None:
    library = [text for blocks, _ in TEXTBOOK.values() for text in blocks] + ["C(", "C" * 60]
    first, again, other = (make_reactions(library, n=3, seed=seed) for seed in (0, 0, 1))
    assert first.reactions == again.reactions != other.reactions
    assert first.reasons[""] == {"more than 40 heavy atoms": 1} | {
        why: 1 for why in first.reasons[""] if "Parse Error" in why
    }
    assert all(sum(each.rule == name for each in first.reactions) <= 3 for name in RULES)
    none = make_reactions(["CCO"], ["suzuki"])
    assert not none.reactions and len(none.reasons["suzuki"]) == 2
    several = make_reactions(["NCCC(N)C", "CC(=O)O"], ["amide"])
    assert several.blocks["amide"] == [1, 0]  # two amines in one molecule: no building block
    with pytest.raises(UnknownNameError, match="rule"):
        rules_named("amide,suzki")
