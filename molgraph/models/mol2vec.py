"""mol2vec: a vector for each Morgan environment, and their sum for a molecule."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import LARGEST, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.nn.encoder import Encoded, Encoder

PRETRAIN = "molgraph pretrain dataset:nci -m mol2vec --objective skip-gram"


@register(
    "encoder",
    "mol2vec",
    command=f"{PRETRAIN} -o vectors.mgm",
    systems=(
        SystemCard(
            "fasttext-subword-embeddings",
            left_out="text: the pieces are elements, atoms and bonds in place of n-grams of characters",
            off="-s params.subwords=false",
            beside=("whole environments alone",),
            command=f"{PRETRAIN} -s params.subwords=true -o vectors.mgm",
            modules=("molgraph.chem.morgan_words", "molgraph.train.objectives.skip_gram"),
        ),
    ),
    summary="sum of the vectors of Morgan environments (mol2vec, fastText's pieces); train with --objective skip-gram",
    paper="Jaeger et al. 2018, J. Chem. Inf. Model. 58:27",
    line=("Morgan environments", "members", "none", "none", "sum", "skip-gram"),
)
class Mol2vec(Encoder):
    """``h_G = sum_{w in G} v_w`` over the Morgan environments w of radius 0 and 1 of each atom.

    Jaeger et al. 2018, "Mol2vec: Unsupervised Machine Learning Approach with Chemical Intuition": environments are
    words, a molecule is a sentence; pretrain the vectors by ``--objective skip-gram``. An environment that no training
    molecule has shares one vector with all others of the kind, which is not trained.

    ``subwords``: Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information", section 3.2: the vector of
    an environment is that of the whole plus those of its pieces (``chem.morgan_words``), ``v_w + sum_{p in w} z_p``,
    where pieces are hashed into ``buckets``; an environment outside the vocabulary is the sum of its pieces.

    Use it for descriptors of any method (``embed``, ``--descriptors``) that a laptop learns in minutes.
    Known limits: it sees no further than an atom's neighbours, and stereoisomers have one vector.

    Args:
        spec: what the graphs hold: the vocabulary.
        d_hidden: width of a vector.
        subwords: whether an environment is also the sum of its pieces.
        buckets: vectors of pieces; different pieces may share one.
    """

    reads = ("molecule",)
    needs = ("environment.word", "piece.hash")
    featurisers = MappingProxyType({"molecule": "environments"})
    small = MappingProxyType({"d_hidden": 8, "buckets": 64})
    counts: Float[Tensor, " words"]

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 100,
        subwords: bool = False,
        buckets: Annotated[int, Range(1, LARGEST)] = 4096,
    ) -> None:
        super().__init__()
        n = 1 + len(spec.settings)
        self.words = _vectors(n, d_hidden)
        self.pieces = _vectors(buckets, d_hidden) if subwords else None
        self.register_buffer("counts", torch.zeros(n))
        self.d_out = d_hidden

    def measure(self, store: GraphStore) -> None:
        """Count how often the training molecules have each environment of the vocabulary."""
        words = torch.from_numpy(store.levels["environment"].arrays["word"]).long()
        self.counts.copy_(torch.bincount(words, minlength=len(self.counts)))

    def vectors(self, batch: GraphBatch) -> Float[Tensor, "rows d"]:
        """The vector of each environment of a batch."""
        word = batch["environment"].arrays["word"]
        h = self.words(word)
        if self.pieces is None:
            return h
        own = batch["piece"].arrays
        h = torch.where((word > 0)[:, None], h, 0.0)
        return h.index_add(0, own["word"].long(), self.pieces(own["hash"] % self.pieces.num_embeddings))

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Add up the environments of each molecule; there are no states of rows."""
        h = self.vectors(batch)
        return Encoded(h.new_zeros(batch.n_graphs, self.d_out).index_add(0, batch.graph_of("environment"), h))


def _vectors(n: int, d: int) -> nn.Embedding:
    """n vectors, uniform within 0.5 / d of 0."""
    made = nn.Embedding(n, d)
    nn.init.uniform_(made.weight, -0.5 / d, 0.5 / d)
    return made
