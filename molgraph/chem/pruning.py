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
_START = re.compile(r"^(?P<first>\*)(?P<host>[CNcn])(?P<ring>\d+)(?P<stubs>(?:\(\*\))*)(?=[=A-Za-z\ue001-\uf8ff])")
_PARTNER = re.compile(r"[A-Z\[][^cnosp\d]*")  # another fragment that may be acyclic
_ROOM = {"C": 4, "N": 3, "c": 3, "n": 3}
_NITROGEN = "\uf8ff"  # an aromatic nitrogen that bore a side chain: the scaffold has [nH] there
_BOUND = frozenset("*:/\\-$~%")
_DOUBLE = ("=", "#")
_ORDER = {"": 0, "=": 2, "#": 3}
# Text of one fragment without charges, isotopes, atom maps, hydrogen atoms and metals: nothing to take off but stereo.
_PLAIN = re.compile(r"(?:[^\[\].|\s]|\[(?:[BCNOPSbcnops]|Si|Se|se)@{0,2}H?\d?\])+")
_ANY_NITRO = re.compile(r"\[N\+\](?:\(=O\)\[O-\]|\(\[O-\]\)=O)|O=\[N\+\]\(\[O-\]\)")
_HYDROGEN = re.compile(r"\[\d*H[\]+:-]")  # as an atom of its own
_RAW = Chem.SmilesParserParams()
_RAW.sanitize = _RAW.removeHs = False
_Flags = Chem.SanitizeFlags
#: what neither refuses a molecule nor shows in a SMILES without stereo is left out
_FLAT_OPS = _Flags.SANITIZE_ALL ^ (
    _Flags.SANITIZE_SETCONJUGATION
    | _Flags.SANITIZE_SETHYBRIDIZATION
    | _Flags.SANITIZE_CLEANUPCHIRALITY
    | _Flags.SANITIZE_CLEANUPATROPISOMERS
)


def prune(text: str) -> str:
    """A text that is readable, and has the Murcko scaffold, that ``text`` is and has; the text itself where in doubt.

    Example:
        >>> prune("CCOc1ccc(C(=O)N(C)C)cc1"), prune("Cn1cccc1CC(N)C(=O)O"), prune("CCO.Cl")
        ('c1ccccc1', '[nH]1cccc1', 'CCO.Cl')
    """
    if "." in text and "|" not in text:
        text = _alone(text)
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


def read_raw(text: str) -> Chem.Mol | None:
    """Atoms and bonds as the text has them, without a look at their chemistry; None where it is no SMILES."""
    return Chem.MolFromSmiles(text, _RAW)


def read_flat(text: str) -> Chem.Mol | None:
    """The molecule without its stereo and with the hydrogens that the text has, in half of RDKit's usual time."""
    mol = read_raw(text)
    if mol is None or Chem.SanitizeMol(mol, sanitizeOps=_FLAT_OPS, catchErrors=True) != _Flags.SANITIZE_NONE:
        return None
    return mol


def read_pruned(text: str) -> Chem.Mol | None:
    """The molecule of a pruned text, without its stereo, with RDKit's rules for which hydrogens are no atoms."""
    return Chem.MolFromSmiles(text) if _HYDROGEN.search(text) else read_flat(text)


def is_plain(text: str) -> bool:
    """Whether a readable text's flat parent is its own molecule without stereo: one fragment, no charge but nitro's.

    Example:
        >>> is_plain("C[C@H](N)C(=O)O"), is_plain("C[N+](=O)[O-]"), is_plain("C[NH3+].[Cl-]")
        (True, True, False)
    """
    return _PLAIN.fullmatch(_ANY_NITRO.sub("N", text) if "+" in text else text) is not None


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


def _alone(text: str) -> str:
    """The one fragment that has rings, where all others are acyclic and readable: a scaffold forgets those."""
    kept = [piece for piece in text.split(".") if not (_PARTNER.fullmatch(piece) and _readable(piece))]
    return kept[0] if len(kept) == 1 else text


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
    return found.group() if bonds > _ROOM[host] else _bare(host) + found["ring"]


def _freed_start(found: Match[str]) -> str:
    """The first ring atom without the side chain before it and its stubs, where it has room for all its bonds."""
    host, after = found["host"], found.string[found.end()]
    bonds = 1 + len(found["ring"]) + found["stubs"].count("*") + _ORDER.get(after, 1)
    return found.group() if bonds > _ROOM[host] or (host in "cn" and after == "=") else _bare(host) + found["ring"]


def _bare(host: str) -> str:
    return _NITROGEN if host == "n" else host
