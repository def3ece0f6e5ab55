"""Molecules on which one of RDKit's algorithms takes minutes: dense, large, symmetrical or full of stereo centres."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations


def written(symbols: list[str], edges: Iterable[tuple[int, int]]) -> str:
    """The SMILES of a connected graph, by a walk in depth; single bonds.

    Example:
        >>> written(["C"] * 3, [(0, 1), (1, 2), (2, 0)])
        'C1CC1'
    """
    beside = defaultdict(list)
    for a, b in edges:
        beside[a].append(b)
        beside[b].append(a)
    # a walk in depth first: every bond that is not of its tree ends at an ancestor
    parent, order, stack = {0: -1}, [], [(0, -1)]
    seen: set[int] = set()
    while stack:
        atom, above = stack.pop()
        if atom in seen:
            continue
        seen.add(atom)
        parent[atom] = above
        order.append(atom)
        stack += [(other, atom) for other in sorted(beside[atom], reverse=True) if other not in seen]
    rank = {atom: i for i, atom in enumerate(order)}
    children = defaultdict(list)
    for atom in order[1:]:
        children[parent[atom]].append(atom)
    free, number, text = list(range(99_999, 0, -1)), {}, []
    work: list[int | str] = [0]
    while work:
        atom = work.pop()
        if isinstance(atom, str):
            text.append(atom)
            continue
        text.append(symbols[atom])
        closing = []
        for other in sorted(beside[atom], key=rank.__getitem__):
            if other == parent[atom] or parent.get(other) == atom:
                continue
            bond = frozenset((atom, other))
            if bond not in number:
                number[bond] = free.pop()
            else:
                closing.append(number[bond])
            k = number[bond]
            text.append(str(k) if k < 10 else f"%{k}" if k < 100 else f"%({k})")
        free += sorted(closing, reverse=True)
        for i, child in enumerate(reversed(children[atom])):
            work += [child] if i == 0 else [")", child, "("]
    return "".join(text)


def complete(n: int, symbol: str = "*") -> str:
    """``n`` atoms, each bound to all others."""
    return written([symbol] * n, combinations(range(n), 2))


def bipartite(n: int, symbol: str = "*") -> str:
    """``n`` atoms, each bound to ``n`` others."""
    return written([symbol] * 2 * n, [(i, n + j) for i in range(n) for j in range(n)])


def grid(rows: int, columns: int, symbol: str = "C") -> str:
    """Squares side by side."""
    place = {(i, j): i * columns + j for i in range(rows) for j in range(columns)}
    edges = [
        (place[i, j], place[i + di, j + dj])
        for i, j in place
        for di, dj in ((0, 1), (1, 0))
        if (i + di, j + dj) in place
    ]
    return written([symbol] * len(place), edges)


def prism(n: int, symbol: str = "C") -> str:
    """Two rings of ``n`` atoms, one above the other."""
    edges = [(i, (i + 1) % n) for i in range(n)] + [(n + i, n + (i + 1) % n) for i in range(n)]
    return written([symbol] * 2 * n, edges + [(i, n + i) for i in range(n)])


def hypercube(d: int, symbol: str = "C") -> str:
    """2^d atoms with d bonds each."""
    return written([symbol] * 2**d, [(i, i ^ 1 << k) for i in range(2**d) for k in range(d) if i < i ^ 1 << k])


def regular(n: int, degree: int, seed: int, symbol: str = "C") -> str:
    """A random graph of ``degree`` bonds (an even number, or 3) at each of ``n`` atoms: a ring with bonds exchanged."""
    draw = random.Random(seed)
    edges = [(i, (i + k) % n) for i in range(n) for k in range(1, degree // 2 + 1)]
    edges += [(i, i + n // 2) for i in range(n // 2)] if degree % 2 else []
    known = {frozenset(edge) for edge in edges}
    for _ in range(20 * len(edges)):
        i, j = draw.sample(range(len(edges)), 2)
        (a, b), (c, d) = edges[i], edges[j]
        if len({a, b, c, d}) == 4 and not {frozenset((a, c)), frozenset((b, d))} & known:
            known.difference_update({frozenset((a, b)), frozenset((c, d))})
            known.update({frozenset((a, c)), frozenset((b, d))})
            edges[i], edges[j] = (a, c), (b, d)
    return written([symbol] * n, edges)


def dendrimer(branch: str, depth: int) -> str:
    """A tree: ``branch`` with its ``{}`` filled by itself."""
    text = "C"
    for _ in range(depth):
        text = branch.replace("{}", text)
    return text


def peptide(n: int, residues: str = "GAVLIFPSTYWKDE") -> str:
    """``n`` amino acids with their stereo."""
    sides = {
        "G": "NCC(=O)", "A": "N[C@@H](C)C(=O)", "V": "N[C@@H](C(C)C)C(=O)", "L": "N[C@@H](CC(C)C)C(=O)",
        "I": "N[C@@H]([C@@H](C)CC)C(=O)", "F": "N[C@@H](Cc1ccccc1)C(=O)", "P": "N1[C@@H](CCC1)C(=O)",
        "S": "N[C@@H](CO)C(=O)", "T": "N[C@@H]([C@@H](C)O)C(=O)", "Y": "N[C@@H](Cc1ccc(O)cc1)C(=O)",
        "W": "N[C@@H](Cc1c[nH]c2ccccc12)C(=O)", "K": "N[C@@H](CCCC[NH3+])C(=O)", "D": "N[C@@H](CC([O-])=O)C(=O)",
        "E": "N[C@@H](CCC([O-])=O)C(=O)",
    }  # fmt: skip
    return "".join(sides[residues[i % len(residues)]] for i in range(n)) + "O"


C60 = (
    "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5"
    "c1c1c6c2c3c41"
)


def hard_molecules() -> dict[str, str]:
    """The whole list: name and SMILES."""
    out = {f"K{n} of {s}": complete(n, s) for n in (8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40) for s in ("*", "[U]")}
    out |= {f"K{n} of C": complete(n, "C") for n in (5, 12)}
    out |= {f"K{n},{n}": bipartite(n) for n in (6, 8, 10, 14, 20)}
    out |= {f"star of {n}": "[U]" + "(F)" * (n - 1) + "F" for n in (30, 100, 300, 1_500)}
    out |= {f"two stars of {n}": "[U]" + "(F)" * n + "[U]" + "(F)" * n for n in (100, 700)}
    out |= {f"chain of {n}": "C" * n for n in (250, 500, 1_000, 2_000, 5_000)}
    out |= {f"ring of {n}": "C1" + "C" * (n - 2) + "C1" for n in (250, 1_000, 4_990)}
    out |= {f"ethers, {n}": "CCO" * n for n in (300, 1_600)}
    out |= {f"polyene of {n}": "C=C" * n for n in (50, 300, 1_600)}
    out |= {f"stated polyene of {n}": "F/C=C/" + "C=C/" * n + "F" for n in (30, 100, 1_000)}
    out |= {f"polyyne of {n}": "C#C" * n for n in (300, 1_600)}
    out |= {f"{n} open centres": "C(F)(Cl)" * n for n in (20, 60, 200, 600)}
    out |= {f"{n} stated centres": "[C@](F)(Cl)" * n for n in (20, 100, 400)}
    out |= {f"{n} open alcohols": "C" + "C(O)" * n + "C" for n in (20, 100, 1_000)}
    out |= {f"peptide of {n}": peptide(n) for n in (20, 50, 100, 200)}
    out |= {f"glycines, {n}": peptide(n, "G") for n in (200, 700)}
    out |= {f"alanines, {n}": peptide(n, "A") for n in (300, 320)}
    out |= {f"prolines, {n}": peptide(n, "P") for n in (100, 270)}
    out |= {"peptide of 1,000": peptide(1_000), "lysines, 200": peptide(200, "K"), "aspartates, 200": peptide(200, "D")}
    out |= {f"phenylenes, {n}": "c1ccc(cc1)" * n for n in (20, 50, 100, 240, 500)}
    out |= {f"naphthylenes, {n}": "c1ccc2cc(ccc2c1)" * n for n in (50, 240)}
    out |= {f"ladder of {n}": grid(2, n) for n in (20, 100, 240, 600)}
    out |= {f"grid {n}x{n}": grid(n, n) for n in (6, 10, 15, 22)}
    out |= {f"prism of {n}": prism(n) for n in (10, 50, 200)}
    out |= {f"hypercube of {d}": hypercube(d, s) for d, s in ((3, "C"), (4, "C"), (5, "[U]"), (6, "[U]"), (7, "[U]"))}
    out |= {f"cubic graph of {n}": regular(n, 3, n) for n in (20, 40, 60, 100, 200, 400)}
    out |= {f"quartic graph of {n}": regular(n, 4, n) for n in (20, 60, 150, 250)}
    out |= {f"graph of degree 8, {n}": regular(n, 8, n, "[U]") for n in (20, 60, 120)}
    out |= {f"tree of branches {d}": dendrimer("C({})({}){}", d) for d in (4, 5, 6, 7)}
    out |= {f"dendrimer {d}": dendrimer("c1c({})cc({})cc1", d) for d in (3, 5, 7)}
    out |= {f"stereo tree {d}": dendrimer("C(O)({}){}", d) for d in (4, 6, 8)}
    out |= {"fullerene": C60, "two fullerenes": f"{C60}.{C60}", "nine fullerenes": ".".join([C60] * 9)}
    out |= {f"{n} fragments": ".".join(["C"] * n) for n in (100, 1_000, 2_500)}
    out |= {"800 salts": ".".join(["[Na+].[Cl-]"] * 400), "500 acetates": ".".join(["CC(=O)[O-]"] * 400)}
    out |= {
        "250 benzenes": ".".join(["c1ccccc1"] * 500),
        "dot closures": ".".join(f"C{1}C{2}.C1.C2" for _ in range(300)),
    }
    out |= {f"{n} charges": "C[N+](C)(C)" * n + "C" for n in (50, 400)}
    out |= {"300 acids": "C(C(=O)[O-])" * 300, "zwitterions": "C(C(=O)[O-])C([NH3+])" * 180}
    out |= {"nitros": "C([N+](=O)[O-])" * 300, "azides": "C(N=[N+]=[N-])" * 300}
    out |= {"isotopes": "[13CH2]" * 700, "atom maps": "".join(f"[CH2:{i}]" for i in range(1, 500))}
    out |= {"cyclopropanes": "C1CC1" * 900, "cubanes": "C12C3C4C1C5C2C3C45" * 100, "spiro": "C1CC11CC1" * 250}
    out |= {"macrocycle of glycines": "N1" + "CC(=O)N" * 400 + "CC1=O", "crown": "C1" + "COC" * 500 + "C1"}
    out |= {"adamantanes": "C1C2CC3CC1CC(C2)C3" * 60, "steroids": "CC12CCC3C(C1CCC2)CCC4C3(CCCC4)" * 60}
    out |= {"sulphones": "CS(=O)(=O)" * 400, "phosphates": "COP(=O)([O-])O" * 300, "ureas": "NC(=O)N" * 500}
    out |= {
        "amidines": "C(=N)(N)" * 400,
        "guanidines": "NC(=N)N" * 500,
        "enols": "C(O)=C" * 500,
        "imines": "C=N" * 1_500,
    }
    out |= {"porphyrins": "C1=CC2=NC1=CC3=CC=C(N3)C=C4C=CC(=N4)C=C5C=CC(=C2)N5." * 40 + "C"}
    out |= {
        "dummies": "*" * 3_000,
        "dummy rings": "*1**1" * 400,
        "metals": "[Fe]" * 1_000,
        "silicas": "O[Si](O)(O)" * 300,
    }
    out |= {
        "hydrogens": "[H]" * 2 + ".[H][H]" * 600,
        "water": ".".join(["O"] * 2_000),
        "deuteriums": "C([2H])([2H])" * 300,
    }
    out |= {"boron cage": "[BH]12[BH]3[BH]4[BH]1[BH]5[BH]2[BH]3[BH]45", "dative": "N->[Pt](<-N)" * 200 + "Cl"}
    out |= {"allenes": "C=" * 2_000 + "C", "peroxides": "O" * 3_000, "sulphurs": "S1" + "S" * 2_000 + "1"}
    out |= {"helicenes": "c1ccc2c3c(ccc2c1)" + "c1ccc2c3c(ccc2c1)" * 0 + "cccc3"}
    return out


def worst() -> dict[str, str]:
    """One molecule for each way in which a row took minutes: paths, neighbours, reading, distances."""
    return {
        "K12": complete(12),
        "star of 300": "[U]" + "(F)" * 299 + "F",
        "ladder of n": grid(2, 60, "n"),
        "chain of 2000": "C" * 2_000,
    }
