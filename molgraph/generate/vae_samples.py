"""Tokens, rows and scaled properties of molecules as the objective of a sequence VAE takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.errors import DamagedModelError, UnknownNameError, nearest
from molgraph.chem.quality import PROPERTIES, measure
from molgraph.chem.tokens import is_vocabulary
from molgraph.data.featurize_vocabulary import token_store
from molgraph.data.graph_store import Level
from molgraph.data.table import Table
from molgraph.generate.alphabets import Written
from molgraph.generate.next_token import EDGE
from molgraph.train.samples import Samples

Scales = tuple[tuple[float, float], ...]


class Language(NamedTuple):
    """What the network of a sequence VAE is built from, beside its hyper-parameters.

    Args:
        tokens: that the codes 1, 2, ... stand for.
        n_rows: of the training part, for a prior that keeps something of each.
        scales: mean and standard deviation of each property over the training part.
    """

    tokens: tuple[str, ...]
    n_rows: int = 0
    scales: Scales = ()

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"tokens": list(self.tokens), "n_rows": self.n_rows, "scales": [list(scale) for scale in self.scales]}

    @classmethod
    def from_json(cls, values: Any) -> Language:
        """From the values of a file that may be anybody's; any error says that they are no language."""
        tokens = tuple(values["tokens"])
        n_rows = int(values["n_rows"] if "n_rows" in values else values["n_bank"])  # of older files, those of the bank
        scales = tuple((float(mean), float(deviation)) for mean, deviation in values["scales"])
        sound = np.isfinite(scales).all() and all(deviation > 0 for _, deviation in scales)
        if not is_vocabulary(tokens) or not tokens or n_rows < 0 or not sound:
            words = "the generator's vocabulary is no list of distinct tokens with scales of properties"
            raise DamagedModelError(words)
        return cls(tokens, n_rows, scales)


def vae_samples(written: Written, values: np.ndarray, language: Language, *, banked: bool) -> Samples:
    """The rows that have tokens, as the engine takes them.

    Args:
        written: the tokens of all rows.
        values: float [n, properties] of those that have any; NaN where one has no value.
        language: tokens, and the scale of each property.
        banked: whether row i is row i of the training part.
    """
    texts = [text for text in written.tokens if text]
    n, rows = len(texts), np.arange(len(texts))
    store = token_store(texts, language.tokens)
    row = rows if banked else np.full(n, -1)
    store = replace(store, levels={**store.levels, "text": Level(np.arange(n + 1), {"row": row})})
    weights = np.ones((n, 1 + len(language.scales)), np.float32)
    if not language.scales:
        return Samples((store,), rows[:, None], weights=weights)
    mean, deviation = np.array(language.scales).T
    y = ((values - mean) / deviation).astype(np.float32)
    weights[:, 1:] = np.isfinite(y)
    return Samples((store,), rows[:, None], y=np.nan_to_num(y), weights=weights)


def passed_over(written: Written) -> tuple[str, ...]:
    """Notes on rows that are not learned from: those that RDKit cannot read, and others."""
    unreadable = sum(not text for text in written.canonical)
    others = int((~written.ok).sum()) - unreadable
    passed = {"unreadable": unreadable, "too long, or with tokens that cannot be learned": others}
    return tuple(f"rows that are not learned from: {n:,} ({reason})" for reason, n in passed.items() if n)


def property_values(names: Sequence[str], table: Table, smiles: Sequence[str]) -> np.ndarray:
    """float64 [n, properties]: targets of the table by their names, else computed; NaN where there is none.

    Args:
        names: of the properties.
        table: n rows.
        smiles: the canonical SMILES of each row, empty where it has none.

    Raises:
        UnknownNameError: a name that is neither a target of the table nor a known property.

    Example:
        >>> from molgraph.data.table import make_table
        >>> property_values(["logp"], make_table(["CCO", "C1C"]), ["CCO", ""]).round(2).tolist()
        [[-0.0], [nan]]
    """
    columns = [np.zeros((len(table), 0))]
    for name in names:
        known = [target.name for target in table.row_targets]
        if name in known and table.y is not None:
            columns.append(table.y[:, [known.index(name)]])
        elif name in PROPERTIES:
            rows = [i for i, text in enumerate(smiles) if text]
            column = np.full((len(table), 1), np.nan)
            column[rows, 0] = measure(name, [smiles[i] for i in rows]).value
            columns.append(column)
        else:
            raise UnknownNameError(f"no property is named {name!r}", hint=nearest(name, [*known, *PROPERTIES]))
    return np.concatenate(columns, axis=1)


def scales_of(values: np.ndarray) -> Scales:
    """Mean and standard deviation of each column, which is 1 where a column does not vary.

    Example:
        >>> scales_of(np.array([[1.0, 5.0], [3.0, np.nan]]))
        ((2.0, 1.0), (5.0, 1.0))
    """
    scales = []
    for column in values.T:
        known = column[np.isfinite(column)]
        deviation = float(known.std()) if len(known) else 0.0
        scales.append((float(known.mean()) if len(known) else 0.0, deviation if deviation > 1e-9 else 1.0))
    return tuple(scales)


def padded(texts: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> tuple[Tensor, Tensor]:
    """int64 [n, longest] codes with 0 behind the last, and int64 [n] lengths.

    Example:
        >>> padded([["C"], ["C", "O"]], ("C", "O"))[0].tolist()
        [[1, 0], [1, 2]]
    """
    place = {token: i for i, token in enumerate(vocabulary, 1)}
    codes = [torch.tensor([place[token] for token in text]) for text in texts]
    return pad_sequence(codes, batch_first=True, padding_value=EDGE), torch.tensor([*map(len, codes)])
