"""Apply a function to many texts, in one process or several, keeping their order."""

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

from molgraph.base import progress
from molgraph.base.cores import cores
from molgraph.base.process import die_with

R = TypeVar("R")
PIECE = 500
PAYS_FROM = 8_000  # texts; below, starting processes costs more than it saves


def map_texts(
    function: Callable[[Sequence[str]], list[R]], texts: Sequence[str], *, label: str = "", workers: int | None = None
) -> list[R]:
    """Apply a function to pieces of a list of texts, with a progress bar.

    Args:
        function: ``texts -> one result each``, at module level so that processes can find it.
        texts: n texts.
        label: what the progress bar says.
        workers: processes; None takes one a core where that pays and where processes can be forked (on other
            systems they would run the caller's script again from its top, so there it is one).

    Returns:
        n results.

    Example:
        >>> def lengths(texts): return [len(t) for t in texts]
        >>> map_texts(lengths, ["C", "CC"])
        [1, 2]
    """
    pieces = [texts[i : i + PIECE] for i in range(0, len(texts), PIECE)]
    forks = sys.platform == "linux" and not multiprocessing.current_process().daemon
    if workers is None:
        workers = cores() if forks and len(texts) >= PAYS_FROM else 1
    out: list[R] = []
    with progress.bar(label, len(texts)) as bar:
        if workers < 2 or len(pieces) < 2:
            for piece in pieces:
                out += function(piece)
                bar.advance(len(piece))
            return out
        context = multiprocessing.get_context("fork" if forks else "spawn")
        with warnings.catch_warnings():
            # Python 3.12 warns of forking beside threads; the children run RDKit alone, and no thread of ours
            # holds a lock that they need.
            warnings.simplefilter("ignore", DeprecationWarning)
            begin, before = partial(_begin, os.getpid()), set(multiprocessing.active_children())
            with ProcessPoolExecutor(min(workers, len(pieces)), mp_context=context, initializer=begin) as pool:
                answers = [pool.submit(function, piece) for piece in pieces]
                try:
                    for piece, answer in zip(pieces, answers, strict=True):
                        out += answer.result()
                        bar.advance(len(piece))
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
