"""Sequence layers: a state space against its recurrence; rounds that share their weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.nn.sequence import make_sequence
from molgraph.nn.sequences.convolution import Convolutions

D = 6


@pytest.mark.system("s4", rung="exact")
def test_a_state_space_is_its_kernel_and_its_recurrence(off: str) -> None:
    """Against the recurrence of Gu et al. 2022, equation 2, in double precision, and the kernel by matrix powers."""
    space = make_sequence("s4(d_state=8)", D, D, 1).double().spaces[0]
    step, decay, frequency, output, skip = (
        each.detach().numpy() for each in (space.log_step, space.log_decay, space.frequency, space.output, space.skip)
    )
    a, c = -np.exp(decay) + 1j * frequency, output[..., 0] + 1j * output[..., 1]
    move = np.exp(np.exp(step)[:, None] * a)
    enter = (move - 1) / a
    u = np.random.default_rng(0).normal(size=(200, D))
    x, y = np.zeros_like(a), np.zeros_like(u)
    for t in range(200):
        x = move * x + enter * u[t][:, None]
        y[t] = 2 * (c * x).sum(axis=1).real + skip * u[t]
    with torch.no_grad():
        made, last = space(torch.from_numpy(u)[None])
        made = Convolutions((D, D), 7).double()(torch.from_numpy(u)[None]) if off else made
        kernel = space.kernel(200)[0].numpy()
    np.testing.assert_allclose(made[0].numpy(), y, atol=1e-10)
    np.testing.assert_allclose(last[0].numpy(), x, atol=1e-10)
    for channel in range(D):
        powers = [np.linalg.matrix_power(np.diag(move[channel]), k) for k in range(0, 200, 37)]
        by_power = [2 * (c[channel] @ power @ enter[channel]).real for power in powers]
        np.testing.assert_allclose(kernel[channel, ::37], by_power, atol=1e-10)
        convolved = np.convolve(kernel[channel], u[:, channel])[:200] + skip[channel] * u[:, channel]
        np.testing.assert_allclose(convolved, y[:, channel], atol=1e-10)


@pytest.mark.system("albert", rung="exact")
def test_rounds_share_their_weights_and_each_counts(off: str) -> None:
    store = featurize(["CCO", "c1ccccc1O"])
    torch.manual_seed(0)
    name, depth = ("gin", "depth") if off else ("mpnn", "rounds")
    one, three = (get("encoder", name)(store.spec, d_hidden=8, **{depth: n}).eval() for n in (1, 3))
    assert sum(p.numel() for p in one.parameters()) == sum(p.numel() for p in three.parameters())
    three.load_state_dict(one.state_dict())
    graphs = [each(collate(store, np.arange(2))).graphs for each in (one, three)]
    assert (graphs[0] - graphs[1]).abs().max() > 1e-3
