"""Make the episodes that estimators take: of a table of outcomes, of random texts, and of a tiny language model."""

from __future__ import annotations

import torch
from torch import Tensor

from molgraph.generate.estimators.estimator import Episodes
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.network_generator import Fitted


def of_outcomes(log_p: Tensor, rows: Tensor, reward: Tensor, *, log_mu: Tensor | None = None) -> Episodes:
    """Texts of one token each: the outcomes ``rows`` of a distribution; ``log_mu`` [n] is that of the draws."""
    log_pi = log_p[rows][:, None]
    before = log_pi.detach() if log_mu is None else log_mu[:, None]
    mask, states = torch.ones(len(rows), 1, dtype=torch.bool), torch.ones(len(rows), 1, 1, dtype=log_p.dtype)
    return Episodes(log_pi, before, log_pi.detach(), mask, reward, states)


def of_texts(n: int, seed: int = 0, d: int = 5) -> Episodes:
    """Random log-probabilities and rewards of n texts of one to six tokens; ``log_pi`` is a leaf with a gradient."""
    rng = torch.Generator().manual_seed(seed)
    length = torch.randint(1, 7, (n,), generator=rng)
    length[0] = 6
    mask = torch.arange(6) < length[:, None]
    pi, mu, prior = (-torch.rand((n, 6), generator=rng).double() * mask for _ in range(3))
    states = torch.randn((n, 6, d), generator=rng).double()
    return Episodes(pi.requires_grad_(), mu, prior, mask, torch.rand(n, generator=rng).double(), states)


def tiny_language(tokens: str = "selfies", seed: int = 0, **params: int) -> LanguageGenerator:
    """A language model with random weights, over a few tokens; each text of the alphabet SELFIES is a molecule."""
    letters = ("[C]", "[N]", "[O]", "[=C]", "[Ring1]") if tokens == "selfies" else ("C", "N", "O")
    how = {"d_embedding": 8, "d_hidden": 16, "n_layers": 1, "max_length": 12, "threads": 1, **params}
    model = LanguageGenerator(tokens=tokens, **how)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = model.build(letters).eval()
    model.fitted = Fitted(network, letters)
    return model
