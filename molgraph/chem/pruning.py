"""SMILES text in; a shorter text of the same Murcko scaffold, which many molecules of a list share, out.

A scaffold forgets side chains, and RDKit's time goes into reading them, taking them off and writing what is left.
Acyclic branches that hang on by a single bond are taken off in the text, or shortened to ``*``, and RDKit then meets
each rest once. A rest is readable exactly when the whole text is: a branch goes only where it is readable by itself
and where the atom that bore it has room without doubt; wherever there is doubt the text stays as it is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import Match

from rdkit import Chem

from molgraph.chem.smiles import quiet

_ATOM = r"(?:Cl|Br|[CNOSFIPB*\ue000])"
_FLAT = rf"(?:{_ATOM}|[=#])"
_NESTED = rf"(?:{_FLAT}|\({_FLAT}+\))"
_CHAIN = rf"{_ATOM}(?:{_FLAT}|\({_NESTED}+\))*"  # begins with an atom: what hangs on by a single bond
_NITRO = re.compile(r"(?<![=#])\[N\+\](?:\(=O\)\[O-\]|\(\[O-\]\)=O)(?=\)|$)")
_BRANCH = re.compile(rf"\(({_CHAIN})\)")
_TAIL = re.compile(rf"(?<=[\dcnos)])({_CHAIN})(?=\)|$)")
_HEAD = re.compile(rf"^({_CHAIN})(?<![=#])(?=[cnos]|[CNOS]\d)")
_BRACKET = re.compile(r"\[[^\]]*\]")
#: brackets of metals, hydrogens and atom maps, several fragments and wildcards: left alone
_DOUBTFUL = re.compile(r"\[(?!\d*(?:[CNOSPBFI]|Cl|Br|Si|Se|[cnospb]|se)@{0,2}H?\d?[+-]?\d?\])|[.*\ue000-\uf8ff]")
_CLOSED_DOUBLE = re.compile(r"[=#%:$~/\\-]\d")
_HOST = re.compile(r"(?P<host>[CNcn])(?P<ring>\d?)(?P<stubs>(?:\(\*\))+|\*(?=\)|$))")
_START = re.compile(r"^\*(?P<host>[CNcn])(?P<ring>\d)(?=[A-Za-z\ue001-\uf8ff])")
_ROOM = {"C": 4, "N": 3, "c": 3, "n": 3}
_NITROGEN = "\uf8ff"  # an aromatic nitrogen that bore a side chain: the scaffold has [nH] there
_BOUND = frozenset("*:/\\-$~%")
_DOUBLE = ("=", "#")
_ORDER = {"": 0, "=": 2, "#": 3}
_RAW = Chem.SmilesParserParams()
_RAW.sanitize = _RAW.removeHs = False


def prune(text: str) -> str:
    """A text that is readable, and has the Murcko scaffold, that ``text`` is and has; the text itself where in doubt.

    Example:
        >>> prune("CCOc1ccc(C(=O)N(C)C)cc1"), prune("Cn1cccc1CC(N)C(=O)O"), prune("CCO.Cl")
        ('c1ccccc1', '[nH]1cccc1', 'CCO.Cl')
    """
    if _DOUBTFUL.search(text):
        return text
    held: list[str] = []

    def hold(found: Match[str]) -> str:
        held.append(found.group())
        return chr(0xE000 + len(held))

    short = text
    if "[" in short:
        short = _BRACKET.sub(hold, _NITRO.sub("\ue000", short))
        if len(held) > 0x1000:
            return text
    short = _BRANCH.sub(_branch, short)
    short = _TAIL.sub(_tail, short)
    short = _HEAD.sub(_head, short)
    if "*" in short and not _CLOSED_DOUBLE.search(short):
        short = _START.sub(_freed_start, _HOST.sub(_freed, short))
    for i, bracket in enumerate(held, 1):
        short = short.replace(chr(0xE000 + i), bracket)
    return short.replace(_NITROGEN, "[nH]").replace("\ue000", "[N+](=O)[O-]")


def read_flat(text: str) -> Chem.Mol | None:
    """The molecule without its stereo and with the hydrogens that the text has, in two thirds of RDKit's usual time."""
    mol = Chem.MolFromSmiles(text, _RAW)
    if mol is None or Chem.SanitizeMol(mol, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
        return None
    return mol


def _branch(found: Match[str]) -> str:
    return "(*)" if _readable("C" + found.group(1)) else found.group()


def _tail(found: Match[str]) -> str:
    return "*" if _readable("C" + found.group(1)) else found.group()


def _head(found: Match[str]) -> str:
    return "*" if _readable(found.group(1) + "C") else found.group()


@lru_cache(maxsize=50_000)
def _readable(chain: str) -> bool:
    """Whether a chain is a whole molecule with a carbon in its host's place."""
    with quiet():
        return read_flat(chain.replace("\ue000", "[N+](=O)[O-]")) is not None


def _freed(found: Match[str]) -> str:
    """A host without its stubs, where it has room for them and all its other bonds, which are single."""
    text, (start, end) = found.string, found.span()
    before, after, host = text[start - 1 : start], text[end : end + 1], found["host"]
    if before in _BOUND or after in _BOUND or after == "(" or after.isdigit():
        return found.group()
    if host in "cn" and (before in _DOUBLE or after in _DOUBLE):
        return found.group()
    bonds = _ORDER.get(before, 1) + bool(found["ring"]) + found["stubs"].count("*")
    bonds += 0 if after == ")" else _ORDER.get(after, 1)
    return found.group() if bonds > _ROOM[host] else _freed_start(found)


def _freed_start(found: Match[str]) -> str:
    return (_NITROGEN if found["host"] == "n" else found["host"]) + found["ring"]
