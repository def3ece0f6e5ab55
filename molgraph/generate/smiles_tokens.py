"""Split SMILES into tokens, and pack the tokens of many molecules into a store."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from molgraph.base.errors import DataError
from molgraph.base.packed import offsets_of
from molgraph.base.table import OK
from molgraph.chem.identity import canonical_smiles
from molgraph.data.graph_store import GraphStore, Level
from molgraph.data.table import Table

LONGEST_TOKEN = 64
_TOKEN = re.compile(r"\[[^\[\]]{1,62}\]|Br|Cl|%\d\d|.", re.DOTALL)


def tokens_of(smiles: str) -> list[str]:
    """The tokens of a SMILES: an atom in brackets, Br, Cl and a ring number of two digits are one each.

    Example:
        >>> tokens_of("C[C@H](Cl)Br")
        ['C', '[C@H]', '(', 'Cl', ')', 'Br']
    """
    return _TOKEN.findall(smiles)


def learnable_texts(
    table: Table, max_length: int, known: Collection[str] | None = None
) -> tuple[list[list[str]], tuple[str, ...]]:
    """The tokens of each molecule that can be learned from, and notes on the rows that are passed over.

    Args:
        table: one column of molecules.
        max_length: tokens of a molecule, at most.
        known: the vocabulary of a training part, for a validation part: molecules with other tokens are passed over,
            and none need be left. None takes any token.

    Raises:
        DataError: the table has no column of molecules, or several, or nothing can be learned from.

    Example:
        >>> from molgraph.data.table import make_table
        >>> texts, notes = learnable_texts(make_table(["CCl", "C1C"]), 4)
        >>> texts, notes
        ([['C', 'Cl']], ('rows that are not learned from: 1 (unreadable)',))
    """
    check_corpus(table)
    readable = table.smiles[table.ok]
    found = canonical_smiles(readable, label="reading")
    sound = [unmapped_text(text, each.smiles) for text, each in zip(readable, found, strict=True) if not each.reason]
    texts = [tokens_of(text) for text in sound]
    kept = [text for text in texts if 0 < len(text) <= max_length and is_vocabulary([*{*text}])]
    none = sum(each.reason != "" and each.smiles != "" for each in found)
    passed = {
        "unreadable": len(table) - len(sound) - none,
        "not a molecule": none,
        f"over {max_length} tokens": len(texts) - len(kept),
    }
    if known is not None:
        return [text for text in kept if {*text} <= {*known}], ()
    if not kept:
        raise DataError("no molecule can be learned from", hint="look at the reasons: molgraph data audit FILE")
    return kept, tuple(f"rows that are not learned from: {n:,} ({why})" for why, n in passed.items() if n)


def check_corpus(table: Table) -> None:
    """Raise ``DataError`` for a table without a column of molecules, or with several."""
    if [each.kind for each in table.entities] != ["molecule"]:
        read = ", ".join(f"{each.name} ({each.kind})" for each in table.entities)
        raise DataError(f"a generator learns from one column of molecules, the table has {read}", hint="name it")


def unmapped_text(text: str, canonical: str) -> str:
    """A SMILES as it is written; where it may have atom maps, which nobody should learn, its canonical SMILES.

    Example:
        >>> unmapped_text("OCC", "CCO"), unmapped_text("[OH:1]CC", "CCO")
        ('OCC', 'CCO')
    """
    return canonical if ":" in text else text.strip()


def token_store(texts: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> GraphStore:
    """Pack tokenised texts into one level, ``token``, whose ``code`` is a token's place in the vocabulary, from 1.

    Args:
        texts: the tokens of each text, all of them in the vocabulary.
        vocabulary: distinct tokens; the code 0 is left for the start and the end of a text.

    Example:
        >>> store = token_store([["C", "O"], ["C"]], ("C", "O"))
        >>> store.levels["token"].offsets.tolist(), store.levels["token"].arrays["code"].tolist()
        ([0, 2, 3], [1, 2, 1])
    """
    place = {token: i for i, token in enumerate(vocabulary, 1)}
    offsets = offsets_of([*map(len, texts)])
    code = np.fromiter((place[token] for text in texts for token in text), np.int32, int(offsets[-1]))
    status, reason = np.full(len(texts), OK, dtype=object), np.full(len(texts), "", dtype=object)
    return GraphStore({"token": Level(offsets, {"code": code})}, {}, status, reason, "smiles_tokens.1")


def is_vocabulary(tokens: Sequence[object]) -> bool:
    """Whether all are distinct tokens that SMILES can have.

    Example:
        >>> is_vocabulary(("C", "Cl")), is_vocabulary(("C", "C")), is_vocabulary(("C\\n",))
        (True, False, False)
    """
    texts = [each for each in tokens if isinstance(each, str) and each.isascii() and each.isprintable()]
    whole = [text for text in texts if 0 < len(text) <= LONGEST_TOKEN and " " not in text]
    return len({*whole}) == len(tokens)
