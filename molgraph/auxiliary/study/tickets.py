"""Find lottery tickets: sparse networks that, trained from early weights, are as good as the whole network."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.trained_parts import FEWEST, Divided, divided, error_on, make_network
from molgraph.train.tickets import Criterion, Ticket, masked_weights, shuffled_masks, sign_weights, ticket_masks

SMALL_GIN = "-m 'gin(depth=3, d_hidden=32, threads=1)'"


class Trained(NamedTuple):
    """The error on test rows of a network that was trained, the weights that it passed, and the method."""

    error: float
    ticket: Ticket
    method: Any


class Found(NamedTuple):
    """A lottery ticket.

    Args:
        whole: the training of all weights.
        rounds: the training after each round of pruning, with its masks.
    """

    whole: Trained
    rounds: list[Trained]

    @property
    def masks(self) -> Mapping[str, Tensor]:
        """Those of the last round."""
        return (self.rounds or [self.whole])[-1].ticket.masks or {}


def share_left(masks: Mapping[str, Tensor]) -> float:
    """The share of weights that masks keep."""
    return sum(int(each.sum()) for each in masks.values()) / sum(each.numel() for each in masks.values())


def _card(name: str, off: str, beside: tuple[str, ...], command: str, left_out: str) -> SystemCard:
    modules = ("molgraph.train.tickets", "molgraph.study.trained_parts")
    return SystemCard(
        name, left_out=left_out, off=off, beside=beside, command=f"molgraph study {command} -o tickets.csv",
        modules=modules,
    )  # fmt: skip


@register(
    "study",
    "tickets",
    summary="how few weights of a network are enough, if they are trained from their early values (lottery tickets)",
    paper="Frankle et al. 2019; Zhou et al. 2019, NeurIPS; Chen et al. 2020, NeurIPS",
    systems=(
        _card(
            "imp-with-late-resetting",
            "'tickets(rewind=0)'",
            ("random masks", "other first weights", "one round"),
            f"'tickets(rewind=0.01)' dataset:esol {SMALL_GIN}",
            "distances between subnetworks of two orders of the data; images; the schedule begins anew at step k",
        ),
        _card(
            "bert-lottery-tickets",
            "'tickets(rewind=0, criterion=random)'",
            ("random masks",),
            "'tickets(rewind=0, rate=0.1)' dataset:esol -m encoder.mgm",
            "masks found on the pretraining task; texts",
        ),
        _card(
            "lottery-ticket-transfer",
            "'tickets'",
            ("the ticket of the data itself", "random masks"),
            f"'tickets(source=builtin:chembl2321810)' dataset:esol {SMALL_GIN}",
            "transfer between optimisers; images",
        ),
        _card(
            "mask-criteria-supermask",
            "'tickets(criterion=large_final, kept=rewind)'",
            ("random masks",),
            f"'tickets(criterion=large_final_same_sign, kept=sign)' dataset:esol {SMALL_GIN}",
            "masks whose probabilities are trained; masked weights frozen at their first values",
        ),
        _card(
            "lottery-tickets-in-rl-and-nlp",
            "'tickets(criterion=random)'",
            ("random tickets", "one round"),
            "'tickets(rewind=0.05)' dataset:chembl2321810 -m 'language(d_hidden=16, d_embedding=8, threads=1)'",
            "reinforcement learning; translation",
        ),
    ),
)
class Tickets(Study):
    """A row for each training: the share of weights that is left, and the error on a fifth of the rows.

    Frankle et al. 2019, "Stabilizing the Lottery Ticket Hypothesis", iterative magnitude pruning: train ``W_0`` to
    ``W_T``, mask the smallest ``rate`` of the weights that are left of all matrices together, set the others back to
    ``W_k``, train again, ``rounds`` times. ``k = 0`` is the first lottery ticket (Frankle and Carbin 2019). Beside it
    stand ``random mask``, which keeps as many weights of each matrix at random places; ``new weights``, the ticket's
    mask on other first weights; ``random ticket``, both (Yu et al. 2020); and ``one round``, which prunes at once.
    Of an encoder's file (Chen et al. 2020) its own matrices are pruned, and not the new head. With ``source`` the
    ticket is found on other data, and is trained on the data with the output layer of the data's own ``W_k`` (Morcos
    et al. 2019). ``supermask`` is the mask on the first weights without any training (Zhou et al. 2019).

    Unstructured zeros make a dense network no faster: this tells how many weights are needed. Controls: masked weights
    are exactly zero in the end, and a training of the first weights with nothing masked is that of the whole network.

    Args:
        rewind: k as a share of the steps of training.
        rate: share of the weights left that is masked in each round.
        rounds: of pruning; 7 of 0.2 leave 21%.
        criterion: by which weights stay: ``large_final``, ``magnitude_increase``, ``large_final_same_sign``,
            ``movement``, ``large_initial``, or ``random`` ones.
        kept: weights are set back to their early values (``rewind``), or to the ``sign`` of them with one size.
        source: data of another target, on which the ticket is found instead.
        source_target: its column.
        epochs: of each training; the epoch of the lowest loss of a tenth of the rows is kept.
        repeats: draws of rows and weights, as far as there is time.
        rows: that are used, at most, drawn at random.

    Raises:
        LabelError: no target of rows, or fewer than 40 labelled molecules.
        UnsupportedError: a model that no gradient descent trains.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"rounds": 2, "repeats": 1, "epochs": 2, "rows": 60})

    def __init__(
        self,
        *,
        rewind: Annotated[float, Range(0, 1)] = 0.01,
        rate: Annotated[float, Range(0, 1, above=True, below=True)] = 0.2,
        rounds: Count = 7,
        criterion: Criterion = "large_final",
        kept: Literal["rewind", "sign"] = "rewind",
        source: str = "",
        source_target: str = "",
        epochs: Count = 20,
        repeats: Count = 3,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 600,
    ) -> None:
        self.rewind, self.rate, self.rounds, self.criterion, self.kept = rewind, rate, rounds, criterion, kept
        self.source, self.source_target = source, source_target
        self.epochs, self.repeats, self.rows = epochs, repeats, rows

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Prune round by round, repeat by repeat."""
        began, longest, rows, notes = time.process_time(), 0.0, list[dict[str, Any]](), list[str]()
        for repeat in range(self.repeats):
            started = time.process_time()
            if repeat and started + longest > began + 0.9 * seconds:
                notes.append(f"{repeat} of {self.repeats} repeats, for want of time")
                break
            own = derive(seed, "repeat", repeat)
            parts = divided(subject, rows=self.rows, seed=derive(own, "rows"))
            found, made = self.repeat(subject, parts, own)
            if not repeat:
                first, controls = parts, self._controls(subject, parts, found, own)
                notes += parts.notes
            rows += [{"repeat": repeat, **row} for row in made]
            longest = max(longest, time.process_time() - started)
        every = pd.DataFrame(rows)
        frame = every.groupby(["arm", "left"], sort=False)["error"].agg(["mean", "min", "max"]).reset_index()
        frame = frame.rename(columns={"mean": first.metric, "min": "least", "max": "most"})
        about = subject.data if isinstance(subject.data, str) else "a table"
        last = frame.drop_duplicates("arm", keep="last").set_index("arm")
        best = "transferred ticket" if self.source else "ticket"
        others = ", ".join(f"{name} {value:.3g}" for name, value in last[first.metric].items() if name != best)
        words = (
            f"With {last['left'][best]:.0%} of the weights the {best} has {first.metric} {last[first.metric][best]:.3g}"
        )
        return Findings(
            f"Lottery tickets of {subject.model} on {about}: {len(first.train):,} rows",
            f"{words}; beside it: {others}.", frame, *controls, notes=tuple(notes),
        )  # fmt: skip

    def repeat(self, subject: Subject, parts: Divided, seed: int) -> tuple[Found, list[dict[str, Any]]]:
        """The ticket of some rows, and a row for each training: ``arm``, ``left`` and ``error``."""
        found, other = self.find(subject, parts, seed), derive(seed, "other")
        rows = [{"arm": "whole network", "left": 1.0, "error": found.whole.error}]
        for each in found.rounds:
            rows.append({"arm": "ticket", "left": share_left(each.ticket.masks or {}), "error": each.error})

        def add(arm: str, error: float) -> None:
            rows.append({"arm": arm, "left": share_left(found.masks), "error": error})

        whole, masks, start = found.whole.ticket, found.masks, self._start(found.whole.ticket)
        mixed = shuffled_masks(masks, derive(seed, "random mask"))
        if self.source:
            add("transferred ticket", self._transferred(subject, parts, whole, seed).error)
        add("random mask", self.train(subject, parts, seed, start=start, masks=mixed).error)
        if not getattr(found.whole.method, "init", None):
            add("new weights", self.train(subject, parts, other, masks=masks).error)
            add("random ticket", self.train(subject, parts, other, masks=mixed).error)
        once = ticket_masks(self.criterion, whole.initial, whole.last, whole.masks or {}, self._gone(self.rounds), seed)
        add("one round", self.train(subject, parts, seed, start=start, masks=once).error)
        network = found.whole.method.ready().network
        for arm, kept in (("supermask", masks), ("random supermask", mixed)):
            network.load_state_dict(masked_weights(self._start(whole, early=False), kept))
            add(arm, error_on(found.whole.method, parts.test, parts.target))
        network.load_state_dict(whole.last)
        return found, rows

    def find(self, subject: Subject, parts: Divided, seed: int) -> Found:
        """Train, mask and rewind, round by round."""
        whole = self.train(subject, parts, seed, rewind=self.rewind)
        first, rounds = whole.ticket, list[Trained]()
        masks, final = first.masks or {}, first.last
        for turn in range(self.rounds):
            how = (self._gone(turn + 1), derive(seed, "criterion", turn))
            masks = ticket_masks(self.criterion, first.initial, final, masks, *how)
            rounds.append(self.train(subject, parts, seed, start=self._start(first), masks=masks))
            final = rounds[-1].ticket.last
        return Found(whole, rounds)

    def train(self, subject: Subject, parts: Divided, seed: int, **how: Any) -> Trained:
        """One training; ``how`` is that of ``Ticket``."""
        method, ticket = make_network(subject, seed, self.epochs), Ticket(**how)
        method.extra_callbacks = (ticket,)
        method.fit(parts.train, parts.valid)
        return Trained(error_on(method, parts.test, parts.target), ticket, method)

    def _gone(self, rounds: int) -> float:
        return float(1 - (1 - self.rate) ** rounds)

    def _start(self, ticket: Ticket, *, early: bool = True) -> dict[str, Tensor]:
        """The weights that a ticket is trained from."""
        weights = ticket.early if early else ticket.initial
        return sign_weights(weights, ticket.masks or {}) if self.kept == "sign" else weights

    def _transferred(self, subject: Subject, parts: Divided, whole: Ticket, seed: int) -> Trained:
        """The ticket of other data, trained on these; its output layer is the one of these data."""
        columns = {"targets": [self.source_target]} if self.source_target else {}
        theirs = divided(Subject(self.source, subject.model, columns), rows=self.rows, seed=derive(seed, "rows"))
        return self.transfer(subject, theirs, parts, whole, seed)

    def transfer(self, subject: Subject, theirs: Divided, parts: Divided, whole: Ticket, seed: int) -> Trained:
        """A ticket of other rows, trained on ``parts``, whose whole network was trained as ``whole`` tells."""
        found = self.find(subject, theirs, seed)
        start, mine = self._start(found.whole.ticket), self._start(whole)
        last = [name for name in mine if name.startswith("head.layers.")]
        number = max((name.split(".")[2] for name in last), key=int, default="")
        start = start | {name: mine[name] for name in last if name.split(".")[2] == number}
        if any(start[name].shape != mine.get(name, start[name]).shape for name in start) or start.keys() != mine.keys():
            words = f"the network of {self.source} has other weights than that of the data"
            raise UnsupportedError(words, hint="name a source with as many targets and the same columns")
        return self.train(subject, parts, seed, start=start, masks=found.masks)

    def _controls(self, subject: Subject, parts: Divided, found: Found, seed: int) -> tuple[Control, Control]:
        masks, last = found.masks, found.rounds[-1].ticket.last
        moved = sum(int((last[name] != 0)[~mask].sum()) for name, mask in masks.items())
        gone = sum(int((~mask).sum()) for mask in masks.values())
        again = self.train(subject, parts, seed, start=found.whole.ticket.initial, masks=None).error
        return (
            Control("masked weights that training moved", f"0 of {gone:,}", f"{moved:,}", gone > 0 == moved),
            Control("nothing masked", "the error of the whole network", f"{again - found.whole.error:+.3g}",
                    again == found.whole.error),
        )  # fmt: skip
