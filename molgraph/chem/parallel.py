"""Apply a function to many SMILES, in one process or several, keeping their order."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from molgraph.base import progress
from molgraph.base.cores import cores
from molgraph.base.worker import die_with
from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.smiles import quiet

R = TypeVar("R")
PIECE = 500
KEPT = 1 << 14  # results of a function that several steps of a run ask about the same molecules
PAYS_FROM = 8_000  # texts; below, starting processes costs more than it saves


def map_molecules(
    function: Callable[[str], R],
    smiles: Sequence[str] | np.ndarray,
    refused: Callable[[str, str], R],
    *,
    seconds: float | None = None,
    label: str = "",
    workers: int | None = None,
    pays_from: int = PAYS_FROM,
    piece: int = PIECE,
) -> list[R]:
    """Apply a function to each distinct SMILES once; to unusual ones in a process that is ended when it takes too long.

    Args:
        function: ``SMILES -> result``, at module level, or a ``partial`` of such a one; RDKit is quiet meanwhile.
        smiles: n texts.
        refused: the result of a text and the reason why the function has none.
        seconds: of CPU time for an unusual one; None for ``bounded.SECONDS``.
        label: what the progress bar says.
        workers, pays_from, piece: as for ``map_texts``.

    Returns:
        n results.
    """
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(text, len(code_of)) for text in smiles]
    run = partial(_apply, function, seconds)
    results = map_texts(run, [*code_of], label=label, workers=workers, pays_from=pays_from, piece=piece)
    out = [refused(t, str(r)) if isinstance(r, TooHardError) else r for t, r in zip(code_of, results, strict=True)]
    return [out[code] for code in codes]


def _apply(function: Callable[[str], R], seconds: float | None, texts: Sequence[str]) -> list[R | TooHardError]:
    out: list[R | TooHardError] = []
    with quiet():
        for text in texts:
            try:
                out.append(bounded(function, text, seconds=seconds) if is_hard(text) else function(text))
            except TooHardError as error:
                out.append(error)
    return out


def map_texts(
    function: Callable[[Sequence[str]], list[R]],
    texts: Sequence[str],
    *,
    label: str = "",
    workers: int | None = None,
    pays_from: int = PAYS_FROM,
    piece: int = PIECE,
) -> list[R]:
    """Apply a function to pieces of a list of texts, with a progress bar.

    Args:
        function: ``texts -> one result each``, at module level so that processes can find it.
        texts: n texts.
        label: what the progress bar says.
        workers: processes; None takes one a core where that pays and where processes can be forked (on other
            systems they would run the caller's script again from its top, so there it is one).
        pays_from: the number of texts from which several processes pay.
        piece: how many texts a process is sent at once.

    Returns:
        n results.

    Example:
        >>> def lengths(texts): return [len(t) for t in texts]
        >>> map_texts(lengths, ["C", "CC"])
        [1, 2]
    """
    pieces = [texts[i : i + piece] for i in range(0, len(texts), piece)]
    forks = sys.platform == "linux" and not multiprocessing.current_process().daemon
    if workers is None:
        workers = cores() if forks and len(texts) >= pays_from else 1
    out: list[R] = []
    with progress.bar(label, len(texts)) as bar:
        if workers < 2 or len(pieces) < 2:
            for some in pieces:
                out += function(some)
                bar.advance(len(some))
            return out
        context = multiprocessing.get_context("fork" if forks else "spawn")
        with warnings.catch_warnings():
            # Python 3.12 warns of forking beside threads; the children run RDKit alone, and no thread of ours
            # holds a lock that they need.
            warnings.simplefilter("ignore", DeprecationWarning)
            begin, before = partial(_begin, os.getpid()), set(multiprocessing.active_children())
            with ProcessPoolExecutor(min(workers, len(pieces)), mp_context=context, initializer=begin) as pool:
                answers = [pool.submit(function, some) for some in pieces]
                try:
                    for some, answer in zip(pieces, answers, strict=True):
                        out += answer.result()
                        bar.advance(len(some))
                except BaseException:  # Ctrl-C: nobody waits for the pieces at hand
                    for child in set(multiprocessing.active_children()) - before:
                        child.kill()
                    raise
    return out


def _begin(parent: int) -> None:
    """In a child: end with the parent, however that ends, and leave its memory alone.

    A child that looked through all objects of its parent for garbage would copy their memory.
    """
    die_with(parent)
    gc.freeze()
