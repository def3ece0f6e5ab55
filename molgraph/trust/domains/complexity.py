"""Domain score: the code length of a SMILES by a language model, less that by general compressors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.resources import model_path
from molgraph.base.systems import SystemCard
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.text_code import PrimedZlib, TextCode
from molgraph.data.sources import builtin
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.trust.domains.domain import Domain

GENERAL = 3  # characters of the n-grams of the general code
UNKNOWN = 8.0  # bits of a character of a text that the language model cannot write


@cache
def compressors() -> tuple[TextCode, PrimedZlib]:
    """The general codes: n-grams of NCI's molecules, and zlib that has read them."""
    molecules = canonical_smiles(builtin.nci().smiles, workers=0)
    texts = [molecule.smiles for molecule in molecules if molecule.smiles]
    return TextCode.fit(texts, GENERAL), PrimedZlib(texts)


def complexity(texts: Sequence[str]) -> np.ndarray:
    """float64 [n], the shorter of both general codes of each text, in bits.

    Example:
        >>> simple, rich = complexity(["CCCCCCCCCC", "O=S1(N)c2#[Fe]"])
        >>> bool(simple < rich)
        True
    """
    return np.array([min(code.bits(text) for code in compressors()) for text in texts], dtype=np.float64)


@register(
    "domain",
    "complexity",
    summary="code length of a SMILES by a language model of known molecules, less that by general compressors",
    paper="Serra et al. 2020, ICLR, arXiv:1909.11480",
    systems=(
        SystemCard(
            "input-complexity-score-s",
            left_out="pictures; compressors are n-grams and zlib that know SMILES of NCI",
            off="-s 'params.by=complexity(correct=false)'",
            beside=("code length by the model alone", "Tanimoto distance", "heavy atoms"),
            command="molgraph train dataset:chembl2321810 -m 'domain(random_forest)' "
            "-s params.by=complexity -o model.mgm",
            modules=("molgraph.trust.with_domain", "molgraph.chem.text_code"),
        ),
    ),
)
class Complexity(Domain):
    """``S(x) = -log2 M(x) - L(x)`` with the likelihood M of a language model and the length L of a general code.

    Serra et al. 2020, equation 2. A simple molecule is likely under every language model, and so looks usual; L says
    how simple it is: the shorter of two codes, n-grams and zlib, both of which know SMILES at large (NCI's). S is the
    ratio of two likelihoods, that of molecules at large and that of the model's own, in bits.

    Args:
        model: the file of a language model that gives likelihoods (``train-generator -m language`` or ``ngram``), which
            the model file then holds; if empty, n-grams of the training molecules.
        order: characters of those.
        correct: whether L is taken off; if not, the score is the likelihood's alone.
    """

    reads = "smiles"
    small = MappingProxyType({"order": 4})

    def __init__(self, model: str = "", *, order: Annotated[int, Range(1, 12)] = 6, correct: bool = True) -> None:
        self.model, self.order, self.correct = model, order, correct
        self.learns = ("file",) if model else ("grams", "counts")
        self.file = b""
        self.code: TextCode | None = None
        self.language: Any = None

    def fit(self, x: np.ndarray) -> Self:
        """Read the language model, or count n-grams."""
        if not self.model:
            self.code = TextCode.fit(map(str, x), self.order)
        elif not self.file:
            path = model_path(self.model)
            self.language = _language(load_model(path), self.model)
            self.file = Path(path).read_bytes()
        return self

    def bits(self, x: np.ndarray) -> np.ndarray:
        """float64 [n], the code length of each SMILES by the language model: ``-log2 M(x)``."""
        texts = [str(text) for text in x]
        if self.code is not None:
            return np.array([self.code.bits(text) for text in texts], dtype=np.float64)
        bits = -self.language.log_prob(texts) / log(2)
        return np.where(np.isfinite(bits), bits, UNKNOWN * (np.array([len(text) for text in texts]) + 1))

    def score(self, x: np.ndarray) -> np.ndarray:
        """S in bits."""
        return self.bits(x) - complexity([str(text) for text in x]) if self.correct else self.bits(x)

    def state(self) -> dict[str, np.ndarray]:
        """The file of the language model, byte by byte, or the n-grams."""
        return self.code.state() if self.code is not None else {"file": np.frombuffer(self.file, np.uint8)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """As ``Domain.restore``."""
        if not self.model:
            self.code = TextCode.from_state(arrays, self.order)
            return self
        if arrays["file"].dtype != np.uint8:
            raise ValueError("the language model's file is bytes")
        self.file = arrays["file"].tobytes()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "language.mgm"
            path.write_bytes(self.file)
            self.language = _language(load_model(path), self.model)
        return self


def _language(model: Model, name: str) -> Any:
    if not hasattr(model.method, "log_prob"):
        hint = "train one: molgraph train-generator molecules.smi -m language -o lm.mgm"
        raise UnsupportedError(f"{name} gives no likelihood of a molecule", hint=hint)
    return model.method
