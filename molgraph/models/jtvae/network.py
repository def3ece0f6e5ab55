"""The network of JT-VAE: encoders of trees and graphs, and decoders of the tree, its attachments and stereo sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base import registry
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.models.jtvae.attachments import AttachmentGraphs
from molgraph.models.jtvae.corpus import CANDIDATE, CLUSTER, SITE
from molgraph.models.jtvae.tree_gru import TreeGRU
from molgraph.models.jtvae.tree_relations import TreeMessages, traversal, tree_messages
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.relations import members
from molgraph.nn.segment import segment_weights
from molgraph.nn.variational import Gaussian, bounded

N_STEREO = 3  # none, and either way


class Encodings(NamedTuple):
    """What the encoders give for a batch.

    Args:
        posterior: [g, d_latent], the tree's half first.
        atoms: [atoms, d], the states of the atoms.
        messages: [messages, d] of the trees.
        trees: the messages' order.
    """

    posterior: Gaussian
    atoms: Float[Tensor, "atoms d"]
    messages: Float[Tensor, "messages d"]
    trees: TreeMessages


class Shares(NamedTuple):
    """The negative log-likelihood of each part of a batch's molecules, summed over them."""

    label: Float[Tensor, ""]
    topology: Float[Tensor, ""]
    attachment: Float[Tensor, ""]
    stereo: Float[Tensor, ""]


class JTVAENetwork(nn.Module):
    """Jin et al. 2018, "Junction Tree Variational Autoencoder for Molecular Graph Generation".

    Args:
        n_labels: of the vocabulary.
        graphs: of candidate attachments.
        spec: of the molecules' graphs.
        d_hidden: width of all states.
        d_latent: of the latent vector, a half for the tree and a half for the graph.
        depth: levels of messages in graphs.
        encoder: the registered encoder of graphs, which gives states of atoms; the paper has their mean (section 2.2).
        encoder_params: its further hyper-parameters.
    """

    def __init__(
        self,
        n_labels: int,
        graphs: AttachmentGraphs,
        spec: InputSpec,
        *,
        d_hidden: int,
        d_latent: int,
        depth: int,
        encoder: str = "dmpnn",
        encoder_params: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.graphs, self.d_half = graphs, d_latent // 2
        d, half = d_hidden, self.d_half
        make = registry.get("encoder", encoder)
        paper = {"readout": "mean"} if encoder == "dmpnn" else {}
        how = {"d_hidden": d, "depth": depth, **paper, **(encoder_params or {})}
        self.graph_encoder, self.attachment_encoder = make(spec, **how), make(graphs.spec, **how)
        self.embedding = nn.Embedding(n_labels, d)
        self.tree_encoder, self.tree_decoder = TreeGRU(d), TreeGRU(d)
        self.root = nn.Linear(2 * d, d)
        self.site = nn.Linear(self.graph_encoder.d_rows + N_STEREO, d)
        self.tree_posterior, self.graph_posterior = (
            nn.Linear(d, 2 * half),
            nn.Linear(self.graph_encoder.d_out + d, 2 * half),
        )
        self.expand_in, self.expand_z, self.expand_out = (
            nn.Linear(2 * d, d),
            nn.Linear(half, d, bias=False),
            nn.Linear(d, 1),
        )
        self.label_in, self.label_z, self.label_out = (
            nn.Linear(d, d),
            nn.Linear(half, d, bias=False),
            nn.Linear(d, n_labels),
        )
        self.attach_graph, self.attach_tree = (
            nn.Linear(self.attachment_encoder.d_out, d),
            nn.Linear(2 * d, d, bias=False),
        )
        self.attach_z = nn.Linear(half, d)
        self.stereo_in, self.stereo_z, self.stereo_out = (
            nn.Linear(self.graph_encoder.d_rows, d),
            nn.Linear(half, d, bias=False),
            nn.Linear(d, N_STEREO),
        )

    def prepare(self, sample: Any) -> None:
        """Make a batch's index work ahead: relations, the order of messages, the graphs of candidates."""
        batch = sample.parts[0].batch
        self.graph_encoder.prepare(batch)
        tree_messages(batch)
        traversal(batch)
        batch.once("attachments", lambda: self._candidates(batch))

    def _candidates(self, batch: GraphBatch) -> tuple[GraphBatch, Tensor]:
        """The distinct graphs of a batch's candidates, and which of them each candidate has."""
        numbers, which = np.unique(batch[CANDIDATE].arrays["graph"].numpy(force=True), return_inverse=True)
        attachments = self.graphs.collate(numbers)
        self.attachment_encoder.prepare(attachments)
        return attachments, torch.from_numpy(which)

    def encode(self, batch: GraphBatch) -> Encodings:
        """The posterior of each molecule, and the states that decoders read."""
        trees = tree_messages(batch)
        messages = self.tree_messages(batch[CLUSTER].arrays["code"], trees)
        roots = batch[CLUSTER].offsets[:-1]
        heard = propagate(messages, trees.inward).index_select(0, roots)
        embedded = self.embedding(batch[CLUSTER].arrays["code"].index_select(0, roots))
        tree = self.root(torch.cat([embedded, heard], dim=1)).relu()
        encoded = self.graph_encoder(batch, rows=True)
        atoms = encoded.rows[0].h
        label = F.one_hot(batch[SITE].arrays["label"], N_STEREO).to(atoms.dtype)
        sites = self.site(torch.cat([self.site_states(atoms, batch), label], dim=1)).relu()
        graph = torch.cat([encoded.graphs, propagate(sites, members(batch, SITE))], dim=1)
        tree_mean, tree_variance = self.tree_posterior(tree).chunk(2, dim=1)
        graph_mean, graph_variance = self.graph_posterior(graph).chunk(2, dim=1)
        mean, variance = torch.cat([tree_mean, graph_mean], dim=1), torch.cat([tree_variance, graph_variance], dim=1)
        return Encodings(Gaussian(mean, bounded(variance)), atoms, messages, trees)

    def tree_messages(self, code: Int[Tensor, " nodes"], trees: TreeMessages) -> Float[Tensor, "messages d"]:
        """All messages of the tree encoder."""
        return self.tree_encoder(self._inputs(self.tree_encoder, code, trees.leaves), trees)

    def decode(self, z: Float[Tensor, "g d_latent"], encoded: Encodings, batch: GraphBatch) -> Shares:
        """The likelihood of a batch's own molecules, each part given the true parts before it."""
        z_tree, z_graph = z.split(self.d_half, dim=1)
        code, tree_of = batch[CLUSTER].arrays["code"], batch.graph_of(CLUSTER)
        walk = traversal(batch)
        h = self.tree_decoder(self._inputs(self.tree_decoder, code, walk.messages.leaves), walk.messages)
        known = propagate(h, walk.heard)
        scores = self.expand_scores(
            self.embedding(code).index_select(0, walk.node), known, z_tree, tree_of.index_select(0, walk.node)
        )
        topology = F.binary_cross_entropy_with_logits(scores, walk.expand, reduction="sum")
        # one row more for the roots, which hear nothing
        arrived = torch.cat([h, h.new_zeros(1, h.shape[1])]).index_select(0, walk.messages.down)
        label = F.cross_entropy(self.label_scores(arrived, z_tree, tree_of), code, reduction="sum")
        return Shares(
            label, topology, self._attachments(z_graph, encoded, batch), self._stereo(z_graph, encoded, batch)
        )

    def expand_scores(
        self,
        x: Float[Tensor, "visits d"],
        known: Float[Tensor, "visits d"],
        z_tree: Float[Tensor, "g half"],
        tree_of: Int[Tensor, " visits"],
    ) -> Float[Tensor, " visits"]:
        """``u . relu(W_1 x_i + W_2 z_T + W_3 sum_k h_ki)``, equation 7: whether a child comes next."""
        h = self.expand_in(torch.cat([x, known], dim=1)) + self.expand_z(z_tree).index_select(0, tree_of)
        return self.expand_out(h.relu())[:, 0]

    def label_scores(
        self, h: Float[Tensor, "nodes d"], z_tree: Float[Tensor, "g half"], tree_of: Int[Tensor, " nodes"]
    ) -> Float[Tensor, "nodes n_labels"]:
        """``U relu(W_1 z_T + W_2 h_ij)``, equation 8: which label a new node has."""
        return self.label_out((self.label_in(h) + self.label_z(z_tree).index_select(0, tree_of)).relu())

    def attachment_scores(
        self, graph: Float[Tensor, "rows d_graph"], context: Float[Tensor, "rows d2"], z: Float[Tensor, "rows d"]
    ) -> Float[Tensor, " rows"]:
        """``h_G . z_G``, equation 9, of a candidate's graph and the messages between its clusters."""
        return ((self.attach_graph(graph) + self.attach_tree(context)).relu() * z).sum(dim=1)

    def stereo_scores(
        self, states: Float[Tensor, "sites d"], z_graph: Float[Tensor, "g half"], graph_of: Int[Tensor, " sites"]
    ) -> Float[Tensor, "sites 3"]:
        """Scores of none and of the two ways of each site."""
        return self.stereo_out((self.stereo_in(states) + self.stereo_z(z_graph).index_select(0, graph_of)).relu())

    def site_states(self, atoms: Float[Tensor, "atoms d"], batch: GraphBatch) -> Float[Tensor, "sites d"]:
        """The sum of the states of a site's two atoms."""
        begin, end = (batch[SITE].arrays[name] for name in ("begin", "end"))
        return atoms.index_select(0, begin) + atoms.index_select(0, end)

    def _attachments(self, z_graph: Tensor, encoded: Encodings, batch: GraphBatch) -> Tensor:
        level = batch[CANDIDATE]
        if not len(level):
            return z_graph.new_zeros(())
        attachments, which = batch.once("attachments", lambda: self._candidates(batch))
        node = level.arrays["node"]
        graph = self.attachment_encoder(attachments).graphs.index_select(0, which.to(node.device))
        context = self.context(encoded.messages, encoded.trees, node)
        z = self.attach_z(z_graph).index_select(0, batch.graph_of(CANDIDATE))
        scores = self.attachment_scores(graph, context, z)
        counts = torch.bincount(node, minlength=len(batch[CLUSTER]))
        nodes = Relation(torch.arange(len(node), device=node.device), row_offsets(counts), len(node), len(counts))
        likely = segment_weights(scores[:, None], nodes)[:, 0].index_select(0, level.arrays["true"].nonzero()[:, 0])
        return -likely.clamp(min=1e-12).log().sum()

    def context(
        self, messages: Float[Tensor, "messages d"], trees: TreeMessages, node: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows d2"]:
        """The messages between a node and its parent, both ways."""
        return torch.cat([messages.index_select(0, way.index_select(0, node)) for way in (trees.down, trees.up)], dim=1)

    def _stereo(self, z_graph: Tensor, encoded: Encodings, batch: GraphBatch) -> Tensor:
        scores = self.stereo_scores(self.site_states(encoded.atoms, batch), z_graph, batch.graph_of(SITE))
        return F.cross_entropy(scores, batch[SITE].arrays["label"], reduction="sum")

    def _inputs(self, gru: TreeGRU, code: Tensor, leaves: Tensor) -> Tensor:
        """The inputs of the nodes that messages leave; each distinct label is multiplied once."""
        used, which = torch.unique(code.index_select(0, leaves), return_inverse=True)
        return gru.inputs(self.embedding(used)).index_select(0, which)
