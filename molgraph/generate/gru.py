"""Learn to write SMILES token by token with a recurrent network, and draw new ones from it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from molgraph.base import registry
from molgraph.base.contracts import Generator, State
from molgraph.base.cores import cores
from molgraph.base.errors import ModelFileError, UsageError
from molgraph.base.options import fill, keywords, takes
from molgraph.base.progress import bar
from molgraph.base.ranges import NotNegative, Probability, Range, Width
from molgraph.base.recipe_keys import DEFAULTS, TrainingSection
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.size import Shapes, Size
from molgraph.data.table import Table
from molgraph.generate.next_token import EDGE, GRUNetwork, NextToken
from molgraph.generate.smiles_tokens import is_vocabulary, learnable_texts, token_store
from molgraph.train.archive import refused
from molgraph.train.checkpoint import fingerprint
from molgraph.train.engine import fit_network
from molgraph.train.preparation import NO_VALID
from molgraph.train.restore import restore_history, restore_network, stored_history, stored_weights
from molgraph.train.runtime import check_precision, resolve_device, torch_settings
from molgraph.train.samples import Samples

OPTIONS = keywords(TrainingSection, leave=("class_weights", "ensemble", "baseline", "seed", "store", "objective"))
TOGETHER = 128  # samples that are drawn at once: always so many, so that the first do not depend on their number
logger = logging.getLogger("molgraph")


class FittedGRU(NamedTuple):
    """A trained network and the tokens that its codes 1, 2, ... stand for."""

    network: GRUNetwork
    vocabulary: tuple[str, ...]


@register(
    "generator",
    "gru",
    summary="a recurrent network that writes SMILES token by token",
    paper="Segler et al. 2018, ACS Cent. Sci. 4:120; Bjerrum & Threlfall 2017, arXiv:1705.04612",
    system="smiles-rnn",
)
class GRUGenerator(Generator):
    """Learn the language of SMILES: the probability of each token given those before it.

    Segler et al. 2018 and Bjerrum & Threlfall 2017, here with the gated units of Cho et al. 2014:
    ``p(x_1 ... x_n) = prod_t softmax(W h_t + b)_{x_t}``. The vocabulary is that of the corpus. A sample is drawn token
    by token until its end is drawn or it has ``max_length`` tokens; not every sample is a molecule.

    Args:
        d_embedding: width of a token's vector.
        d_hidden: width of the state.
        n_layers: layers of the network.
        dropout: probability of dropping a value between two layers while training.
        max_length: tokens of a sample, at most; longer molecules are not learned from.
        temperature: of sampling: below 1 likely tokens are drawn more often, above 1 more rarely.
        seed: of the weights, the order of the rows and dropout.
        checkpoint_seconds: time between checkpoints, where fit is given a working folder.
        options: the keys of a recipe's training, with its defaults; ``help(GRUGenerator.__init__)`` lists them.

    Example:
        >>> from molgraph.data.table import make_table
        >>> made = GRUGenerator(d_hidden=16, epochs=2).fit(make_table(["CCO", "CCN", "CCCl"]))
        >>> len(made.sample(5)), made.sample(5, seed=1) == made.sample(5, seed=1)
        (5, True)
    """

    name = "gru"
    small = MappingProxyType(
        {"d_embedding": 8, "d_hidden": 16, "max_length": 80, "epochs": 2, "batch_size": 16, "learning_rate": 3e-3}
    )
    uses_valid = True
    gradient_descent = True

    @takes(OPTIONS)
    def __init__(
        self,
        d_embedding: Width = 128,
        d_hidden: Width = 512,
        n_layers: Annotated[int, Range(1, 16)] = 2,
        dropout: Probability = 0.0,
        max_length: Annotated[int, Range(1, 2000)] = 160,
        temperature: Annotated[float, Range(0.01, 100)] = 1.0,
        *,
        seed: int = DEFAULTS.seed,
        checkpoint_seconds: NotNegative = 20.0,
        **options: Any,
    ) -> None:
        """Keep the hyper-parameters.

        Args:
            **options
        """
        self.d_embedding, self.d_hidden, self.n_layers, self.dropout = d_embedding, d_hidden, n_layers, dropout
        self.max_length, self.temperature = max_length, temperature
        self.seed, self.checkpoint_seconds = seed, checkpoint_seconds
        vars(self).update(fill(OPTIONS, options))
        self.fitted: FittedGRU | None = None
        self.best_epoch: int | None = None

    if TYPE_CHECKING:  # the options

        def __getattr__(self, name: str) -> Any: ...

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Train on the readable molecules of ``table``; ``valid`` stops early and picks the weights.

        Raises:
            DataError: the table has no column of molecules, or several, or none of them can be read.
            Interrupted: Ctrl-C; its message says where the checkpoint is.
        """
        self.check()
        texts, notes = learnable_texts(table, self.max_length)
        vocabulary = tuple(sorted({token for text in texts for token in text}))
        held = [] if valid is None else learnable_texts(valid, self.max_length, vocabulary)[0]
        if not held:
            logger.info(NO_VALID)
        train, judged = (_samples(part, vocabulary) for part in (texts, held))
        recipe = {name: value for name, value in self.get_params().items() if name not in self.run_only}
        prints = fingerprint(recipe=recipe, data=["".join(text) for text in texts], split=["".join(t) for t in held])
        with torch_settings(self.threads, derive(self.seed, "weights")):
            network = self.build(len(vocabulary))
            how = (train, judged if held else None, self.get_params(), prints)
            self.curves, self.best_epoch = fit_network(
                network, NextToken(), *how, workdir=workdir, label=f"training {self.name}"
            )
        self.fitted = FittedGRU(network.eval(), vocabulary)
        self.notes = (*notes, *([] if held else [NO_VALID]))
        return self

    def sample(self, n: int, seed: int = 0) -> list[str]:
        """Draw ``n`` texts; the first of them are the same whatever ``n`` is."""
        fitted = self.ready()
        self.check()
        if n < 0:
            raise UsageError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        network = fitted.network.to(resolve_device(self.device))
        texts: list[str] = []
        with torch_settings(self.threads), torch.inference_mode(), bar("generating", n) as line:
            for start in range(0, n, TOGETHER):
                code = self._drawn(network, generator(seed, "sample", start // TOGETHER))
                for row in code[: n - start].tolist():
                    end = row.index(EDGE) if EDGE in row else len(row)
                    texts.append("".join(fitted.vocabulary[each - 1] for each in row[:end]))
                line.advance(min(TOGETHER, n - start))
        return texts

    def ready(self) -> FittedGRU:
        """What was learned; raises ``UsageError`` before ``fit``."""
        if self.fitted is None:
            raise UsageError("this generator has not learned anything yet", hint="call fit(table) first, or load one")
        return self.fitted

    def state(self) -> State:
        """Weights as arrays; hyper-parameters and vocabulary as JSON."""
        fitted = self.ready()
        meta = {"params": self.get_params(), "vocabulary": list(fitted.vocabulary)}
        return State(stored_weights(fitted.network), meta | stored_history(self))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; the network's shapes are compared with the arrays before any weight is made."""
        with refused("the generator's parts do not fit together"):
            made = cls(**state.meta["params"])
            made.check()
            vocabulary = tuple(state.meta["vocabulary"])
            if not is_vocabulary(vocabulary):
                raise ModelFileError("the generator's vocabulary is no list of distinct tokens of SMILES")
            network = restore_network(cls.name, partial(made.build, len(vocabulary)), state.arrays)
            made.fitted = FittedGRU(network, vocabulary)
            made.curves, made.best_epoch, made.notes = restore_history(state.meta)
        return made

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """The weights twice, each of them read once for each token of each sample."""
        weights = sum(math.prod(shape) for shape in shapes.values())
        params = meta["params"]
        length, state = int(params["max_length"]), int(params["n_layers"]) * int(params["d_hidden"])
        row = 16 * length + 32 * len(meta["vocabulary"]) + 16 * state
        return Size(8 * weights, TOGETHER * length * weights, row, length * weights)

    def check(self) -> None:
        """Raise early for values that no fit can have."""
        self.check_params()
        cores(self.threads)
        for kind in ("optimizer", "schedule"):
            registry.entry(kind, getattr(self, kind))
        check_precision(self.precision)
        resolve_device(self.device)

    def build(self, n_tokens: int) -> GRUNetwork:
        """The network with fresh weights, for a vocabulary of that size."""
        return GRUNetwork(n_tokens + 1, self.d_embedding, self.d_hidden, self.n_layers, self.dropout)

    def _drawn(self, network: GRUNetwork, rng: np.random.Generator) -> Tensor:
        """int64 [TOGETHER, max_length], the codes of fresh texts; what stands behind a text's end means nothing."""
        uniform = torch.from_numpy(rng.random((TOGETHER, self.max_length)))
        code = torch.zeros(TOGETHER, self.max_length, dtype=torch.int64)
        token, state = torch.full((TOGETHER, 1), EDGE, device=network.scores.bias.device), None
        ended = torch.zeros(TOGETHER, dtype=torch.bool)
        for step in range(self.max_length):
            scores, state = network(token, state)
            likely = torch.nan_to_num(scores[:, 0].double().cpu()) / self.temperature
            upto = likely.softmax(dim=1).cumsum(dim=1)
            drawn = torch.searchsorted(upto, uniform[:, step : step + 1] * upto[:, -1:], right=True)
            code[:, step] = drawn.clamp_(max=upto.shape[1] - 1)[:, 0]
            ended |= code[:, step] == EDGE
            if ended.all():
                break
            token = drawn.to(token.device)
        return code


def _samples(texts: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> Samples:
    """Texts as the engine takes them."""
    rows = np.arange(len(texts))[:, None]
    return Samples((token_store(texts, vocabulary),), rows, weights=np.ones((len(texts), 1), np.float32))
