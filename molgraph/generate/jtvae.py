"""Learn a latent space of molecules as junction trees and graphs, from which every vector decodes to a molecule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import torch

from molgraph.base.contracts import LatentGenerator, Latents
from molgraph.base.errors import BadValueError
from molgraph.base.options import takes
from molgraph.base.progress import bar
from molgraph.base.ranges import NotNegative, Positive, Range, Width
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fragments.vocabulary import Vocabulary
from molgraph.data.batch import collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.table import Table
from molgraph.generate.jtvae_corpus import Language, read_trees, smiles_of
from molgraph.generate.network_generator import OPTIONS, Corpus, NetworkGenerator
from molgraph.models.jtvae.attachments import AttachmentGraphs
from molgraph.models.jtvae.corpus import pack_trees
from molgraph.models.jtvae.graph_decoding import GraphDecoder
from molgraph.models.jtvae.network import JTVAENetwork
from molgraph.models.jtvae.tree_decoding import Limits, TreeDecoder
from molgraph.nn.variational import elbo
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.runtime import resolve_device
from molgraph.train.samples import Sample
from molgraph.train.warmup import linear

TOGETHER = 128  # vectors that are decoded at once
ENCODED = 256  # molecules that are encoded at once


class TreeELBO(Objective):
    """The negative evidence lower bound of trees, attachments and stereochemistry, summed over molecules.

    Args:
        beta: weight of the divergence in the end.
        warmup: the share of the training with a weight of 0, which rises over an equal share after that.
    """

    labelled = False

    def __init__(self, beta: float, warmup: float) -> None:
        super().__init__()
        self.beta, self.warmup = beta, warmup

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """The bound of a batch; a row of weight 0 is one that another process has too."""
        graphs = batch.parts[0].batch
        encoded = network.encode(graphs)
        q = encoded.posterior
        z = q.draw(torch.randn_like(q.mean)) if state.training else q.mean
        shares = network.decode(z, encoded, graphs)
        beta = linear(state, self.beta, self.warmup, 2 * self.warmup)
        recon = -sum(shares)
        kl = elbo(q.mean.new_zeros(len(q.mean)), q).kl.sum()
        return Loss(-(recon - beta * kl), graphs.n_graphs, {**shares._asdict(), "kl": kl})

    def warming_up(self, state: StepState) -> bool:
        """Until the divergence has its whole weight."""
        return state.progress < 2 * self.warmup


@register(
    "generator",
    "jtvae",
    summary="a variational autoencoder of junction trees and graphs: every vector decodes to a molecule",
    paper="Jin et al. 2018, ICML, arXiv:1802.04364",
    systems=(
        SystemCard(
            "jt-vae",
            off="chemvae",
            beside=("chemvae",),
            modules=("molgraph.models.jtvae.network", "molgraph.generate.jtvae_corpus"),
        ),
    ),
)
class JTVAE(NetworkGenerator, LatentGenerator):
    """A latent space from which every vector decodes to a molecule, after Jin et al. 2018.

    A molecule is a tree of clusters (rings, bonds, branching atoms; its vocabulary is that of the corpus) and a graph.
    Half of the latent vector is of the tree, half of the graph: ``q(z_T, z_G | T, G)`` by gated messages in the tree
    and directed messages in the graph; ``p(T | z_T)`` node by node, depth first, ``p(G | T, z_G)`` attachment by
    attachment, each softmax over the distinct ones. Trained for ``log p(T | z_T) + log p(G | T, z_G) - beta KL``.
    Unlike the paper it attaches the neighbours of a cluster one after the other, so that their number does not
    multiply the candidates, and draws stereochemistry site by site.

    Args:
        d_hidden: width of all states; the paper's is 450.
        d_latent: width of a latent vector, an even number; the paper's is 56.
        depth: levels of messages in graphs; the paper's is 3.
        beta: weight of the divergence: at 0.1 draws of the prior look like the corpus; at the authors' 0.005 more
            molecules decode to themselves.
        warmup: share of the training with a weight of 0, which rises over an equal share after that.
        min_count: clusters that the corpus has less often are not in the vocabulary; molecules with them are passed
            over, unless their rings can be taken one by one.
        max_nodes: clusters of a molecule that is decoded.
        max_atoms: where decoding adds no further cluster to a molecule.
        attempts: attachments that a search makes where the first choices of a molecule lead nowhere.
        check_chemistry: draw clusters that can be attached, and search for another way where the drawn one ends;
            without it a tree to which no attachment fits is no molecule, as the paper counts it.
        temperature: of decoding: below 1 likely clusters and attachments are drawn more often, above 1 more rarely.
        seconds: to draw 128 trees, and to put them together: those that need longer end as they are then.
        seed: of the weights, the order of the rows and the posteriors' points.
        checkpoint_seconds: time between checkpoints, where fit is given a working folder.
        options: the keys of a recipe's training, with its defaults; ``help(JTVAE.__init__)`` lists them.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "c1ccccc1O", "CC(C)N"])
        >>> made = JTVAE(d_hidden=16, d_latent=4, epochs=2).fit(table)
        >>> made.encode(table).mean.shape, len(made.sample(5))
        ((3, 4), 5)
    """

    name = "jtvae"
    d_latent: int = 56  # a hyper-parameter of each, as the next
    check_chemistry: bool = True
    small = MappingProxyType({"d_hidden": 16, "d_latent": 4, "epochs": 2, "batch_size": 16, "learning_rate": 3e-3})

    @takes(OPTIONS)
    def __init__(
        self,
        d_hidden: Width = 300,
        d_latent: Annotated[int, Range(2, 10_000)] = 56,
        depth: Annotated[int, Range(1, 20)] = 3,
        beta: NotNegative = 0.1,
        warmup: Annotated[float, Range(0, 0.5)] = 0.1,
        min_count: Annotated[int, Range(1, 1_000_000)] = 1,
        max_nodes: Annotated[int, Range(1, 400)] = 80,
        max_atoms: Annotated[int, Range(1, 400)] = 100,
        attempts: Annotated[int, Range(0, 100_000)] = 300,
        check_chemistry: bool = True,
        temperature: Annotated[float, Range(0.01, 100)] = 1.0,
        seconds: Positive = 60.0,
        *,
        seed: int = DEFAULTS.seed,
        checkpoint_seconds: NotNegative = 20.0,
        **options: Any,
    ) -> None:
        """Keep the hyper-parameters.

        Args:
            **options
        """
        self.keep(locals())

    def check_params(self) -> None:
        """Raise ``UsageError`` for a hyper-parameter out of its range, or a latent vector that has no halves."""
        super().check_params()
        if self.d_latent % 2:
            words = f"d_latent is {self.d_latent}: half of it is of the tree, half of the graph"
            raise BadValueError(words, hint="give an even number, as in params.d_latent=56")

    def read(self, table: Table, valid: Table | None) -> Corpus:
        """The trees of both tables; molecules of ``valid`` with other clusters are passed over."""
        return read_trees(table, valid, min_count=self.min_count, workers=self.threads)

    def read_once(self, table: Table, valid: Table | None, folder: Path) -> Corpus:
        """The same, kept in a folder."""
        return read_trees(table, valid, min_count=self.min_count, workers=self.threads, folder=folder)

    def build(self, vocabulary: Language) -> JTVAENetwork:
        """The network with fresh weights."""
        how = {"d_hidden": self.d_hidden, "d_latent": self.d_latent, "depth": self.depth}
        return JTVAENetwork(len(vocabulary.clusters), vocabulary.graphs, MOLECULE_SPEC, **how)

    def objective(self, vocabulary: Language) -> TreeELBO:
        """The negative evidence lower bound."""
        return TreeELBO(self.beta, self.warmup)

    def encode(self, table: Table) -> Latents:
        """The posterior of each row's molecule; one outside the vocabulary has none."""
        clusters = self.ready().vocabulary.clusters
        smiles = smiles_of(table)
        readings = clusters.trees(smiles, workers=self.threads)
        mean, log_variance = (np.full((len(table), self.d_latent), np.nan) for _ in range(2))
        reason = np.array([item.reason for item in readings], dtype=object)
        reason[~table.ok] = table.reason[~table.ok]
        rows = np.flatnonzero(reason == "")
        graphs = AttachmentGraphs(clusters)  # those of the network are numbered for what it decodes
        with self.at_work() as (network, _), bar("encoding", len(rows)) as line:
            for start in range(0, len(rows), ENCODED):
                graphs.clear()
                piece = rows[start : start + ENCODED]
                trees = [readings[k].tree for k in piece]
                store = pack_trees([smiles[k] for k in piece], trees, clusters, graphs)
                batch = collate(store, np.arange(len(piece))).to(resolve_device(self.device))
                q = network.encode(batch).posterior
                mean[piece], log_variance[piece] = (item.double().cpu().numpy() for item in q)
                line.advance(len(piece))
        return Latents(mean, log_variance, reason)

    def decode(self, z: np.ndarray, seed: int = 0) -> list[str]:
        """A SMILES for each latent vector; with ``check_chemistry`` each is a molecule."""
        return [text for piece in self.decode_pieces(z, seed) for text in piece]

    def decode_pieces(self, z: np.ndarray, seed: int = 0) -> Iterator[list[str]]:
        """The same in pieces."""
        self.ready()
        z = self.check_latents(z)
        with self.at_work() as (network, vocabulary):
            limits = Limits(self.max_nodes, self.max_atoms, self.attempts, self.seconds)
            how = {"temperature": self.temperature, "check": self.check_chemistry, "limits": limits}
            trees, graphs = (
                TreeDecoder(network, vocabulary.clusters, **how),
                GraphDecoder(network, vocabulary.clusters, **how),
            )
        with bar("decoding", len(z)) as line:
            for start in range(0, len(z), TOGETHER):
                piece = torch.from_numpy(z[start : start + TOGETHER]).float().to(resolve_device(self.device))
                rngs = [generator(seed, "decode", start + k) for k in range(len(piece))]
                z_tree, z_graph = piece.split(self.d_latent // 2, dim=1)
                with self.at_work():
                    texts = graphs.decode(trees.decode(z_tree, rngs), z_graph)
                line.advance(len(piece))
                yield texts

    def sample_unchecked(self, n: int, seed: int = 0) -> list[str]:
        """The same vectors of the prior decoded without keeping to valences; empty where no molecule comes out."""
        before, self.check_chemistry = self.check_chemistry, False
        try:
            return self.sample(n, seed)
        finally:
            self.check_chemistry = before

    def vocabulary_to_json(self, vocabulary: Language) -> Any:
        """The clusters."""
        return vocabulary.clusters.to_json()

    @classmethod
    def vocabulary_from_json(cls, values: Any) -> Language:
        """The clusters from a file; the graphs of attachments are made when they are needed."""
        clusters = Vocabulary.from_json(values)
        return Language(clusters, AttachmentGraphs(clusters))
