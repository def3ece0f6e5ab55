"""Train a network from chosen weights with some of them masked, and choose the masks of lottery tickets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from molgraph.base.seeds import derive
from molgraph.train.callback import Callback
from molgraph.train.masks import masks_of, matrices
from molgraph.train.objective import StepState

Criterion = Literal["large_final", "magnitude_increase", "large_final_same_sign", "movement", "large_initial", "random"]
Weights = Mapping[str, Tensor]


def prunable(network: Any) -> dict[str, nn.Parameter]:
    """The matrices of a network; of one that starts from a file those that come from the file, not its new head."""
    started: frozenset[str] = getattr(network, "started", frozenset())
    return {name: value for name, value in matrices(network).items() if not started or name in started}


def copied(network: nn.Module) -> dict[str, Tensor]:
    """A network's weights and buffers as they are now."""
    return {name: value.detach().cpu().clone() for name, value in network.state_dict().items()}


class Ticket(Callback):
    """Begin at chosen weights, hold masked ones at zero, and keep the weights of the start, of step k and of the end.

    Args:
        start: weights to begin at; those of the fit if None.
        masks: bool by the names of matrices, False where a weight is zero; everything stays if None.
        rewind: k as a share of the steps; ``early`` has the weights after step k, 1 or more, and those of the start
            for 0.
    """

    def __init__(self, *, start: Weights | None = None, masks: Weights | None = None, rewind: float = 0.0) -> None:
        super().__init__()
        self.start, self.masks, self.rewind = start, masks, rewind
        self.initial, self.early, self.last = dict[str, Tensor](), dict[str, Tensor](), dict[str, Tensor]()

    def begin(self, network: Any) -> None:
        """Load the weights and set what is masked to zero."""
        if self.start is not None:
            network.load_state_dict(self.start)
        self.initial = self.early = copied(network)
        if self.masks is None:
            self.masks = {name: torch.ones_like(value, dtype=torch.bool) for name, value in prunable(network).items()}
        for number, mask in enumerate(self.masks.values()):
            self.register_buffer(f"mask_{number}", mask.clone())
        self._apply_masks(network)

    @torch.no_grad()
    def _apply_masks(self, network: Any) -> None:
        for number, name in enumerate(self.masks or ()):
            network.get_parameter(name).mul_(getattr(self, f"mask_{number}"))

    def after_step(self, network: Any, state: StepState) -> None:
        """Set to zero what the optimiser has moved; keep the weights of step k."""
        self._apply_masks(network)
        if self.rewind and state.step + 1 == max(round(self.rewind * state.n_steps), 1):
            self.early = copied(network)

    def end(self, network: Any) -> None:
        """Keep the weights of the epoch that the fit ends with."""
        self.last = copied(network)


def mask_scores(criterion: Criterion, initial: Tensor, final: Tensor, seed: int = 0) -> Tensor:
    """How much each weight deserves to stay, by its initial value ``w_i`` and its trained one ``w_f``.

    Zhou et al. 2019, "Deconstructing Lottery Tickets", section 3 and figure 2: ``large_final`` ``|w_f|``;
    ``magnitude_increase`` ``|w_f| - |w_i|``; ``large_final_same_sign`` ``max(0, w_f w_i / |w_i|)``; ``movement``
    ``|w_f - w_i|``; ``large_initial`` ``|w_i|``; ``random`` noise.

    Example:
        >>> mask_scores("large_final_same_sign", torch.tensor([-1.0, 2.0]), torch.tensor([-3.0, -4.0])).tolist()
        [3.0, 0.0]
    """
    if criterion == "random":
        return torch.rand(final.shape, generator=torch.Generator().manual_seed(seed))
    scores = {
        "large_final": final.abs(),
        "magnitude_increase": final.abs() - initial.abs(),
        "large_final_same_sign": (final * initial.sign()).clamp(min=0),
        "movement": (final - initial).abs(),
        "large_initial": initial.abs(),
    }
    return scores[criterion]


def ticket_masks(
    criterion: Criterion, initial: Weights, final: Weights, masks: Weights, fraction: float, seed: int = 0
) -> dict[str, Tensor]:
    """Masks of the weights that stay; what is masked already stays so.

    Args:
        criterion: by which weights of all matrices together are ranked.
        initial, final: weights before and after training.
        masks: those of the round before.
        fraction: of all entries of the matrices that are masked then.
        seed: of random scores.
    """
    scores = {}
    for name, mask in masks.items():
        score = mask_scores(criterion, initial[name], final[name], derive(seed, name) % 2**31)
        scores[name] = score.masked_fill(~mask, -torch.inf)
    return masks_of(scores, fraction)


def shuffled_masks(masks: Weights, seed: int) -> dict[str, Tensor]:
    """Masks that keep as many weights of each matrix, at random places."""
    out = {}
    for name, mask in masks.items():
        order = torch.randperm(mask.numel(), generator=torch.Generator().manual_seed(derive(seed, name) % 2**31))
        out[name] = mask.flatten()[order].view_as(mask)
    return out


def masked_weights(weights: Weights, masks: Weights) -> dict[str, Tensor]:
    """The weights with what is masked at zero."""
    return {name: value * masks[name] if name in masks else value for name, value in weights.items()}


def sign_weights(weights: Weights, masks: Weights) -> dict[str, Tensor]:
    """Matrices whose entries have the sign of the weight and all one size, the matrix's deviation.

    Zhou et al. 2019, section 4.1, "mask-1 actions": signs are most of what rewinding keeps.
    """
    return {name: value.sign() * value.std() if name in masks else value for name, value in weights.items()}
