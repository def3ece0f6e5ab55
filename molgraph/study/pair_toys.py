"""Synthetic tables of pairs whose labels need one side, or both, as controls of ``pair-bias``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.base.seeds import generator
from molgraph.base.table import OK
from molgraph.chem.complexes import AMINO_ACIDS
from molgraph.data.graph_values import Geometry
from molgraph.data.sides import LIGAND, PROTEIN, Side
from molgraph.data.table import Entities, Table

Rule = Literal["first", "second", "xor"]
LETTERS, NEAR, FAR = "ACDEFGHIKLMNPQRST", 3.4, 7.0  # of proteins; angstrom from the ligand to residues
SERINE, CYSTEINE = (AMINO_ACIDS.index(name) + 1 for name in ("SER", "CYS"))


def toy_pairs(table: Table, sides: Sequence[Side], rule: Rule, *, n: int = 200, seed: int = 0) -> Table:
    """Pairs with the columns of a table, each side of which carries one bit that a network can read.

    A molecule is an ether of three O or an amine of three N, a protein has three times the motif WWWW or YYYY, and in a
    complex the residue next to the ligand is a cysteine or a serine. All else is drawn at random.

    Args:
        table: whose entity columns the rows have.
        sides: its sides.
        rule: the label: the bit of the first side, that of the second, or whether the two differ.
        n: rows.
        seed: of the draws.

    Returns:
        A table with the binary target ``planted``.

    Raises:
        UnsupportedError: a column of graphs, which have no kind of nodes that every model reads.

    Example:
        >>> from molgraph.data.read import read_table
        >>> from molgraph.data.sides import sides_of
        >>> pairs = read_table({"drug": ["CCO"], "target": ["MKT"]}, smiles="drug", sequence="target")
        >>> made = toy_pairs(pairs, sides_of(pairs), "xor", n=4)
        >>> sorted({text[-2] for text in made.smiles}), sorted(made.y[:, 0].tolist())
        (['N', 'O'], [0.0, 0.0, 1.0, 1.0])
    """
    rng = generator(seed, "toy", rule)
    rows = rng.permutation(n)
    bits = [rows >> i & 1 for i in range(len(sides))]  # any two of them tell nothing of each other
    bit_of = {side.name: bits[i] for i, side in enumerate(sides)}
    entities = []
    for entity in table.entities:
        indices = [bit_of[side.name] for side in sides if entity.name in side.columns]
        if not indices:
            continue
        values = np.empty(n, dtype=object)
        values[:] = [_value(entity, sides, [int(column[i]) for column in indices], rng) for i in range(n)]
        entities.append(Entities(entity.name, entity.kind, values))
    label = {"first": bits[0], "second": bits[1], "xor": bits[0] ^ bits[1]}[rule]
    ids, status, reason = np.array([str(i) for i in range(n)], object), np.full(n, OK, object), np.full(n, "", object)
    target = (Target("planted", "binary"),)
    return Table(ids, tuple(entities), status, reason, target, label[:, None].astype(np.float64))


def _value(entity: Entities, sides: Sequence[Side], bits: list[int], rng: np.random.Generator) -> Any:
    if entity.kind == "molecule":
        return "".join("C" * int(n) + "ON"[bits[0]] for n in rng.integers(2, 6, 3)) + "C"
    if entity.kind == "sequence":
        letters = ["".join(rng.choice(list(LETTERS), 4)) for _ in range(4)]
        return ("WWWW" if bits[0] else "YYYY").join(letters)
    if entity.kind == "geometry":
        whole = any(entity.name in side.complexes for side in sides)
        roles = [LIGAND, PROTEIN] if whole else [side.name for side in sides if entity.name in side.columns]
        return _complex(dict(zip(roles, bits, strict=True)), rng)
    raise UnsupportedError(
        f"no control is planted in {entity.name!r} ({entity.kind})", hint="name the columns to read: --input COLUMN"
    )


def _complex(bits: dict[str, int], rng: np.random.Generator) -> Geometry:
    """A chain of carbons that ends in N or O, beside one residue near it and six others, one atom each."""
    n = int(rng.integers(3, 8))
    chain = np.stack([np.arange(n) * 1.4, 0.4 * (np.arange(n) % 2), np.zeros(n)], axis=1)
    numbers = np.array([*[6] * (n - 1), 8 - bits.get(LIGAND, 0)], np.uint8)
    if PROTEIN not in bits:
        return Geometry(numbers, chain.astype(np.float32))
    kinds = np.array([CYSTEINE if bits[PROTEIN] else SERINE, *rng.choice([SERINE, CYSTEINE], 6)])
    at = np.stack([rng.uniform(0, 1.4 * n, 7), rng.normal(0, 0.3, 7), np.full(7, FAR)], axis=1)
    at[1:, 1] += 4.0 * (np.arange(6) - 2.5)
    at[0, 2] = NEAR
    protein = np.where(kinds == CYSTEINE, 16, 8).astype(np.uint8)
    geometry = Geometry(
        np.concatenate([numbers, protein]),
        np.concatenate([chain, at]).astype(np.float32),
        None,
        np.concatenate([np.zeros(n), kinds]).astype(np.uint8),
        np.concatenate([np.full(n, -1), np.arange(7)]).astype(np.int32),
        np.zeros(n + 7, np.float32),
    )
    whole = geometry if LIGAND in bits else geometry.part(True)
    assert whole is not None
    return whole
