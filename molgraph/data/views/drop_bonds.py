"""Hide the features of random bonds of each molecule, as an augmentation; the bonds themselves stay."""

from __future__ import annotations

import numpy as np
import torch

from molgraph.base.ranges import Share
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.featuriser import Featuriser
from molgraph.data.view import View
from molgraph.data.views.mask import hidden


@register("view", "drop", summary="hides some bonds", paper="You et al. 2020, NeurIPS")
class DropBonds(View):
    """The features of a random share of the bonds are a row of zeros, which no bond has, in both directions.

    You et al. 2020, "Graph Contrastive Learning with Augmentations", edge perturbation; here the two atoms stay
    neighbours and what is between them is not known, so that relations of the batch hold.

    Args:
        p: probability that a bond is hidden.
    """

    def __init__(self, *, p: Share = 0.2) -> None:
        self.p = p

    def __call__(self, seen: GraphBatch, rng: np.random.Generator) -> GraphBatch:
        """The batch with hidden bonds."""
        reverse = seen["bond"].arrays["reverse"]
        first = torch.minimum(reverse, torch.arange(len(reverse)))  # of the two directions of a bond
        drawn = torch.from_numpy(rng.random(len(reverse)) < self.p)[first]
        return hidden(seen, "bond", drawn.nonzero().squeeze(1))

    def changes(self, featuriser: Featuriser) -> bool:
        """Texts and atoms in space have no bonds."""
        return super().changes(featuriser) and featuriser.as_written is None
