"""Search a library by a SMARTS pattern whose attachment points accept substituents similar to given examples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pandas as pd

from molgraph.base.progress import bar
from molgraph.data.read import iter_rows
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.embed.grammar import Grammar, Likeness
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.stream import CHUNK_ROWS, count_rows


def soft_matches(
    library: Any,
    smarts: str,
    like: str | Sequence[str],
    *,
    eps: float = 0.0,
    by: Model | str | os.PathLike[str] | None = None,
    k: int | None = None,
    threads: int | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Find the molecules that fit a SMARTS pattern whose places hold substituents close to exemplars.

    See ``molgraph.embed.grammar.Grammar``; ``molgraph.nearest(library, smarts=...)`` calls this.

    Args:
        library: molecules in any form that ``Model.predict`` takes.
        smarts: pattern; atoms with map numbers at its ends are places.
        like: exemplars such as ``[*:1]C(=O)O``.
        eps: largest distance of a substituent from an exemplar of its place; 0 for the exemplars alone.
        by: the encoder whose vectors are compared (a model or its file); None for fourteen properties.
        k: of the matches, those that are closest; None for all.
        threads: CPU threads of the encoder; None for all.
        columns: ``smiles`` and ``id``.

    Returns:
        Columns rank, id, smiles, distance, the substituent at each place (``R1``, ...), and reason: the closest first,
        then the rows that cannot be read, with their reason.
    """
    model = by if by is None or isinstance(by, Model) else load_model(by)
    likeness = Likeness(None if model is None else MoleculeEncoder(model), threads)
    grammar = Grammar(smarts, [like] if isinstance(like, str) else [*like], eps, likeness)
    places = [f"R{number}" for number in grammar.numbers]
    lines: list[tuple[Any, ...]] = []
    lost: list[tuple[Any, ...]] = []
    with bar("searching", total=count_rows(library)) as progress:
        for rows in iter_rows(library, chunk_rows=CHUNK_ROWS, **columns):
            table = rows.table
            table.check_one_molecule("a pattern")
            texts = [text if isinstance(text, str) else "" for text in table.smiles]
            matches, reasons = grammar.matches(texts)
            for row, match in enumerate(matches):
                reason = str(table.reason[row]) if not table.ok[row] else reasons[row]
                head = (str(table.ids[row]), texts[row])
                if reason:
                    lost.append((None, *head, None, *("" for _ in places), reason))
                elif match is not None:
                    lines.append((*head, match.distance, *match.substituents, ""))
            progress.advance(len(table))
    lines = sorted(lines, key=lambda line: line[2])[:k]  # sorted() keeps the order of equals
    frame = pd.DataFrame(
        [*((rank, *line) for rank, line in enumerate(lines, 1)), *lost],
        columns=["rank", "id", "smiles", "distance", *places, "reason"],
    )
    frame["rank"] = frame["rank"].astype("Int64")
    frame["distance"] = frame["distance"].astype(float)
    return frame
