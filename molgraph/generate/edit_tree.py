"""Monte Carlo tree search (pUCT) over edits of molecules."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

C2 = 19_652.0  # of equation 2: from so many visits on, exploration grows


@dataclass(slots=True)
class Node:
    """A molecule that was reached by edits.

    Args:
        smiles: of the molecule; empty for the root, whose children are the molecules to begin at.
        parent: the node that it was reached from.
        depth: edits since a child of the root.
        children: None before the second visit.
        visits: ``N``, simulations that passed it.
        total: ``W``, the sum of the values of these simulations.
        ends: simulations that ended here.
        value: of the molecule, predicted or scored.
        closed: whether the molecule and all that follow it were visited, so that there is nothing new behind it.
    """

    smiles: str
    parent: Node | None = None
    depth: int = -1
    children: list[Node] | None = None
    visits: int = 0
    total: float = 0.0
    ends: int = 0
    value: float = 0.0
    closed: bool = False

    def back_up(self, visits: int, value: float) -> None:
        """Add visits and values to this node and all before it."""
        node: Node | None = self
        while node is not None:
            node.visits += visits
            node.total += value
            node = node.parent

    def close(self) -> None:
        """Close this node and those before it where nothing new is left."""
        node: Node | None = self
        while node is not None and node.ends and node.children is not None:
            if not all(child.closed for child in node.children):
                return
            node.closed, node = True, node.parent


@dataclass
class EditTree:
    """Monte Carlo tree search with exact dynamics.

    Schrittwieser et al. 2020, equation 2: of the children of a node, of N visits, the one with the largest
    ``Q + P sqrt(N) / (1 + n) (c_1 + log((N + c_2 + 1) / c_2))`` is visited, where n are its visits, P = 1 / (number of
    children) and Q the mean of its values, brought to 0 to 1 by the lowest and the highest value in the tree (equation
    5); Q of a child without visits is 0. A simulation ends at the first molecule that has no visits, or that has no
    edits, whose value is backed up. Since the dynamics are exact, children behind which
    every molecule was visited are passed over.

    Args:
        edits: the molecules that are one edit away from another.
        evaluate: the value of a molecule.
        depth: edits of a path, at most.
        exploration: ``c_1``.

    Example:
        >>> tree = EditTree(lambda text: [text + "C", text + "O"], lambda text: text.count("O"), depth=3)
        >>> tree.add_roots(["C"])
        >>> for _ in range(12):
        ...     _ = tree.simulate()
        >>> tree.root.visits, sum(child.visits for child in tree.root.children), "CO" in tree.nodes
        (12, 12, True)
    """

    edits: Callable[[str], Sequence[str]]
    evaluate: Callable[[str], float]
    depth: int = 4
    exploration: float = 1.25
    root: Node = field(default_factory=lambda: Node("", children=[]))
    nodes: dict[str, list[Node]] = field(default_factory=lambda: defaultdict(list))
    low: float = math.inf
    high: float = -math.inf

    def add_roots(self, smiles: Sequence[str]) -> None:
        """Molecules to begin at, beside those that are there."""
        assert self.root.children is not None
        known = {child.smiles for child in self.root.children}
        self.root.children += [Node(text, self.root, 0) for text in dict.fromkeys(smiles) if text not in known]

    def simulate(self) -> Node:
        """One simulation: the node where it ended; the root where nothing new is left."""
        node = self.root
        while node is self.root or node.visits:
            if node.children is None:
                after = self.edits(node.smiles) if node.depth < self.depth else ()
                node.children = [Node(text, node, node.depth + 1) for text in after]
            if all(child.closed for child in node.children):
                break
            node = self.choose(node)
        if node is self.root:
            return node
        if not node.ends:
            self.nodes[node.smiles].append(node)
            node.value = self.evaluate(node.smiles)
            self.bound(node.value)
        node.ends += 1
        node.back_up(1, node.value)
        if node.depth >= self.depth:
            node.children = []
        node.close()
        return node

    def choose(self, node: Node) -> Node:
        """The child with the largest upper bound; the first of equal ones."""
        children = [child for child in node.children or () if not child.closed]
        growth = math.log((node.visits + C2 + 1) / C2) if self.exploration else 0.0
        weight, width = math.sqrt(node.visits) * (self.exploration + growth), self.high - self.low
        prior = 1 / len(node.children or ())

        def bound(child: Node) -> float:
            mean = (child.total / child.visits - self.low) / width if child.visits and width > 0 else 0.0
            return mean + prior * weight / (1 + child.visits)

        return max(children, key=bound)

    def learn(self, smiles: str, value: float) -> None:
        """Put a score in the place of the predicted value of a molecule, on all paths that ended there."""
        self.bound(value)
        for node in self.nodes.get(smiles, ()):
            node.back_up(0, node.ends * (value - node.value))
            node.value = value

    def bound(self, value: float) -> None:
        """Widen the range by which values are scaled."""
        self.low, self.high = min(self.low, value), max(self.high, value)
