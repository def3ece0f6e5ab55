"""Split SMILES or SELFIES into tokens, and join tokens to molecules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.optional import need
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.parallel import map_texts

LONGEST_TOKEN = 64
PAYS_FROM = 20_000  # texts; below, starting processes costs more than it saves
_TOKEN = re.compile(r"\[[^\[\]]{1,62}\]|Br|Cl|%\d\d|.", re.DOTALL)


def tokens_of(smiles: str) -> list[str]:
    """The tokens of a SMILES: an atom in brackets, Br, Cl and a ring number of two digits are one each.

    Example:
        >>> tokens_of("C[C@H](Cl)Br")
        ['C', '[C@H]', '(', 'Cl', ')', 'Br']
    """
    return _TOKEN.findall(smiles)


class Alphabet(NamedTuple):
    """A way to write molecules.

    Args:
        split: the tokens of SMILES, each text with its tokens or the reason why it has none.
        join: the SMILES of tokens.
        begins: whether a molecule can begin with a token; one of SELFIES that does not begin with an atom is empty.
    """

    split: Callable[[Sequence[str]], list[tuple[list[str], str]]]
    join: Callable[[Sequence[str]], str]
    begins: Callable[[str], bool]


def _split_smiles(texts: Sequence[str]) -> list[tuple[list[str], str]]:
    return [(tokens_of(text), "") for text in texts]


def _join_smiles(tokens: Sequence[str]) -> str:
    return "".join(tokens)


def _split_selfies(texts: Sequence[str]) -> list[tuple[list[str], str]]:
    selfies = need("selfies", "tokens='selfies'")
    results: list[tuple[list[str], str]] = []
    for text in texts:
        try:
            results.append((list(selfies.split_selfies(selfies.encoder(text))), ""))
        except selfies.EncoderError as error:
            results.append(([], f"SELFIES cannot write it: {' '.join(str(error).split())[:100]}"))
    return results


def _join_selfies(tokens: Sequence[str]) -> str:
    selfies = need("selfies", "tokens='selfies'")
    try:
        return str(selfies.decoder("".join(tokens)))
    except selfies.DecoderError:  # of tokens that a stranger's file may hold
        return ""


def _is_token(token: str) -> bool:
    return True


def _is_atom(token: str) -> bool:
    return token not in (".", "[nop]") and "Ring" not in token and "Branch" not in token


ALPHABETS = {
    "smiles": Alphabet(_split_smiles, _join_smiles, _is_token),
    "selfies": Alphabet(_split_selfies, _join_selfies, _is_atom),
}


def alphabet(name: str) -> Alphabet:
    """The alphabet of that name.

    Raises:
        UsageError: there is none, or it needs a library that is not installed.

    Example:
        >>> alphabet("smiles").split(["CCl"]), alphabet("smiles").join(["C", "Cl"])
        ([(['C', 'Cl'], '')], 'CCl')
    """
    if name not in ALPHABETS:
        raise UnknownNameError(f"molecules have no tokens named {name!r}", hint=nearest(name, ALPHABETS))
    if name == "selfies":
        need("selfies", "tokens='selfies'")
    return ALPHABETS[name]


def canonical_tokens(
    smiles: Sequence[str] | np.ndarray,
    name: str,
    *,
    molecules: bool = True,
    label: str = "",
    workers: int | None = None,
) -> list[tuple[list[str], str, str]]:
    """The tokens of each molecule's canonical SMILES, that SMILES, and the reason where there are none.

    Args:
        smiles: n texts.
        name: the alphabet, ``smiles`` or ``selfies``.
        molecules: whether what RDKit reads and is no molecule, such as a bare ion, has a reason too.
        label: what the progress bar says.
        workers: processes, at most.

    Example:
        >>> canonical_tokens(["ClCC", "C1C"], "smiles")[0]
        (['C', 'C', 'Cl'], 'CCCl', '')
    """
    written = canonical_smiles(smiles, label=label, workers=workers)
    split = alphabet(name).split
    tokens = map_texts(split, [text for text, _ in written], label=label, workers=workers, pays_from=PAYS_FROM)
    reasons = [reason if molecules or not text else "" for text, reason in written]
    return [(seq, text, reason or odd) for (text, _), reason, (seq, odd) in zip(written, reasons, tokens, strict=True)]


def is_vocabulary(tokens: Sequence[object]) -> bool:
    """Whether all are distinct tokens that SMILES can have.

    Example:
        >>> is_vocabulary(("C", "Cl")), is_vocabulary(("C", "C")), is_vocabulary(("C\\n",))
        (True, False, False)
    """
    texts = [token for token in tokens if isinstance(token, str) and token.isascii() and token.isprintable()]
    whole = [text for text in texts if 0 < len(text) <= LONGEST_TOKEN and " " not in text]
    return len({*whole}) == len(tokens)
