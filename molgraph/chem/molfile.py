"""Read and write the records of SD files: a title, a structure or the reason why there is none, and fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDepictor

from molgraph.chem import smiles
from molgraph.chem.bounded import RINGS, TooHardError, bounded, is_hard
from molgraph.chem.xyz import Frame, finite, read_frame

FIELD = re.compile(r"^>.*?<(.*)>")
_LINES = re.compile(r"\r\n|\r|\n")
_NO_ATOMS = "\n     molgraph\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n"
MAX_DRAWN = 200  # atoms; RDKit's layout takes 0.05 s for so many, 3 s for 1,000
MAX_LINE = 1 << 18  # characters; a line of so many is cut there by those who read files
MAX_LINES = 1_000_000
MAX_RECORD = 1 << 24  # characters
LONG = 20_000  # characters: about 200 atoms
_SHORT = 3_000
FEW = 3  # heavy atoms: so few lie in a plane anyhow


class SDRecord(NamedTuple):
    """One record of an SD file."""

    title: str
    smiles: str
    reason: str
    fields: dict[str, str]
    block: str = ""


def read_records(lines: Iterable[str], *, molecules: bool = True, blocks: bool = False) -> Iterator[SDRecord]:
    """Read an SD file record by record; one that RDKit cannot read, or that is far too large, has a reason.

    Args:
        lines: the file's lines.
        molecules: whether to read the structures; without, titles and fields alone come out, much faster.
        blocks: whether to keep the text of the structures that could be read.

    Example:
        >>> lines = ["x", "", "", "  0  0  0  0  0  0  0  0  0  0999 V2000", "M  END", "> <y>", "1.5", "", "$$$$"]
        >>> [(r.title, r.reason, r.fields) for r in read_records(lines)]
        [('x', 'a molecule of no atoms', {'y': '1.5'})]
    """
    held: list[str] = []
    size, reason = 0, ""
    for line in lines:
        line = line.rstrip("\r\n")
        if line.startswith("$$$$"):
            yield _record(held, molecules, blocks, reason)
            held, size, reason = [], 0, ""
            continue
        size += len(line)
        if len(line) >= MAX_LINE:
            reason = f"a line of more than {MAX_LINE:,} characters"
        elif size > MAX_RECORD or len(held) == MAX_LINES:
            reason = f"a record of more than {MAX_RECORD:,} characters or {MAX_LINES:,} lines"
        else:
            held.append(line)
    if reason or any(line.strip() for line in held):
        yield _record(held, molecules, blocks, reason)


def read_positions(text: str) -> Frame:
    """Atomic numbers, positions in angstrom and maybe forces, of a mol block or the text of an XYZ file.

    Raises:
        ValueError: it is neither, has no atoms, or is a drawing in the plane, whose positions are no geometry.

    Example:
        >>> read_positions("2\\n\\nC 0 0 0\\nO 0 0 1.128\\n").numbers
        array([6, 8], dtype=uint8)
    """
    if "M  END" not in text:
        return read_frame(text.splitlines())
    mol, positions = read_block_in_space(text)
    return Frame(np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()], np.uint8), positions)


def read_block_in_space(text: str) -> tuple[Chem.Mol, np.ndarray]:
    """The molecule of a mol block as it is written, hydrogens included, and its positions float32 [n, 3] in angstrom.

    Raises:
        ValueError: it has no atoms, or is a drawing in the plane, whose positions are no geometry.
    """
    with smiles.quiet():
        try:
            mol = Chem.MolFromMolBlock(text, sanitize=False, removeHs=False)
        except (RuntimeError, ValueError):
            mol = None
    if mol is None or not mol.GetNumAtoms():
        raise ValueError("a mol block that RDKit cannot read" if mol is None else "a structure of no atoms")
    conformer = mol.GetConformer()
    if mol.GetNumAtoms() > 1 and not conformer.Is3D():
        raise ValueError("a drawing in the plane, not a structure in space (the second line of one says 3D)")
    positions = finite(conformer.GetPositions(), "position")
    if (positions[:, 2] == 0).all() and (reason := _why_drawn(mol)):
        raise ValueError(f"a drawing in the plane that is called 3D: all z are 0, and {reason}")
    return mol, positions


def _why_drawn(mol: Chem.Mol) -> str:
    """Why a structure whose atoms lie in the plane z = 0 cannot be one in space; empty where it may be."""
    if sum(atom.GetAtomicNum() > 1 for atom in mol.GetAtoms()) <= FEW:
        return ""
    mol.UpdatePropertyCache(strict=False)
    for atom in mol.GetAtoms():
        if atom.GetSymbol() in ("C", "Si") and atom.GetDegree() > 3:
            return f"{atom.GetSymbol()} {atom.GetIdx() + 1} has {atom.GetDegree()} neighbours, which lie in no plane"
    lacking = sum(atom.GetTotalNumHs() for atom in mol.GetAtoms())
    return f"{lacking} of its hydrogens have no positions" if lacking else ""


def _record(lines: list[str], molecules: bool, blocks: bool, reason: str) -> SDRecord:
    end = next((i + 1 for i, line in enumerate(lines) if i > 2 and line.startswith("M  END")), None)  # no title
    if end is None:
        end = next((i for i, line in enumerate(lines) if line.startswith(">")), len(lines))
    text, block = "", "\n".join(lines[:end]) + "\n"
    if molecules and not reason:
        text, reason = _read(block, lines[3:4])
    kept = block if blocks and not reason else ""
    return SDRecord(lines[0].strip() if lines else "", text, reason, _fields(lines[end:]), kept)


def _fields(lines: list[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    name: str | None = None
    value: list[str] = []
    for line in [*lines, ""]:
        if name is None:
            if match := FIELD.match(line):
                name, value = match[1], []
        elif line.strip():
            value.append(line)
        else:
            out[name], name = "\n".join(value), None
    return out


def _read(block: str, counts: list[str]) -> tuple[str, str]:
    """SMILES or the reason; what is large or has many rings is read in a process that can be ended."""
    try:
        rings = int(counts[0][3:6]) - int(counts[0][:3]) if counts else 0
    except ValueError:
        rings = 0
    if len(block) < _SHORT or (len(block) < LONG and rings < RINGS and "V3000" not in "".join(counts)):
        return _smiles(block)
    try:
        return bounded(_smiles, block)
    except TooHardError as error:
        return "", f"{error} to read"


def draw_block(text: str) -> str:
    """A molecule as the block of an SD file, laid out in the plane; empty where the SMILES cannot be read in time.

    A molecule of more than ``MAX_DRAWN`` atoms is written without a layout, which takes RDKit seconds, and so without
    stereochemistry.
    """
    try:
        return bounded(_draw, text) if is_hard(text) else _draw(text)
    except TooHardError:
        return ""


def _draw(text: str) -> str:
    mol = smiles.parse_smiles(text).mol
    if mol is None:
        return ""
    with smiles.quiet():
        try:
            drawn = mol.GetNumAtoms() <= MAX_DRAWN
            if drawn:
                rdDepictor.Compute2DCoords(mol)
            return Chem.MolToMolBlock(mol, includeStereo=drawn)
        except (RuntimeError, ValueError):
            return ""


def write_record(title: str, block: str, fields: Iterable[tuple[str, str]]) -> str:
    r"""One record of an SD file; a field without a value is left out.

    A value that would end its field or the record (a blank line, ``$$$$``, ``>``) is written so that it does not.

    Args:
        title: written where the block has none.
        block: the structure; empty for a molecule of no atoms.
        fields: names and values.

    Example:
        >>> text = write_record("x", "", [("y", "1.5\n\n$$$$"), ("z", "")])
    >>> [(r.title, r.fields) for r in read_records(text.splitlines())]
    [('x', {'y': '1.5\n $$$$'})]
    """
    head, _, rest = (block or _NO_ATOMS).partition("\n")
    title = head if head.strip() else " ".join(_LINES.split(title))
    out = [f" {title}" if title.startswith("$$$$") else title, rest.rstrip("\n")]
    for name, value in fields:
        lines = [f" {line}" if line.startswith((">", "$$$$")) else line for line in _LINES.split(value) if line.strip()]
        if lines:
            out += [f">  <{' '.join(_LINES.split(name))}>", *lines, ""]
    return "\n".join([*out, "$$$$\n"])


def _smiles(block: str) -> tuple[str, str]:
    with smiles.captured() as log:
        try:
            mol = Chem.MolFromMolBlock(block)
            text = "" if mol is None else Chem.MolToSmiles(mol)
        except (RuntimeError, ValueError) as error:
            return "", smiles.one_line(str(error)) or type(error).__name__
    if mol is None:
        return "", smiles.one_line(log.messages) or "RDKit reads no molecule here"
    return (text, "") if mol.GetNumAtoms() else ("", "a molecule of no atoms")
