"""Score molecules by a chemist's preference, learned from a series of edits by inverse reinforcement learning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import AmbiguousColumnError, EmptyError, MissingColumnError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.chem.graph_edits import mutate
from molgraph.chem.smiles import why_unreadable
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.generate.oracles.oracle import Oracle, Scores
from molgraph.train.runtime import torch_settings

BITS, RADIUS = 1024, 2  # of the counts of environments that molecules are described by
STEPS, RATE = 400, 0.02  # of gradient descent
FEWEST = 10  # edits that are learned from


class Steps(NamedTuple):
    """Transitions: descriptions float32 [n, d] of states and of those that follow, and log pi of each, float32 [n]."""

    before: np.ndarray
    after: np.ndarray
    log_pi: np.ndarray


class Discriminator(nn.Module):
    """``D = exp f / (exp f + pi)`` with ``f(s, s') = g(s) + gamma h(s') - h(s)``.

    Fu, Luo and Levine 2018, equation 4. Trained to tell an expert's transitions from those of a policy ``pi`` in the
    same states, ``f`` becomes the logarithm of the expert's policy, which is an advantage: the reward and what is
    gained or lost in the value of the state. The shaping ``h`` takes the latter, so that ``g`` is the reward up to a
    constant where the dynamics are deterministic, and holds where other edits are allowed.

    Args:
        d: width of a description, of which ``g`` and ``h`` are linear functions.
        gamma: discount of a step.
        shaped: whether there is an ``h``; without, ``f`` is ``g`` of the state that follows.
    """

    def __init__(self, d: int, gamma: float = 0.9, shaped: bool = True) -> None:
        super().__init__()
        self.gamma, self.shaped = gamma, shaped
        self.g, self.h = nn.Linear(d, 1), nn.Linear(d, 1)
        for part in (self.g, self.h):
            nn.init.zeros_(part.weight)
            nn.init.zeros_(part.bias)

    def shaping(self, before: Float[Tensor, "n d"], after: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """float [n], ``gamma h(s') - h(s)``."""
        return (self.gamma * self.h(after) - self.h(before))[:, 0]

    def forward(self, before: Float[Tensor, "n d"], after: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """float [n], ``f``."""
        if not self.shaped:
            return self.g(after)[:, 0]
        return self.g(before)[:, 0] + self.shaping(before, after)

    def fit(self, expert: Steps, policy: Steps, *, ridge: float = 1e-3, steps: int = STEPS) -> Discriminator:
        """Descend on ``-mean log D`` over the expert's steps, ``-mean log (1 - D)`` over the policy's, and a ridge."""
        (a, b, p), (c, d, q) = (tuple(map(torch.from_numpy, arrays)) for arrays in (expert, policy))
        optimizer = torch.optim.Adam(self.parameters(), RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        with torch_settings(None, 0):
            for _ in range(steps):
                loss = F.softplus(p - self(a, b)).mean() + F.softplus(self(c, d) - q).mean()
                loss = loss + ridge * (self.g.weight.square().sum() + self.h.weight.square().sum())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        return self

    def rewards(self, states: np.ndarray) -> np.ndarray:
        """float64 [n], ``g``."""
        with torch.no_grad():
            return np.asarray(self.g(torch.from_numpy(states))[:, 0].double().numpy())


def describe(smiles: Sequence[str]) -> np.ndarray:
    """float32 [n, 1024], the logarithm of 1 and the counts of each molecule's environments."""
    counts = morgan(smiles, radius=RADIUS, n_bits=BITS, counts=True).x
    return np.log1p(np.asarray(counts, dtype=np.float32).reshape(len(smiles), BITS))


@register(
    "oracle",
    "airl",
    summary="what a chemist prefers, learned from the edits of a project: airl(series.csv), with columns from,to",
    paper="Fu et al. 2018, ICLR (arXiv:1710.11248)",
    systems=(
        SystemCard(
            "airl",
            left_out="the policy's training: its steps are random edits of the molecules that the chemist edited, for "
            "which the optimum of f is the same; pairwise ranks are simpler (chemvae with params.ranked)",
            off="'airl(edits.csv, shaped=false)'",
            beside=("a reward learned without h",),
            command="molgraph optimise --search graph-ga --objective 'airl(edits.csv)' -o found.csv",
        ),
    ),
)
class ChemistPreference(Oracle):
    """``g(x)``, the reward that explains which edits a chemist chose among those that were possible.

    Each row of the table is an edit that was made, the molecule before and after, in this order. ``Discriminator`` is
    trained against ``proposals`` random edits (``mutate``) of each molecule before, each with ``pi = 1 / proposals``.
    It is trained once, when the first molecule is scored.

    Args:
        series: a file, or a table, with two columns of molecules: ``from`` and ``to``, or the one before first.
        gamma: how far ahead the chemist planned: 0 for the next molecule alone.
        proposals: random edits of each molecule.
        ridge: penalty of squared weights.
        shaped: whether the value of what follows is learned beside the reward.
    """

    name = "airl"

    def __init__(
        self,
        series: str | Table,
        gamma: Annotated[float, Range(0.0, 1.0)] = 0.9,
        proposals: Count = 8,
        ridge: Annotated[float, Range(0.0, 1e3)] = 1e-3,
        shaped: bool = True,
    ) -> None:
        self.series, self.gamma, self.proposals, self.ridge, self.shaped = series, gamma, proposals, ridge, shaped

    @property
    def content(self) -> str:
        """A hash of the edits, and the settings."""
        edits = hashlib.sha256(repr(self.edits).encode()).hexdigest()[:16]
        return f"{edits} {self.gamma} {self.proposals} {self.ridge} {self.shaped}"

    @cached_property
    def edits(self) -> list[tuple[str, str]]:
        """The molecules before and after each edit.

        Raises:
            AmbiguousColumnError: the table has other columns than two of molecules. EmptyError: few edits.
        """
        try:
            table = self.series if isinstance(self.series, Table) else read_table(self.series, smiles=("from", "to"))
        except MissingColumnError:
            table = read_table(self.series)
        if [entity.kind for entity in table.entities] != ["molecule", "molecule"]:
            words = "the series has other columns than two of molecules"
            raise AmbiguousColumnError(words, hint="name the columns from and to")
        before, after = (entity.values for entity in table.entities)
        rows = [(str(a), str(b)) for a, b, ok in zip(before, after, table.ok, strict=True) if ok and a != b]
        rows = [row for row in rows if not any(map(why_unreadable, row))]
        if len(rows) < FEWEST:
            words = f"the series has {len(rows)} edits that can be read, and {FEWEST} or more are learned from"
            raise EmptyError(words, hint="write a molecule before and one after an edit in each row")
        return rows

    @cached_property
    def discriminator(self) -> Discriminator:
        """Trained on the edits."""
        rng, before, proposed = generator(0, "airl"), list[str](), list[str]()
        for text, _ in self.edits:
            mutants = [mutate(text, rng) for _ in range(self.proposals)]
            proposed += [mutant for mutant in mutants if mutant]
            before += [text for mutant in mutants if mutant]
        log_pi = np.full(len(before) + len(self.edits), -np.log(self.proposals), np.float32)
        a, b = (describe([edit[k] for edit in self.edits]) for k in (0, 1))
        expert = Steps(a, b, log_pi[: len(a)])
        policy = Steps(describe(before), describe(proposed), log_pi[: len(before)])
        return Discriminator(BITS, self.gamma, self.shaped).fit(expert, policy, ridge=self.ridge)

    def score(self, smiles: Sequence[str]) -> Scores:
        """The preference of each SMILES; its zero and unit mean nothing."""
        reason = np.array([why_unreadable(text) for text in smiles], dtype=object)
        value = np.full(len(smiles), np.nan)
        rows = np.flatnonzero(reason == "")
        if len(rows):
            value[rows] = self.discriminator.rewards(describe([smiles[i] for i in rows.tolist()]))
        return Scores(value, reason)
