"""Learn to write SMILES token by token with a recurrent network, and draw new ones from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from molgraph.base.errors import UsageError
from molgraph.base.options import takes
from molgraph.base.progress import bar
from molgraph.base.ranges import NotNegative, Probability, Range, Width
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.size import Shapes, Size
from molgraph.data.table import Table
from molgraph.generate.network_generator import OPTIONS, Corpus, NetworkGenerator
from molgraph.generate.next_token import NextToken, RecurrentNetwork, draw_codes, until_end
from molgraph.generate.smiles_tokens import learnable_texts, token_store
from molgraph.train.samples import Samples

TOGETHER = 128  # samples that are drawn at once: always so many, so that the first do not depend on their number


@register(
    "generator",
    "gru",
    summary="a recurrent network that writes SMILES token by token",
    paper="Segler et al. 2018, ACS Cent. Sci. 4:120; Bjerrum & Threlfall 2017, arXiv:1705.04612",
    system="smiles-rnn",
)
class GRUGenerator(NetworkGenerator):
    """Learn the language of SMILES: the probability of each token given those before it.

    Segler et al. 2018 and Bjerrum & Threlfall 2017 have LSTM cells; the gated units of Cho et al. 2014 have three
    quarters of their weights: ``p(x_1 ... x_n) = prod_t softmax(W h_t + b)_{x_t}``. The vocabulary is that of the
    corpus. A sample is drawn token by token until its end is drawn or it has ``max_length`` tokens; not every sample is
    a molecule.

    Args:
        d_embedding: width of a token's vector.
        d_hidden: width of the state.
        n_layers: layers of the network.
        dropout: probability of dropping a value between two layers while training.
        max_length: tokens of a sample, at most; longer molecules are not learned from.
        temperature: of sampling: below 1 likely tokens are drawn more often, above 1 more rarely.
        cell: ``gru``, or ``lstm``.
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

    @takes(OPTIONS)
    def __init__(
        self,
        d_embedding: Width = 128,
        d_hidden: Width = 512,
        n_layers: Annotated[int, Range(1, 16)] = 2,
        dropout: Probability = 0.0,
        max_length: Annotated[int, Range(1, 2000)] = 160,
        temperature: Annotated[float, Range(0.01, 100)] = 1.0,
        cell: Literal["gru", "lstm"] = "gru",
        *,
        seed: int = DEFAULTS.seed,
        checkpoint_seconds: NotNegative = 20.0,
        **options: Any,
    ) -> None:
        """Keep the hyper-parameters.

        Args:
            **options
        """
        self.keep(locals())

    def read(self, table: Table, valid: Table | None) -> Corpus:
        """The tokens of both tables; molecules of ``valid`` that have others are passed over."""
        texts, notes = learnable_texts(table, self.max_length)
        vocabulary = tuple(sorted({token for text in texts for token in text}))
        held = [] if valid is None else learnable_texts(valid, self.max_length, vocabulary)[0]
        train, judged = (samples_of(part, vocabulary) for part in (texts, held))
        content = (["".join(text) for text in texts], ["".join(text) for text in held])
        return Corpus(train, judged if held else None, vocabulary, content, notes)

    def build(self, vocabulary: Sequence[str]) -> RecurrentNetwork:
        """The network with fresh weights, for a vocabulary of that size."""
        how = (self.d_embedding, self.d_hidden, self.n_layers, self.dropout, self.cell)
        return RecurrentNetwork(len(vocabulary) + 1, *how)

    def objective(self, vocabulary: Sequence[str]) -> NextToken:
        """Cross-entropy of each next token."""
        return NextToken()

    def sample(self, n: int, seed: int = 0) -> list[str]:
        """Draw ``n`` texts; the first of them are the same whatever ``n`` is."""
        return [text for piece in self.pieces(n, seed) for text in piece]

    def pieces(self, n: int, seed: int = 0) -> Iterator[list[str]]:
        """The same in pieces."""
        self.ready()
        if n < 0:
            raise UsageError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        with bar("generating", n) as line:
            for start in range(0, n, TOGETHER):
                uniform = generator(seed, "sample", start // TOGETHER).random((TOGETHER, self.max_length))
                with self.at_work() as (network, vocabulary):
                    code = draw_codes(network, uniform, self.temperature, network.scores.bias.device)
                rows = [until_end(row) for row in code[: n - start].tolist()]
                line.advance(len(rows))
                yield ["".join(vocabulary[each - 1] for each in row) for row in rows]

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """The weights twice, each of them read once for each token of each sample."""
        weights = sum(math.prod(shape) for shape in shapes.values())
        params = meta["params"]
        length, state = int(params["max_length"]), 2 * int(params["n_layers"]) * int(params["d_hidden"])
        row = 16 * length + 32 * len(meta["vocabulary"]) + 16 * state
        return Size(8 * weights, TOGETHER * length * weights, row, length * weights)


def samples_of(texts: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> Samples:
    """Texts as the engine takes them."""
    rows = np.arange(len(texts))[:, None]
    return Samples((token_store(texts, vocabulary),), rows, weights=np.ones((len(texts), 1), np.float32))
