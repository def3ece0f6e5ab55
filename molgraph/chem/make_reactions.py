"""Make mapped reactions from a library of molecules by named rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.base.seeds import generator
from molgraph.chem.reaction_rules import RULES, compiled, rule_of
from molgraph.chem.smiles import parse_smiles, quiet

MAX_ATOMS = 40  # heavy atoms of a building block
TRIES = 10  # pairs that are tried for each reaction that is asked for
ALL_PAIRS = 100_000  # below, pairs are drawn without repetition


class MadeReaction(NamedTuple):
    """One made reaction.

    Args:
        reaction: mapped reaction SMILES; atoms that leave have no number.
        rule: the rule's name.
        reactants, product: canonical SMILES without numbers; several are parted by a point.
    """

    reaction: str
    rule: str
    reactants: str
    product: str


@dataclass
class MadeReactions:
    """What a library gave.

    Args:
        reactions: in the order of the rules.
        blocks: building blocks of each reactant of each rule.
        reasons: why no reaction came of a molecule or a pair, and how often, by rule; ``""`` for the library.
    """

    reactions: list[MadeReaction] = field(default_factory=list)
    blocks: dict[str, list[int]] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)


def make_reactions(
    smiles: Sequence[str], rules: Sequence[str] = tuple(RULES), *, n: int = 100, seed: int = 0
) -> MadeReactions:
    """Apply each rule to molecules of a library that are drawn at random.

    A molecule is a building block of a reactant where that pattern stands in it once, and no other pattern of the
    rule. The reactions are made, not measured: a rule knows nothing of conditions, yields or protecting groups.

    Args:
        smiles: the library.
        rules: names of ``RULES``.
        n: reactions of each rule, at most; no two have the same reactants and product.
        seed: of the draws; the same seed gives the same reactions.

    Example:
        >>> made = make_reactions(["CC(=O)O", "CN", "c1ccccc1"], ["amide", "suzuki"])
        >>> made.reactions[0].reaction
        'O[C:2]([CH3:1])=[O:3].[CH3:4][NH2:5]>>[CH3:1][C:2](=[O:3])[NH:5][CH3:4]'
        >>> [*made.reasons["suzuki"]]
        ['no molecule of the library is an aryl boronic acid or ester', 'no molecule of the library is an aryl halide']
    """
    out = MadeReactions(reasons={"": Counter()})
    library: list[Chem.Mol] = []
    with quiet():
        for text in dict.fromkeys(smiles):
            mol, reason = parse_smiles(text)
            if mol is not None and mol.GetNumHeavyAtoms() > MAX_ATOMS:
                reason = f"more than {MAX_ATOMS} heavy atoms"
            if reason:
                out.reasons[""][reason] += 1
            elif mol is not None:
                library.append(Chem.RemoveAllHs(mol))
        for name in rules:
            rng = generator(seed, "reactions", name)
            order = rng.permutation(len(library))
            blocks = _blocks([library[i] for i in order], name, n)
            out.blocks[name], out.reasons[name] = [len(block) for block in blocks], Counter()
            for words, block in zip(rule_of(name).reactants, blocks, strict=True):
                if not block:
                    out.reasons[name][f"no molecule of the library is {_article(words)} {words}"] += 1
            known = set[tuple[str, str]]()
            for tried, mols in enumerate(_draws(blocks, rng)):
                if len(known) == n or tried == TRIES * n:
                    break
                outcome = apply_rule(name, mols)
                if isinstance(outcome, str):
                    out.reasons[name][outcome] += 1
                elif (outcome.reactants, outcome.product) not in known:
                    known.add((outcome.reactants, outcome.product))
                    out.reactions.append(outcome)
    return out


def apply_rule(name: str, reactants: Sequence[Chem.Mol]) -> MadeReaction | str:
    """The mapped reaction of molecules by a rule, or why there is none.

    Example:
        >>> apply_rule("ether", [Chem.MolFromSmiles("CBr"), Chem.MolFromSmiles("Oc1ccccc1")]).product
        'COc1ccccc1'
    """
    numbered = [Chem.Mol(mol) for mol in reactants]
    products: dict[str, tuple[Chem.Mol, ...]] = {}
    for outcome in compiled(name).RunReactants(tuple(numbered)):
        if all(Chem.SanitizeMol(mol, catchErrors=True) == Chem.SANITIZE_NONE for mol in outcome):
            products.setdefault(".".join(sorted(map(Chem.MolToSmiles, outcome))), outcome)
    if len(products) != 1:
        return "it reacts at several places" if products else "no product that RDKit accepts"
    ((text, outcome),) = products.items()
    partner = {
        (atom.GetIntProp("react_idx"), atom.GetIntProp("react_atom_idx")): atom
        for mol in outcome
        for atom in mol.GetAtoms()
        if atom.HasProp("react_atom_idx")
    }
    for number, (which, place) in enumerate(sorted(partner), 1):
        partner[which, place].SetAtomMapNum(number)
        numbered[which].GetAtomWithIdx(place).SetAtomMapNum(number)
    before, after = (".".join(Chem.MolToSmiles(mol) for mol in side) for side in (numbered, outcome))
    return MadeReaction(f"{before}>>{after}", name, ".".join(sorted(map(Chem.MolToSmiles, reactants))), text)


def _blocks(library: Sequence[Chem.Mol], name: str, n: int) -> list[list[Chem.Mol]]:
    """Molecules in which one pattern of a rule stands once and the others do not; n of each, at most."""
    patterns = [*compiled(name).GetReactants()]
    blocks: list[list[Chem.Mol]] = [[] for _ in patterns]
    for mol in library:
        counts = [len(mol.GetSubstructMatches(pattern, maxMatches=3)) for pattern in patterns]
        if sum(counts) == 1 and len(block := blocks[counts.index(1)]) < n:
            block.append(mol)
        if all(len(block) == n for block in blocks):
            break
    return blocks


def _draws(blocks: Sequence[Sequence[Chem.Mol]], rng: np.random.Generator) -> Iterator[tuple[Chem.Mol, ...]]:
    """Combinations of building blocks at random, without repetition where they are few."""
    sizes = [len(item) for item in blocks]
    if not all(sizes):
        return
    if np.prod(sizes, dtype=float) <= ALL_PAIRS:
        every = list(product(*map(range, sizes)))
        places = (every[i] for i in rng.permutation(len(every)))
    else:
        places = (tuple(int(rng.integers(size)) for size in sizes) for _ in iter(int, 1))
    for item in places:
        yield tuple(block[i] for block, i in zip(blocks, item, strict=True))


def _article(words: str) -> str:
    return "an" if words[0] in "aeiou" else "a"
