"""DiffPool, MinCut, SAGPool and TopK of PyTorch Geometric, on packed rows."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from molgraph.nn.penalties import Penalties, add_penalties
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.row_graph import RowGraph, SumConv
from molgraph.nn.size_groups import SizeGroups

PoolingName: TypeAlias = Literal["diffpool", "mincut", "sagpool", "topk"]


class DensePool(nn.Module):
    """DiffPool (Ying et al. 2018, NeurIPS) or MinCut pooling (Bianchi et al. 2020, ICML), as PyG has them.

    The logits go through a layer norm, which PyG leaves to the caller. Both penalise assignments, so both form the
    matrix of all pairs of a graph's rows; graphs of alike size are pooled together, so one large graph does not stretch
    the small ones. The penalties are means over the graphs of PyG's for each graph alone: of a batch PyG has one norm
    over all of it, which falls with its size. MinCut is given each row's edge to itself too, else a graph without edges
    has the cut 0 / 0.

    Args:
        name: ``diffpool`` or ``mincut``.
        d_in: width of the rows.
        k: clusters of each graph.
    """

    def __init__(self, name: Literal["diffpool", "mincut"], d_in: int, k: int) -> None:
        super().__init__()
        self.name, self.k = name, k
        self.unary, self.norm = SumConv(d_in, k), nn.LayerNorm(k)

    def forward(self, graph: RowGraph) -> RowGraph:
        """Pool each graph into k clusters."""
        from torch_geometric.nn import dense_mincut_pool

        with torch.autocast(graph.h.device.type, enabled=False):  # sums over whole graphs
            h = graph.h.to(torch.promote_types(graph.h.dtype, torch.float32))
            groups, logits = graph.groups, self.norm(self.unary(h, graph))
            xs: list[Float[Tensor, "_ k d"]] = []
            adjacencies: list[Float[Tensor, "_ k k"]] = []
            terms: list[Penalties] = []
            pool = diff_pool if self.name == "diffpool" else dense_mincut_pool
            padded = zip(groups.pad(h), groups.pad(logits), dense_adjacency(graph, h.dtype), groups.rows, strict=True)
            for x, u, adjacency, rows in padded:
                mask = rows < len(h)
                if self.name == "mincut":
                    adjacency = adjacency + torch.diag_embed(mask.to(adjacency))
                x, adjacency, *losses = pool(x, adjacency, u, mask)
                xs, adjacencies = [*xs, x], [*adjacencies, adjacency]
                names = ("link", "entropy") if self.name == "diffpool" else ("mincut", "orthogonality")
                share = len(x) / max(1, graph.members.n_target)
                terms.append({f"{self.name}_{name}": share * loss for name, loss in zip(names, losses, strict=True)})
            x = groups.join(xs, h.new_zeros(self.k, h.shape[1]))
            adjacency = groups.join(adjacencies, h.new_zeros(self.k, self.k))
            penalties = add_penalties([graph.penalties, *terms])
            return graph.pooled(x, adjacency, logits.softmax(1), penalties)


def diff_pool(
    x: Float[Tensor, "b n d"], adjacency: Float[Tensor, "b n n"], u: Float[Tensor, "b n k"], mask: Bool[Tensor, "b n"]
) -> tuple[Float[Tensor, "b k d"], Float[Tensor, "b k k"], Float[Tensor, ""], Float[Tensor, ""]]:
    """``X' = S^T X``, ``A' = S^T A S``, ``|A - S S^T| / n^2`` and the entropy of S, means over graphs of n rows.

    Ying et al. 2018, equations 3 and 4 and section 3.3, with S the softmax of ``u``.
    """
    s, n = u.softmax(-1) * mask.unsqueeze(-1), mask.sum(1)
    link = (adjacency - s @ s.mT).flatten(1).norm(dim=1) / n.square()
    entropy = -(s * (s + 1e-15).log()).sum((1, 2)) / n
    return s.mT @ x, s.mT @ adjacency @ s, link.mean(), entropy.mean()


def dense_adjacency(graph: RowGraph, dtype: torch.dtype) -> list[Float[Tensor, "_ _ _"]]:
    """The adjacency matrices of each group of graphs, padded with zeros."""
    if isinstance(graph.adjacency, Tensor):
        return [graph.adjacency] if len(graph.adjacency) else []
    groups, relation, out = graph.groups, graph.adjacency, []
    first, group_of = 0, torch.searchsorted(
        torch.tensor([rows.numel() for rows in groups.rows], device=groups.place.device).cumsum(0),
        groups.place.index_select(0, relation.target), right=True,
    )  # fmt: skip
    for i, rows in enumerate(groups.rows):
        mask, length = group_of == i, rows.shape[1]
        target = groups.place[relation.target[mask]] - first
        source = groups.place[relation.source[mask]] - first
        counts = torch.bincount(target * length + source % length, minlength=rows.numel() * length)
        out.append(counts.view(*rows.shape, length).to(dtype))
        first += rows.numel()
    return out


TIE = 1e-5  # scores, between -1 and 1, that lie closer are equal: rounding, which depends on the batch, decides nothing


class KeepTop(nn.Module):
    """TopK pooling (Gao & Ji 2019, ICML) or SAGPool (Lee et al. 2019, ICML), with the scores of PyG's layers.

    The best share of a graph's rows by a learned score stays, each times its score. Of several rows with the same
    score the first ones stay: atoms that look alike, as those of benzene, are told apart by their order alone.

    Args:
        name: ``topk`` or ``sagpool``.
        d_in: width of the rows.
        ratio: the share of the rows that stay.
    """

    def __init__(self, name: Literal["topk", "sagpool"], d_in: int, ratio: float) -> None:
        super().__init__()
        from torch_geometric.nn import SAGPooling, TopKPooling

        self.ratio, self.attends = ratio, name == "sagpool"
        self.pool = SAGPooling(d_in, ratio) if self.attends else TopKPooling(d_in, ratio)

    def forward(self, graph: RowGraph) -> RowGraph:
        """Keep the best rows of each graph, and the pairs between them."""
        members, adjacency = graph.members, graph.adjacency
        assert isinstance(adjacency, Relation)
        if not len(graph.h):
            return graph
        score, graph_of = self._scores(graph.h, adjacency), members.target  # rows stand graph after graph
        best = keep_best(score.detach(), graph_of, members.n_target, self.ratio)
        h, graph_of = graph.h[best] * score[best].unsqueeze(1), graph_of[best]
        offsets = row_offsets(torch.bincount(graph_of, minlength=members.n_target))
        n, every = len(h), torch.arange(len(h) + 1, device=h.device)
        to_graphs = Relation(every[:-1], offsets, n, members.n_target, (graph_of, every))
        place = torch.full_like(members.target, -1).scatter_(0, best, every[:-1])
        source, target = place[adjacency.source], place[adjacency.target]
        both = (source >= 0) & (target >= 0)
        kept = Relation.from_pairs(source[both], target[both], n, n)
        return RowGraph(h, to_graphs, kept, SizeGroups.of(offsets), None, None, graph.penalties)

    def _scores(self, h: Float[Tensor, "n d"], adjacency: Relation) -> Float[Tensor, " n"]:
        """``tanh(x . p / |p|)`` with x the rows, or the value that a graph convolution gives each of them."""
        x = self.pool.gnn(h, torch.stack([adjacency.source, adjacency.target])) if self.attends else h
        p = self.pool.select.weight
        return ((x.view(len(h), -1) * p).sum(1) / p.norm()).tanh()


def keep_best(
    score: Float[Tensor, " n"], graph_of: Int[Tensor, " n"], n_graphs: int, ratio: float
) -> Int[Tensor, " _"]:
    """The rows of the best share of each graph, rounded up, graph after graph and the best first; of equals the first.

    Example:
        >>> keep_best(torch.tensor([0.1, 0.5, 0.5 + 1e-7, 0.2]), torch.tensor([0, 0, 0, 1]), 2, 0.5)
        tensor([1, 2, 3])
    """
    n = len(score)
    order = score.argsort(descending=True)
    order = order[graph_of[order].argsort(stable=True)]
    graph, sorted_ = graph_of[order], score[order]
    new = (sorted_.diff() < -TIE) | (graph.diff() > 0)
    level = torch.cat([new.new_zeros(1), new]).cumsum(0)
    order = order[(level * n + order).argsort()]
    counts = torch.bincount(graph_of, minlength=n_graphs)
    first = counts.cumsum(0) - counts
    most = (ratio * counts.double()).ceil().long()
    return order[torch.arange(n, device=order.device) - first[graph] < most[graph]]


def make_pool(name: PoolingName, d_in: int, k: int, ratio: float) -> DensePool | KeepTop:
    """The pooling of that name: to ``k`` clusters, or of the share ``ratio`` of the rows."""
    if name == "diffpool" or name == "mincut":
        return DensePool(name, d_in, k)
    return KeepTop(name, d_in, ratio)
