"""The JT-VAE's authors' own code as a peer: prepare molecules, train an epoch, decode.

The code (github.com/wengong-jin/icml18-jtnn, of which ``fast_jtnn`` and ``fast_molvae`` are the faster generation) is
for Python 2 and a GPU. MOLGRAPH_JTNN names a folder with a copy that runs on a CPU with today's Python and RDKit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from timing import cpu_seconds

DEPTHS = 20, 3  # of the messages in trees and in graphs: those of its training script, as the other settings here


def without_peer() -> bool:
    """Whether the authors' code is missing here; says so where it is."""
    folder = os.environ.get("MOLGRAPH_JTNN", "")
    if Path(folder, "fast_jtnn").is_dir():
        return False
    print("JT-VAE: MOLGRAPH_JTNN names no folder with a copy of its authors' code, which is not measured")
    return True


class Theirs:
    """The authors' code; its vocabulary is that of the molecules.

    Args:
        d_hidden, d_latent: widths.
    """

    def __init__(self, d_hidden: int, d_latent: int) -> None:
        sys.path.append(os.environ["MOLGRAPH_JTNN"])
        import fast_jtnn
        from fast_jtnn.datautils import tensorize as collate
        from fast_molvae.preprocess import tensorize

        self.code, self.collate, self.tensorize, self.widths = fast_jtnn, collate, tensorize, (d_hidden, d_latent)

    def prepare(self, smiles: list[str]) -> list[Any]:
        """Trees with the candidates of every attachment."""
        return [self.tensorize(text) for text in smiles]

    def epoch_seconds(self, smiles: list[str], batch: int) -> float:
        """Of a new model's first epoch; its loader makes every batch afresh in every epoch."""
        trees = self.prepare(smiles)
        names = sorted({node.smiles for tree in trees for node in tree.nodes})
        vocabulary = self.code.Vocab(names)
        vocabulary.vmap |= {name: k for k, name in enumerate(names)}
        torch.manual_seed(0)
        model = self.code.JTNNVAE(vocabulary, *self.widths, *DEPTHS)
        for weight in model.parameters():
            torch.nn.init.xavier_normal_(weight) if weight.dim() > 1 else torch.nn.init.zeros_(weight)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        start = cpu_seconds()
        for first in range(0, len(trees), batch):
            optimiser.zero_grad()
            model(self.collate(trees[first : first + batch], vocabulary), 0.0)[0].backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 50.0)
            optimiser.step()
        self.model, self.trees = model, trees
        return cpu_seconds() - start

    def sample(self, n: int) -> list[str]:
        """Decode latents of the prior, one after the other, as it cannot decode several together.

        A model that is barely trained adds clusters until it is cut off after 100, for a minute each. So the choices
        of its tree decoder are moved to those of the trees that it was trained on: all its work is done, for
        molecules of their size.
        """
        decoder = self.model.decoder
        found = []
        for tree in self.trees[:n]:
            decoder.aggregate = led(type(decoder).aggregate.__get__(decoder), tree)
            with torch.no_grad():
                found.append(self.model.sample_prior() or "")
        del decoder.aggregate
        return found


def led(scores_of: Any, tree: Any) -> Any:
    """Scores of labels and of going deeper, moved so that a tree's own are the largest."""
    labels = iter([tree.nodes[0].wid, *below(tree.nodes[0], None), None])
    label = [next(labels)]

    def scores(hidden: Any, contexts: Any, latents: Any, mode: str) -> Any:
        found = scores_of(hidden, contexts, latents, mode).clone()
        if mode == "word":
            found[0, label[0]] += 1e4
            return found
        label[0] = next(labels, None)
        return found + (-1e4 if label[0] is None else 1e4)

    return scores


def below(node: Any, parent: Any) -> Iterator[int | None]:
    """The labels under a node, depth first; None for each step back."""
    for child in node.neighbors:
        if child is not parent:
            yield child.wid
            yield from below(child, node)
            yield None
