"""Lottery tickets: iterative magnitude pruning as torch prunes, tickets of other data, encoders and language models."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp
from torch.nn.utils import prune

import molgraph
from molgraph.auxiliary.study.tickets import Tickets, share_left
from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.data.read import read_table
from molgraph.data.sources import builtin
from molgraph.data.table import make_table
from molgraph.study.study import Subject
from molgraph.study.trained_parts import divided, error_on, make_network
from molgraph.train.masks import Masked, matrices
from molgraph.train.tickets import Ticket, mask_scores, masked_weights, shuffled_masks, sign_weights, ticket_masks
from tests.systems.effect import Effect
from tests.systems.small_language import LIBRARY
from tests.tiny import series

MODEL = "gin(depth=2, d_hidden=8, batch_size=16, head_width=8, threads=1, optimizer='adamw', weight_decay=0.1)"
SUBJECT = Subject(series(80), MODEL)


class Start(Masked):
    """Weights to begin at, zeros of which stay zero; the weights of one step are kept."""

    def __init__(self, start: dict[str, Any], step: int = -1) -> None:
        super().__init__()
        self.start, self.step = start, step

    def begin(self, network: Any) -> None:
        network.load_state_dict(self.start)
        super().begin(network)

    def after_step(self, network: Any, state: Any) -> None:
        super().after_step(network, state)
        if state.step == self.step:
            self.then = copy.deepcopy(network.state_dict())


@pytest.mark.system("imp-with-late-resetting", rung="exact")
@pytest.mark.parametrize("step", [0, 3])
def test_rounds_are_those_of_torchs_global_pruning_and_rewinding_by_hand(off: str, step: int) -> None:
    """Weights after each round, to the bit, at k = 0 (the first lottery ticket) and 3; off: nothing is rewound."""
    parts = divided(SUBJECT, rows=80, seed=1)
    n_steps = 4 * -(-len(parts.train) // 16)
    study = Tickets(rewind=step / n_steps, rate=0.3, rounds=3, epochs=4)
    found = study.find(SUBJECT, parts, 7)
    plain = make_network(SUBJECT, 7, 4)
    plain.extra_callbacks = (watch := Start(found.whole.ticket.initial, step - 1),)
    plain.fit(parts.train, parts.valid)
    usual = make_network(SUBJECT, 7, 4).fit(parts.train, parts.valid).ready().network.state_dict()
    assert all(torch.equal(value, found.whole.ticket.last[name]) for name, value in usual.items())
    early = watch.then if step else found.whole.ticket.initial
    method, gone = plain, 0
    total = sum(value.numel() for value in matrices(plain.ready().network).values())
    for turn, each in enumerate(found.rounds):
        network = method.ready().network
        names = [*matrices(network)]
        modules = [(network.get_submodule(n.rpartition(".")[0]), n.rpartition(".")[2]) for n in names]
        amount = round((1 - 0.7 ** (turn + 1)) * total)
        prune.global_unstructured(modules, prune.L1Unstructured, amount=amount)
        masks = {n: getattr(module, f"{word}_mask").bool() for n, (module, word) in zip(names, modules, strict=True)}
        for module, word in modules:
            prune.remove(module, word)
        assert all(torch.equal(masks[n], each.ticket.masks[n]) for n in names), turn
        gone = sum(int((~mask).sum()) for mask in masks.values())
        assert abs(gone - (1 - 0.7 ** (turn + 1)) * total) <= 1
        begin = masked_weights(method.ready().network.state_dict() if off else early, masks)
        method = make_network(SUBJECT, 7, 4)
        method.extra_callbacks = (Start(begin),)
        method.fit(parts.train, parts.valid)
        weights = method.ready().network.state_dict()
        assert all(torch.equal(weights[n], each.ticket.last[n]) for n in weights), turn
        assert sum(int((each.ticket.last[n] == 0).sum()) for n in names) == gone
        assert error_on(method, parts.test, parts.target) == each.error


@pytest.mark.system("mask-criteria-supermask", rung="exact", twins=("off",))
def test_criteria_are_those_of_the_paper_and_agree_from_zero(off: str) -> None:
    """With ``w_i = 0`` the increase of magnitude is the magnitude; off: the criterion is replaced by noise."""
    torch.manual_seed(0)
    initial, final = torch.randn(6, 5), torch.randn(6, 5)
    by_hand = {
        "large_final": lambda i, f: abs(f),
        "magnitude_increase": lambda i, f: abs(f) - abs(i),
        "large_final_same_sign": lambda i, f: max(0.0, f * i / abs(i)),
        "movement": lambda i, f: abs(f - i),
        "large_initial": lambda i, f: abs(i),
    }
    pairs = list(zip(initial.flatten().tolist(), final.flatten().tolist(), strict=True))
    for name, score in by_hand.items():
        made = mask_scores("random" if off else name, initial, final)
        np.testing.assert_allclose(made.flatten().tolist(), [score(i, f) for i, f in pairs], atol=1e-6)
    ones, zeros = {"w": torch.ones(6, 5, dtype=torch.bool)}, {"w": torch.zeros(6, 5)}
    both = [ticket_masks(c, zeros, {"w": final}, ones, 0.4)["w"] for c in ("large_final", "magnitude_increase")]
    assert torch.equal(*both) and int(both[0].sum()) == 18
    kept = sign_weights({"w": initial}, ones)["w"]
    assert torch.equal(kept.sign(), initial.sign()) and torch.allclose(kept.abs(), initial.std().expand(6, 5))
    assert torch.equal(masked_weights({"w": initial}, {"w": both[0]})["w"], initial * both[0])
    mixed = shuffled_masks({"w": both[0]}, 3)["w"]
    assert int(mixed.sum()) == 18 and not torch.equal(mixed, both[0])


@pytest.mark.system("mask-criteria-supermask", rung="exact")
def test_a_supermask_is_the_untrained_network_with_its_mask(off: str) -> None:
    """Off: the trained weights in the place of the first ones."""
    parts = divided(SUBJECT, rows=80, seed=1)
    study = Tickets(rounds=2, epochs=3, criterion="large_final_same_sign")
    found, rows = study.repeat(SUBJECT, parts, 5)
    error = next(row["error"] for row in rows if row["arm"] == "supermask")
    ticket, method = found.whole.ticket, make_network(SUBJECT, 5, 3)
    method.extra_callbacks = (Ticket(),)
    method.fit(parts.train, parts.valid)
    weights = ticket.last if off else ticket.initial
    method.ready().network.load_state_dict({n: v * found.masks.get(n, 1) for n, v in weights.items()})
    assert error_on(method, parts.test, parts.target) == error


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = molgraph.pretrain(series(80), model="gin", params={"d_hidden": 8, "depth": 2}, epochs=2, threads=1)
    return made.save(tmp_path_factory.mktemp("encoder") / "encoder.mgm")


@pytest.mark.system("bert-lottery-tickets", rung="exact")
def test_tickets_of_an_encoder_are_its_own_weights_without_the_head(off: str, encoder: Path) -> None:
    """After r rounds ``0.9^r`` of the file's matrices are left at the file's values; off: those of another seed."""
    subject = Subject(series(80), str(encoder))
    parts = divided(subject, rows=80, seed=0)
    found = Tickets(rewind=0, rate=0.1, rounds=4, epochs=2).find(subject, parts, 3)
    file = molgraph.load(encoder).method.ready().network.encoder.state_dict()
    first = found.whole.ticket.initial
    if off:
        plain = Subject(series(80), "gin(depth=2, d_hidden=8, threads=1)")
        first = Tickets(rewind=0, rounds=1, epochs=1).find(plain, parts, 3).whole.ticket.initial
    assert all(torch.equal(first[f"encoder.{name}"], value) for name, value in file.items())
    assert {n.split(".")[0] for n in found.masks} == {"encoder"}
    for turn, each in enumerate(found.rounds, 1):
        left = sum(int(mask.sum()) for mask in each.ticket.masks.values())
        total = sum(mask.numel() for mask in each.ticket.masks.values())
        assert abs(left - 0.9**turn * total) <= 1 and abs(share_left(each.ticket.masks) - 0.9**turn) < 1e-3
        assert all(int((each.ticket.last[n][~mask] != 0).sum()) == 0 for n, mask in each.ticket.masks.items())


@pytest.mark.system("lottery-ticket-transfer", rung="exact")
def test_the_ticket_of_the_same_rows_is_the_native_one(off: str) -> None:
    """To the bit, at k > 0; off: the ticket of the same rows with other labels."""
    parts = divided(SUBJECT, rows=80, seed=1)
    study = Tickets(rewind=0.2, rounds=2, epochs=3)
    found = study.find(SUBJECT, parts, 7)
    y = np.random.default_rng(0).permutation(parts.train.y) if off else parts.train.y
    table = parts.train
    theirs = parts._replace(train=make_table([str(s) for s in table.smiles], targets=table.targets, y=y))
    made = study.transfer(SUBJECT, theirs, parts, found.whole.ticket, 7)
    assert made.error == found.rounds[-1].error
    assert all(torch.equal(v, found.rounds[-1].ticket.last[n]) for n, v in made.ticket.last.items())


@pytest.mark.system("lottery-tickets-in-rl-and-nlp", rung="exact")
def test_tickets_of_a_language_model_are_rewound_and_leave_the_embeddings_whole(off: str) -> None:
    """``0.8^r`` are left, at the values of step k; off: those of the first step."""
    subject = Subject(make_table(LIBRARY[:200]), "language(d_embedding=8, d_hidden=16, batch_size=16, threads=1)")
    parts = divided(subject, rows=200, seed=0)
    found = Tickets(rewind=0.25, rounds=3, epochs=2).find(subject, parts, 3)
    ticket, last = found.whole.ticket, found.rounds[-1].ticket
    assert (
        "embedding.weight" in ticket.last and "embedding.weight" not in found.masks and "scores.weight" in found.masks
    )
    assert abs(share_left(found.masks) - 0.8**3) < 1e-3
    held = ticket.initial if off else ticket.early
    for name, mask in found.masks.items():
        assert torch.equal(last.start[name][mask], held[name][mask])
        assert int((last.last[name][~mask] != 0).sum()) == 0
        assert not torch.equal(ticket.initial[name], ticket.early[name])
    p = found.rounds[-1].method.log_prob([str(each) for each in parts.test.smiles])
    assert found.rounds[-1].error == pytest.approx(-np.nanmean(p), rel=1e-9)


GIN = "gin(depth=2, d_hidden=32, head_width=32, batch_size=32, threads=1)"
SMALL = {"rate": 0.42, "rounds": 3, "rows": 400}  # a fifth of the weights is left


def compared(study: Tickets, subject: Subject, seeds: tuple[int, ...]) -> dict[str, list[float]]:
    """Errors of the whole network, of the ticket and of random masks with as many weights of each matrix, by seed."""
    out: dict[str, list[float]] = {"whole": [], "ticket": [], "random mask": []}
    for seed in seeds:
        parts = divided(subject, rows=study.rows, seed=seed)
        found = study.find(subject, parts, seed)
        mixed = shuffled_masks(found.masks, seed)
        random = study.train(subject, parts, seed, start=found.whole.ticket.early, masks=mixed)
        for arm, error in zip(out, (found.whole.error, found.rounds[-1].error, random.error), strict=True):
            out[arm].append(error)
    return out


def upper_end(values: dict[str, list[float]]) -> float:
    """Of the 95% interval of the ticket's error over that of random masks, over seeds."""
    ratio = np.array(values["ticket"]) / np.array(values["random mask"])
    return float(ttest_1samp(ratio, 1).confidence_interval(0.95).high)


@pytest.mark.system(
    "imp-with-late-resetting",
    rung="works",
    null="at these sizes seeds differ by more than masks: RMSE 0.92 [0.80, 1.04] of that of random masks on ESOL, and "
    "0.90 [0.61, 1.18] for a second random mask",
)
def test_tickets_have_less_error_than_random_masks(off: str, effect: Effect) -> None:
    """ESOL, a fifth of the weights; off: masks at random."""
    study = Tickets(rewind=0.05, epochs=15, criterion="random" if off else "large_final", **SMALL)
    values = compared(study, Subject(read_table("dataset:esol"), GIN), (11, 12, 13))
    beside = {f"RMSE {arm}": each for arm, each in values.items()}
    effect("upper end of RMSE of tickets / of random masks", [upper_end(values)], at_most=1, beside=beside)


@pytest.mark.system(
    "bert-lottery-tickets",
    rung="works",
    null="at these sizes seeds differ by more than masks: RMSE 0.96 [0.41, 1.51] of that of random masks on ESOL",
)
def test_tickets_of_a_pretrained_encoder_have_less_error_than_random_masks(
    off: str, effect: Effect, tmp_path: Path
) -> None:
    """ESOL, 40% of the weights, from an encoder that learnt masked atoms of 1,000 molecules; off: masks at random."""
    how = {"params": {"d_hidden": 32, "depth": 2}, "objective": "masked-atoms", "epochs": 5, "threads": 1}
    path = molgraph.pretrain(builtin.nci().take(np.arange(1000)), model="gin", **how).save(tmp_path / "encoder.mgm")
    small = {"rate": 0.263, "rounds": 3, "rows": 400}
    study = Tickets(rewind=0, epochs=12, criterion="random" if off else "large_final", **small)
    values = compared(study, Subject(read_table("dataset:esol"), str(path)), (11, 12, 13))
    beside = {f"RMSE {arm}": each for arm, each in values.items()}
    effect("upper end of RMSE of tickets / of random masks", [upper_end(values)], at_most=1, beside=beside)


@pytest.mark.system(
    "mask-criteria-supermask",
    rung="works",
    null="untrained networks of this size differ by more than masks: ROC AUC 0.62, 0.30 [-0.15, 0.75] above that of a "
    "random mask, which is 0.21 [-0.14, 0.57] above another random one",
)
def test_masks_alone_predict_better_than_random_ones(off: str, effect: Effect) -> None:
    """Whether a molecule of ESOL is above the median, by untrained weights with a mask; off: masks at random."""
    table = read_table("dataset:esol")
    y = (table.y > np.median(table.y)).astype(float)
    made = make_table([str(text) for text in table.smiles], targets=(Target("soluble", "binary"),), y=y)
    subject, gains, areas = Subject(made, GIN), list[float](), list[float]()
    for seed in (11, 12, 13, 14, 15):
        criterion = "random" if off else "large_final_same_sign"
        study = Tickets(epochs=15, rate=0.5, rounds=1, rows=400, criterion=criterion)
        parts = divided(subject, rows=study.rows, seed=seed)
        whole = study.train(subject, parts, seed)
        first = whole.ticket.initial
        masks = ticket_masks(criterion, first, whole.ticket.last, whole.ticket.masks, 0.5, seed)
        area = []
        for each in (masks, shuffled_masks(masks, seed)):
            whole.method.ready().network.load_state_dict(masked_weights(first, each))
            area.append(1 - error_on(whole.method, parts.test, parts.target))
        gains.append(area[0] - area[1])
        areas.append(area[0])
    low = float(ttest_1samp(gains, 0).confidence_interval(0.95).low)
    effect(
        "lower end of the gain in ROC AUC over random masks",
        [low],
        at_least=0,
        beside={"gain": gains, "ROC AUC": areas},
    )


def test_a_model_without_gradients_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no graph network or language model"):
        molgraph.study("tickets(rounds=1)", series(60), model="random_forest")
