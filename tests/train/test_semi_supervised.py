"""Rows without labels: how they reach a batch, and what a mean teacher makes of them; InfoGraph* is in systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, MissingFileError, MolgraphError, UnknownNameError, UnsupportedError
from molgraph.data.table import Table, make_table
from molgraph.train.inputs import Input
from molgraph.train.method import GraphMethod
from molgraph.train.objective import StepState, make_objective
from molgraph.train.objectives.infograph_star import InfoGraphStar
from molgraph.train.objectives.mean_teacher import MeanTeacher
from molgraph.train.preparation import prepare
from tests.tiny import same_bits, series, small, weights_of

STEP = StepState(5, 10, 0)


def table(n_labelled: int = 12, n_bare: int = 20, start: int = 0) -> Table:
    """Molecules, the first of which have a value, mean 50 and deviation 10."""
    n = n_labelled + n_bare
    y = np.full((n, 1), np.nan)
    y[:n_labelled, 0] = 50 + 10 * np.where(np.arange(n_labelled) % 2, 1.0, -1.0)
    return make_table(list(series(n, start).smiles), targets=(Target("y"),), y=y)


def made(name: str, encoder: str = "gin", **own: Any) -> tuple[Any, Any, Any, Any]:
    """What was prepared, a network, the objective, and a batch of four rows with labels and four without."""
    found = prepare(table(), None, encoder, None, None, {}, unlabelled=True)
    torch.manual_seed(0)
    params = {"d_hidden": 8, **({"depth": 2, "norm": "none"} if encoder == "gin" else {})}
    network = small(encoder=encoder, params=params).build(found.inputs, d_extra=0, targets=found.outputs.targets)
    objective = make_objective(
        name, {f"objective.{k}": v for k, v in own.items()}, network, found.inputs, found.outputs
    )
    rows = np.concatenate([np.arange(4), found.train.unlabelled(0, 4, 0)])
    return found, network, objective, found.train.sample(rows)


def test_scales_are_those_of_the_rows_with_labels_and_the_others_come_along() -> None:
    found = made("infograph-star")[0]
    assert (len(found.train), found.train.n_unlabelled) == (12, 20)
    assert found.outputs.mean.tolist() == [50.0] and found.outputs.scale.tolist() == [10.0]
    assert set(np.abs(found.train.y[:12, 0])) == {1.0} and not found.train.y[12:].any()
    assert found.train.weights[:, 0].tolist() == [1.0] * 12 + [0.0] * 20
    plain = prepare(table(), None, "gin", None, None, {})
    assert (len(plain.train), plain.train.n_unlabelled) == (12, 0) and not len(plain.train.unlabelled(0, 4, 0))


def test_one_row_may_validate_what_compares_rows() -> None:
    method = small(encoder="gin", objective="infograph-star", epochs=1).fit(table(), table(1, 0, 40))
    assert np.isfinite(method.curves["valid_loss"]).all()


def test_no_rows_without_labels_are_told() -> None:
    known = {"unlabelled": True}
    assert not any("--unlabelled" in note for note in prepare(table(), None, "gin", None, None, {}, **known).notes)
    assert any("--unlabelled" in note for note in prepare(table(n_bare=0), None, "gin", None, None, {}, **known).notes)


def test_every_row_without_a_label_comes_before_any_comes_again() -> None:
    train = made("infograph-star")[0].train
    stream = np.concatenate([train.unlabelled(first, 10, 3) for first in range(0, 80, 10)])
    turns = stream.reshape(4, 20)
    assert all(sorted(turn) == list(range(12, 32)) for turn in turns.tolist())
    assert turns[0].tolist() != turns[1].tolist() and stream[:10].tolist() != train.unlabelled(0, 10, 4).tolist()


@pytest.mark.parametrize(("first", "n"), [(0, 50), (7, 20), (13, 39), (15, 12)])
def test_no_row_without_a_label_is_twice_in_a_batch(first: int, n: int) -> None:
    """Of 20 rows a batch of 39 places has all; one that reaches into the next turn has those of both turns once."""
    train = made("infograph-star")[0].train
    rows = train.unlabelled(first, n, 3).tolist()
    one_by_one = [int(train.unlabelled(place, 1, 3)[0]) for place in range(first, first + n)]
    assert len(one_by_one) > len({*one_by_one}) and rows == list(dict.fromkeys(one_by_one))
    assert n < 39 or len(rows) == 20


@pytest.mark.parametrize("name", ["infograph-star", "mean-teacher"])
def test_a_step_has_as_many_rows_without_labels_as_with(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = {"infograph-star": InfoGraphStar, "mean-teacher": MeanTeacher}[name]
    seen: list[tuple[bool, int, int]] = []
    forward = kind.forward

    def watched(self: Any, network: Any, batch: Any, state: StepState) -> Any:
        seen.append((state.training, int((batch.weights > 0).sum()), int((batch.weights == 0).sum())))
        return forward(self, network, batch, state)

    monkeypatch.setattr(kind, "forward", watched)
    small(objective=name, epochs=2, batch_size=8).fit(table(n_bare=24), table(6, 3, 40))
    assert seen == [(True, 8, 8), (True, 4, 4), (False, 6, 0)] * 2


def test_all_rows_learn_a_teachers_answers_and_the_teacher_is_the_average_of_the_students() -> None:
    _, network, objective, batch = made("mean-teacher", decay=0.9, weight=2.0, noise=0.0, ramp=0.8)
    first = [p.detach().clone() for p in network.parameters()]
    (own,) = objective.turns(network)
    with torch.no_grad():
        for parameter in own:
            parameter.add_(1.0)
    objective.after_step(network, StepState(0, 10, 0))
    assert all(torch.allclose(p, f + 1.0) for p, f in zip(network.parameters(), first, strict=True)), "alpha is 0"
    with torch.no_grad():
        for parameter in own:
            parameter.add_(1.0)
    objective.after_step(network, StepState(99, 100, 0))
    assert all(torch.allclose(p, f + 1.1) for p, f in zip(network.parameters(), first, strict=True)), "alpha is 0.9"
    found = objective(network, batch, STEP)
    raw, taught = objective.student(batch)[0], network(batch)[0]
    expected = (raw[:4] - batch.y[:4]).square().sum() + 4 * 2.0 * np.exp(-5 * 0.375**2) * (raw - taught).square().mean()
    torch.testing.assert_close(found.total, expected, rtol=1e-4, atol=1e-5)
    found.total.backward()
    assert all(p.grad is None for p in network.parameters()), "the teacher learns by averaging alone"
    judged = objective(network, batch, STEP._replace(training=False)).total
    torch.testing.assert_close(judged, (taught[:4] - batch.y[:4]).square().sum())


def test_answers_of_student_and_teacher_are_to_agree_under_noise() -> None:
    _, network, objective, batch = made("mean-teacher", weight=1.0, noise=0.0, ramp=0.5)
    assert objective(network, batch, STEP).parts["consistency"].item() == 0, "without noise they are one"
    objective.noise = 0.3
    torch.manual_seed(1)
    noisy = objective(network, batch, STEP).parts["consistency"]
    torch.manual_seed(1)
    answers = []
    for part in (objective.student, network):
        h = part.encoder(batch.parts[0].batch).graphs
        answers.append(part.head(h * (1 + 0.3 * torch.randn_like(h))))
    torch.testing.assert_close(noisy, 4 * (answers[0] - answers[1]).square().mean())


def test_the_teacher_has_weights_of_its_own_and_every_layer_is_drawn() -> None:
    _, network, objective, batch = made("infograph-star", layer="random")
    same = [a.equal(b) for a, b in zip(network.encoder.parameters(), objective.teacher.parameters(), strict=True)]
    assert not all(same)
    seen = set()
    for _ in range(20):
        objective.zero_grad()
        objective(network, batch, STEP).total.backward()
        seen |= {k for k, score in enumerate(objective.transfer) if score.phi.shortcut.weight.grad is not None}
    assert seen == {0, 1}


@pytest.mark.parametrize(
    ("encoder", "own", "error", "words"),
    [
        ("weave", {"layer": "random"}, UnsupportedError, "weave"),
        ("gin", {"layer": "first"}, BadValueError, "layer is 'first'"),
    ],
)
def test_layers_that_an_encoder_does_not_give_are_refused(
    encoder: str, own: dict[str, Any], error: type[MolgraphError], words: str
) -> None:
    with pytest.raises(error, match=words):
        made("infograph-star", encoder, **own)
    assert made("infograph-star", "mpnn")[2].widths == () != made("infograph-star", "mpnn", layer="random")[2].widths


@pytest.mark.parametrize("name", ["infograph-star", "mean-teacher", "self-training"])
def test_values_of_atoms_are_refused(name: str) -> None:
    atoms = (Target("charge", level="atom"),)
    found = prepare(table(), None, "gin", None, None, {})
    network = small(encoder="gin").build(found.inputs, d_extra=0, targets=found.outputs.targets)
    outputs = type(found.outputs)(atoms, np.zeros(1), np.ones(1))
    assert isinstance(found.inputs[0], Input)
    with pytest.raises(UnsupportedError, match="charge"):
        make_objective(name, {}, network, found.inputs, outputs)


@pytest.mark.parametrize("name", ["infograph", "infograph-star", "mean-teacher"])
def test_penalties_of_encoders_are_part_of_the_loss(name: str) -> None:
    _, network, objective, batch = made(name, "pyg_pool")
    found = objective(network, batch, STEP)
    whose = ("", "teacher_") if name == "infograph-star" else ("",)
    names = [f"{own}diffpool_{part}" for own in whose for part in ("link", "entropy")]
    assert {*names} <= {*found.parts} and all(float(found.parts[each].detach()) > 0 for each in names)
    found.total.backward()
    learner = objective.student if name == "mean-teacher" else network
    learners = [learner.encoder, objective.teacher] if name == "infograph-star" else [learner.encoder]
    assert all(p.grad is not None for each in learners for p in each.pools[0].parameters())


@pytest.mark.parametrize("encoder", ["gin", "graphgps", "structpool", "dmpnn"])
def test_the_teacher_begins_as_its_model_does_with_other_weights(encoder: str) -> None:
    _, network, objective, _ = made("infograph-star", encoder)
    theirs = objective.teacher.state_dict()
    for name, own in network.encoder.state_dict().items():
        if own.numel() > 8 and own.is_floating_point() and len(own.unique()) > 2:
            assert not torch.equal(own, theirs[name]) and 0.5 < own.std() / theirs[name].std() < 2, name
        elif own.is_floating_point() and own.ndim == 2:  # set on purpose, as StructPool's compatibility
            assert torch.equal(own, theirs[name]), name


@pytest.mark.parametrize("name", ["infograph", "infograph-star", "mean-teacher"])
def test_penalties_of_encoders_can_be_weighed(name: str) -> None:
    _, network, objective, batch = made(name, "pyg_pool", penalties={"diffpool_link": 0.0})
    parts = objective(network, batch, STEP).parts
    links = [part for own, part in parts.items() if own.endswith("diffpool_link")]
    assert links and not any(map(float, links)) and float(parts["diffpool_entropy"]) > 0
    _, network, objective, batch = made(name, "pyg_pool", penalties={"kl": 1.0})
    with pytest.raises(UnknownNameError, match="'kl'"):
        objective(network, batch, STEP)


def test_rows_without_labels_change_what_is_learned() -> None:
    how: dict[str, Any] = {"objective": "infograph-star", "epochs": 1}
    one, again = (weights_of(small(**how).fit(table())) for _ in range(2))
    other = weights_of(small(**how).fit(table(n_bare=12)))
    assert same_bits(one, again) and not same_bits(one, other)


def test_a_file_of_rows_without_labels(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "molgraph")
    frame = pd.DataFrame({"smiles": series(30).smiles, "y": np.arange(30.0)})
    frame.to_csv(tmp_path / "assay.csv", index=False)
    (tmp_path / "library.smi").write_text("\n".join([*series(25, 30).smiles, "xx"]) + "\n")
    how: dict[str, Any] = {"targets": "y", "epochs": 1, "model": "gin", "split": "random", "params": {"d_hidden": 8}}
    how["baseline"] = False
    seen = []
    fit = GraphMethod.fit

    def watched(self: GraphMethod, table: Table, *rest: Any, **more: Any) -> GraphMethod:
        seen.append((len(table), int(np.isnan(table.y).sum())))
        return fit(self, table, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GraphMethod, "fit", watched)
        for source in (str(tmp_path / "library.smi"), tmp_path / "library.smi", [*series(25, 30).smiles, "xx"]):
            found = molgraph.train(tmp_path / "assay.csv", unlabelled=source, objective="mean-teacher", **how)
    assert any(m.startswith("left out of the training part: 1 x SMILES Parse") for m in caplog.messages)
    assert seen == [(24 + 26, 26)] * 3 and found.model.card.n_train == 24
    assert np.isfinite(found.model.predict(["CCO"]).value).all()
    for more in ({}, {"unlabelled": ["xx", "C(C"]}):
        caplog.clear()
        molgraph.train(tmp_path / "assay.csv", objective="mean-teacher", **how, **more)
        assert any("no rows without labels: the objective has nothing" in message for message in caplog.messages)
    for options, error, words in (
        ({}, UnsupportedError, "supervised"),
        ({"model": "random_forest", "params": {}}, UnsupportedError, "random_forest"),
        ({"objective": "mean-teacher", "unlabelled": "no.smi"}, MissingFileError, r"no\.smi"),
    ):
        given: dict[str, Any] = {**how, "unlabelled": ["CCO"], **options}
        with pytest.raises(error, match=words):
            molgraph.train(tmp_path / "assay.csv", **given)
