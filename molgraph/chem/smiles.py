"""Read SMILES as molecules of RDKit's and write them, with RDKit's message in one line where that fails."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # what ``signal`` wraps: a twentieth of its time, once a molecule
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from rdkit import Chem, rdBase

from molgraph.chem.bounded import TooHardError, bounded, is_hard

# RDKit walks along a molecule by recursion, and some of its steps grow with the square of its size or faster: a ring
# of 20,000 atoms overflows the stack and ends the process when its SMILES is written.
MAX_CHARACTERS = 5_000
MAX_REASON = 200
MAX_RINGS = 300
_LONG = 2_000  # texts of so many characters are looked at for what would keep RDKit busy for minutes

# RDKit's log streams belong to the whole process, so two threads that capture at once would read each
# other's words: one at a time.
_log = threading.RLock()
_SIGINT = 2  # the number as it is: an enum's member takes longer to look up than the call takes
_quiet_depth = 0
_blocker: rdBase.BlockLogs | None = None
_CLOCK = re.compile(r"^\[\d\d:\d\d:\d\d\] ", re.MULTILINE)
_POSITION = re.compile(r"check for mistakes around position (\d+)")
_BRACKETED = re.compile(r"\[[^\]]*\]")
_CLOSURE = re.compile(r"%\(\d+\)|%\d\d|\d")
_REACTION = re.compile(r"(?<!-)>")  # "->" is a dative bond


class Parsed(NamedTuple):
    """A molecule, or None and the reason."""

    mol: Chem.Mol | None
    reason: str


class Written(NamedTuple):
    """SMILES and an empty reason, or no SMILES and the reason."""

    smiles: str
    reason: str


@contextmanager
def quiet() -> Iterator[None]:
    """Keep RDKit's messages off the terminal and its hands off Ctrl-C; may be nested and used from several threads."""
    global _quiet_depth, _blocker
    with _log:
        if _quiet_depth == 0:
            _blocker = rdBase.BlockLogs()
        _quiet_depth += 1
    try:
        yield
    finally:
        with _log:
            _quiet_depth -= 1
            if _quiet_depth == 0:
                _blocker = None
        _restore_ctrl_c()


def _restore_ctrl_c() -> None:
    """Put Python's handler of SIGINT back where RDKit has left its own.

    RDKit's searches for substructures set a handler for their time; one that runs within another puts the wrong one
    back, and Ctrl-C does nothing from then on (rdkit 2026.3.5, ``ControlCHandler``).
    """
    if threading.current_thread() is threading.main_thread() and (handler := _signal.getsignal(_SIGINT)) is not None:
        _signal.signal(_SIGINT, handler)


@contextmanager
def captured() -> Iterator[rdBase.CaptureErrorLog]:
    """Collect RDKit's error messages instead of showing them; one thread at a time."""
    with quiet(), _log, rdBase.CaptureErrorLog() as log:
        yield log


def precheck(text: object) -> str:
    """Say why a text can be no molecule before RDKit reads it; empty where nothing speaks against it.

    Every reader and featuriser asks this first, so that all of them come to the same verdict. RDKit itself
    takes what follows a blank as a name, ends at a NUL and makes a molecule of no atoms of nothing.

    Args:
        text: one cell: SMILES, or CXSMILES (SMILES, a blank, ``|extensions|``).

    Returns:
        The reason in one line, or an empty string.

    Example:
        >>> precheck("CCO")
        ''
        >>> precheck("OCC ; drop table")
        "text after the SMILES: '; drop table'"
        >>> precheck("CCO>>CC=O")
        'a reaction, not a molecule'
    """
    if not isinstance(text, str):
        return "no molecule in this row" if text is None or text != text else f"not text: {type(text).__name__}"
    words = text.split(None, 1)
    if not words:
        return "no molecule in this row"
    if len(text) > MAX_CHARACTERS:
        return f"{len(text)} characters; molgraph reads SMILES of up to {MAX_CHARACTERS}"
    if "\0" in text:
        return "contains a NUL byte"
    if not text.isascii():
        odd = next(c for c in text if not c.isascii())
        return f"contains {ascii(odd)[1:-1]}, which is no SMILES character"
    if len(text) > _LONG and (reason := _too_hard(words[0])):
        return reason
    if ">" in words[0] and _REACTION.search(words[0]):
        return "a reaction, not a molecule"
    if len(words) > 1:
        extension = words[1].rstrip()
        if not (len(extension) > 1 and extension[0] == extension[-1] == "|"):
            return f"text after the SMILES: {_shorten(repr(extension), 60)}"
    return ""


def _too_hard(text: str) -> str:
    """Why a long text would keep RDKit busy for minutes.

    It words every branch that stays open, each with the whole text (83 s for 50,000 of them), and its search
    for rings and aromaticity grows faster than the square of their number (44 s for a chain of 1,000 phenylenes).
    """
    bare = _BRACKETED.sub("", text)
    if bare.count("(") != bare.count(")"):
        return "as many branches must close as open"
    closures = len(_CLOSURE.findall(bare)) // 2
    return f"{closures} ring closures; molgraph reads SMILES of up to {MAX_RINGS}" if closures > MAX_RINGS else ""


def check_smiles(text: object) -> str:
    """The reason of ``precheck``; and of an unusual text, whether RDKit reads it within the limit of ``bounded``.

    RDKit's search for alternating bonds takes twice the time for every other ring of some polycyclic molecules.

    Example:
        >>> check_smiles("CCO"), check_smiles(None)
        ('', 'no molecule in this row')
    """
    return precheck(text) or (_tried(str(text)) if is_hard(str(text)) else "")


def why_unreadable(text: str) -> str:
    """The reason of ``parse_smiles``; an unusual text is read in its own process alone.

    Example:
        >>> why_unreadable("CCO"), why_unreadable("CCO>>CC=O")
        ('', 'a reaction, not a molecule')
    """
    return check_smiles(text) if is_hard(text) else parse_smiles(text).reason


@lru_cache(maxsize=1_000)  # several readers ask about a molecule one after the other
def _tried(text: str) -> str:
    try:
        return bounded(_reason, text)
    except TooHardError as error:
        return f"{error} to read"


def _reason(text: str) -> str:
    return parse_smiles(text).reason


def parse_smiles(text: str) -> Parsed:
    """Read one SMILES; nothing is raised and nothing reaches the terminal.

    Args:
        text: SMILES or CXSMILES; blanks around it are ignored.

    Returns:
        The molecule and an empty reason, or None and RDKit's own words in one line.

    Example:
        >>> parse_smiles("CCO").mol.GetNumAtoms()
        3
        >>> parse_smiles("CN(C)(C)C").reason
        'Explicit valence for atom # 1 N, 4, is greater than permitted'
        >>> parse_smiles("C(C").reason
        'SMILES Parse Error: extra open parentheses while parsing: C(C (position 2)'
    """
    reason = check_smiles(text)
    if reason:
        return Parsed(None, reason)
    with captured() as log:
        try:
            mol = Chem.MolFromSmiles(text)
        except (RuntimeError, ValueError) as error:  # RDKit throws a few parser errors instead of logging them
            return Parsed(None, one_line(str(error)) or type(error).__name__)
    if mol is None:
        return Parsed(None, one_line(log.messages) or "RDKit reads no molecule here")
    if mol.GetNumAtoms() == 0:
        return Parsed(None, "a molecule of no atoms")
    return Parsed(mol, "")


def unmapped(mol: Chem.Mol) -> Chem.Mol:
    """The molecule without atom maps, and without stereo centres whose neighbours only the maps told apart.

    Example:
        >>> Chem.MolToSmiles(unmapped(Chem.MolFromSmiles("[CH3:1][C@H:2]([OH:3])[CH3:4]")))
        'CC(C)O'
    """
    mapped = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomMapNum()]
    if not mapped:
        return mol
    mol = Chem.Mol(mol)
    for index in mapped:
        mol.GetAtomWithIdx(index).SetAtomMapNum(0)
    Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    return mol


def is_mol(value: object) -> bool:
    """Whether a value is a molecule of RDKit's.

    Example:
        >>> is_mol(Chem.MolFromSmiles("C")), is_mol("C")
        (True, False)
    """
    return isinstance(value, Chem.Mol)


def write_smiles(mol: Any) -> Written:
    """Write a molecule as SMILES; nothing is raised and nothing reaches the terminal.

    Example:
        >>> write_smiles(Chem.MolFromSmiles("OCC"))
        Written(smiles='CCO', reason='')
        >>> write_smiles(Chem.Mol()).reason
        'a molecule of no atoms'
    """
    n = mol.GetNumAtoms()
    if not n or n > MAX_CHARACTERS:  # RDKit walks along a molecule by recursion: a huge ring would end the process
        return Written("", f"{n} atoms; molgraph reads up to {MAX_CHARACTERS}" if n else "a molecule of no atoms")
    with captured() as log:
        try:
            text = Chem.MolToSmiles(mol)
        except (RuntimeError, ValueError) as error:
            return Written("", one_line(str(error)) or type(error).__name__)
    return Written(text, "") if text else Written("", one_line(log.messages) or "RDKit writes no SMILES for it")


def one_line(messages: str) -> str:
    """RDKit's log as one line: its first message without the clock, and the position where it names one.

    Example:
        >>> one_line("[12:00:01] Can't kekulize mol.  Unkekulized atoms: 0 1 2\\n")
        "Can't kekulize mol.  Unkekulized atoms: 0 1 2"
    """
    lines = [line.strip() for line in _CLOCK.sub("", messages).splitlines() if line.strip()]
    if not lines:
        return ""
    if lines[0] == "****" and len(lines) > 2:  # a broken invariant: its kind and words stand under the stars
        lines = [f"{lines[1]}: {lines[2]}"]
    position = _POSITION.search(messages)
    return _shorten(lines[0], MAX_REASON) + (f" (position {position[1]})" if position else "")


def _shorten(text: str, limit: int) -> str:
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    return printable if len(printable) <= limit else printable[: limit - 3] + "..."
