"""The messages along the edges of junction trees, and the order in which they hear from each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of, ranges
from molgraph.data.batch import GraphBatch
from molgraph.data.color_refinement import acyclic_colors, distinct_rows
from molgraph.nn.relation import Relation
from molgraph.nn.relations import once_a_batch
from molgraph.nn.sweep import Waves, waves_of


@dataclass(frozen=True)
class TreeMessages:
    """The distinct messages of trees in waves, each with a node that it leaves.

    Messages that hear the same from equal nodes are one. Node k that is no root has the up message ``up[k]`` to its
    parent and the down message ``down[k]`` from there; a root has the number of messages in their place.

    Args:
        waves: each message after those that it hears.
        leaves: int64 [messages], the node that each leaves.
        up, down: int64 [nodes].
        inward: from messages to the nodes that they reach.
    """

    waves: Waves
    leaves: Int[Tensor, " messages"]
    up: Int[Tensor, " nodes"]
    down: Int[Tensor, " nodes"]
    inward: Relation


@dataclass(frozen=True)
class Traversal:
    """The visits of a depth-first walk, at each of which a decoder adds a child or goes back.

    Args:
        messages: those of the walk: a down message hears the parent's and those of the children visited before.
        node: int64 [visits], the node of each.
        expand: float [visits], 1 where a child comes next.
        heard: from messages to the visits that know them.
    """

    messages: TreeMessages
    node: Int[Tensor, " visits"]
    expand: Float[Tensor, " visits"]
    heard: Relation


@once_a_batch
def tree_messages(batch: GraphBatch, level: str = "cluster") -> TreeMessages:
    """The messages of an encoder: each hears all that reach the node that it leaves, but the one that comes back."""
    return _messages(*_parents(batch, level), earlier=False)


@once_a_batch
def traversal(batch: GraphBatch, level: str = "cluster") -> Traversal:
    """The visits of a decoder that is shown the true trees: parents before children, children in their order."""
    code, parent, root = _parents(batch, level)
    messages = _messages(code, parent, root, earlier=True)
    n, child = len(parent), np.flatnonzero(~root)
    up, down = messages.up.numpy(), messages.down.numpy()
    order, n_children = _order_among_siblings(parent, root)
    visits = n_children + 1  # of each node: on arrival, and after each child
    first = offsets_of(visits)
    node = np.repeat(np.arange(n), visits)
    which = np.arange(len(node)) - first[:-1][node]
    expand = which < n_children[node]
    # the parent's message is known to all visits, a child's to those after it
    nonroots = np.flatnonzero(~root[node])
    later = n_children[parent[child]] - order[child]
    starts = first[parent[child]] + order[child] + 1
    rows = np.repeat(starts - offsets_of(later)[:-1], later) + np.arange(later.sum())
    source = np.concatenate([down[node[nonroots]], np.repeat(up[child], later)])
    target = np.concatenate([nonroots, rows])
    heard = _relation(source, target, len(messages.leaves), len(node))
    return Traversal(messages, torch.from_numpy(node), torch.from_numpy(expand.astype(np.float32)), heard)


def _parents(batch: GraphBatch, level: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The code and the parent of each node, and whether it is a root."""
    code, parent = (batch[level].arrays[name].numpy(force=True) for name in ("code", "parent"))
    return code, parent, parent == np.arange(len(parent))


def _order_among_siblings(parent: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 [n] each: how many siblings come before a node, and how many children it has."""
    child = np.flatnonzero(~root)
    sorted_ = child[np.argsort(parent[child], kind="stable")]
    n_children = np.bincount(parent[child], minlength=len(parent))
    order = np.zeros(len(parent), np.int64)
    order[sorted_] = np.arange(len(sorted_)) - offsets_of(n_children)[:-1][parent[sorted_]]
    return order, n_children


def _messages(code: np.ndarray, parent: np.ndarray, root: np.ndarray, *, earlier: bool) -> TreeMessages:
    """All messages, those that look alike once; a down message hears those of earlier siblings alone, or all others."""
    n, child = len(parent), np.flatnonzero(~root)
    up, down = np.zeros(n, np.int64), np.zeros(n, np.int64)
    up[child] = np.arange(len(child))
    down[child] = np.arange(len(child)) + len(child)
    above = parent[child]
    inner = ~root[above]
    order, n_children = _order_among_siblings(parent, root)
    # siblings: pairs of children of one parent
    by_parent = child[np.argsort(above, kind="stable")]
    starts = offsets_of(n_children)
    sizes = n_children[above]
    pairs = np.repeat(starts[:-1][above] - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
    sibling, of = by_parent[pairs], np.repeat(child, sizes)
    keep = order[sibling] < order[of] if earlier else sibling != of
    source = np.concatenate([up[child[inner]], down[above[inner]], up[sibling[keep]]])
    target = np.concatenate([up[above[inner]], down[child[inner]], down[of[keep]]])
    hears = _relation(source, target, 2 * len(child), 2 * len(child))
    leaves, reached = np.concatenate([child, above]), np.concatenate([above, child])
    # messages of equal surroundings are equal: each is computed once
    sources, offsets = hears.source.numpy(), hears.offsets.numpy()
    row, first = distinct_rows(acyclic_colors(code[leaves], sources, offsets))
    pairs, spans = ranges(offsets[first], offsets[first + 1])
    m, put = len(first), torch.from_numpy
    alike = Relation(put(row[sources[pairs]]), put(spans), m, m)
    up[child], down[child] = row[up[child]], row[down[child]]
    up[root] = down[root] = m
    return TreeMessages(
        waves_of(alike) if m else Waves((), torch.zeros(0, dtype=torch.int64)),
        put(leaves[first]), put(up), put(down), _relation(row, reached, m, n),
    )  # fmt: skip


def _relation(source: np.ndarray, target: np.ndarray, n_source: int, n_target: int) -> Relation:
    order = np.argsort(target, kind="stable")
    offsets = offsets_of(np.bincount(target, minlength=n_target))
    return Relation(torch.from_numpy(source[order].astype(np.int64)), torch.from_numpy(offsets), n_source, n_target)
