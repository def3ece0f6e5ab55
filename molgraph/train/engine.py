"""Train a network by an objective: checkpoints, early stopping, learning curves."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import nn

from molgraph.base.errors import MolgraphError
from molgraph.base.progress import bar
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.seeds import derive, generator
from molgraph.data.loader import batch_order, make_ahead
from molgraph.train import checkpoint
from molgraph.train.checkpoint import Progress
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.optimizers import Steps, learning_rate, make_optimizer
from molgraph.train.runtime import CtrlC, Interrupted
from molgraph.train.samples import Sample, Samples

if TYPE_CHECKING:
    from lightning.fabric import Fabric

logger = logging.getLogger("molgraph")
VALID_BATCH = 512
KEPT_VALID_ROWS = 20_000  # batches of a validation part up to this size are kept between epochs


@dataclass(frozen=True)
class TrainingConfig:
    """How to train, and where the checkpoint is kept.

    Args:
        how: epochs, step size and the like.
        seed: of the order of the rows, dropout and corruption.
        folder: where the checkpoint is kept, every ``checkpoint_seconds``, or None for no checkpoint.
        prints: the fingerprint that a checkpoint must have.
    """

    how: GradientDescent
    seed: int
    checkpoint_seconds: float
    folder: Path | None
    prints: dict[str, str]
    label: str = "training"


class Learned(NamedTuple):
    """What a fit leaves, in plain arrays, since it comes from another process where there are several.

    Args:
        weights: of the epoch with the lowest validation loss; of the last epoch without a validation part.
        best_epoch: that epoch's number, the first one being 1.
        curves: a row an epoch: epoch, train loss, validation loss, learning rate, seconds.
    """

    weights: dict[str, np.ndarray]
    best_epoch: int
    curves: list[list[float]]


class Learner(nn.Module):
    """A network with the objective that trains it: one module, so that checkpoints and processes have both."""

    def __init__(self, network: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.network, self.objective = network, objective

    def forward(self, batch: Any, state: StepState) -> Loss:
        """The objective's loss of a batch."""
        return self.objective(self.network, batch, state)


class Fit:
    """Train a network, or go on from the checkpoint in the plan's folder.

    A run that was killed and goes on gives the same weights, to the bit, as one that was not: the order of an
    epoch depends on the seed and the epoch alone, and the checkpoint holds the rest.

    Called as ``fit(fabric, network)``, which ``Fabric.launch`` does in as many processes as there are devices. The
    network is handed over apart from the rest, so that Lightning gives each process weights of its own.

    Args:
        objective: what a step minimises.
        train: rows to learn from.
        valid: rows that pick the weights and stop training early, or None.
        plan: how.
    """

    def __init__(self, objective: Objective, train: Samples, valid: Samples | None, plan: TrainingConfig) -> None:
        self.objective, self.train, self.valid, self.plan = objective, train, valid, plan
        self.how = how = plan.how
        self.steps = math.ceil(len(train) / how.batch_size)
        self.rates = Steps(how.learning_rate, int(how.warmup_epochs * self.steps), how.epochs * self.steps)
        self.path = None if plan.folder is None else plan.folder / checkpoint.FILE_NAME
        self.progress = Progress()
        self.kept: list[Sample] = []
        self.saved_at = 0.0

    def __call__(self, fabric: Fabric, network: Network) -> Learned:
        """Train.

        Raises:
            Interrupted: Ctrl-C; the checkpoint is written first.
            MolgraphError: the loss is no number any more.
        """
        plan, how = self.plan, self.how
        self.fabric = fabric
        self.prepare: Callable[[Sample], None] = network.prepare
        turns = self.objective.turns(network)
        made = [make_optimizer(how.optimizer, own, how.learning_rate, how.weight_decay) for own in turns]
        learner, *optimizers = fabric.setup(Learner(network, self.objective), *made)
        self.learner, self.optimizers = learner, tuple(optimizers)
        torch.manual_seed(derive(plan.seed, "dropout", fabric.global_rank))
        self.saved_at = time.monotonic()
        if self.path is not None and self.path.exists():
            self.progress = checkpoint.load(self.fabric, self.path, self.learner, self.optimizers, self.plan.prints)
            if self.fabric.is_global_zero:
                logger.info(self._resumed())
        now, fresh = self.progress, not self.progress.done
        quiet = None if self.fabric.is_global_zero else True
        with CtrlC().watch() as ctrl_c, bar(plan.label, how.epochs * self.steps, quiet) as line:
            line.advance(now.epoch * self.steps + now.position)
            while not now.done:
                began = time.monotonic() - now.seconds
                for loss, count in self._epoch():
                    now.total, now.count, now.position = now.total + loss, now.count + count, now.position + 1
                    line.advance()
                    self._pause(ctrl_c, began)
                self._close_epoch(began)
                line.describe(self._describe())
        if self.path is not None and fresh:
            checkpoint.save(self.fabric, self.path, self.learner, self.optimizers, now, plan.prints)
        return Learned({name: value.numpy() for name, value in now.best.items()}, now.best_epoch + 1, now.curves)

    def _resumed(self) -> str:
        now = self.progress
        if now.done:
            return f"{self.plan.label}: done already, in {len(now.curves)} epochs, by the run before"
        return f"{self.plan.label}: going on from the checkpoint, epoch {now.epoch + 1} of {self.how.epochs}"

    def _epoch(self) -> Iterator[tuple[float, int]]:
        """Train on what is left of this epoch; a batch's sum of losses and number of labels after each step."""
        now = self.progress
        order = batch_order(len(self.train), self.how.batch_size, seed=self.plan.seed, epoch=now.epoch)
        self.learner.train()
        pieces = [*enumerate(order)][now.position :]
        for sample in make_ahead(pieces, self._make):
            loss, count = self._step(sample.to(self.fabric.device), now.epoch * self.steps + now.position)
            if not math.isfinite(loss):
                raise MolgraphError(
                    f"the loss is {loss} in epoch {now.epoch + 1}, step {now.position + 1}",
                    hint=f"lower learning_rate (now {self.how.learning_rate:g}), set gradient_clip, "
                    "or look for extreme values in targets and features",
                )
            yield loss * count, count

    def _make(self, piece: tuple[int, np.ndarray]) -> Sample:
        """This process's share of a batch."""
        position, rows = piece
        world, rank = self.fabric.world_size, self.fabric.global_rank
        mine = rows[rank::world]
        sample = self.train.sample(mine if len(mine) else rows[:1])
        if not len(mine):  # the last batch has fewer rows than there are processes
            sample.weights = torch.zeros_like(sample.weights)  # type: ignore[arg-type]
        rng = generator(self.plan.seed, "corrupt", self.progress.epoch, position, rank)
        sample = self.objective.corrupt(sample, rng)
        self.prepare(sample)
        return sample

    def _step(self, sample: Sample, step: int) -> tuple[float, int]:
        """One step of each optimiser in turn; the mean loss of the last one, over all processes, and its count."""
        rate, world = learning_rate(self.how.schedule, self.rates, step), self.fabric.world_size
        state = StepState(step, self.rates.total, self.progress.epoch)
        for turn, optimizer in enumerate(self.optimizers):
            state = state._replace(turn=turn)
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            found: Loss = self.learner(sample, state)
            count = found.count
            if world > 1:
                count = int(cast(torch.Tensor, self.fabric.all_reduce(torch.tensor(float(count)), reduce_op="sum")))
            loss = found.total / max(count, 1)
            if world > 1:
                loss = loss * world  # gradients are averaged over processes, the loss is a sum over them
            self.fabric.backward(loss)
            if self.how.gradient_clip is not None:
                self.fabric.clip_gradients(
                    self.learner, optimizer, max_norm=self.how.gradient_clip, error_if_nonfinite=False
                )
            optimizer.step()
        self.objective.after_step(self.network, state)
        value = loss.detach()
        if world > 1:
            value = cast(torch.Tensor, self.fabric.all_reduce(value, reduce_op="mean"))
        return float(value), count

    @property
    def network(self) -> nn.Module:
        """The network itself."""
        return self.learner.module.network

    def _close_epoch(self, began: float) -> None:
        """Judge the epoch on the validation part, keep the best weights, and see whether to go on."""
        now, how = self.progress, self.how
        train_loss = now.total / max(now.count, 1)
        valid_loss = float("nan") if self.valid is None else self._validate(self.valid)
        rate = learning_rate(how.schedule, self.rates, (now.epoch + 1) * self.steps - 1)
        now.curves.append([now.epoch + 1, train_loss, valid_loss, rate, time.monotonic() - began])
        last = now.epoch + 1 >= how.epochs
        if valid_loss < now.best_loss or (self.valid is None and last):
            now.best_loss, now.best_epoch = valid_loss, now.epoch
            now.best = {name: value.detach().cpu().clone() for name, value in self.network.state_dict().items()}
        waited = now.epoch - now.best_epoch
        patient = how.patience is None or self.valid is None or waited < how.patience
        now.done = last or not patient
        now.epoch, now.position, now.total, now.count, now.seconds = now.epoch + 1, 0, 0.0, 0, 0.0

    def _validate(self, valid: Samples) -> float:
        self.learner.eval()
        total = torch.zeros(2, dtype=torch.float64, device=self.fabric.device)
        step = (self.progress.epoch + 1) * self.steps - 1
        state = StepState(step, self.rates.total, self.progress.epoch, training=False)
        for sample in self._valid_batches(valid):
            with self.fabric.autocast(), torch.set_grad_enabled(self.objective.grad_in_validation):
                found: Loss = self.learner.module(sample, state)
            total += torch.tensor([float(found.total.detach()), found.count], dtype=torch.float64).to(total.device)
        if self.fabric.world_size > 1:
            total = cast(torch.Tensor, self.fabric.all_reduce(total, reduce_op="sum"))
        loss = float(total[0] / total[1].clamp(min=1))
        if not math.isfinite(loss):
            raise MolgraphError(
                f"the validation loss is {loss} after epoch {self.progress.epoch + 1}",
                hint=f"lower learning_rate (now {self.how.learning_rate:g}) or set gradient_clip",
            )
        return loss

    def _valid_batches(self, valid: Samples) -> Iterator[Sample]:
        if self.kept:
            yield from self.kept
            return
        order = enumerate(batch_order(len(valid), VALID_BATCH))
        pieces = [*order][self.fabric.global_rank :: self.fabric.world_size]

        def make(piece: tuple[int, np.ndarray]) -> Sample:
            position, rows = piece
            rng = generator(self.plan.seed, "corrupt valid", position)
            sample = self.objective.corrupt(valid.sample(rows), rng)
            self.prepare(sample)
            return sample

        for sample in make_ahead(pieces, make):
            here = sample.to(self.fabric.device)
            if len(valid) <= KEPT_VALID_ROWS:
                self.kept.append(here)
            yield here

    def _pause(self, ctrl_c: CtrlC, began: float) -> None:
        """Between two steps: write the checkpoint where it is due, stop where somebody asked for it."""
        now = self.progress
        if self.path is None:
            if ctrl_c.pressed:
                raise Interrupted("stopped by Ctrl-C; nothing was kept, since no working folder was named")
            return
        alone = self.fabric.world_size == 1
        due = time.monotonic() - self.saved_at >= self.plan.checkpoint_seconds
        if not alone:  # all processes write together, so all must come to the same answer
            if now.position < self.steps:
                return
            due = self.fabric.broadcast(due)
        if due or (ctrl_c.pressed and alone):
            now.seconds = time.monotonic() - began
            checkpoint.save(self.fabric, self.path, self.learner, self.optimizers, now, self.plan.prints)
            self.saved_at = time.monotonic()
        if ctrl_c.pressed:
            raise Interrupted(
                f"stopped by Ctrl-C in epoch {now.epoch + 1}; the checkpoint is {self.path}\n"
                "  run the same command again to go on from there"
            )

    def _describe(self) -> str:
        epoch, train, valid, *_ = self.progress.curves[-1]
        words = f"epoch {int(epoch)}: loss {train:.3f}"
        return words if math.isnan(valid) else f"{words}, valid {valid:.3f} (best {self.progress.best_loss:.3f})"
