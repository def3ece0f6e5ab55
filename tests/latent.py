"""A tiny generator with a latent space: it decodes a point to the nearest molecule of a list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import LatentGenerator, Latents, State
from molgraph.chem.fingerprints import morgan
from molgraph.chem.identity import identities_of
from molgraph.data.standardise import standardise


class NearestMolecule(LatentGenerator):
    """Principal components of fingerprints, scaled to a deviation of 1: its latent space. No network is trained.

    Args:
        d: width of the space.
        broken: every so many decoded texts are no molecule; 0 for none.
    """

    name = "nearest_molecule"

    def __init__(self, d: int = 8, broken: int = 0):
        self.d, self.broken = d, broken

    @property
    def d_latent(self) -> int:
        return self.d

    def fit(self, table: Any, valid: Any = None, *, workdir: Path | None = None) -> NearestMolecule:
        self.smiles = np.array([each.written for each in identities_of(list(table.smiles[table.ok])) if each.written])
        x = morgan([*self.smiles], n_bits=256).x.astype(np.float64)
        self.centre = x.mean(axis=0)
        _, size, axes = np.linalg.svd(x - self.centre, full_matrices=False)
        self.axes = axes[: self.d].T / size[: self.d] * np.sqrt(len(x))
        self.points = (x - self.centre) @ self.axes
        return self

    def encode(self, table: Any) -> Latents:
        found = morgan([str(text) for text in table.smiles], n_bits=256)
        mean = np.where(found.ok[:, None], (found.x - self.centre) @ self.axes, np.nan)
        return Latents(mean, np.full_like(mean, -4.0), found.reasons)

    def decode(self, z: np.ndarray, seed: int = 0) -> list[str]:
        z = self.check_latents(z)
        rows = ((z[:, None, :] - self.points[None]) ** 2).sum(axis=2).argmin(axis=1)
        bad = self.broken and np.arange(len(z)) % self.broken == 1
        return [str(text) for text in np.where(bad, "C1CC", self.smiles[rows])]

    def state(self) -> State:
        arrays = {"centre": self.centre, "axes": self.axes, "points": self.points}
        return State(arrays, {"params": self.get_params(), "smiles": self.smiles.tolist()})

    @classmethod
    def from_state(cls, state: State) -> NearestMolecule:
        made = cls(**state.meta["params"])
        made.smiles = np.array(state.meta["smiles"])
        made.centre, made.axes, made.points = (np.asarray(state.arrays[k]) for k in ("centre", "axes", "points"))
        return made


def latent_generator(table: Any, **params: Any) -> NearestMolecule:
    """One that learned from a table."""
    return NearestMolecule(**params).fit(standardise(table, "standard"))
