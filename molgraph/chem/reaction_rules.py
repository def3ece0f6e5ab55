"""Classic reactions as named RDKit rules: patterns of the reactants and bonds of the product."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from rdkit.Chem import rdChemReactions

from molgraph.base.errors import BadValueError, UnknownNameError, nearest

_ACID = "[CX3;$(C[#6,#1]):1](=[O:2])[OX2H1]"
_AMINE = "[NX3;H2,H1;!$(NC=[O,S,N]);!$(N[S,N,O,P]);!$(NC#N);$(N[#6]):3]"
_HALIDE = "[c:2][Br,I]"
_ALCOHOL = "[OX2H1;$(O[CX4]):3]"


class Rule(NamedTuple):
    """One rule.

    Args:
        reactants: what reacts, in a chemist's words.
        smarts: a reaction SMARTS; atoms of the reactants without a map number leave.
    """

    reactants: tuple[str, ...]
    smarts: str


RULES = {
    "amide": Rule(("carboxylic acid", "amine"), f"{_ACID}.{_AMINE}>>[C:1](=[O:2])[N:3]"),
    "ester": Rule(("carboxylic acid", "alcohol"), f"{_ACID}.{_ALCOHOL}>>[C:1](=[O:2])[O:3]"),
    "hydrolysis": Rule(
        ("ester",),
        "[CX3;$(C[#6,#1]):1](=[O:2])[OX2;R0:3][CX4:4]>>[C:1](=[O:2])[OH].[C:4][O:3]",
    ),
    "sulfonamide": Rule(
        ("sulfonyl chloride", "amine"), f"[S:1](=[O:2])(=[O:4])Cl.{_AMINE}>>[S:1](=[O:2])(=[O:4])[N:3]"
    ),
    "urea": Rule(("isocyanate", "amine"), f"[NX2:1]=[C:2]=[O:4].{_AMINE}>>[NH:1][C:2](=[O:4])[N:3]"),
    "reductive_amination": Rule(
        ("aldehyde or ketone", "amine"), f"[CX3;$([CH1][#6]),$(C([#6])[#6]):1]=[OX1].{_AMINE}>>[CX4:1][N:3]"
    ),
    "alkylation": Rule(("alkyl halide", "amine"), f"[CX4;H2,H3:1][Br,I,Cl].{_AMINE}>>[C:1][N:3]"),
    "ether": Rule(("alkyl halide", "alcohol or phenol"), "[CX4;H2,H3:1][Br,I,Cl].[OX2H1;$(O[c,CX4]):3]>>[C:1][O:3]"),
    "suzuki": Rule(("aryl boronic acid or ester", "aryl halide"), f"[c:1][BX3]([OX2])[OX2].{_HALIDE}>>[c:1]-[c:2]"),
    "buchwald": Rule(("aryl halide", "amine"), f"{_HALIDE}.{_AMINE}>>[c:2][N:3]"),
    "sonogashira": Rule(("terminal alkyne", "aryl halide"), f"[CH1:1]#[C:4].{_HALIDE}>>[C:4]#[C:1]-[c:2]"),
    "heck": Rule(("terminal alkene", "aryl halide"), f"[CH2:1]=[CH1:4].{_HALIDE}>>[CH1:4]=[CH1:1]-[c:2]"),
    "click": Rule(
        ("azide", "terminal alkyne"),
        "[#6:1][N:2]=[N+:3]=[N-:4].[CH1:5]#[C:6]>>[#6:1][n:2]1[n+0:3][n+0:4][c:6][c:5]1",
    ),
    "diels_alder": Rule(
        ("diene", "alkene"),
        "[C;!R:1]=[C:2][C:3]=[C;!R:4].[CX3;!R;$(C=CC=O),$(CC=O):5]=[CX3;!R:6]>>[C:1]1[C:2]=[C:3][C:4][C:5][C:6]1",
    ),
}
"""The rules by name. They say which bonds change, not whether a flask would agree."""


def rule_of(name: str) -> Rule:
    """The rule of a name.

    Raises:
        UnknownNameError: there is none; the hint has the nearest ones.

    Example:
        >>> rule_of("suzuki").reactants
        ('aryl boronic acid or ester', 'aryl halide')
    """
    if name not in RULES:
        raise UnknownNameError(f"no rule of reactions is named {name!r}", hint=nearest(name, RULES))
    return RULES[name]


def rules_named(text: str | Sequence[str]) -> list[str]:
    """The names in a list, or in a text parted by commas; ``all`` stands for every rule.

    Raises:
        BadValueError: no name. UnknownNameError: one that no rule has.

    Example:
        >>> rules_named("amide, suzuki"), len(rules_named("all")) == len(RULES)
        (['amide', 'suzuki'], True)
    """
    names = [name.strip() for name in (text.split(",") if isinstance(text, str) else text) if name.strip()]
    if not names:
        raise BadValueError("no rule of reactions is named", hint=f"name some of {', '.join(RULES)}, or all")
    for name in names if names != ["all"] else ():
        rule_of(name)
    return [*RULES] if names == ["all"] else list(dict.fromkeys(names))


@cache
def compiled(name: str) -> rdChemReactions.ChemicalReaction:
    """RDKit's reaction of a rule, ready to run."""
    reaction = rdChemReactions.ReactionFromSmarts(rule_of(name).smarts)
    reaction.Initialize()
    return reaction
