"""Write molecules as tokens of SMILES or SELFIES, each row with its tokens or the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import UsageError, nearest
from molgraph.base.optional import need
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.parallel import map_texts
from molgraph.data.table import Table
from molgraph.generate.smiles_tokens import check_corpus, is_vocabulary, tokens_of

PAYS_FROM = 20_000  # texts; below, starting processes costs more than it saves


class Alphabet(NamedTuple):
    """A way to write molecules.

    Args:
        split: the tokens of canonical SMILES, each text with its tokens or the reason why it has none.
        join: the SMILES of tokens.
        begins: whether a molecule can begin with a token; one of SELFIES that does not begin with an atom is empty.
    """

    split: Callable[[Sequence[str]], list[tuple[list[str], str]]]
    join: Callable[[Sequence[str]], str]
    begins: Callable[[str], bool]


class Written(NamedTuple):
    """Rows as tokens.

    Args:
        tokens: those of each row, none where it has a reason.
        reason: object [n], empty where a row has tokens.
        canonical: the canonical SMILES of each row, empty where it has none.
    """

    tokens: list[list[str]]
    reason: np.ndarray
    canonical: list[str]

    @property
    def ok(self) -> np.ndarray:
        """bool [n], whether each row has tokens."""
        return self.reason == ""


def _split_smiles(texts: Sequence[str]) -> list[tuple[list[str], str]]:
    return [(tokens_of(text), "") for text in texts]


def _join_smiles(tokens: Sequence[str]) -> str:
    return "".join(tokens)


def _split_selfies(texts: Sequence[str]) -> list[tuple[list[str], str]]:
    selfies = need("selfies", "tokens='selfies'")
    made: list[tuple[list[str], str]] = []
    for text in texts:
        try:
            made.append((list(selfies.split_selfies(selfies.encoder(text))), ""))
        except selfies.EncoderError as error:
            made.append(([], f"SELFIES cannot write it: {' '.join(str(error).split())[:100]}"))
    return made


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
        raise UsageError(f"molecules have no tokens named {name!r}", hint=nearest(name, ALPHABETS))
    if name == "selfies":
        need("selfies", "tokens='selfies'")
    return ALPHABETS[name]


def write_tokens(
    table: Table, name: str, max_length: int, known: Collection[str] | None = None, *, label: str = ""
) -> Written:
    """The tokens of each row's molecule, by its canonical SMILES: they do not depend on how it was written.

    Args:
        table: one column of molecules.
        name: the alphabet, ``smiles`` or ``selfies``.
        max_length: tokens of a molecule, at most.
        known: the vocabulary that a molecule is written with; any token if not given.
        label: what the progress bar says.

    Raises:
        DataError: the table has no column of molecules, or several.

    Example:
        >>> from molgraph.data.table import make_table
        >>> found = write_tokens(make_table(["ClCC", "C1C", "CCBr"]), "smiles", 9, {"C", "Cl"})
        >>> found.tokens, found.reason[2]
        ([['C', 'C', 'Cl'], [], []], "'Br' is outside the model's vocabulary")
    """
    check_corpus(table)
    chosen, reason = alphabet(name), table.reason.astype(object)
    tokens: list[list[str]] = [[] for _ in range(len(table))]
    canonical = [""] * len(table)
    rows = np.flatnonzero(table.ok).tolist()
    for row, (text, why) in zip(rows, canonical_smiles(table.smiles[rows], label=label), strict=True):
        canonical[row], reason[row] = "" if why else text, why
    rows = [row for row in rows if not reason[row]]
    split = map_texts(chosen.split, [canonical[row] for row in rows], label=label, pays_from=PAYS_FROM)
    why_not = partial(_why_not, max_length=max_length, known=None if known is None else {*known})
    for row, (found, why) in zip(rows, split, strict=True):
        if why := why or why_not(found):
            reason[row] = why
        else:
            tokens[row] = found
    return Written(tokens, reason, canonical)


def _why_not(tokens: Sequence[str], max_length: int, known: set[str] | None) -> str:
    if len(tokens) > max_length:
        return f"{len(tokens):,} tokens, at most {max_length:,} are read"
    if not is_vocabulary([*{*tokens}]) or not tokens:
        return "no tokens that a model can learn"
    odd = [] if known is None else [token for token in tokens if token not in known]
    return f"{odd[0]!r} is outside the model's vocabulary" if odd else ""
