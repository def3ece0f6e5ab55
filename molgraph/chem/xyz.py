"""Read and write the frames of XYZ files, plain or extended: elements, positions and maybe forces."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem import smiles

_PAIR = re.compile(r'([A-Za-z_][\w.-]*)\s*=\s*(?:"([^"]*)"|\{([^}]*)\}|(\S+))')
PROPERTIES, LATTICE, PERIODIC = "properties", "lattice", "pbc"
SPECIES, NUMBERS, POSITIONS = ("species", "element"), ("z", "numbers", "atomic_numbers"), ("pos", "positions")
FORCES = ("forces", "force", "f")
_FORCES = "Properties=species:S:1:pos:R:3:forces:R:3"


class Frame(NamedTuple):
    """Atoms in space: atomic numbers uint8 [n], positions float32 [n, 3] in angstrom, forces float32 [n, 3] or None."""

    numbers: np.ndarray
    positions: np.ndarray
    forces: np.ndarray | None = None


def read_comment(line: str) -> dict[str, str]:
    """The ``key=value`` pairs of an extended XYZ file's comment line, without quotes; none of a plain comment.

    Example:
        >>> read_comment('energy=-1.5 name="a b" Properties=species:S:1:pos:R:3')
        {'energy': '-1.5', 'name': 'a b', 'Properties': 'species:S:1:pos:R:3'}
        >>> read_comment("water, relaxed")
        {}
    """
    return {key: "".join(value) for key, *value in _PAIR.findall(line)}


def read_frame(lines: list[str]) -> Frame:
    """One frame: a line with the number of atoms, a comment, and a line for each atom.

    In a plain file an atom is its element and three coordinates, and what stands behind them is left out. In an
    extended one (a comment with ``Properties=``) the columns are those that it names.

    Raises:
        ValueError: no such frame, no atoms, several frames, an unknown element, a periodic cell, or numbers that are
            not finite.

    Example:
        >>> read_frame(["2", "", "C 0 0 0", "O 0 0 1.128"]).positions[1].tolist() == [0, 0, np.float32(1.128)]
        True
        >>> frame = ["1", "Properties=Z:I:1:pos:R:3:forces:R:3", "18 0 0 0 0.1 0 0"]
        >>> read_frame(frame).forces.tolist() == [[np.float32(0.1), 0, 0]]
        True
    """
    try:
        size = int(lines[0])
        cells = [line.split() for line in lines[2 : 2 + size]]
        if len(cells) != size or any(line.strip() for line in lines[2 + size :]):
            raise ValueError  # several frames, or a wrong count
        words = {key.lower(): value for key, value in read_comment(lines[1]).items()}
        at = _columns(words[PROPERTIES]) if PROPERTIES in words else {SPECIES[0]: slice(1), POSITIONS[0]: slice(1, 4)}
        species = _cut(cells, at, (*SPECIES, *NUMBERS))
        symbols = [word for (word,) in species or ()]
        positions, forces = _floats(_cut(cells, at, POSITIONS), size), _cut(cells, at, FORCES)
        wanted = None if forces is None else _floats(forces, size)
        if len(symbols) != size:
            raise ValueError
    except (ValueError, IndexError, RuntimeError, OverflowError, TypeError):
        first = next((line.strip() for line in lines if line.strip()), "")[:100]
        raise ValueError(f"neither a mol block nor the text of an XYZ file of one frame: {first!r}") from None
    if not size:
        raise ValueError("a structure of no atoms")
    if "t" in words.get(PERIODIC, "t" if LATTICE in words else "").lower():
        raise ValueError('a periodic cell, where molecules in open space are read (pbc="F F F" says so)')
    return Frame(_numbers(symbols), finite(positions, "position"), None if wanted is None else finite(wanted, "force"))


def write_frame(numbers: np.ndarray, positions: np.ndarray, forces: np.ndarray | None = None) -> str:
    """Atoms in space as the text of an XYZ file, which ``read_frame`` reads back to the bit."""
    symbol = Chem.GetPeriodicTable().GetElementSymbol
    values = positions if forces is None else np.hstack([positions, forces])
    rows = [
        f"{symbol(int(z))} " + " ".join(np.format_float_positional(x) for x in row)
        for z, row in zip(numbers, values, strict=True)
    ]
    return "\n".join([str(len(rows)), "" if forces is None else _FORCES, *rows, ""])


def finite(values: np.ndarray, what: str) -> np.ndarray:
    """Numbers as float32; raises ``ValueError`` where one is not finite."""
    with np.errstate(over="ignore"):
        array = values.astype(np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"a {what} that is no finite number")
    return array


def _columns(properties: str) -> dict[str, slice]:
    """Where the columns stand that ``Properties=name:type:count:...`` lists, by their names in lower case."""
    words, at, first = properties.lower().split(":"), dict[str, slice](), 0
    for name, n in zip(words[::3], map(int, words[2::3]), strict=True):
        at[name] = slice(first, first := first + n)
    return at


def _cut(cells: list[list[str]], at: dict[str, slice], names: tuple[str, ...]) -> list[list[str]] | None:
    """The cells of the first of these columns that is there; None without one."""
    place = next((at[name] for name in names if name in at), None)
    return None if place is None else [row[place] for row in cells]


def _numbers(symbols: list[str]) -> np.ndarray:
    """Atomic numbers of symbols, or of numbers as text; raises ``ValueError`` at the first that is no element."""
    known, number = Chem.GetPeriodicTable(), dict[str, int]()
    with smiles.quiet():
        for i, symbol in enumerate(symbols):
            try:
                word = known.GetElementSymbol(int(symbol)) if symbol.isdigit() else symbol.capitalize()
                number.setdefault(symbol, known.GetAtomicNumber(word))
            except (RuntimeError, ValueError, OverflowError, TypeError):
                raise ValueError(f"atom {i + 1} is {symbol[:20]!r}, which is no element") from None
    return np.array([number[symbol] for symbol in symbols], np.uint8)


def _floats(rows: list[list[str]] | None, size: int) -> np.ndarray:
    if rows is None or any(len(row) != 3 for row in rows):
        raise ValueError
    return np.array([float(x) for row in rows for x in row]).reshape(size, 3)
