"""Compare the tree that an ordered-neurons LSTM sees in SMILES with the depth of branches and rings."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.data.table import Table
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.policy import TOGETHER, Policy
from molgraph.nn.sequences.on_lstm import ONLSTM
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

HELD, LONGEST, TEXTS = 0.2, 160, 1000  # share of texts that are parsed; tokens of a text; texts that are parsed at most
CLEAR, CHANCE = 0.5, 0.1  # rank correlations that the controls are expected above and below


def nesting(tokens: Sequence[str]) -> np.ndarray:
    """int64 [t, 2], the branches and the rings that are open behind each token.

    Example:
        >>> nesting(["C", "1", "C", "(", "O", ")", "1"]).T.tolist()
        [[0, 0, 0, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 0]]
    """
    rings, branches, depth = set[str](), 0, []
    for token in tokens:
        branches += (token == "(") - (token == ")")
        if token.isdigit() or token[0] == "%":
            rings ^= {token}
        depth.append((branches, len(rings)))
    return np.array(depth)


def distances(model: Any, smiles: Sequence[str]) -> list[np.ndarray]:
    """The distance of each token of a text from the token before it, float32 [t - 1], by the last layer's master gate.

    Args:
        model: a fitted language model of ``on_lstm``.
        smiles: texts, all of the model's alphabet.

    Raises:
        UnsupportedError: a model of other layers, or of SELFIES.
    """
    policy = Policy(model)
    layers = policy.network.sequence
    if not isinstance(layers, ONLSTM) or model.tokens != "smiles":
        hint = "train one: molgraph train-generator CORPUS -m language -s params.sequence=on_lstm"
        raise UnsupportedError("this is no model of SMILES with ordered neurons", hint=hint)
    codes, made = [code for code in policy.encode(smiles) if code], list[np.ndarray]()
    with policy.at_work(), torch.inference_mode():
        for start in range(0, len(codes), TOGETHER):
            part = codes[start : start + TOGETHER]
            rows = torch.nn.utils.rnn.pad_sequence([torch.tensor([0, *row]) for row in part], batch_first=True)
            found = layers.distances(policy.network.embed(rows.to(policy.device))).float().cpu().numpy()
            made += [own[2 : len(row) + 1] for own, row in zip(found, part, strict=True)]
    return made


def agreement(found: Sequence[np.ndarray], depth: Sequence[np.ndarray]) -> float:
    """The mean over texts of Spearman's correlation of distances with depths; texts of one depth are left out."""
    pairs = [(a, b) for a, b in zip(found, depth, strict=True) if np.ptp(a) and np.ptp(b)]
    return float(np.mean([spearmanr(a, b).statistic for a, b in pairs])) if pairs else 0.0


@register(
    "study",
    "parse",
    summary="whether an ordered-neurons LSTM finds the branches and rings of SMILES",
    paper="Shen et al. 2019, ICLR",
    command="molgraph study parse dataset:chembl2321810 -o parse.csv",
)
class Parse(Study):
    """Syntactic distances of an ordered-neurons language model beside the depth of branches and rings.

    Shen et al. 2019, "Ordered Neurons", section 4.3: the distance before a token is high where the split there stands
    high in the tree, so that it should fall with the branches and rings that are open. A model is trained on four
    fifths of the molecules, and parses the others; with ``-m FILE`` that one parses all. A network without training
    stands beside. Controls: depths with noise in the place of distances, and distances in random order.

    Args:
        width: of the network that is trained, of two layers.
        epochs: of its training.
    """

    small = MappingProxyType({"width": 16, "epochs": 2})

    def __init__(self, *, width: Width = 64, epochs: Count = 15) -> None:
        self.width, self.epochs = width, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train, parse and compare."""
        table, rng = subject.table(), generator(seed, "parse")
        model: Any
        if subject.model is None:
            model, texts = self.trained(table, seed)
        else:
            model, texts = subject.fitted().method, [str(text) for text in table.smiles[table.ok]]
        parsed = written(model, texts)[:TEXTS]
        depth = [nesting(tokens)[:-1] for tokens in parsed]
        smiles = ["".join(tokens) for tokens in parsed]
        found = distances(model, smiles)
        rows = {"trained": found, "untrained": distances(untrained(model, seed), smiles)}
        kinds = {"branches": [each[:, 0] for each in depth], "rings": [each[:, 1] for each in depth]}
        kinds["both"] = [each.sum(axis=1) for each in depth]
        frame = pd.DataFrame(
            [
                {"network": name, **{kind: agreement(each, known) for kind, known in kinds.items()}}
                for name, each in rows.items()
            ]
        )
        both = kinds["both"]
        noisy = agreement([rng.normal(each, 0.5) for each in both], both)
        mixed = agreement([rng.permutation(each) for each in found], both)
        ours, plain = frame["both"]
        return Findings(
            f"Distances of an ordered-neurons LSTM in {len(smiles):,} SMILES",
            f"Distances and open branches and rings have the rank correlation {ours:.2f}, untrained {plain:.2f}.",
            frame,
            Control("depths with noise", f"above {CLEAR}", f"{noisy:.2f}", noisy > CLEAR),
            Control("distances in random order", f"0 +- {CHANCE}", f"{mixed:.2f}", abs(mixed) < CHANCE),
        )

    def trained(self, table: Table, seed: int) -> tuple[LanguageGenerator, list[str]]:
        """A model of four fifths of the molecules, and the other ones."""
        rows = generator(seed, "parse rows").permutation(np.flatnonzero(table.ok))
        held = rows[: max(int(HELD * len(rows)), 1)]
        model = LanguageGenerator(
            d_embedding=max(self.width // 2, 1), d_hidden=self.width, n_layers=2, max_length=LONGEST,
            sequence="on_lstm", epochs=self.epochs, batch_size=32, learning_rate=3e-3, threads=1,
            seed=derive(seed, "parse") % 2**31,
        )  # fmt: skip
        model.fit(table.take(np.setdiff1d(rows, held)))
        return model, [str(text) for text in table.smiles[np.sort(held)]]


def written(model: Any, smiles: Sequence[str]) -> list[list[str]]:
    """The tokens of each text of three or more that the model's alphabet can write."""
    policy = Policy(model)
    rows = [code for code in policy.encode(smiles) if code and len(code) > 2]
    return [[policy.vocabulary[code - 1] for code in row] for row in rows]


def untrained(model: Any, seed: int) -> Any:
    """The same model with fresh weights."""
    made = type(model)(**model.get_params())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "untrained"))
        made.fitted = model.ready()._replace(network=model.build(model.ready().vocabulary).eval())
    return made
