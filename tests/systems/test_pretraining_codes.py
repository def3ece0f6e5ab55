"""Codes: vector quantisation at one level and two and argmax, against a library, k-means and the equations."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F
from vector_quantize_pytorch import VectorQuantize

from molgraph.base.parts import make_part
from molgraph.nn.bottlenecks.argmax import ArgmaxQuantisation
from molgraph.nn.bottlenecks.vq import VectorQuantisation
from molgraph.nn.codebook import Codebook

N, D_IN, D, K, PARTS = 200, 7, 12, 16, 3


def states(seed: int = 0, n: int = N) -> torch.Tensor:
    return torch.randn(n, D_IN, generator=torch.Generator().manual_seed(seed))


def made(settings: str = "", name: str = "vq", **fixed: int) -> VectorQuantisation:
    """Beyond its first batch, so that the codebook follows means."""
    torch.manual_seed(0)
    part: VectorQuantisation = make_part("bottleneck", f"{name}({settings})", D_IN, D, None, 0, **fixed)
    for book in getattr(part, "books", ()):
        book.started.fill_(True)
    return part


@pytest.mark.parametrize("decay", [0.0, 0.9])
@pytest.mark.system("vq-vae", rung="exact")
def test_codes_losses_gradients_and_the_codebook_are_those_of_the_library(decay: float, off: str) -> None:
    """Three steps in training; off: the vectors as they are."""
    ours = made(f"n_codes={K}, parts={PARTS}, decay={decay}, dead=0").train()
    theirs = VectorQuantize(
        D, codebook_size=K, codebook_dim=D // PARTS, heads=PARTS, decay=decay, commitment_weight=0.25,
        rotation_trick=False, threshold_ema_dead_code=0,
    ).train()  # fmt: skip
    theirs.project_in = theirs.project_out = torch.nn.Identity()
    book, peer = ours.books[0], theirs._codebook
    peer.embed.data.copy_(book.vectors[None]), peer.embed_avg.data.copy_(book.sums[None])
    weights = torch.randn(N, D)
    for step in range(3):
        h = states(step)
        z_e = ours.linears[0](h).detach().requires_grad_()
        found = ours._level(0, z_e)
        z = z_e if off else found.z
        expected, code, loss = theirs(z_e[None])
        assert torch.equal(found.code, code[0])
        torch.testing.assert_close(z, expected[0], rtol=0, atol=1e-6)
        torch.testing.assert_close(found.prices["commitment"].sum() / z.numel(), loss.squeeze(), rtol=0, atol=1e-6)
        both = [
            torch.autograd.grad((out * weights).sum() + price, z_e)[0]
            for out, price in ((z, found.prices["commitment"].sum() / z.numel()), (expected[0], loss.squeeze()))
        ]
        torch.testing.assert_close(*both, rtol=0, atol=1e-6)
        torch.testing.assert_close(book.vectors, peer.embed[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(book.counts, peer.cluster_size[0])


@pytest.mark.system("vq-vae", rung="exact")
def test_the_gradient_of_a_code_vector_is_copied_to_the_vector_before(off: str) -> None:
    """Off: another part of the loss reads the vector before."""
    part = made(f"n_codes={K}, parts={PARTS}").eval()
    z_e = part.linears[0](states())
    z = part._level(0, z_e).z
    loss = (z.sin() * 3).sum() + (z_e.square().sum() if off else 0)
    of_z, of_e = torch.autograd.grad(loss, [z, z_e])
    assert torch.equal(of_e, of_z) and of_z.abs().min() > 0


@pytest.mark.system("amae", rung="exact")
def test_the_gradient_of_a_corner_is_copied_to_the_point(off: str) -> None:
    part = made(f"n_codes={K}, parts={PARTS}", "argmax")
    q = part.simplex(states())
    corner, code = part.corners(q)
    assert torch.equal(code, part.quantise(states()).code)
    torch.testing.assert_close(corner, F.one_hot(code, K).float())
    loss = ((corner @ part.values).sin() * 3).sum() + (q.square().sum() if off else 0)
    of_corner, of_q = torch.autograd.grad(loss, [corner, q])
    assert torch.equal(of_q, of_corner)


@pytest.mark.system("vq-vae", rung="exact")
def test_a_step_without_memory_is_one_of_k_means(off: str) -> None:
    book, z = Codebook(4, 3, decay=0.5 if off else 0.0, dead=0.0), torch.randn(40, 3)
    book.vectors.copy_(z[:4])
    code = torch.cdist(z, z[:4]).argmin(dim=1)
    assert torch.equal(book.nearest(z), code)
    book.update(z, code)
    torch.testing.assert_close(book.vectors, torch.stack([z[code == j].mean(0) for j in range(4)]), rtol=0, atol=1e-4)


@pytest.mark.system("vq-vae", rung="exact")
def test_a_code_that_stands_for_nothing_takes_an_input(off: str) -> None:
    torch.manual_seed(0)
    book, z = Codebook(4, 3, decay=0.5, dead=0.0 if off else 0.1), torch.randn(40, 3)
    book.vectors.copy_(torch.cat([z[:3], torch.full((1, 3), 100.0)]))
    book.sums.copy_(book.vectors)
    for _ in range(20):
        book.update(z, book.nearest(z))
    assert len(book.nearest(z).unique()) == 4


@pytest.mark.system("vq-vae", rung="exact")
def test_the_prior_writes_what_it_was_taught_and_its_price_is_its_density(off: str) -> None:
    """Two columns of which the second repeats the first: an independent prior is at 2 log 4; all rows sum to 1."""
    part = made("n_codes=4, parts=2")
    prior = part.codes
    optimizer, draw = torch.optim.Adam(prior.parameters(), 0.02), torch.Generator().manual_seed(0)
    for _ in range(0 if off else 150):
        code = torch.randint(4, (64, 1), generator=draw).expand(-1, 2)
        optimizer.zero_grad()
        prior(code).sum(1).mean().backward()
        optimizer.step()
    every = torch.cartesian_prod(torch.arange(4), torch.arange(4))
    assert float(prior(every).sum(1).neg().exp().sum()) == pytest.approx(1, abs=1e-5)
    drawn = prior.sample(torch.rand(500, 2, generator=draw))
    assert (drawn[:, 0] == drawn[:, 1]).float().mean() > 0.95


@pytest.mark.system("vq-vae-2", rung="exact")
def test_means_of_fixed_clusters_become_the_codes(off: str) -> None:
    """The running mean's error falls as its decay to the power of the steps."""
    torch.manual_seed(0)
    book, code = Codebook(5, 3, decay=1.0 if off else 0.9, dead=0.0), torch.arange(200) % 5
    z = torch.randn(200, 3) + 5 * torch.eye(5, 3)[code]
    for _ in range(150):
        book.update(z, code)
    torch.testing.assert_close(book.vectors, torch.stack([z[code == j].mean(0) for j in range(5)]), rtol=0, atol=1e-3)


@pytest.mark.system("vq-vae-2", rung="exact")
def test_rows_of_a_group_share_the_first_code_and_are_read_beside_its_vector(off: str) -> None:
    """Written out from the layers; off: one level of all groups' rows."""
    part, group, h = made("n_codes=6, parts=1, levels=2").eval(), torch.arange(20) % 4, states(n=20)
    found = part.quantise(h, group)
    z, codes = [], []
    for i in range(20):
        mean = h[i] if off else h[group == group[i]].mean(0)
        top = torch.cdist(part.linears[0](mean)[None], part.books[0].vectors)[0].argmin()
        above = part.books[0].vectors[top]
        below = torch.cdist(part.linears[1](torch.cat([h[i], above]))[None], part.books[1].vectors)[0].argmin()
        codes.append([int(top), int(below)])
        z.append(torch.cat([above, part.books[1].vectors[below]]))
    assert found.code.tolist() == codes
    torch.testing.assert_close(found.z, torch.stack(z))
    torch.testing.assert_close(part.vectors(found.code), found.z)
    torch.testing.assert_close(part.snap(found.z), found.z)
    of_h = torch.autograd.functional.jacobian(lambda x: part.quantise(x, group).z[0], h)
    reached = of_h.abs().sum(dim=(0, 2)) > 0
    assert torch.equal(reached, group == 0), "the rows of its own group alone"


@pytest.mark.system("amae", rung="exact")
def test_a_point_is_on_the_simplex_and_its_corner_is_the_nearest(off: str) -> None:
    """At most 1 - 1/k away, and no corner is nearer; the price is that of the equation."""
    torch.manual_seed(0)
    part = ArgmaxQuantisation(D_IN, D, n_codes=K, parts=PARTS, diversity=0.0 if off else 0.5).train()
    h = torch.cat([states(), torch.full((1, D_IN), -1e3)])
    q, found = part.simplex(h), part.quantise(h)
    assert (q >= 0).all() and torch.allclose(q.sum(2), torch.ones(N + 1, PARTS))
    distance = torch.cdist(q.flatten(0, 1), torch.eye(K)).square()
    nearest = distance.min(dim=1)
    assert (nearest.values <= 1 - 1 / K + 1e-5).all()
    assert torch.equal(nearest.values, distance.gather(1, found.code.flatten()[:, None])[:, 0])
    expected = 0.5 * (K * q.mean(0) - 1).square().sum(1)
    torch.testing.assert_close(found.prices["diversity"], expected.expand(N + 1, -1))
