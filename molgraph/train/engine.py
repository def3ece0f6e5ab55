"""Train a network by an objective: checkpoints, early stopping, learning curves."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import torch
from torch import nn

from molgraph.base.errors import MolgraphError
from molgraph.base.finite import check_finite
from molgraph.base.progress import bar
from molgraph.base.recipe_keys import GRADIENT_DESCENT, GradientDescent
from molgraph.base.seeds import derive, generator
from molgraph.data.loader import BLOCK, batch_order, make_ahead
from molgraph.train import checkpoint
from molgraph.train.callback import Callback, make_callbacks
from molgraph.train.checkpoint import CURVES, Progress
from molgraph.train.draws import VALID_BATCH, rows_as_asked, samplers
from molgraph.train.learner import Early, Fitted, Learned, Learner, TrainingConfig
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.optimizers import make_optimizer, stretched, waiting
from molgraph.train.phases import Timeline, decay_groups
from molgraph.train.runtime import Interrupted, launch, lightning_quiet, make_fabric, watch_ctrl_c
from molgraph.train.samples import Sample, Samples
from molgraph.train.smoothness import auto_clip, clip_gradients

if TYPE_CHECKING:
    from lightning.fabric import Fabric

logger = logging.getLogger("molgraph")


class Fit:
    """Train a network, or go on from the checkpoint in the plan's folder, to the same weights to the bit.

    The order of an epoch depends on the seed and the epoch alone, and the checkpoint holds the rest. ``launch``
    calls it in as many processes as there are devices; the learner is handed over apart from the rest, so that
    Lightning gives each process weights of its own. ``valid`` picks the weights and stops training early.
    """

    def __init__(self, train: Samples, valid: Samples | None, plan: TrainingConfig) -> None:
        self.train, self.valid, self.plan = train, valid, plan
        self.steps = len(batch_order(len(train), plan.how.batch_size, least=plan.least_rows))
        self.how = how = stretched(plan.how, self.steps)
        self.epochs = cast(int, how.epochs)
        self.total_steps = self.epochs * self.steps
        self.path = None if plan.folder is None else plan.folder / checkpoint.FILE_NAME
        self.progress = Progress()
        self.saved_at = 0.0
        self.usual: float | None = None  # mean number of terms of so many rows, where rows of like length come together

    def __call__(self, fabric: Fabric, learner: Learner) -> Learned:
        """Train.

        Raises:
            Interrupted: Ctrl-C; the checkpoint is written first.
            MolgraphError: the loss is no number any more.
        """
        plan, how = self.plan, self.how
        self.fabric, self.objective = fabric, learner.objective
        self.drawn, self.judged, self.valid = samplers(self.objective, self.train, self.valid, how.batch_size)
        self.prepare: Callable[[Sample], None] = learner.network.prepare
        self.phases = Timeline(learner.network, learner.callbacks, how, self.steps)
        groups = [decay_groups(group, learner, how.weight_decay) for group in learner.turns()]
        raw_optimizers = [make_optimizer(how.optimizer, group, how.learning_rate, how.weight_decay) for group in groups]
        self.learner, *optimizers = fabric.setup(learner, *raw_optimizers)
        self.optimizers = tuple(optimizers)
        torch.manual_seed(derive(plan.seed, "dropout", fabric.global_rank))
        self.saved_at = time.monotonic()
        if self.path is not None and self.path.exists():
            self.progress = checkpoint.load(fabric, self.path, self.learner, self.optimizers, plan.prints)
            if fabric.is_global_zero:
                at = f"going on from the checkpoint, epoch {self.progress.epoch + 1} of {self.epochs}"
                by = f"done already, by the run before; epochs: {len(self.progress.curves)}"
                logger.info(f"{plan.label}: {by if self.progress.done else at}")
        now, fresh = self.progress, not self.progress.done
        quiet = None if fabric.is_global_zero else True
        with watch_ctrl_c() as pressed, bar(plan.label, self.epochs * self.steps, quiet) as line:
            line.advance(now.epoch * self.steps + now.position)
            while not now.done:
                began = time.monotonic() - now.seconds
                for loss, count in self._epoch():
                    now.total, now.count, now.position = now.total + loss, now.count + count, now.position + 1
                    line.advance()
                    self._pause(pressed.is_set(), began)
                line.describe(self._close_epoch(began))
        self.phases.leave()
        if fresh:
            self._save()
        return Learned(now.best, now.best_epoch + 1, now.curves)

    def _save(self) -> None:
        if self.path is not None:
            checkpoint.save(self.fabric, self.path, self.learner, self.optimizers, self.progress, self.plan.prints)
            self.saved_at = time.monotonic()

    def _epoch(self) -> Iterator[tuple[float, int]]:
        """Train on what is left of this epoch; a batch's sum of losses and number of labels after each step."""
        now, seed, least = self.progress, self.plan.seed, self.plan.least_rows
        length = self.objective.lengths(self.train) if self.steps >= BLOCK else None
        order = batch_order(
            len(self.train), self.how.batch_size, seed=seed, epoch=now.epoch, least=least, length=length
        )
        self.learner.train()
        self.phases.enter(now.epoch)

        def make(piece: tuple[int, np.ndarray]) -> Sample:
            """This process's share of a batch."""
            position, rows = piece
            words = (now.epoch, position, self.fabric.global_rank)
            views = generator(seed, "views", *words) if self.train.views else None
            if self.drawn is not None:
                sample = self.drawn.sample(generator(seed, "episodes", *words), views=views)
                return self._prepared(sample, "corrupt", *words)
            share = slice(self.fabric.global_rank, None, self.fabric.world_size)
            enough = len(rows[share]) >= least
            mine = rows[share] if enough else rows[:least]
            first = (now.epoch * self.steps + position) * self.how.batch_size
            bare = self.train.unlabelled(first, len(rows), seed)[share] if self.objective.semi_supervised else mine[:0]
            sample = rows_as_asked(self.objective, self.train, mine, views, bare)
            if not enough:  # the last batch has too few rows for so many processes
                for each in filter(None, (sample, sample.plain)):
                    each.weights = torch.zeros_like(each.weights)  # type: ignore[arg-type]
            return self._prepared(sample, "corrupt", *words)

        pieces = [*enumerate(order)][now.position :]
        for (_, rows), sample in zip(pieces, make_ahead(pieces, make), strict=True):
            self.usual = None if length is None else len(rows) * float(length.mean())
            loss, count = self._step(sample.to(self.fabric.device), now.epoch * self.steps + now.position)
            yield loss * count, count

    def _prepared(self, sample: Sample, *words: Any) -> Sample:
        """The batch as the objective corrupts it, by random numbers of these words, with its index work done."""
        sample = self.objective.corrupt(sample, generator(self.plan.seed, *words))
        self.prepare(sample)
        return sample

    def _check(self, loss: float, words: str) -> None:
        if not math.isfinite(loss):
            hint = f"lower learning_rate (now {self.how.learning_rate:g}), set gradient_clip, "
            raise MolgraphError(words, hint=hint + "or look for extreme values in targets and features")

    def _reduced(self, value: torch.Tensor, how: str) -> torch.Tensor:
        """The sum or mean over all processes."""
        return cast(torch.Tensor, self.fabric.all_reduce(value, reduce_op=how)) if self.fabric.world_size > 1 else value

    def _step(self, sample: Sample, step: int) -> tuple[float, int]:
        """One step of each optimiser in turn; the mean loss of the first, over all processes, and its count."""
        rate, now, losses = self.phases.rate(step), self.progress, []
        state = StepState(step, self.total_steps, now.epoch)
        for turn, optimizer in enumerate(self.optimizers):
            state = state._replace(turn=turn)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            result: Loss = self.learner(sample, state)
            count = int(self._reduced(torch.tensor(float(result.count)), "sum"))
            # gradients are averaged over processes, the loss is a sum over them
            loss = result.total / max(count, 1) * self.fabric.world_size
            self.fabric.backward(loss if self.usual is None else loss * (count / self.usual))
            clip_gradients(self.fabric, self.learner, optimizer, self.how.gradient_clip, state)
            optimizer.step()
            value = float(self._reduced(loss.detach(), "mean"))
            self._check(value, f"the loss is {value} in epoch {now.epoch + 1}, step {now.position + 1}")
            losses.append((value, count))
            for name, share in result.parts.items():
                before, n = now.parts.get(name, (0.0, 0))
                now.parts[name] = (before + float(self._reduced(share, "sum")), n + count)
        self.learner.module.after_step(state)
        return losses[0]

    def _close_epoch(self, began: float) -> str:
        """Judge the epoch on the validation part, keep the best weights, see whether to go on; the epoch in words."""
        now, how = self.progress, self.how
        train_loss = now.total / max(now.count, 1)
        valid_loss, parts = (float("nan"), {}) if self.valid is None else self._validate(self.valid)
        rate = self.phases.rate((now.epoch + 1) * self.steps - 1)
        parts = {f"train_{name}": share / max(n, 1) for name, (share, n) in now.parts.items()} | parts
        parts |= self.learner.module.after_epoch()
        row = dict(zip(CURVES, (now.epoch + 1, train_loss, valid_loss, rate, time.monotonic() - began), strict=True))
        now.curves.append(row | parts | row)  # a part that is called loss leaves the loss as it is
        last = now.epoch + 1 >= self.epochs
        early = self.objective.warming_up(StepState((now.epoch + 1) * self.steps - 1, self.total_steps, now.epoch))
        right = parts.get("valid_accuracy", math.nan)
        score = (1 - right if how.monitor == "accuracy" else 0.0, valid_loss)
        if early or score < now.best_score or (self.valid is None and last):
            now.best_score, now.best_epoch = (math.inf, math.inf) if early else score, now.epoch
            weights = self.learner.module.network.state_dict()
            now.best = {name: value.detach().cpu().clone() for name, value in weights.items()}
        since = max(now.best_epoch, self.phases.last - 1)  # no phase is left out, and the last one has its patience
        waits = how.patience is None or self.valid is None or now.epoch - since < waiting(how.patience, since)
        now.done = last or not waits
        if self.plan.early is not None and now.best_epoch == now.epoch and not now.done and self.fabric.is_global_zero:
            self.plan.early(now.best, pd.DataFrame(now.curves), now.best_epoch + 1)
        now.epoch, now.position, now.total, now.count, now.seconds, now.parts = now.epoch + 1, 0, 0.0, 0, 0.0, {}
        wrong, best = now.best_score
        label, at, best = (
            ("valid accuracy", right, 1 - wrong) if how.monitor == "accuracy" else ("valid", valid_loss, best)
        )
        valid = f", {label} {at:.3f}" + (" (warming up)" if early else f" (best {best:.3f})")
        return f"epoch {now.epoch}: loss {train_loss:.3f}{'' if self.valid is None else valid}"

    def _validate(self, valid: Samples) -> tuple[float, dict[str, float]]:
        """The mean loss of the first turn, and its parts as columns of the curves."""
        self.learner.eval()
        names = [*self.progress.parts, *self.objective.valid_parts]
        total = torch.zeros(2 + len(names), dtype=torch.float64, device=self.fabric.device)
        step = (self.progress.epoch + 1) * self.steps - 1
        state = StepState(step, self.total_steps, self.progress.epoch, training=False)
        judged = self.judged
        length, least = self.objective.lengths(valid), self.plan.least_rows
        order = judged.turns() if judged else batch_order(len(valid), VALID_BATCH, least=least, length=length)
        pieces = [*enumerate(order)][self.fabric.global_rank :: self.fabric.world_size]

        def make(piece: tuple[int, np.ndarray]) -> Sample:
            number, rows = piece
            rng = generator(self.plan.seed, "episodes valid", number)
            views = generator(self.plan.seed, "views valid", number) if valid.views else None
            sample = judged.sample(rng, rows) if judged else rows_as_asked(self.objective, valid, rows, views)
            return self._prepared(sample, "corrupt valid", number)

        for batch in make_ahead(pieces, make):
            sample = batch.to(self.fabric.device)
            with self.fabric.autocast(), torch.set_grad_enabled(self.objective.grad_in_validation):
                result: Loss = self.learner.module(sample, state)
            row = [float(result.total.detach()), result.count, *(float(result.parts.get(n, math.nan)) for n in names)]
            total += torch.tensor(row, dtype=torch.float64).to(total.device)
        total = self._reduced(total, "sum")
        loss, _, *means = (total / total[1].clamp(min=1)).tolist()
        self._check(loss, f"the validation loss is {loss} after epoch {self.progress.epoch + 1}")
        return loss, {f"valid_{name}": mean for name, mean in zip(names, means, strict=True) if not math.isnan(mean)}

    def _pause(self, stop: bool, began: float) -> None:
        """Between two steps: write the checkpoint where it is due, stop where somebody asked for it."""
        now, alone = self.progress, self.fabric.world_size == 1
        if self.path is None:
            if stop:
                raise Interrupted("stopped by Ctrl-C; nothing was kept, since no working folder was named")
            return
        due = time.monotonic() - self.saved_at >= self.plan.checkpoint_seconds
        if not alone:  # all processes write together, so all must come to the same answer
            if now.position < self.steps:
                return
            due = self.fabric.broadcast(due)
        if due or (stop and alone):
            now.seconds = time.monotonic() - began
            self._save()
        if stop:
            words = f"stopped by Ctrl-C in epoch {now.epoch + 1}; the checkpoint is {self.path}"
            raise Interrupted(f"{words}\n  run the same command again to go on from there")


def fit_network(
    network: nn.Module,
    objective: Objective,
    train: Samples,
    valid: Samples | None,
    params: Mapping[str, Any],
    prints: dict[str, str],
    *,
    workdir: Path | None,
    label: str,
    early: Early | None = None,
    callbacks: Sequence[Callback] = (),
) -> Fitted:
    """Train a network, and leave it on the CPU with the weights of its best epoch.

    The network has a method ``prepare(sample)``, which makes a batch's index work ahead. ``params`` are those of
    gradient descent, ``seed``, ``device``, ``precision``, ``checkpoint_seconds``, and, where there are several,
    ``devices`` and ``strategy``; ``prints`` is the fingerprint that a checkpoint in ``workdir`` must have. ``early``
    is called after each epoch that was the best so far, but for the last. ``callbacks`` go around those of ``params``.
    """
    folder = None if workdir is None else Path(workdir)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    how = GradientDescent.model_construct(**{name: params[name] for name in GRADIENT_DESCENT if name in params})
    objective.check_parts(how, len(train), len(valid or ()))
    learner = Learner(network, objective, [*make_callbacks(how.callback), *callbacks, *auto_clip(how.gradient_clip)])
    rest = (folder, prints, label, objective.least_rows, early)
    plan = TrainingConfig(how, params["seed"], params["checkpoint_seconds"], *rest)
    several = (params.get("devices", 1), params.get("strategy", "auto"))
    learner.begin()
    unused = objective.unused_parameters or len(learner.turns()) > 1 or bool(how.callback or callbacks)
    fabric = make_fabric(params["device"], params["precision"], *several, unused=unused)
    with lightning_quiet():
        learned = Learned(*launch(fabric, Fit(train, valid, plan), learner))
    check_finite({name: value.numpy() for name, value in learned.weights.items()})
    network.cpu().load_state_dict(learned.weights)
    notes = learner.end()
    for note in notes:
        logger.info(note)
    return Fitted(pd.DataFrame(learned.curves), learned.best_epoch, notes)
