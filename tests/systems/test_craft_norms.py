"""Norms for small and uneven batches, against torch's batch norm and on batches that are not alike."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn

from molgraph.data.read import read_table
from molgraph.nn.batch_norms import MABN, BatchRenorm
from molgraph.nn.deconvolution import Deconvolution, inverse_root
from molgraph.nn.norms import Batch, Layer, NoNorm, Norm
from molgraph.nn.relation import Relation
from molgraph.train.callbacks.calibrate_norm import WeighedBatchNorm
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect
from tests.tiny import series, small

D = 5
GRAPH_OF = torch.arange(12).div(2, rounding_mode="floor")  # six graphs of two rows
MEMBERS = Relation.from_pairs(torch.arange(12), GRAPH_OF, 12, 6)


def rows(seed: int = 0, n: int = 12) -> Tensor:
    return 2 + 3 * torch.randn(n, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def members(n: int) -> Relation:
    return Relation.from_pairs(torch.arange(n), torch.arange(n), n, n)


def gradients(norm: nn.Module, h: Tensor, *args: Relation) -> list[Tensor]:
    """The output, and the gradients of rows and parameters under an uneven loss."""
    h = h.clone().requires_grad_()
    out = norm(h, *args)
    (out * torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)).sin().sum().backward()
    return [out.detach(), h.grad, *(p.grad for p in norm.parameters())]  # type: ignore[list-item]


@pytest.mark.system("batch-renormalization", rung="exact")
def test_without_room_for_a_correction_it_is_torchs_batch_norm(off: str) -> None:
    peer = nn.BatchNorm1d(D).double()
    own = NoNorm(D) if off else BatchRenorm(D, r_max=1.0, d_max=0.0, warmup=0, momentum=0.1).double()
    for seed in range(3):
        found, expected = gradients(own, rows(seed), MEMBERS), gradients(peer, rows(seed))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
        own.zero_grad(), peer.zero_grad()
    torch.testing.assert_close(own.eval()(rows(9), MEMBERS), peer.eval()(rows(9)))


@pytest.mark.system("batch-renormalization", rung="exact")
def test_without_limits_it_trains_as_it_predicts(off: str) -> None:
    own: Norm = Batch(D).double() if off else BatchRenorm(D, r_max=1e9, d_max=1e9, warmup=0).double()
    for seed in range(4):
        expected = copy.deepcopy(own).eval()(rows(seed), MEMBERS)
        torch.testing.assert_close(own(rows(seed), MEMBERS), expected, rtol=0, atol=1e-6)


@pytest.mark.system("batch-renormalization", rung="exact")
def test_the_correction_is_constant_in_the_gradient(off: str) -> None:
    """``r`` times batch norm's, Ioffe 2017, section 3."""
    own, peer = BatchRenorm(D, r_max=1e9, d_max=1e9, warmup=0).double(), nn.BatchNorm1d(D).double()
    h, other = rows().requires_grad_(), rows().requires_grad_()
    direction = rows(3)
    (own(h, MEMBERS) * direction).sum().backward()
    (peer(other) * direction).sum().backward()
    r = 1.0 if off else (rows().var(0, correction=0) + 1e-5).sqrt() / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(h.grad, r * other.grad, rtol=1e-6, atol=1e-6)


def taught(make: type[Norm], seed: int, **settings: float) -> float:
    """Error in prediction of a small network that learns from batches of rows that are alike."""
    rng = torch.Generator().manual_seed(seed)
    centres, w = 3 * torch.randn(8, D, generator=rng), torch.randn(D, generator=rng)
    groups = [c + torch.randn(32, D, generator=rng) for c in centres]
    torch.manual_seed(seed)
    first, norm, last = nn.Linear(D, 16), make(16, **settings), nn.Linear(16, 1)
    network = nn.ModuleList([first, norm, last])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

    def error(x: Tensor) -> Tensor:
        return (last(norm(first(x), members(len(x))).relu())[:, 0] - torch.tanh(x @ w)).square().mean()

    for step in range(400):
        loss = error(groups[step % 8])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        return float(error(torch.cat(groups)))


@pytest.mark.system("batch-renormalization", rung="works", twins=("batch",))
def test_batches_that_are_not_alike_teach_a_network_that_predicts(off: str, effect: Effect) -> None:
    """Each batch is of one of eight clusters, as of one scaffold: Ioffe 2017, section 4.4."""
    errors = {"batch_renorm": [taught(BatchRenorm, seed, warmup=100, momentum=0.01) for seed in (5, 6, 7)]}
    errors |= {name: [taught(make, seed) for seed in (5, 6, 7)] for name, make in (("batch", Batch), ("layer", Layer))}
    share = [a / b for a, b in zip(errors[off or "batch_renorm"], errors["batch"], strict=True)]
    effect("error in prediction / batch norm's", share, at_most=0.5, beside=errors)


@pytest.mark.system("mabn", rung="exact")
def test_the_gradient_by_the_batch_is_autograds(off: str) -> None:
    """``(dL/dy - y Psi) / chi`` where chi and Psi are of this batch alone."""
    own = MABN(D, memory=1, momentum=1.0).double()
    if off:
        own.norm.num_batches_tracked += 1  # past the first batches: chi is that of the batches before

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(D).double()), nn.Parameter(torch.zeros(D).double())

        def forward(self, h: Tensor, members: Relation) -> Tensor:
            return h / (h.square().mean(0) + 1e-5).sqrt() * self.weight + self.bias

    for one, other in zip(gradients(own, rows(), MEMBERS), gradients(Plain(), rows(), MEMBERS), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.system("mabn", rung="exact")
def test_with_a_long_memory_it_is_the_norm_of_all_rows(off: str) -> None:
    """Batches of two rows of one distribution: outputs and gradients as with all rows in one batch, within 1%."""
    every, own = rows(1, 20_000), MABN(D, memory=2_000, momentum=0.002).double()
    chi = every.square().mean(0).sqrt()
    slope = torch.linspace(0.5, 2, D).double()
    for batch in every[:12_000].split(4):
        h = batch.clone().requires_grad_()
        y = (Batch(D).double() if off else own)(h, members(4))
        (y.square() * slope).sum().backward()
    last = every[11_996:12_000]
    psi = (2 * slope * (every / chi).square()).mean(0)
    expected = (2 * slope * last / chi - last / chi * psi) / chi
    torch.testing.assert_close(y.detach(), last / chi, rtol=0.02, atol=0.02)
    torch.testing.assert_close(h.grad, expected, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("ghost", [6, 7, 100])
@pytest.mark.system("batchnorm-four-fixes", rung="exact")
def test_a_ghost_batch_of_the_whole_batch_is_batch_norm(ghost: int, off: str) -> None:
    own, peer = Batch(D, 2 if off else ghost).double(), nn.BatchNorm1d(D).double()
    for one, other in zip(gradients(own, rows(), MEMBERS), gradients(peer, rows()), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.system("batchnorm-four-fixes", rung="exact")
def test_ghost_batches_are_batch_norm_of_their_graphs(off: str) -> None:
    """Two graphs each, side by side; the running statistics are the mean of the groups'."""
    own, peer = Batch(D, None if off else 2).double(), nn.BatchNorm1d(D, momentum=1.0).double()
    expected, means, variances = [], [], []
    for part in rows().split(4):
        expected.append(peer(part))
        means.append(peer.running_mean.clone()), variances.append(peer.running_var.clone())
    torch.testing.assert_close(own(rows(), MEMBERS), torch.cat(expected), rtol=0, atol=1e-6)
    mean, variance = (torch.stack(each).mean(0) for each in (means, variances))
    torch.testing.assert_close(own.norm.running_mean, 0.1 * mean)
    torch.testing.assert_close(own.norm.running_var, 0.9 + 0.1 * variance)


def test_the_last_ghost_batch_is_no_fragment() -> None:
    own, h = Batch(D, 4).double(), rows()
    out = own(h, MEMBERS)  # six graphs: four, and the two that are left
    assert all(abs(float(out[a:b].detach().mean())) < 1e-6 for a, b in ((0, 8), (8, 12)))
    out = Batch(D, 5).double()(h, MEMBERS)  # five and one: one batch
    assert abs(float(out.detach().mean())) < 1e-6 and np.isfinite(out.detach().numpy()).all()


@pytest.mark.parametrize("group", [8, 4, 3])
@pytest.mark.system("network-deconvolution", rung="exact")
def test_whitened_columns_have_the_identity_for_covariance(group: int, off: str) -> None:
    """Within groups; scikit-learn's PCA has the same columns but for a rotation."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(500, 8)) @ rng.normal(size=(8, 8)) + 3)
    layer = Deconvolution(8, group, n_iter=1 if off else 30, eps=0.0).double()
    found = layer(x).detach()
    for part in found.split(group, dim=1):
        covariance = part.T @ part / len(part)
        assert float((covariance - torch.eye(part.shape[1])).abs().max()) < 1e-2
    peer = PCA(whiten=True).fit_transform(x) * (500 / 499) ** 0.5
    if group == 8:
        np.testing.assert_allclose(found @ found.T, peer @ peer.T, atol=0.1)
    torch.testing.assert_close(layer.eval()(x), found)


@pytest.mark.system("network-deconvolution", rung="exact")
def test_the_iterations_give_the_inverse_root(off: str) -> None:
    rng = np.random.default_rng(1)
    q = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    values = np.geomspace(1e-3, 10, 20)
    found = inverse_root(torch.from_numpy(q * values @ q.T)[None], 3 if off else 25)[0].numpy()
    np.testing.assert_allclose(found, q / np.sqrt(values) @ q.T, atol=1e-3)


@pytest.mark.system("network-deconvolution", rung="works")
def test_one_step_solves_least_squares(off: str, effect: Effect) -> None:
    """Columns of condition 1e4: a gradient step of 1, and 100 of the largest stable length without whitening."""

    def excess(seed: int, whitens: bool) -> float:
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(rng.normal(size=(12, 12)))[0]
        x = torch.from_numpy(rng.normal(size=(400, 12)) * np.geomspace(1, 1e-2, 12) @ q.T)
        y = x @ torch.from_numpy(q @ (rng.normal(size=12) / np.geomspace(1, 1e-2, 12)))
        y = y - y.mean() + 0.5 * torch.from_numpy(rng.normal(size=400))
        x, y = x - x.mean(0), y - y.mean()
        h = Deconvolution(12, n_iter=40, eps=0.0).double()(x) if whitens else x
        step = 1.0 if whitens else 1 / float(torch.linalg.eigvalsh(h.T @ h / 400)[-1])
        w = torch.zeros(12).double()
        for _ in range(1 if whitens else 100):
            w = w + step * h.T @ (y - h @ w) / 400
        best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
        losses = [float((y - a @ b).square().mean()) for a, b in ((h, w), (x, best))]
        return losses[0] / losses[1] - 1

    seeds = (3, 4, 5)
    plain = [excess(seed, False) for seed in seeds]
    found = plain if off else [excess(seed, True) for seed in seeds]
    effect("loss above that of least squares, as a share", found, at_most=0.01, beside={"100 plain steps": plain})


@pytest.mark.system("batchnorm-four-fixes", rung="exact")
def test_a_share_of_0_is_batch_norm_and_of_1_instance_norm(off: str) -> None:
    peer = nn.BatchNorm1d(D).double()
    peer(rows(3)), peer.eval()
    own = WeighedBatchNorm(peer)
    torch.testing.assert_close(own(rows(), MEMBERS), peer(rows()), rtol=0, atol=1e-6)
    own.share.fill_(0.0 if off else 1.0)
    for graph, part in enumerate(rows().split(2)):
        expected = nn.functional.instance_norm(part.T[None])[0].T
        torch.testing.assert_close(own(rows(), MEMBERS)[graph == GRAPH_OF], expected, rtol=0, atol=1e-6)


@pytest.mark.system("batchnorm-four-fixes", rung="works", twins=("plain",))
def test_the_tuned_share_never_raises_the_validation_loss(off: str, effect: Effect) -> None:
    """And no weight is trained otherwise: Summers and Dinneen 2020, section 3.1."""
    gaps, shares = [], []
    for seed in (3, 4, 5):
        how = {"encoder": "gin", "epochs": 3, "seed": seed, "threads": 1, "learning_rate": 0.01}
        tuned = small(**how, callback="calibrate-norm").fit(series(48), series(24, 100))
        best = tuned.curves.iloc[tuned.best_epoch - 1]
        loss = best["valid_loss"] if off else best["norm_loss"]
        gaps.append(loss - best["valid_loss"])
        shares.append(best["norm_share"])
    assert max(gaps) <= 0
    effect("validation loss less that of batch norm", gaps, at_most=-1e-6, beside={"share": shares})


@pytest.mark.system("mabn", rung="works", twins=("batch",))
def test_two_molecules_a_batch_are_enough_for_it(off: str, effect: Effect) -> None:
    """Solubility from 160 molecules: Yan et al. 2020, section 5, where batch norm has a few rows a batch."""
    table, errors = read_table("dataset:esol"), dict[str, list[float]]()
    for norm in ("batch",) if off else ("batch", "mabn"):
        for seed in (4, 5, 6):
            order = np.random.default_rng(seed).permutation(len(table))
            train, valid, test = (table.take(order[a:b]) for a, b in ((0, 160), (160, 260), (260, 460)))
            params = {"depth": 3, "d_hidden": 16, "norm": norm}
            how = {"epochs": 6, "batch_size": 2, "learning_rate": 0.002, "patience": None, "threads": 1, "seed": seed}
            method = GraphMethod("gin", params, head_width=32, **how).fit(train, valid)
            error = float(np.sqrt(np.nanmean((method.predict(test).value - test.y) ** 2)))
            errors.setdefault(norm, []).append(error)
    share = [a / b for a, b in zip(errors[off or "mabn"], errors["batch"], strict=True)]
    effect("RMSE / batch norm's", share, at_most=0.999, beside=errors)
