"""Save and load the state of a fit, so that a killed run goes on exactly."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from molgraph.base.errors import CannotReadError, MismatchError
from molgraph.base.paths import storage_error
from molgraph.base.version import __version__
from molgraph.train.archive import first_line

if TYPE_CHECKING:
    from lightning.fabric import Fabric

FILE_NAME = "training.ckpt"
FORMAT = 5
CURVES = ("epoch", "train_loss", "valid_loss", "learning_rate", "seconds")
logger = logging.getLogger("molgraph")


@dataclass
class Progress:
    """How far a fit has come; the one record that training changes as it goes."""

    epoch: int = 0  # under way
    position: int = 0  # how many of its batches are done
    total: float = 0.0  # sum of the losses of its labels so far
    count: int = 0  # their number
    parts: dict[str, tuple[float, int]] = field(default_factory=dict)  # named shares: the sum of each, and its labels
    seconds: float = 0.0  # spent in it before the last resume
    # of the validation part in the best epoch: the share of wrong classes, where that is monitored, and the loss
    best_score: tuple[float, float] = (float("inf"), float("inf"))
    best_epoch: int = -1  # its epoch
    best: dict[str, torch.Tensor] = field(default_factory=dict)  # the network's weights there
    curves: list[dict[str, float]] = field(default_factory=list)  # of each epoch: CURVES and the shares
    done: bool = False  # nothing is left to do; best holds the weights to keep


def fingerprint(**parts: Any) -> dict[str, str]:
    """A hash for each named part: arrays, JSON values, or mappings and sequences of these."""
    return {name: digest(part) for name, part in parts.items()} | {"molgraph": __version__}


def save(
    fabric: Fabric, path: Path, learner: Any, optimizers: Sequence[Any], progress: Progress, prints: Mapping[str, str]
) -> None:
    """Write the checkpoint through Lightning under a temporary name, then rename it."""
    state: dict[str, Any] = {"format": FORMAT, "fingerprint": dict(prints), "progress": dict(vars(progress))}
    state |= {"random": _random_states(fabric), "threads": torch.get_num_threads()}
    if not progress.done:
        state |= {"learner": learner, **{f"optimizer_{i}": optimizer for i, optimizer in enumerate(optimizers)}}
    temporary = path.with_name(path.name + ".tmp")
    try:
        if fabric.is_global_zero and temporary.is_symlink():
            temporary.unlink()  # what it points to is not ours to write
        fabric.save(temporary, state)
        if fabric.is_global_zero:
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except OSError as error:
        raise storage_error(f"cannot write the checkpoint {path}", error) from error
    finally:
        if fabric.is_global_zero:
            temporary.unlink(missing_ok=True)  # there only where writing failed; half a file would keep the disk full


def load(fabric: Fabric, path: Path, learner: Any, optimizers: Sequence[Any], prints: Mapping[str, str]) -> Progress:
    """Put a checkpoint's state into the network, its objective, the optimisers and torch's random numbers.

    Threads are set as they were too: sums depend on their number, and a fit that goes on gives the same bits.
    """
    hint = f"delete {path} to begin anew, or choose another working folder"
    try:
        rest = fabric.load(path, weights_only=True)
        known = rest["fingerprint"]
        other = [name for name, value in prints.items() if known.get(name) != value] or (
            [] if rest["format"] == FORMAT else ["format"]
        )
    except Exception as error:
        raise CannotReadError(f"the checkpoint {path} cannot be read: {first_line(error)}", hint=hint) from error
    if other:
        raise MismatchError(f"the checkpoint {path} belongs to another fit: different {', '.join(other)}", hint=hint)
    progress = Progress(**rest["progress"])
    if not progress.done:
        learner.load_state_dict(rest["learner"])
        for i, optimizer in enumerate(optimizers):
            optimizer.load_state_dict(rest[f"optimizer_{i}"])
        _restore_random(fabric, rest["random"])
        if rest["threads"] != torch.get_num_threads():
            logger.info(f"on {rest['threads']} threads, as the run before: the same bits")
            torch.set_num_threads(rest["threads"])
    return progress


def _random_states(fabric: Fabric) -> list[torch.Tensor]:
    """torch's generators of every process: the CPU's, then this process's accelerator's."""
    states = [torch.get_rng_state()]
    if fabric.device.type == "cuda":
        states.append(torch.cuda.get_rng_state(fabric.device))
    if fabric.world_size == 1:
        return states
    gathered: list[Any] = [fabric.all_gather(s.to(fabric.device)) for s in states]
    return [g[rank].cpu().clone() for rank in range(fabric.world_size) for g in gathered]


def _restore_random(fabric: Fabric, states: list[torch.Tensor]) -> None:
    size = len(states) // fabric.world_size
    mine = states[fabric.global_rank * size : (fabric.global_rank + 1) * size]
    torch.set_rng_state(mine[0].cpu())
    if fabric.device.type == "cuda":
        torch.cuda.set_rng_state(mine[1].cpu(), fabric.device)


def digest(value: Any) -> str:
    """A hash of arrays, JSON values, or sequences of these."""
    state = hashlib.sha256()
    _feed(state, value)
    return state.hexdigest()[:32]


def _feed(state: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        state.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.ndarray):
        state.update(f"text{value.shape}".encode() + "\x00".join(map(str, value)).encode("utf-8", "surrogatepass"))
    elif isinstance(value, (tuple, list)):
        state.update(f"list{len(value)}".encode())
        for part in value:
            _feed(state, part)
    else:
        state.update(json.dumps(value, sort_keys=True, default=str).encode())
