"""Make molecules with labels that need one ability: to see how far two groups are apart, stereo, or parity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.seeds import generator
from molgraph.data.table import Table, make_table

HALOGENS = ("F", "Cl")
Draw = Callable[[np.random.Generator], tuple[str, int]]


def chain(rng: np.random.Generator, n: int) -> str:
    """A chain of n carbons, some of which have a methyl or an ethyl group.

    Example:
        >>> chain(np.random.default_rng(0), 4)
        'C(CC)C(C)C(C)C'
    """
    return "".join(rng.choice(("C", "C", "C(C)", "C(CC)"), n))


def near(distance: int) -> Draw:
    """Whether O, and not S, is that many bonds from F; both stand in all molecules, as far from F as from Cl.

    Molecules of both labels have the same environments of less than half of the distance.
    """

    def draw(rng: np.random.Generator) -> tuple[str, int]:
        label, inner, tail = int(rng.integers(2)), "C" * (distance - 1), distance
        one, other = "OS" if label else "SO"
        return f"F{inner}{one}{'C' * tail}{chain(rng, int(rng.integers(3, 7)))}{'C' * tail}{other}{inner}Cl", label

    return draw


def handed(rng: np.random.Generator) -> tuple[str, int]:
    """Which of two mirror images a centre is."""
    label = int(rng.integers(2))
    return f"F[C{'@@' if label else '@'}](Cl)(Br){chain(rng, int(rng.integers(3, 9)))}", label


def across(rng: np.random.Generator) -> tuple[str, int]:
    """Whether both ends of a double bond are on opposite sides."""
    label = int(rng.integers(2))
    return f"F/C=C{'/' if label else chr(92)}{chain(rng, int(rng.integers(3, 9)))}", label


def unequal(rng: np.random.Generator) -> tuple[str, int]:
    """Whether the halogens at both ends differ (the exclusive or)."""
    a, b = rng.integers(2, size=2)
    return f"{HALOGENS[a]}{chain(rng, int(rng.integers(4, 9)))}{HALOGENS[b]}", int(a != b)


def which(rng: np.random.Generator) -> tuple[str, int]:
    """Which halogen there is, which counts of atoms tell."""
    label = int(rng.integers(2))
    return f"{HALOGENS[label]}{chain(rng, int(rng.integers(4, 9)))}", label


def tasks(distances: tuple[int, ...]) -> dict[str, Draw]:
    """The draws of all tasks by name."""
    found = {f"distance {d}": near(d) for d in distances}
    return {"composition": which, "parity": unequal, **found, "handedness": handed, "double bond": across}


def made_table(draw: Draw, n: int, seed: int, *words: object) -> Table:
    """n rows with a binary target, each molecule once as far as there are so many.

    Args:
        draw: of a molecule and its label.
        n: rows.
        seed, words: of the draws.
    """
    rng, rows = generator(seed, "made", *map(str, words)), dict[str, int]()
    for _ in range(50 * n):
        text, label = draw(rng)
        rows.setdefault(text, label)
        if len(rows) == n:
            break
    y = np.array([*rows.values()], dtype=np.float64)[:, None]
    return make_table([*rows], targets=(Target("label", "binary"),), y=y)
