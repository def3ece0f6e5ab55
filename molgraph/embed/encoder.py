"""Compute vectors of molecules by the encoder of a graph model, and keep that encoder inside another model's file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from molgraph.base.contracts import State
from molgraph.base.errors import UnsupportedError
from molgraph.base.progress import bar
from molgraph.chem.fingerprints import Fingerprints
from molgraph.chem.standardise import preset
from molgraph.data.table import make_table
from molgraph.train.checkpoint import digest
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.modelwriter import checked_meta
from molgraph.train.pipelined_predict import predict_tables
from molgraph.train.pretraining import encoder_alone

CHUNK = 8_192  # rows that are read and computed at once


def encoder_model(model: Model) -> Model:
    """The same model without its head: what it predicts of a row is the state of the row, its vector.

    Raises:
        UnsupportedError: a model without an encoder, such as a forest, or with several, such as an ensemble.
    """
    if not isinstance(model.method, GraphMethod):
        words = f"a model of the kind {model.kind} has no encoder of its own"
        raise UnsupportedError(words, hint="give a graph model")
    method = copy(model.method)
    method.fitted = encoder_alone(method.ready())
    targets = method.fitted.outputs.targets
    return Model(method, targets=targets, standardiser=model.standardiser, card=model.card)


@dataclass(frozen=True)
class MoleculeEncoder:
    """An encoder that gives each molecule of a list a vector.

    Args:
        source: the graph model, with its head.

    Raises:
        UnsupportedError: the model has no encoder, or one that reads something else than one molecule.
    """

    source: Model

    def __post_init__(self) -> None:
        kinds = [column.kind for column in self.model.method.ready().inputs]  # type: ignore[attr-defined]
        if kinds != ["molecule"]:
            words = f"the encoder reads {' and '.join(kinds)}, and a vector of one molecule is needed"
            raise UnsupportedError(words, hint="give the file of a graph model of molecules")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The encoder of a model file (``.mgm``), or of a model that ships by its name."""
        return cls(load_model(path))

    @cached_property
    def model(self) -> Model:
        """The model whose predictions are vectors."""
        return encoder_model(self.source)

    @property
    def width(self) -> int:
        """Length of a vector."""
        return int(self.model.method.ready().network.d_state)  # type: ignore[attr-defined]

    @cached_property
    def name(self) -> str:
        """A name that tells it from every other encoder: a hash of its weights and settings."""
        state = self.source.method.state()
        arrays = [part for name in sorted(state.arrays) for part in (name, np.asarray(state.arrays[name]))]
        return f"encoder-{digest([self.source.standardiser, repr(sorted(state.meta['params'].items())), *arrays])}"

    def vectors(self, texts: Sequence[str], threads: int | None = None) -> Fingerprints:
        """float32 [n, width] of SMILES, in order; zeros and a reason for a row that has no vector.

        The graphs of the next rows are made in other processes meanwhile, as in ``molgraph predict``.
        """
        x, reasons = np.zeros((len(texts), self.width), np.float32), np.full(len(texts), "", dtype=object)
        self.model.method.set_params(threads=threads)
        pieces = ((i, make_table(texts[i : i + CHUNK])) for i in range(0, len(texts), CHUNK))
        with bar("vectors", total=len(texts)) as progress:
            for i, prediction in predict_tables(self.model, pieces, many=len(texts) > CHUNK):
                rows = slice(i, i + len(prediction))
                x[rows], reasons[rows] = np.where(prediction.ok[:, None], prediction.value, 0), prediction.reason
                reasons[rows][~prediction.ok & (prediction.reason == "")] = "it has no vector"
                progress.advance(len(prediction))
        return Fingerprints(x, reasons == "", reasons)

    def state(self) -> State:
        """Its arrays, and JSON values that rebuild it."""
        state = self.source.method.state()
        return State(state.arrays, {"standardiser": preset(self.source.standardiser).label, "method": dict(state.meta)})

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> Self:
        """Rebuild it; raises ``ModelFileError`` where it is not whole."""
        method = GraphMethod.from_state(State(arrays, checked_meta(GraphMethod, dict(meta["method"]))))
        label = preset(str(meta["standardiser"])).label
        return cls(Model(method, targets=method.ready().outputs.targets, standardiser=label))
