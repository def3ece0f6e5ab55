"""Learn a latent space of molecules with a variational autoencoder of SMILES or SELFIES, and decode from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch

from molgraph.base.contracts import LatentGenerator, Latents, State
from molgraph.base.errors import BadValueError, EmptyError, UnsupportedError
from molgraph.base.options import takes
from molgraph.base.progress import bar
from molgraph.base.ranges import NotNegative, Positive, Probability, Range, Width
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import get, register
from molgraph.base.seeds import generator
from molgraph.chem.tokens import alphabet
from molgraph.data.table import Table
from molgraph.generate.alphabets import write_tokens
from molgraph.generate.chemvae_cards import CARDS
from molgraph.generate.network_generator import OPTIONS, Corpus, NetworkGenerator
from molgraph.generate.next_token import draw_codes, until_end
from molgraph.generate.ranked_pairs import (
    RankedELBO,
    check_ranked,
    contents,
    fill_blanks,
    molecules_and_ranks,
    pair_samples,
    rank_notes,
)
from molgraph.generate.vae_objective import SequenceELBO
from molgraph.generate.vae_samples import Language, padded, passed_over, property_values, scales_of, vae_samples
from molgraph.models.chemvae import ChemVAENetwork
from molgraph.nn.bottleneck import make_bottleneck
from molgraph.train.runtime import resolve_device

TOGETHER = 64  # vectors that are decoded at once: always so many, so that a text does not depend on their number
ENCODED = 512  # molecules that are encoded at once
_NOW = {"posterior": "network.bottleneck.linear.", "flow": "network.bottleneck.", "prior": "network.bottleneck.prior."}
_OLDER = re.compile(r"^network\.(posterior|flow|prior)\.")  # of files from before bottlenecks


@register(
    "generator",
    "chemvae",
    summary="a variational autoencoder of SMILES or SELFIES: a latent space of molecules",
    paper="Gomez-Bombarelli et al. 2018, ACS Cent. Sci. 4:268; Krenn et al. 2020, Mach. Learn. Sci. Technol. 1:045024",
    systems=CARDS,
)
class ChemVAE(NetworkGenerator, LatentGenerator):
    """A latent space in which molecules lie close to similar ones, after Gomez-Bombarelli et al. 2018.

    ``q(z|x) = N(mu(x), sigma(x)^2)`` by an encoder, ``p(x|z) = prod_t p(x_t | x_<t, z)`` by a decoder, trained for
    ``E_q[log p(x|z)] - KL(q(z|x) || p(z))``, whose divergence has a weight that rises. Molecules are canonical SMILES.

    Args:
        tokens: ``smiles``, or ``selfies``, of which every text is a molecule (needs the package selfies).
        encoder: ``gru``, which learns from fewer molecules, or ``convolution``, the paper's.
        d_latent: width of a latent vector; the paper's is 196 for ZINC.
        d_embedding: width of a token's vector.
        d_hidden: width of the states; the paper's is 488, for 250,000 molecules.
        n_layers: GRU layers of the decoder; the paper's are 3.
        feedback: which of them read the tokens before: ``all``, or the ``last`` (the paper's).
        max_length: tokens of a molecule, at most; longer ones are not learned from.
        beta: weight of the divergence in the end: 1 for the lower bound itself, at which the decoder all but ignores
            the vector (0.3 nats); less keeps more of a molecule in it, more makes samples more like molecules.
        warmup_start: share of the training at which half of beta is reached.
        warmup_slope: how steeply it rises there, by share of the training; 0 for ``beta`` from the start.
        free_bits: nats of each latent dimension that cost nothing; of a posterior that a flow bends, of all together.
        properties: that a head on the latent vector learns as well: qed, logp, sa, or targets of the table.
        property_weight: weight of their squared error, each scaled to a variance of 1.
        ranked: columns of a table of pairs (two columns of SMILES) that say which molecule ranks higher: 1 the first,
            0 the second, blank not known. Of two molecules the one with the higher ``z0`` then ranks higher by the
            first name, that with the higher ``z1`` by the second, ... A row of one molecule is learned without a rank.
        ranked_weight: weight of their cross-entropy beside the nats of the texts.
        posterior, prior: registered bottlenecks with their settings (``molgraph models --kind bottleneck``), such as
            ``planar(n_maps=8)`` beside ``acn(n_neighbours=5)``; ``gaussian`` beside ``normal`` is the paper's.
        temperature: of decoding: below 1 likely tokens are drawn more often, above 1 more rarely.
        seed: of the weights, the order of the rows and the posteriors' points.
        checkpoint_seconds: time between checkpoints, where fit is given a working folder.
        options: the keys of a recipe's training, with its defaults; ``help(ChemVAE.__init__)`` lists them.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCN", "CCCl"])
        >>> made = ChemVAE(d_latent=4, d_hidden=16, encoder="gru", epochs=2).fit(table)
        >>> points = made.encode(table)
        >>> points.mean.shape, len(made.decode(points.mean, seed=1)), len(made.sample(5))
        ((3, 4), 3, 5)
    """

    name = "chemvae"
    older = MappingProxyType(
        {"n_maps": ("bottleneck", "posterior")} | dict.fromkeys(("n_neighbours", "bank_size"), ("bottleneck", "prior"))
    )
    d_latent: int = 56  # a hyper-parameter of each
    small = MappingProxyType(
        {"d_latent": 4, "d_embedding": 8, "d_hidden": 16, "n_layers": 2, "max_length": 80, "epochs": 2}
        | {"batch_size": 16, "learning_rate": 3e-3}
    )

    @takes(OPTIONS)
    def __init__(
        self,
        tokens: Literal["smiles", "selfies"] = "smiles",
        encoder: Literal["convolution", "gru"] = "gru",
        d_latent: Width = 56,
        d_embedding: Width = 32,
        d_hidden: Width = 128,
        n_layers: Annotated[int, Range(1, 16)] = 1,
        feedback: Literal["last", "all"] = "all",
        max_length: Annotated[int, Range(1, 2000)] = 120,
        beta: NotNegative = 0.1,
        warmup_start: Probability = 29 / 120,
        warmup_slope: NotNegative = 0.51 * 120,
        free_bits: NotNegative = 0.0,
        properties: Sequence[str] = (),
        property_weight: Positive = 10.0,
        ranked: Sequence[str] = (),
        ranked_weight: NotNegative = 10.0,
        posterior: str = "gaussian",
        prior: str = "normal",
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
        self.keep(locals())

    def code_parts(self) -> tuple[Any, ...]:
        """Its bottlenecks too."""
        return (*super().code_parts(), *(get("bottleneck", name) for name in (self.posterior, self.prior)))

    @property
    def learned_columns(self) -> tuple[str, ...]:
        """The columns of ranks."""
        return tuple(self.ranked)

    def as_read(self, table: Table) -> Table:
        """A row with one of its two molecules blank is a pair of the other with itself, of no rank."""
        return fill_blanks(table, self.ranked) if self.ranked else table

    def read(self, table: Table, valid: Table | None) -> Corpus:
        """The tokens of both tables and their properties; molecules of ``valid`` with other tokens are passed over."""
        table, ranks = molecules_and_ranks(table, self.ranked)
        written = write_tokens(table, self.tokens, self.max_length, label="reading")
        if not written.ok.any():
            raise EmptyError("no molecule can be learned from", hint="look at the reasons: molgraph data audit FILE")
        tokens = tuple(sorted({token for text in written.tokens for token in text}))
        values = property_values(self.properties, table, written.canonical)[written.ok]
        language = Language(tokens, int(written.ok.sum()), scales_of(values))
        parts = [pair_samples(vae_samples(written, values, language, banked=True), written, ranks)]
        held, learned = list[str](), contents(written, ranks)
        if valid is not None:
            valid, valid_ranks = molecules_and_ranks(valid, self.ranked)
            judged = write_tokens(valid, self.tokens, self.max_length, tokens, label="reading")
            held = contents(judged, valid_ranks)
            values = property_values(self.properties, valid, judged.canonical)[judged.ok]
            if held:
                samples = vae_samples(judged, values, language, banked=False)
                parts += [pair_samples(samples, judged, valid_ranks)]
        notes = (*passed_over(written), *rank_notes(parts[0], self.ranked))
        return Corpus(parts[0], parts[1] if held else None, language, (learned, held), notes)

    def build(self, vocabulary: Language) -> ChemVAENetwork:
        """The network with fresh weights."""
        return ChemVAENetwork(
            len(vocabulary.tokens) + 1,
            self.max_length,
            self.encoder,
            self.d_latent,
            self.d_embedding,
            self.d_hidden,
            self.n_layers,
            self.feedback,
            self.posterior,
            self.prior,
            vocabulary.n_rows,
            len(vocabulary.scales),
            len(self.ranked),
        )

    def objective(self, vocabulary: Language) -> SequenceELBO:
        """The negative evidence lower bound, and the error of the properties and of the ranks."""
        how = (self.beta, self.warmup_start, self.warmup_slope, self.free_bits, self.property_weight)
        return RankedELBO(*how, ranked_weight=self.ranked_weight) if self.ranked else SequenceELBO(*how)

    def encode(self, table: Table) -> Latents:
        """Centre and spread of the posterior of each row's molecule."""
        tokens = self.ready().vocabulary.tokens
        written = write_tokens(table, self.tokens, self.max_length, tokens, label="reading")
        mean, log_variance = (np.full((len(table), self.d_latent), np.nan) for _ in range(2))
        rows = np.flatnonzero(written.ok)
        with self.at_work() as (network, _), bar("encoding", len(rows)) as line:
            for start in range(0, len(rows), ENCODED):
                piece = rows[start : start + ENCODED]
                code, lengths = padded([written.tokens[row] for row in piece], tokens)
                q = network.bottleneck.moments(network.encoder(code.to(resolve_device(self.device)), lengths))
                mean[piece], log_variance[piece] = (tensor.double().cpu().numpy() for tensor in q)
                line.advance(len(piece))
        return Latents(mean, log_variance, written.reason)

    def decode(self, z: np.ndarray, seed: int = 0) -> list[str]:
        """A SMILES for each latent vector, drawn token by token; of SMILES tokens it need be no molecule."""
        return [text for piece in self.decode_pieces(z, seed) for text in piece]

    def decode_pieces(self, z: np.ndarray, seed: int = 0) -> Iterator[list[str]]:
        """The same in pieces."""
        self.ready()
        z, written, device = self.check_latents(z), alphabet(self.tokens), resolve_device(self.device)
        tokens = self.ready().vocabulary.tokens
        first = [code for code, token in enumerate(tokens, 1) if written.begins(token)]
        with bar("decoding", len(z)) as line:
            for start in range(0, len(z), TOGETHER):
                piece = np.zeros((TOGETHER, self.d_latent), np.float32)
                piece[: len(z) - start] = z[start : start + TOGETHER]
                uniform = generator(seed, "decode", start // TOGETHER).random((TOGETHER, self.max_length))
                with self.at_work() as (network, _):
                    step = network.step(torch.from_numpy(piece).to(device))
                    codes = draw_codes(step, uniform, self.temperature, device, first=first)
                rows = [until_end(row) for row in codes[: len(z) - start].tolist()]
                line.advance(len(rows))
                yield [written.join([tokens[index - 1] for index in row]) for row in rows]

    def prior_vectors(self, n: int, seed: int = 0) -> np.ndarray:
        """float [n, d_latent]: vectors of the prior; of the associative one, each given a code of its bank."""
        if n < 0:
            raise BadValueError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        with self.at_work() as (network, _):
            return np.asarray(network.bottleneck.sample(n, seed).double().cpu().numpy())

    def around(self, point: np.ndarray, n: int, spread: float = 0.5, seed: int = 0) -> np.ndarray:
        """Points near one: of an associative prior those of ``p(z|c)``, ``spread`` apart by its own measure."""
        codes = torch.from_numpy(np.repeat(self.check_latents(np.atleast_2d(point)), n, axis=0))
        noise = torch.from_numpy(generator(seed, "around").standard_normal(codes.shape))
        with self.at_work() as (network, _):
            return np.asarray(network.bottleneck.around(codes, noise, spread).double().cpu().numpy())

    def predicted(self, z: np.ndarray) -> np.ndarray:
        """float64 [n, properties]: the property head's values of latent vectors, in their own units.

        Raises:
            UsageError: it was trained without ``properties``, or the vectors are none.
        """
        network, vocabulary = self.ready()
        if network.head is None:
            raise UnsupportedError("this generator learned no properties", hint="train it with params.properties")
        z = self.check_latents(z)
        with self.at_work() as (network, _):
            raw = network.head(torch.from_numpy(z).float().to(resolve_device(self.device))).double().cpu().numpy()
        mean, deviation = np.array(vocabulary.scales).T
        return np.asarray(raw * deviation + mean)

    def vocabulary_to_json(self, vocabulary: Language) -> Any:
        """Tokens, size of the bank and scales."""
        return vocabulary.to_json()

    @classmethod
    def vocabulary_from_json(cls, values: Any) -> Language:
        """The same from a file."""
        return Language.from_json(values)

    def check(self) -> None:
        """Raise early for values that no fit can have."""
        super().check()
        alphabet(self.tokens)
        check_ranked(self.ranked, self.d_latent)
        with torch.device("meta"):
            make_bottleneck(self.posterior, self.d_hidden, self.d_latent, self.prior)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; weights of older files have the names of their day."""
        arrays = {_OLDER.sub(lambda part: _NOW[part[1]], name): value for name, value in state.arrays.items()}
        return super().from_state(State(arrays, state.meta))
