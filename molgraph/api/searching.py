"""Find the molecules of a library that are nearest to a query, by the vectors of an encoder or by fingerprints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from molgraph.api.soft_search import soft_matches
from molgraph.base.cores import cores
from molgraph.base.errors import BadValueError, ConflictError, EmptyError, MissingOptionError
from molgraph.base.progress import bar
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import BitTable
from molgraph.data.content import entity_texts
from molgraph.data.read import iter_rows
from molgraph.embed.binary import bit_cosines, packed_bits
from molgraph.embed.csls import CSLS
from molgraph.embed.encoder import encoder_model
from molgraph.embed.heads import coded, is_binary
from molgraph.embed.search import Best, Similarity, add_block, unit
from molgraph.embed.vectors import Rows, check_width, holds_vectors, is_bits, joined, vector_blocks
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.pipelined_predict import predict_tables
from molgraph.train.stream import CHUNK_ROWS, count_rows

FINGERPRINT, BITS = "fingerprint", 2048
COLUMNS = ("query_id", "query", "rank", "id", "smiles", "similarity", "reason")


def nearest(
    query: Any,
    library: Any = None,
    *,
    by: Model | str | os.PathLike[str] | None = None,
    k: int | None = None,
    csls: bool = False,
    smarts: str | None = None,
    like: str | Sequence[str] = (),
    eps: float = 0.0,
    threads: int | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Find the k rows of a library that are most similar to each query; the search is exact.

    The library is read in blocks, so that memory does not grow with it. Molecules are compared by the cosine of their
    vectors, or by the Tanimoto similarity of Morgan fingerprints (radius 2, 2,048 bits). Binary codes, a file that ends
    in ``.bits``, are compared by their Hamming distance h, as the cosine ``1 - 2 h / bits`` of codes of -1 and 1; an
    encoder codes the other side as ``LIBRARY.bits.code.npz`` says. With ``smarts`` the first
    argument is the library, and those of its molecules are found that fit the pattern with substituents like the
    exemplars: ``molgraph.nearest("lib.smi", smarts="c1ccccc1[*:1]", like="[*:1]C(=O)O", eps=0.3)``; see
    ``molgraph.api.soft_search.soft_matches`` for what it returns.

    Args:
        query: molecules in any form that ``Model.predict`` takes, or vectors: what ``molgraph.embed`` returns or
            writes, or float [n, d].
        library: molecules or vectors.
        by: the encoder that makes vectors of molecules (a model or its file), or ``fingerprint``, which is the default
            where neither side is a file of vectors. With ``smarts``, whose vectors of substituents are compared.
        k: rows for each query, 10 if not given; with ``smarts`` all.
        csls: lower the similarity of hubs, rows that are near to many queries (cross-domain similarity local scaling,
            Conneau et al. 2018, equation 6); there must be several queries.
        smarts: pattern whose atoms with map numbers, at its ends, are places of substituents.
        like: exemplars for the places, such as ``[*:1]C(=O)O``.
        eps: largest distance of a substituent from an exemplar, 1 minus the cosine; 0 for the exemplars alone.
        threads: CPU threads; None for all.
        columns: ``smiles`` and ``id``, the columns of both tables.

    Returns:
        Columns query_id, query, rank, id, smiles, similarity (and csls), reason: k rows for each query, the nearest
        first; a query that has no vector is one row with its reason.

    Raises:
        UsageError: vectors and molecules without an encoder; ``k`` below 1. DataError: vectors of two widths.

    Example:
        >>> import molgraph
        >>> found = molgraph.nearest(["CCO"], ["c1ccccc1", "CCCO", "not a molecule"], k=1)
        >>> found[["query", "smiles"]].values.tolist()
        [['CCO', 'CCCO']]
    """
    if k is not None and k < 1:
        raise BadValueError(f"k is {k}, expected 1 or more", hint="as in -k 10")
    if smarts is not None:
        if library is not None or csls or by == FINGERPRINT:
            words = "a pattern is searched in one library, by vectors of substituents"
            hint = "leave the query, csls and by=fingerprint out: nearest(library, smarts=..., like=...)"
            raise ConflictError(words, hint=hint)
        return soft_matches(query, smarts, like, eps=eps, by=by, k=k, threads=threads, **columns)
    if like or eps:
        raise ConflictError("like and eps are of a pattern, and there is none", hint="add smarts='c1ccccc1[*:1]'")
    if library is None:
        raise MissingOptionError("there is no library to search in", hint="name it behind the query")
    k = 10 if k is None else k
    ready = holds_vectors(query), holds_vectors(library)
    if any(ready) and not all(ready) and by in (None, FINGERPRINT):
        words = "one side holds vectors and the other molecules, which need the same encoder"
        raise MissingOptionError(words, hint="name its file: --by encoder.mgm")
    if all(ready) and by is not None:
        raise ConflictError(f"both sides hold vectors already, and by={by} would make others", hint="leave it out")
    prints = not any(ready) and by in (None, FINGERPRINT)
    encoder = None if prints or by is None else encoder_model(by if isinstance(by, Model) else load_model(by))
    if encoder is not None and (bits := [side for side in (query, library) if is_bits(side)]):
        encoder = coded(encoder, None, f"{os.fspath(bits[0])}.code.npz", {}, "binary", 0)[0]
    how: dict[str, Any] = {"encoder": encoder, "threads": threads, "columns": columns}
    asked = joined([*_blocks(query, **how)])
    if not len(asked):
        raise EmptyError("there is no query", hint="give one molecule at least")
    return _search(asked, library, k, csls, prints, how)


def _search(asked: Rows, library: Any, k: int, csls: bool, prints: bool, how: dict[str, Any]) -> pd.DataFrame:
    able = np.flatnonzero(asked.ok)
    best, local = Best(len(able), k), CSLS(len(able)) if csls else None
    table, queries = BitTable(asked.x[able]) if prints else None, asked.x[able]
    kept, start = [], 0
    with bar("searching", total=count_rows(library)) as progress:
        for block in _blocks(library, **how):
            check_width(asked, block)
            similarity = _tanimoto(table, block.x) if table is not None else _cosines(queries, block.x)
            if local is not None:
                similarity = local.scaled(similarity, block.ok)
            before = best.row.copy()
            add_block(best, similarity, block.ok, start)
            kept.append(_named(block, start, before, best.row))
            start += len(block)
            progress.advance(len(block))
    names = {row: name for part in kept for row, name in part.items()}
    return _frame(asked, able, best, local, names)


def _cosines(queries: np.ndarray, x: np.ndarray) -> Similarity:
    """Of vectors, or of packed binary codes."""
    if x.dtype == np.uint8:
        return lambda rows: bit_cosines(queries, x[rows])
    wanted, rows_of = unit(queries), unit(x)
    return lambda rows: (wanted @ rows_of[rows].T).clip(-1, 1)  # rounding goes beyond 1


def _tanimoto(queries: BitTable, x: np.ndarray) -> Similarity:
    bits = BitTable(x, like=queries)
    return lambda rows: queries.similarity(bits.take(rows))


def _blocks(source: Any, encoder: Model | None, threads: int | None, columns: dict[str, Any]) -> Iterator[Rows]:
    """Rows of a source with their vectors, or with their fingerprints where there is no encoder."""
    if holds_vectors(source):
        yield from vector_blocks(source)
        return
    if encoder is None:
        for rows in iter_rows(source, chunk_rows=CHUNK_ROWS, **columns):
            table = rows.table
            table.check_one_molecule(FINGERPRINT)
            texts = table.smiles
            prints = morgan([text if isinstance(text, str) else "" for text in texts], 2, BITS, threads=cores(threads))
            reason = np.where(table.ok, prints.reasons, table.reason).astype(object)
            yield Rows(table.ids, np.array([str(t or "") for t in texts], dtype=object), prints.x, reason)
        return
    encoder.method.set_params(threads=threads)
    pieces = (piece.table for piece in iter_rows(source, chunk_rows=CHUNK_ROWS, **encoder.how_read(columns)))
    many = (count_rows(source) or 0) > CHUNK_ROWS
    for table, vectors in predict_tables(encoder, ((piece, piece) for piece in pieces), many=many):
        x = np.where(vectors.ok[:, None], vectors.value, 0).astype(np.float32)
        x = packed_bits(x) if is_binary(encoder) else x
        reason = np.where(vectors.ok, "", np.where(vectors.reason == "", "no vector", vectors.reason)).astype(object)
        yield Rows(vectors.ids, entity_texts(table.entities[0]), x, reason)


def _named(block: Rows, start: int, before: np.ndarray, after: np.ndarray) -> dict[int, tuple[str, str]]:
    """Id and text of the rows of a block that are among the best."""
    rows = np.setdiff1d(after[after >= start], before)
    return {int(row): (str(block.ids[row - start]), str(block.texts[row - start])) for row in rows}


def _frame(
    asked: Rows, able: np.ndarray, best: Best, local: CSLS | None, names: dict[int, tuple[str, str]]
) -> pd.DataFrame:
    place = {int(row): i for i, row in enumerate(able)}
    values, score = (best.score, best.score) if local is None else local.values(best)
    lines: list[tuple[Any, ...]] = []
    for row in range(len(asked)):
        head = (str(asked.ids[row]), str(asked.texts[row]))
        if (i := place.get(row)) is None:
            lines.append((*head, None, "", "", None, None, str(asked.reason[row])))
            continue
        for rank, neighbour in enumerate(best.row[i][best.row[i] >= 0].tolist()):
            lines.append((*head, rank + 1, *names[neighbour], score[i, rank], values[i, rank], ""))
    frame = pd.DataFrame(lines, columns=[*COLUMNS[:-1], "csls", "reason"])
    frame["rank"] = frame["rank"].astype("Int64")
    return frame if local is not None else frame.drop(columns="csls")
