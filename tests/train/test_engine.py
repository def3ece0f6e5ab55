"""The training loop: determinism, best weights, schedule, refusals, Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from molgraph.base import errors
from molgraph.base.contracts import Target
from molgraph.train import engine
from molgraph.train.optimizers import Steps, learning_rate, waiting
from molgraph.train.outputs import Outputs
from molgraph.train.preparation import prepare
from molgraph.train.runtime import Interrupted
from tests.tiny import mixed, same_bits, series, small, weights_of


def test_same_seed_same_bits_and_another_seed_others():
    dropout = {"params": {"d_hidden": 8, "dropout": 0.2}}
    a, b, c = (small(**dropout, seed=s).fit(series(), series(16, 64)) for s in (1, 1, 2))
    assert same_bits(weights_of(a), weights_of(b))
    assert not same_bits(weights_of(a), weights_of(c))


def test_training_leaves_torchs_random_numbers_and_threads_alone():
    torch.manual_seed(5)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    small(threads=1).fit(series(32))
    assert torch.equal(state, torch.get_rng_state()) and torch.get_num_threads() == threads


def test_best_weights_are_kept_and_training_stops_early():
    train, valid = series(64), series(32, 100)
    method = small(epochs=60, learning_rate=0.03, patience=3).fit(train, valid)
    curve = method.curves.valid_loss.to_numpy()
    assert len(curve) < 60 and method.best_epoch == int(curve.argmin()) + 1
    assert len(curve) - method.best_epoch == waiting(3, method.best_epoch - 1) <= 3
    y = valid.y[:, 0]
    scale = method.ready().outputs.scale[0]
    loss = np.mean(((method.predict(valid).value[:, 0] - y) / scale) ** 2)
    np.testing.assert_allclose(loss, curve.min(), rtol=1e-4)


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_the_best_epoch_may_be_that_of_the_highest_accuracy(kind: str) -> None:
    classes, n = (("a", "b", "c"), 3) if kind == "multiclass" else ((), 2)
    rng = np.random.default_rng(5)
    made = (replace(part, targets=(Target("y", kind, classes=classes),)) for part in (series(40), series(24, 100)))
    train, valid = (replace(part, y=rng.integers(0, n, (len(part), 1)).astype(float)) for part in made)
    how = {"epochs": 30, "learning_rate": 0.03, "patience": None, "params": {"d_hidden": 8, "readout": "mean"}}
    by_loss, method = (small(**how, monitor=name).fit(train, valid) for name in ("loss", "accuracy"))
    curves = method.curves
    assert curves.equals(by_loss.curves.assign(seconds=curves["seconds"])) and by_loss.best_epoch != method.best_epoch
    best = sorted(zip(-curves["valid_accuracy"], curves["valid_loss"], curves["epoch"], strict=True))[0]
    assert method.best_epoch == best[2]
    value = method.predict(valid).value
    guess = value.argmax(axis=1) if classes else value[:, 0] > 0.5
    assert (guess == valid.y[:, 0]).mean() == pytest.approx(-best[0])


def test_an_accuracy_is_monitored_of_classes_alone() -> None:
    with pytest.raises(errors.UnsupportedError, match="accuracy"):
        small(monitor="accuracy").fit(series(16))


@pytest.mark.slow
def test_few_rows_get_more_epochs_where_steps_are_asked_for():
    train, valid = series(64), series(32, 100)
    asked = {"epochs": 4, "batch_size": 32, "patience": 1, "warmup_epochs": 1.0}
    plain, more = (small(**asked, min_steps=n).fit(train) for n in (8, 24))
    assert len(plain.curves) == 4 and len(more.curves) == 12, "two steps an epoch"
    rates = [m.curves["learning_rate"].to_numpy() for m in (plain, more)]
    assert [int(r.argmax()) for r in rates] == [1, 3], "the warm-up is stretched too"
    early = small(**asked | {"learning_rate": 0.3}, min_steps=2400).fit(train, valid)
    assert len(early.curves) == early.best_epoch + waiting(300, early.best_epoch - 1) < 1200, "and patience"


def test_without_a_validation_part_all_epochs_are_trained_and_it_says_so(caplog):
    with caplog.at_level("INFO", logger="molgraph"):
        method = small(epochs=4).fit(series(32))
    assert len(method.curves) == 4 and method.best_epoch == 4
    assert "no validation part" in caplog.text and any("no validation part" in n for n in method.notes)


@pytest.mark.slow
def test_it_learns_sixteen_molecules_by_heart():
    table = series(16)
    method = small(epochs=300, params={"d_hidden": 32}, head_width=32, learning_rate=1e-2).fit(table)
    error = method.predict(table).value - table.y
    assert np.mean(error**2) < 0.05 * table.y.var()


def test_schedule_is_chemprops():
    schedulers = pytest.importorskip("chemprop.schedulers")
    ours = Steps(1e-3, warmup=2 * 7, total=50 * 7)
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1e-4)
    theirs = schedulers.build_NoamLike_LRSched(optimizer, 14, 48 * 7, 1e-4, 1e-3, 1e-4)
    for step in range(360):
        assert learning_rate("exponential", ours, step) == pytest.approx(theirs.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        theirs.step()


def test_missing_labels_and_rows_without_weight_teach_nothing(monkeypatch):
    """What stands in a masked cell or a row of weight 0 cannot matter: the same weights to the bit."""
    table = mixed()
    plain = weights_of(small().fit(table))
    readable = np.flatnonzero(table.ok & ~np.isnan(table.y).all(axis=1))
    fewer = small().fit(table.take(readable[readable != 3]))  # row 3 is not a molecule
    assert same_bits(plain, weights_of(fewer))

    light = np.array([10, 20])
    y, features, weights = table.y.copy(), table.features.copy(), table.weights.copy()
    y[light, 0], features[light], weights[light] = 1e6, -1e6, 0.0
    wild = replace(table, y=y, features=features, weights=weights)
    without = table.take(np.setdiff1d(np.arange(len(table)), light))
    assert same_bits(weights_of(small().fit(wild)), weights_of(small().fit(without)))
    held = small().fit(without, wild)
    assert held.curves.valid_loss.tolist() == small().fit(without, without).curves.valid_loss.tolist()

    real = Outputs.labels

    def filled(self, y, counts=None):
        labels = real(self, y, counts)
        assert (labels[np.isnan(y)] == 0).all()
        return np.where(np.isnan(y), np.float32(1), labels)

    monkeypatch.setattr(Outputs, "labels", filled)
    assert same_bits(plain, weights_of(small().fit(table)))


def test_gradients_are_clipped_and_weights_decay():
    norms: list[float] = []

    def note(optimizer, *_):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norms.append(float(torch.linalg.vector_norm(torch.cat([g.ravel() for g in grads]))))

    handle = register_optimizer_step_pre_hook(note)
    try:
        free = small(gradient_clip=None).fit(series(48))
        free_norms, norms[:] = list(norms), []
        small(gradient_clip=0.05).fit(series(48))
    finally:
        handle.remove()
    assert min(free_norms) > 0.05
    np.testing.assert_allclose(norms, 0.05, rtol=1e-3)
    decayed = weights_of(small(gradient_clip=None, weight_decay=1.0).fit(series(48)))
    size = {name: np.square(value).sum() for name, value in weights_of(free).items()}
    assert sum(np.square(value).sum() for value in decayed.values()) < sum(size.values())


def test_classes_are_weighted_by_the_training_part_in_both_parts():
    train, valid = series(40), series(20, 200)
    target = (Target("a", "binary"),)
    train = replace(train, targets=target, y=(np.arange(40) < 5).astype(float)[:, None])
    valid = replace(valid, targets=target, y=(np.arange(20) < 10).astype(float)[:, None])
    made = prepare(train, valid, "dmpnn", None, "balanced", {})
    assert sorted(set(made.train.weights.ravel().tolist())) == pytest.approx([40 / 70, 4.0])
    assert made.valid.weights.ravel().tolist() == pytest.approx([4.0] * 10 + [40 / 70] * 10)


def test_scales_come_from_the_training_part_alone():
    train, valid = series(40), series(20, 200)
    shifted = type(valid)(**{**vars(valid), "y": valid.y + 100})
    a, b = small(epochs=1).fit(train, valid), small(epochs=1).fit(train, shifted)
    assert a.ready().outputs.mean.tolist() == b.ready().outputs.mean.tolist() == [train.y.mean()]


def test_loss_that_is_no_number_is_a_clear_error():
    with pytest.raises(errors.MolgraphError, match=r"(?s)(nan|inf).*learning_rate"):
        small(learning_rate=1e25, gradient_clip=None, epochs=20).fit(series(32))


def test_bad_hyper_parameters():
    for params, error, words in (
        ({"epochs": 0}, errors.BadValueError, "epochs"),
        ({"learning_rate": -1.0}, errors.BadValueError, "learning_rate"),
        ({"precision": "float16"}, errors.BadValueError, "precision"),
        ({"device": "tpu"}, errors.UnknownNameError, "device"),
        ({"encoder": "dmpn"}, errors.UnknownNameError, "dmpnn"),
        ({"params": {"dept": 3}}, errors.UnknownNameError, "depth"),
        ({"params": {"depth": 0}}, errors.BadValueError, "depth"),
    ):
        with pytest.raises(error, match=words):
            small(**params).fit(series(8))


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    small(epochs=1).fit(series(32), workdir=tmp_path)
    small(epochs=1).fit(series(32), workdir=tmp_path)
    for method, table, words in (
        (small(epochs=2), series(32), "recipe"),
        (small(epochs=1), series(33), "data"),
    ):
        with pytest.raises(errors.MismatchError, match=words):
            method.fit(table, workdir=tmp_path)
    with pytest.raises(errors.MismatchError, match="split"):
        small(epochs=1).fit(series(32), series(8, 50), workdir=tmp_path)


def test_a_checkpoint_of_other_defaults_is_refused(tmp_path, monkeypatch):
    small(epochs=2).fit(series(16), workdir=tmp_path)
    monkeypatch.setattr("molgraph.train.fitting.stored_defaults", lambda _: {"dmpnn": {"readout": "mean"}})
    with pytest.raises(errors.MismatchError, match="recipe"):
        small(epochs=2).fit(series(16), workdir=tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    small(epochs=1).fit(series(16), workdir=tmp_path)
    path = tmp_path / "training.ckpt"
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(errors.CannotReadError, match=r"training\.ckpt"):
        small(epochs=1).fit(series(16), workdir=tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no resource limits there")
def test_a_full_disk_keeps_the_checkpoint_before_it(tmp_path, monkeypatch):
    import resource

    plain, real = small(epochs=6).fit(series(64)), engine.Fit._step
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self, sample, count):
        if (self.progress.epoch, self.progress.position) == (3, 1):
            size = (tmp_path / "training.ckpt").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
        return real(self, sample, count)

    with monkeypatch.context() as patch:
        patch.setattr(engine.Fit, "_step", fill)
        try:
            with pytest.raises(errors.CannotWriteError, match="checkpoint"):
                small(epochs=6, checkpoint_seconds=0).fit(series(64), workdir=tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["training.ckpt"]
    again = small(epochs=6).fit(series(64), workdir=tmp_path)
    assert same_bits(weights_of(plain), weights_of(again))


@pytest.mark.slow
def test_a_fit_goes_on_with_the_threads_it_began_with(tmp_path, monkeypatch):
    plain, real, seen = small(epochs=4, threads=1).fit(series(64)), engine.Fit._step, []

    def step(self, sample, count):
        seen.append(torch.get_num_threads())
        if len(seen) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, sample, count)

    monkeypatch.setattr(engine.Fit, "_step", step)
    with pytest.raises(Interrupted):
        small(epochs=4, threads=1).fit(series(64), workdir=tmp_path)
    before = torch.get_num_threads()
    again = small(epochs=4, threads=2).fit(series(64), workdir=tmp_path)
    assert set(seen) == {1} and len(seen) > 5 and torch.get_num_threads() == before
    assert same_bits(weights_of(plain), weights_of(again))


@pytest.mark.slow
def test_ctrl_c_keeps_a_checkpoint_and_the_next_fit_goes_on(tmp_path, monkeypatch):
    plain = small(epochs=8).fit(series(64))
    before, real = signal.getsignal(signal.SIGINT), engine.Fit._step

    def press(self, sample, count):
        if (self.progress.epoch, self.progress.position) == (3, 2):
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, sample, count)

    monkeypatch.setattr(engine.Fit, "_step", press)
    with pytest.raises(Interrupted, match=r"epoch 4.*training\.ckpt"):
        small(epochs=8).fit(series(64), workdir=tmp_path)
    with pytest.raises(Interrupted, match="nothing was kept"):
        small(epochs=8).fit(series(64))
    assert signal.getsignal(signal.SIGINT) is before
    progress = torch.load(tmp_path / "training.ckpt", weights_only=True)["progress"]
    assert (progress["epoch"], progress["position"]) == (3, 3)
    again = small(epochs=8).fit(series(64), workdir=tmp_path)
    assert same_bits(weights_of(plain), weights_of(again))
    columns = ["epoch", "train_loss", "learning_rate"]
    assert plain.curves[columns].equals(again.curves[columns])


def test_bfloat16_trains_near_float32():
    train, valid = series(64), series(32, 100)
    a, b = (small(precision=p, epochs=5).fit(train, valid) for p in ("float32", "bfloat16"))
    assert all(v.dtype == np.float32 for v in weights_of(b).values())
    gap = np.abs(a.predict(valid).value - b.predict(valid).value).max()
    assert 0 < gap < 0.1 * train.y.std()
