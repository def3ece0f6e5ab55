"""Read a graph of causes from interventions by a recurrent network over pairs of variables, trained on made graphs."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def random_graphs(n: int, m: int, p: float = 0.5) -> Bool[Tensor, "n m m"]:
    """Random directed graphs without cycles, ``[i, j]`` for an edge from i to j, by torch's generator."""
    above = torch.ones(m, m, dtype=torch.bool).triu(1)
    edges = (torch.rand(n, m, m) < p) & above
    order = torch.rand(n, m).argsort(dim=1)
    rows = order.unsqueeze(2).expand(-1, -1, m)
    return edges.gather(1, rows).gather(2, rows.transpose(1, 2))


def interventions(
    edges: Bool[Tensor, "n m m"], steps: int, noise: float = 0.3
) -> tuple[Float[Tensor, "n t m"], Float[Tensor, "n t m"]]:
    """Changes of all variables after one of them is set, and which one was: a linear model with Gaussian noise.

    ``x_j = sum_i w_ij x_i + noise`` for ``x`` a change; the variable that is set has a value of its own from N(0, 1),
    whatever its causes. Weights are 0.5 to 1.5 in size, of either sign.

    Args:
        edges: n graphs of m variables.
        steps: t interventions of each, at variables drawn at random.
        noise: deviation of the other variables.
    """
    n, m, _ = edges.shape
    weights = edges * (0.5 + torch.rand(n, m, m)) * (2 * torch.randint(0, 2, (n, m, m)) - 1)
    at = torch.nn.functional.one_hot(torch.randint(0, m, (n, steps)), m).float()
    forced = at * torch.randn(n, steps, m)
    noises = noise * torch.randn(n, steps, m) * (1 - at)
    x = forced + noises
    for _ in range(m):  # the longest path has m - 1 edges
        x = forced + (noises + torch.einsum("nti,nij->ntj", x, weights)) * (1 - at)
    return x, at


class CausalRelations(nn.Module):
    """Logits of all edges from a sequence of interventions; the numbers of variables play no part.

    Ke et al. 2020, "Amortized learning of neural causal representations": an encoder keeps a belief that it updates at
    each intervention, and a decoder tells the adjacency, trained by cross-entropy over many graphs. Here the belief is
    a state for each ordered pair of variables: at each step it takes both values and which variable was set, then what
    its reverse and its neighbours hold.

    Args:
        d_hidden: width of a pair's state.
    """

    def __init__(self, d_hidden: int = 24) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(8, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_hidden))
        self.belief = nn.GRUCell(d_hidden, d_hidden)
        self.decode = nn.Sequential(nn.Linear(4 * d_hidden, d_hidden), nn.ReLU(), nn.Linear(d_hidden, 1))

    def forward(self, x: Float[Tensor, "n t m"], at: Float[Tensor, "n t m"]) -> Float[Tensor, "n m m"]:
        """Logits; those of a variable to itself mean nothing."""
        n, t, m = x.shape
        state = x.new_zeros(n * m * m, self.belief.hidden_size)
        for step in range(t):
            parts = []
            for value in (x[:, step], at[:, step]):
                parts += [value[:, :, None].expand(n, m, m), value[:, None].expand(n, m, m)]
            a, b, do_a, do_b = parts
            pair = torch.stack([a, b, do_a, do_b, a * b, do_a * a * b, do_b * a * b, do_a * b.abs()], dim=3)
            state = self.belief(self.read(pair).reshape(n * m * m, -1), state)
        e = state.view(n, m, m, -1)
        into = e.mean(dim=1, keepdim=True).expand_as(e)  # of all that could cause the second
        out = e.mean(dim=2, keepdim=True).expand_as(e)
        return self.decode(torch.cat([e, e.transpose(1, 2), into, out], dim=3))[..., 0]
