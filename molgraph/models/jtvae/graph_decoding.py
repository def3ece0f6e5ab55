"""Put decoded trees together: attachments scored for all molecules of a batch at once, then stereochemistry."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.packed import offsets_of
from molgraph.chem.fragments.assembly import Assembly
from molgraph.chem.fragments.junction_tree import Overlap
from molgraph.chem.fragments.stereo import Site, constitution_of, write_stereo
from molgraph.chem.fragments.vocabulary import Vocabulary
from molgraph.chem.smiles import why_unreadable
from molgraph.data.batch import BatchLevel, GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.models.jtvae.corpus import CLUSTER
from molgraph.models.jtvae.network import JTVAENetwork
from molgraph.models.jtvae.tree_decoding import DrawnTree, Limits, drawn
from molgraph.models.jtvae.tree_relations import TreeMessages, tree_messages

MOST_KEPT = 50_000  # graphs of attachments, and what they are encoded as


class GraphDecoder:
    """Draws the attachments of trees, and the stereochemistry of what comes out.

    Args:
        network, vocabulary, temperature, check, limits: as ``TreeDecoder`` has them.
    """

    def __init__(
        self, network: JTVAENetwork, vocabulary: Vocabulary, *, temperature: float, check: bool, limits: Limits
    ) -> None:
        self.network, self.vocabulary = network, vocabulary
        self.temperature, self.check, self.limits = temperature, check, limits
        self._encoded: dict[int, Float[Tensor, " d"]] = {}

    def decode(self, trees: Sequence[DrawnTree], z_graph: Float[Tensor, "n half"]) -> list[str]:
        """A SMILES for each tree; empty where no attachment of a cluster fits, which the check excludes."""
        if len(self.network.graphs) > MOST_KEPT:
            self.network.graphs.clear()
            self._encoded.clear()
        batch = _batch(trees, z_graph.device)
        messages = tree_messages(batch)
        code = batch[CLUSTER].arrays["code"]
        states = self.network.tree_messages(code, messages)
        first, z = batch[CLUSTER].offsets.tolist(), self.network.attach_z(z_graph)
        assemblies: list[Assembly | None] = [Assembly(self.vocabulary.labels[tree.codes[0]]) for tree in trees]
        until = time.monotonic() + self.limits.seconds
        for node in range(1, max((len(tree.codes) for tree in trees), default=0)):
            if time.monotonic() >= until:
                assemblies = [tree.made for tree in trees]
                break
            self._attach(node, trees, assemblies, (messages, states, first, z))
        texts = [assembly.smiles() if assembly else "" for assembly in assemblies]
        return self._with_stereo(texts, z_graph, [tree.rng for tree in trees])

    def _attach(
        self,
        node: int,
        trees: Sequence[DrawnTree],
        made: list[Assembly | None],
        read: tuple[TreeMessages, Tensor, list[int], Tensor],
    ) -> None:
        """Attach one node of each molecule."""
        open_ways: list[tuple[int, list[Overlap], list[int]]] = []
        for k, tree in enumerate(trees):
            one = made[k]
            if one is None or not len(one.labels) == node < len(tree.codes):  # of another way all nodes are there
                continue
            parent, label = tree.parent[node], self.vocabulary.labels[tree.codes[node]]
            ways = one.overlaps(parent, label, longest=self.vocabulary.longest)
            if not ways:
                made[k] = self._another_way(tree) if self.check else None
            elif len(ways) == 1:
                one.attach(parent, label, ways[0])
            else:
                open_ways.append((k, ways, [self.network.graphs.number(one, parent, label, way) for way in ways]))
        if not open_ways:
            return
        likely = self._likely(node, open_ways, read)
        for (k, ways, numbers), chance in zip(open_ways, likely, strict=True):
            tree, one = trees[k], made[k]
            assert one is not None
            distinct = [*dict.fromkeys(numbers)]
            number = distinct[drawn(chance, tree.rng)]
            same = [way for way, candidate in zip(ways, numbers, strict=True) if candidate == number]
            way = same[int(tree.rng.integers(len(same)))]
            one.attach(tree.parent[node], self.vocabulary.labels[tree.codes[node]], way)

    def _likely(
        self,
        node: int,
        open_ways: Sequence[tuple[int, list[Overlap], list[int]]],
        read: tuple[TreeMessages, Tensor, list[int], Tensor],
    ) -> list[np.ndarray]:
        """The chances of the distinct graphs of each molecule's ways."""
        messages, states, first, z = read
        distinct = [[*dict.fromkeys(numbers)] for _, _, numbers in open_ways]
        self._encode({number for numbers in distinct for number in numbers})
        sizes = [len(group) for group in distinct]
        rows = np.repeat([k for k, _, _ in open_ways], sizes)
        nodes = torch.from_numpy(np.array(first)[rows] + node).to(z.device)
        graph = torch.stack([self._encoded[number] for numbers in distinct for number in numbers])
        context = self.network.context(states, messages, nodes)
        scores = self.network.attachment_scores(graph, context, z.index_select(0, torch.from_numpy(rows).to(z.device)))
        parts = np.split(scores.double().cpu().numpy() / self.temperature, np.cumsum(sizes)[:-1])
        return [np.exp(part - part.max()) for part in parts]

    def _encode(self, numbers: set[int]) -> None:
        """Encode the graphs that are new."""
        new = sorted(number for number in numbers if number not in self._encoded)
        if new:
            batch = self.network.graphs.collate(np.array(new)).to(self.network.embedding.weight.device)
            self._encoded |= dict(zip(new, self.network.attachment_encoder(batch).graphs, strict=True))

    def _another_way(self, tree: DrawnTree) -> Assembly:
        """Another way to put a tree together, by a search of limited length; the one that it was drawn with at last."""
        labels = [self.vocabulary.labels[code] for code in tree.codes]
        assembly, left = Assembly(labels[0]), self.limits.attempts
        waiting: list[list[Overlap]] = []
        while len(assembly.labels) < len(labels) and left > 0:
            node = len(assembly.labels)
            if len(waiting) < node:
                ways = assembly.overlaps(tree.parent[node], labels[node], longest=self.vocabulary.longest)
                waiting.append([ways[i] for i in tree.rng.permutation(len(ways))])
            if waiting[-1]:
                assembly.attach(tree.parent[node], labels[node], waiting[-1].pop())
                left -= 1
            else:
                waiting.pop()
                if not waiting:
                    return tree.made
                assembly.undo()
        return assembly if len(assembly.labels) == len(labels) else tree.made

    def _with_stereo(self, texts: Sequence[str], z_graph: Tensor, rngs: Sequence[np.random.Generator]) -> list[str]:
        """Draw the way of each site of each constitution."""
        out = list(texts)
        bare = {k: constitution_of(text) for k, text in enumerate(texts) if text and not why_unreadable(text)}
        open_ = [k for k, constitution in bare.items() if constitution.sites]
        if not open_:
            return out
        store = featurize([bare[k].smiles for k in open_])
        batch = collate(store, np.arange(len(open_))).to(z_graph.device)
        atoms = self.network.graph_encoder(batch, rows=True).rows[0].h
        first = batch["atom"].offsets.tolist()
        sites = [(i, site) for i, k in enumerate(open_) for site in bare[k].sites]
        ends = torch.tensor([(first[i] + site.begin, first[i] + site.end) for i, site in sites], device=z_graph.device)
        states = atoms.index_select(0, ends[:, 0]) + atoms.index_select(0, ends[:, 1])
        graph_of = torch.tensor([open_[i] for i, _ in sites], device=z_graph.device)
        scores = self.network.stereo_scores(states, z_graph, graph_of).double() / self.temperature
        labelled: list[list[Site]] = [[] for _ in open_]
        for (i, site), chance in zip(sites, scores.softmax(dim=1).cpu().numpy(), strict=True):
            labelled[i].append(site._replace(label=drawn(chance, rngs[open_[i]])))
        for i, k in enumerate(open_):
            out[k] = write_stereo(bare[k].smiles, labelled[i])
        return out


def _batch(trees: Sequence[DrawnTree], device: torch.device) -> GraphBatch:
    """The trees as one batch of their clusters."""
    offsets = offsets_of([len(tree.codes) for tree in trees])
    code = np.array([code for tree in trees for code in tree.codes], np.int64)
    parent = np.array([max(above, 0) for tree in trees for above in tree.parent], np.int64)
    parent += np.repeat(offsets[:-1], np.diff(offsets))
    arrays = {"code": torch.from_numpy(code), "parent": torch.from_numpy(parent)}
    return GraphBatch(len(trees), {CLUSTER: BatchLevel(torch.from_numpy(offsets), arrays)}).to(device)
