"""Learn to write SMILES or SELFIES token by token with a sequence layer, and draw new ones from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
import torch
from torch import Tensor

from molgraph.base.contracts import State
from molgraph.base.errors import BadValueError
from molgraph.base.options import takes
from molgraph.base.progress import bar
from molgraph.base.ranges import NotNegative, Probability, Range, Width
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import alias, register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.tokens import alphabet
from molgraph.data.featurize_vocabulary import token_store
from molgraph.data.table import Table
from molgraph.generate.conditions import Conditions, check_condition, properties
from molgraph.generate.network_generator import OPTIONS, Corpus, NetworkGenerator
from molgraph.generate.next_token import LanguageNetwork, NextToken, draw_codes, sampling_copy, until_end
from molgraph.generate.own_inputs import OwnInputs
from molgraph.generate.policy import Policy
from molgraph.generate.scaffold_constraint import ScaffoldConstraint
from molgraph.generate.smiles_tokens import learnable_texts
from molgraph.train.samples import Samples

_OLDER = re.compile(r"^network\.(gru|lstm)\.")  # weights of files from before sequence layers
TOGETHER = 128  # samples that are drawn at once: always so many, so that the first do not depend on their number


@register(
    "generator",
    "language",
    summary="a sequence layer (gru, lstm, s4) that writes SMILES or SELFIES token by token",
    paper="Segler et al. 2018, ACS Cent. Sci. 4:120; Bjerrum & Threlfall 2017, arXiv:1705.04612",
    systems=(
        SystemCard("smiles-rnn"),
        SystemCard(
            "goalgail",
            left_out="the adversarial reward, and goals other than properties of the whole molecule",
            off="-s params.condition=[]",
            beside=("shuffled goals",),
            command="molgraph train-generator dataset:chembl2321810 -m language "
            '-s \'params.condition=["logp","qed"]\' -o generator.mgm',
            modules=("molgraph.generate.conditions", "molgraph.generate.next_token"),
        ),
        SystemCard(
            "observational-dropout",
            left_out="a world model that is trained by the reward of a policy alone",
            off="-s params.own_inputs=0",
            beside=("teacher forcing",),
            command="molgraph train-generator dataset:chembl2321810 -m language -s params.own_inputs=0.25 "
            "-o generator.mgm",
            modules=("molgraph.generate.own_inputs", "molgraph.generate.next_token"),
        ),
    ),
)
class LanguageGenerator(NetworkGenerator):
    """Learn the language of SMILES: the probability of each token given those before it.

    Segler et al. 2018 and Bjerrum & Threlfall 2017 have LSTM cells (``sequence=lstm``); the gated units of Cho et al.
    2014 have three quarters of their weights: ``p(x_1 ... x_n) = prod_t softmax(W h_(t-1) + b)_{x_t}``. The vocabulary
    is that of the corpus. A sample is drawn token by token until its end is drawn or it has ``max_length`` tokens; of
    SMILES not every sample is a molecule.

    Args:
        d_embedding: width of a token's vector.
        d_hidden: width of the state.
        n_layers: layers of the network.
        dropout: probability of dropping a value between two layers while training.
        max_length: tokens of a sample, at most; longer molecules are not learned from.
        temperature: of sampling: below 1 likely tokens are drawn more often, above 1 more rarely.
        sequence: the layers, a registered causal sequence layer with its settings, such as ``s4(d_state=16)``.
        tokens: the alphabet, ``smiles`` or ``selfies``, of which every text of atoms is a molecule.
        cell: an older name of ``sequence``.
        condition: properties that it can be asked for, such as ``["logp", "qed"]``: those of each molecule are
            standardised, and a linear layer of them is added to every token (``generate --want logp=3``).
        init: a file of such a model, or one that ships, to start from: its alphabet, its weights, and their shape.
        own_inputs: probability that a token is replaced by the model's own sample while training (Freeman et al. 2019).
        seed: of the weights, the order of the rows and dropout.
        checkpoint_seconds: time between checkpoints, where fit is given a working folder.
        options: the keys of a recipe's training, with its defaults; ``help(LanguageGenerator.__init__)`` lists them.

    Example:
        >>> from molgraph.data.table import make_table
        >>> made = LanguageGenerator(d_hidden=16, epochs=2).fit(make_table(["CCO", "CCN", "CCCl"]))
        >>> len(made.sample(5)), made.sample(5, seed=1) == made.sample(5, seed=1)
        (5, True)
    """

    name = "language"
    shape = ("d_embedding", "d_hidden", "n_layers", "sequence", "cell", "tokens", "condition", "max_length")
    constraint: ScaffoldConstraint | None = None  # that what it writes has a scaffold
    want: Mapping[str, float] | None = None  # properties that what it writes should have
    values: np.ndarray | None = None  # those of the molecules that are learned from
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
        sequence: str = "gru",
        tokens: str = "smiles",
        cell: str = "",
        condition: Sequence[str] = (),
        init: str | None = None,
        own_inputs: Probability = 0.0,
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
        known = None if self.start is None else self.start.vocabulary
        texts, notes = learnable_texts(table, self.max_length, known, self.tokens)
        vocabulary = known or tuple(sorted({token for text in texts for token in text}))
        held = [] if valid is None else learnable_texts(valid, self.max_length, vocabulary, self.tokens)[0]
        train, judged = (samples_of(part, vocabulary, self.condition, self.tokens) for part in (texts, held))
        self.values = train.extra
        content = (["".join(text) for text in texts], ["".join(text) for text in held])
        return Corpus(train, judged if held else None, vocabulary, content, notes)

    def build(self, vocabulary: Sequence[str]) -> LanguageNetwork:
        """The network with fresh weights, for a vocabulary of that size."""
        how = (self.d_embedding, self.d_hidden, self.n_layers, self.dropout, self.cell or self.sequence)
        network = LanguageNetwork(len(vocabulary) + 1, *how)
        if self.condition:
            network.conditions = Conditions(len(self.condition), self.d_embedding)
            if self.values is not None:
                network.conditions.standardise(self.values)
        return network

    def objective(self, vocabulary: Sequence[str]) -> NextToken:
        """Cross-entropy of each next token."""
        return OwnInputs(self.own_inputs) if self.own_inputs else NextToken()

    def sample(self, n: int, seed: int = 0) -> list[str]:
        """Draw ``n`` texts; the first of them are the same whatever ``n`` is."""
        return [text for piece in self.pieces(n, seed) for text in piece]

    def pieces(self, n: int, seed: int = 0) -> Iterator[list[str]]:
        """The same in pieces."""
        if n < 0:
            raise BadValueError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        written, vocabulary = alphabet(self.tokens), self.ready().vocabulary
        first = [code for code, token in enumerate(vocabulary, 1) if written.begins(token)]
        first = first if len(first) < len(vocabulary) else []
        copy: Any = None
        with bar("generating", n) as line:
            for start in range(0, n, TOGETHER):
                uniform = generator(seed, "sample", start // TOGETHER).random((TOGETHER, self.max_length))
                with self.at_work() as (network, _):
                    network = copy = copy or sampling_copy(network, self.precision)
                    device = network.scores.bias.device
                    rows = network.sequence.rows
                    limit = self.constraint and self.constraint.begin(TOGETHER, derive(seed, start // TOGETHER))
                    how = {"first": first, "rows": rows, "limit": limit}
                    code = draw_codes(self.asked(network), uniform, self.temperature, device, **how)
                drawn = [until_end(row) for row in code.tolist()]
                texts = (limit.whole(drawn) if limit else drawn)[: n - start]
                line.advance(len(texts))
                yield [written.join([vocabulary[index - 1] for index in text]) for text in texts]

    def asked(self, network: LanguageNetwork) -> Callable[[Tensor, Any], tuple[Tensor, Any]]:
        """The network with the properties that are wanted, those that nobody named as in its training."""
        if not self.want:
            return network
        conditions: Any = network.conditions
        y = conditions.mean.clone()
        for name, value in self.want.items():
            y[[*self.condition].index(name)] = value
        condition = conditions(y.unsqueeze(0))
        return lambda token, state: network(token, state, condition.expand(len(token), -1))

    def sample_distinct(self, n: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
        """``n`` different texts without replacement, fewer where there are no more, and their weights.

        A stochastic beam search (Kool et al. 2019, ICML). The sum of weight times value over the texts estimates the
        mean value of ``sample``'s texts without bias. Different texts may be one molecule.

        Returns:
            The texts in the order of the draws, and float64 [n], their weights.

        Raises:
            ConflictError: while a scaffold is kept.

        Example:
            >>> from molgraph.data.table import make_table
            >>> made = LanguageGenerator(d_hidden=16, epochs=2).fit(make_table(["CCO", "CCN", "CCCl"]))
            >>> texts, weights = made.sample_distinct(50, seed=1)
            >>> len({*texts}), bool((weights > 0).all())
            (50, True)
        """
        if n < 1:
            raise BadValueError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        policy = Policy(self)
        with policy.at_work():
            (drawn,) = policy.draw_distinct(n, seed)
        return policy.texts(drawn.codes), drawn.weight

    def log_prob(self, smiles: Sequence[str]) -> np.ndarray:
        """float64 [n], the log-probability of each SMILES as it is written, its end included.

        NaN where the vocabulary lacks one of its tokens or it has more than ``max_length``. The temperature plays no
        part.

        Example:
            >>> from molgraph.data.table import make_table
            >>> made = LanguageGenerator(d_hidden=16, epochs=2).fit(make_table(["CCO", "CCN", "CCCl"]))
            >>> np.isfinite(made.log_prob(["CCO", "OCC", "C#C"])).tolist()
            [True, True, False]
        """
        policy = Policy(self)
        codes = policy.encode(smiles)
        known = [row for row in codes if row is not None]
        out = np.full(len(codes), np.nan)
        with policy.at_work():
            out[[row is not None for row in codes]] = policy.log_prob(known)
        return out

    def check(self) -> None:
        """Raise early for values that no fit can have."""
        super().check()
        alphabet(self.tokens)
        check_condition(self.condition)
        with torch.device("meta"):
            self.build(())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; the sequence layer of an older file has its name before its weights."""
        arrays = {_OLDER.sub("network.sequence.layers.", name): value for name, value in state.arrays.items()}
        return super().from_state(State(arrays, state.meta))


alias("generator", "gru", LanguageGenerator.name)


def samples_of(
    texts: Sequence[Sequence[str]], vocabulary: Sequence[str], condition: Sequence[str] = (), tokens: str = "smiles"
) -> Samples:
    """Texts as the engine takes them, each with its properties."""
    rows, join = np.arange(len(texts))[:, None], alphabet(tokens).join
    extra = properties([join(text) for text in texts], condition) if condition and len(texts) else None
    weights = np.ones((len(texts), 1), np.float32)
    return Samples((token_store(texts, vocabulary),), rows, extra, weights=weights)
