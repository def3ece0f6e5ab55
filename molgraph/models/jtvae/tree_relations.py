"""The messages along the edges of junction trees, and the order in which they hear from each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of
from molgraph.data.batch import GraphBatch
from molgraph.nn.relation import Relation
from molgraph.nn.relations import once_a_batch
from molgraph.nn.sweep import Schedule, schedule


@dataclass(frozen=True)
class TreeMessages:
    """Messages in waves: first those up to parents, then those down to children, each with the node that it leaves.

    Node k that is no root has the up message ``up[k]`` and the down message ``down[k]``; a root has the number of all
    messages there.

    Args:
        waves: each message after those that it hears.
        leaves: int64 [messages], the node that each leaves.
        up, down: int64 [nodes].
        inward: from messages to the nodes that they reach, all of them.
        upward: from up messages to parents alone.
    """

    waves: Schedule
    leaves: Int[Tensor, " messages"]
    up: Int[Tensor, " nodes"]
    down: Int[Tensor, " nodes"]
    inward: Relation
    upward: Relation


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
    parent, root = _parents(batch, level)
    return _messages(parent, root, earlier=False)


@once_a_batch
def traversal(batch: GraphBatch, level: str = "cluster") -> Traversal:
    """The visits of a decoder that is shown the true trees: parents before children, children in their order."""
    parent, root = _parents(batch, level)
    messages = _messages(parent, root, earlier=True)
    n, child = len(parent), np.flatnonzero(~root)
    up, down = messages.up.numpy(), messages.down.numpy()
    order, n_children = _order_among_siblings(parent, root)
    visits = n_children + 1  # of each node: on arrival, and after each child
    first = offsets_of(visits)
    node = np.repeat(np.arange(n), visits)
    which = np.arange(len(node)) - first[:-1][node]
    expand = which < n_children[node]
    # the parent's message is known to all visits, a child's to those after it
    own = np.flatnonzero(~root[node])
    later = n_children[parent[child]] - order[child]
    starts = first[parent[child]] + order[child] + 1
    rows = np.repeat(starts - offsets_of(later)[:-1], later) + np.arange(later.sum())
    source = np.concatenate([down[node[own]], np.repeat(up[child], later)])
    target = np.concatenate([own, rows])
    heard = _relation(source, target, len(messages.leaves), len(node))
    return Traversal(messages, torch.from_numpy(node), torch.from_numpy(expand.astype(np.float32)), heard)


def _parents(batch: GraphBatch, level: str) -> tuple[np.ndarray, np.ndarray]:
    parent = batch[level].arrays["parent"].numpy(force=True)
    return parent, parent == np.arange(len(parent))


def _order_among_siblings(parent: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 [n] each: how many siblings come before a node, and how many children it has."""
    child = np.flatnonzero(~root)
    sorted_ = child[np.argsort(parent[child], kind="stable")]
    n_children = np.bincount(parent[child], minlength=len(parent))
    order = np.zeros(len(parent), np.int64)
    order[sorted_] = np.arange(len(sorted_)) - offsets_of(n_children)[:-1][parent[sorted_]]
    return order, n_children


def _messages(parent: np.ndarray, root: np.ndarray, *, earlier: bool) -> TreeMessages:
    """All messages; a down message hears those of earlier siblings alone, or of all others."""
    n, child = len(parent), np.flatnonzero(~root)
    up, down = np.full(n, 2 * len(child)), np.full(n, 2 * len(child))
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
    reached = np.concatenate([above, child])
    put = torch.from_numpy
    return TreeMessages(
        schedule(hears) if len(child) else Schedule((), torch.zeros(0, dtype=torch.int64)),
        put(np.concatenate([child, above])),
        put(up),
        put(down),
        _relation(np.arange(2 * len(child)), reached, 2 * len(child), n),
        _relation(np.arange(len(child)), above, 2 * len(child), n),
    )


def _relation(source: np.ndarray, target: np.ndarray, n_source: int, n_target: int) -> Relation:
    order = np.argsort(target, kind="stable")
    offsets = offsets_of(np.bincount(target, minlength=n_target))
    return Relation(torch.from_numpy(source[order].astype(np.int64)), torch.from_numpy(offsets), n_source, n_target)
