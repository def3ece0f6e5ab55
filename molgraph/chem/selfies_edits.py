"""Mutate SELFIES by one token, and draw random ones: every sequence of tokens is a molecule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: tokens that are inserted: common elements without charges, branches and rings (Krenn et al. 2020)
TOKENS = (
    *("[C]", "[=C]", "[#C]", "[N]", "[=N]", "[#N]", "[O]", "[=O]", "[S]", "[=S]", "[F]", "[Cl]", "[Br]"),
    *("[Branch1]", "[=Branch1]", "[#Branch1]", "[Branch2]", "[=Branch2]", "[Ring1]", "[=Ring1]", "[Ring2]"),
)
BENZENE = ("[C]", "[=C]", "[C]", "[=C]", "[C]", "[=C]", "[Ring1]", "[=Branch1]")
PIECES = (*((token,) for token in TOKENS), BENZENE)


def mutate_tokens(tokens: Sequence[str], rng: np.random.Generator, max_tokens: int = 81) -> list[str]:
    """Insert a random piece, or replace a token by one, with equal chances (Nigam et al. 2020, section 3.1).

    A piece is a token or a benzene ring.

    Args:
        tokens: of a molecule, one or more.
        rng: of the mutation.
        max_tokens: tokens of the result, whose end is cut off where it has more.

    Example:
        >>> len(mutate_tokens(["[C]", "[O]"], np.random.default_rng(1))) in (2, 3, 9, 10)
        True
    """
    place, piece = int(rng.integers(len(tokens) + 1)), PIECES[rng.integers(len(PIECES))]
    after = place + int(rng.random() < 0.5)
    return [*tokens[:place], *piece, *tokens[after:]][:max_tokens]


def random_tokens(rng: np.random.Generator, max_tokens: int = 81) -> list[str]:
    """Pieces drawn alone, of a length from 1 to ``max_tokens``: the baseline of the same paper.

    Example:
        >>> set(random_tokens(np.random.default_rng(0))) <= set(TOKENS)
        True
    """
    length = 1 + int(rng.integers(max_tokens))
    return [token for i in rng.integers(len(PIECES), size=length) for token in PIECES[i]][:length]
