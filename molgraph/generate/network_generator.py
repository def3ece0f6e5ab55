"""Train, store and restore a generator that is a network: the parts that all of them share."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import nn

from molgraph.base import registry
from molgraph.base.contracts import Generator, State
from molgraph.base.cores import cores
from molgraph.base.errors import ConflictError, DamagedModelError, NotFittedError
from molgraph.base.options import fill, keywords
from molgraph.base.parts import with_older
from molgraph.base.recipe_keys import TrainingSection
from molgraph.base.seeds import derive
from molgraph.chem.tokens import is_vocabulary
from molgraph.data.table import Table
from molgraph.train.archive import refused
from molgraph.train.callback import Callback, as_trained, make_callbacks
from molgraph.train.checkpoint import digest, fingerprint
from molgraph.train.engine import fit_network
from molgraph.train.modelfile import load_start
from molgraph.train.objective import Objective
from molgraph.train.optimizers import check_optimizer
from molgraph.train.preparation import NO_VALID
from molgraph.train.restore import restore_history, restore_network, stored_history, stored_weights
from molgraph.train.runtime import check_precision, resolve_device, torch_settings
from molgraph.train.samples import Samples

#: the keys of a recipe's training that such generators take: ``@takes(OPTIONS)`` before their constructor
_NOT = ("class_weights", "ensemble", "baseline", "compare", "seed", "store", "objective", "views")
OPTIONS = keywords(TrainingSection, leave=_NOT)
CORPUS = "corpus"  # the part of a working folder that keeps what was read
logger = logging.getLogger("molgraph")


class Corpus(NamedTuple):
    """What a table holds to learn from.

    Args:
        train: its molecules as a network takes them.
        valid: those that pick the weights; None where there are none.
        vocabulary: all that the network is built from beside the hyper-parameters, such as the distinct tokens.
        content: the molecules of each part as texts: a checkpoint is of these alone.
        notes: what a person should know, such as how many rows are passed over.
    """

    train: Samples
    valid: Samples | None
    vocabulary: Any
    content: tuple[Sequence[str], Sequence[str]]
    notes: tuple[str, ...] = ()


class Fitted(NamedTuple):
    """A trained network and what it was built from."""

    network: Any
    vocabulary: Any


class NetworkGenerator(Generator):
    """The base class of generators that molgraph's engine trains.

    A subclass reads a table (``read``), builds its network and objective from the vocabulary that it finds there
    (``build``, ``objective``), and draws from the network inside ``at_work``. Its constructor has ``@takes(OPTIONS)``,
    ends in ``**options`` and gives them, with its own hyper-parameters, to ``keep``. A vocabulary that is no tuple of
    tokens has ``vocabulary_to_json`` and ``vocabulary_from_json`` of its own.
    """

    uses_valid = True
    gradient_descent = True
    fitted: Fitted | None = None
    best_epoch: int | None = None
    shape: tuple[str, ...] = ()  # hyper-parameters that one with ``init`` has of that file; none: it has no ``init``
    init: str | None = None
    start: Fitted | None = None
    extra_callbacks: Sequence[Callback] = ()  # of the next fit, beside those that ``callback`` names

    if TYPE_CHECKING:  # the options

        def __getattr__(self, name: str) -> Any: ...

    @property
    def learned_columns(self) -> tuple[str, ...]:
        """Names of the columns of a table that it learns beside the molecules; none by default."""
        return ()

    def as_read(self, table: Table) -> Table:
        """A table that was just read, as the generator learns from it; by default as it is."""
        return table

    @abstractmethod
    def read(self, table: Table, valid: Table | None) -> Corpus:
        """The molecules of both tables as samples; raises ``DataError`` where nothing can be learned from."""

    def read_once(self, table: Table, valid: Table | None, folder: Path) -> Corpus:
        """The same; where it takes long, ``folder`` may keep it for a training that goes on."""
        return self.read(table, valid)

    @abstractmethod
    def build(self, vocabulary: Any) -> nn.Module:
        """The network with fresh weights."""

    @abstractmethod
    def objective(self, vocabulary: Any) -> Objective:
        """What training minimises."""

    def vocabulary_to_json(self, vocabulary: Any) -> Any:
        """The vocabulary as JSON values."""
        return list(vocabulary)

    @classmethod
    def vocabulary_from_json(cls, values: Any) -> Any:
        """The vocabulary of a file, which may be anybody's; any error says that it is none."""
        if not is_vocabulary(tokens := tuple(values)):
            raise DamagedModelError("the generator's vocabulary is no list of distinct tokens of SMILES")
        return tokens

    def keep(self, given: Mapping[str, Any]) -> None:
        """Set hyper-parameters, the ``locals()`` of an ``__init__``; options not given have a recipe's defaults."""
        params = {name: value for name, value in given.items() if name not in ("self", "options", "__class__")}
        older = {name: value for name, value in given["options"].items() if name in self.older}
        options = {name: value for name, value in given["options"].items() if name not in older}
        vars(self).update({**with_older({**params, **older}, self.older), **fill(OPTIONS, options)})

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Train on the readable molecules of ``table``; ``valid`` stops early and picks the weights.

        Raises:
            DataError: the table has no column of molecules, or several, or none of them can be read.
            Interrupted: Ctrl-C; its message says where the checkpoint is.
        """
        self.check()
        self.start = None if self.init is None else self._from_file(self.init)
        corpus = self.read(table, valid) if workdir is None else self.read_once(table, valid, Path(workdir) / CORPUS)
        self.n_learned = (len(corpus.content[0]), len(corpus.content[1]))
        for note in (*corpus.notes, *([NO_VALID] if corpus.valid is None else [])):
            logger.info(note)
        recipe = {name: value for name, value in self.get_params().items() if name not in self.run_only}
        if self.start is not None:
            recipe["start"] = digest([*stored_weights(self.start.network).values()])
        prints = fingerprint(recipe=recipe, data=list(corpus.content[0]), split=list(corpus.content[1]))
        with torch_settings(self.threads, derive(self.seed, "weights")):
            network, objective = self.build(corpus.vocabulary), self.objective(corpus.vocabulary)
            if self.start is not None:
                network.load_state_dict(self.start.network.state_dict())
            how = (corpus.train, corpus.valid, self.get_params(), prints)
            where: Any = {"workdir": workdir, "label": f"training {self.name}", "callbacks": self.extra_callbacks}
            self.curves, self.best_epoch, _ = fit_network(network, objective, *how, **where)
        self.fitted = Fitted(network.eval(), corpus.vocabulary)
        self.notes = (*corpus.notes, *([NO_VALID] if corpus.valid is None else []))
        return self

    def _from_file(self, path: str) -> Fitted:
        """The network and the alphabet of a file, whose ``shape`` this one takes."""
        other = load_start(path).method
        if not isinstance(other, type(self)):
            words = f"{self.name} cannot start from {path}, which holds a {other.model_name}"
            raise ConflictError(words, hint=f"name a file of train-generator -m {self.name}")
        self.set_params(**{name: getattr(other, name) for name in self.shape})
        return other.ready()

    def ready(self) -> Fitted:
        """What was learned; raises ``NotFittedError`` before ``fit``."""
        if self.fitted is None:
            words = "this generator has not learned anything yet"
            raise NotFittedError(words, hint="call fit(table) first, or load one")
        return self.fitted

    @contextmanager
    def at_work(self) -> Iterator[Fitted]:
        """The network on its device and the vocabulary, with threads and precision as asked and without gradients."""
        fitted = self.ready()
        self.check()
        device = resolve_device(self.device)
        lower = torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bfloat16")
        with torch_settings(self.threads), torch.inference_mode(), lower:
            yield Fitted(fitted.network.to(device), fitted.vocabulary)

    def state(self) -> State:
        """Weights as arrays; hyper-parameters and vocabulary as JSON."""
        fitted = self.ready()
        meta = {"params": self.get_params(), "vocabulary": self.vocabulary_to_json(fitted.vocabulary)}
        return State(stored_weights(fitted.network), meta | stored_history(self))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; the network's shapes are compared with the arrays before any weight is made."""
        with refused("the generator's parts do not fit together"):
            generator = cls(**state.meta["params"])
            generator.check()
            vocabulary = generator.vocabulary_from_json(state.meta["vocabulary"])
            build = partial(generator.build, vocabulary)
            network = restore_network(cls.name, lambda: as_trained(build(), generator.callback), state.arrays)
            generator.fitted = Fitted(network, vocabulary)
            generator.curves, generator.best_epoch, generator.notes = restore_history(state.meta)
        return generator

    def check(self) -> None:
        """Raise early for values that no fit can have."""
        self.check_params()
        cores(self.threads)
        registry.entry("schedule", self.schedule)
        check_optimizer(self.optimizer)
        make_callbacks(self.callback, start=False)
        check_precision(self.precision, self.device)
        resolve_device(self.device)
