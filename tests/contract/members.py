"""Which members stand for the code that a kind's members share, so that one more part is tried in seconds.

A trial asks one of two things. What a member does itself, it asks of all: ``names("method")``. What a base class does
for whoever inherits it, it asks of two: ``two_of("GraphMethod")``, or ``standing("method")``, which are two of each
base class and all members that share their code with nobody. A part has five seconds of CPU for all its trials.
"""

from __future__ import annotations

from molgraph.base.registry import get, names

#: base class -> the two of its members whose ways through its code differ most
PAIRS: dict[str, tuple[str, str]] = {
    "AtomEncoder": ("dmpnn", "gin"),  # bonds and a readout of its own; atoms that look alike computed once
    "GraphMethod": ("dmpnn", "deepdta"),  # graphs with descriptors and shared rows; tokens, of several kinds of entity
    "LatentGenerator": ("chemvae", "jtvae"),  # texts letter by letter; trees of fragments
    "NetworkGenerator": ("gru", "chemvae"),  # without a latent space and with one
    "Norm": ("batch", "graph"),  # over the rows of a batch, with a state; over those of each graph
    "PeerMethod": ("chemprop", "deepchem"),
    "PoolingNet": ("pyg_pool", "structpool"),  # pairs of clusters of any number; of a fixed number
    "Readout": ("set2set", "self_attentive"),  # several passes over the rows; wider than a row, with a penalty
    "TabularMethod": ("random_forest", "gp"),  # trees on features; similarities to training rows, and a spread
    "Wrapper": ("ensemble", "ensemble"),  # those that hold rows back are tried by test_wrappers.py, on more rows
}
#: encoders whose training leaves something beside weights in a model file
LAYOUTS = ("pna",)


def two_of(base: str) -> tuple[str, str]:
    """The two members for which the trials of a base class run."""
    return PAIRS[base]


def standing(kind: str) -> list[str]:
    """Members of a kind that stand for all: two of each base class, and those of no base class in ``PAIRS``."""
    chosen = []
    for name in names(kind):
        bases = [cls.__name__ for cls in get(kind, name).__mro__[1:]]
        if all(name in PAIRS[base] for base in bases if base in PAIRS):
            chosen.append(name)
    return chosen
