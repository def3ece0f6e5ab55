"""Benchmark a method of one's own by its import path: a scikit-learn estimator, a function, or a ``Method``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import BadValueError, FormatError, ShapeError, UnknownNameError, UnsupportedError, nearest
from molgraph.base.import_path import load_object
from molgraph.chem.fingerprints import morgan
from molgraph.data.labels import check_targets
from molgraph.data.table import Table
from molgraph.train.make_method import make_method

Reads = Literal["", "fingerprints", "smiles"]
PROBABLE = "a score from 0 to 1 for class 1"
UNWEIGHED = "the rows' weights were not used: its fit takes no sample_weight"


def make_any(name: str, **params: Any) -> Method:
    """A registered method or encoder by its name, or one's own by its import path ``module:object``."""
    return make_own(name, **params) if ":" in name else make_method(name, **params)


def make_own(path: str, *, reads: Reads = "", **params: Any) -> Method:
    """A method of one's own: a subclass of ``molgraph``'s ``Method`` as it is, anything else within ``OwnMethod``.

    Raises:
        UsageError: nothing of that name can be imported, or a parameter that it has not.

    Example:
        >>> make_own("sklearn.linear_model:Ridge", alpha=3.0).resolved_params()["alpha"]
        3.0
    """
    value = load_object(path)
    if isinstance(value, type) and issubclass(value, Method):
        return value(**params)
    return OwnMethod(path, params, reads=reads)


class OwnMethod(Method):
    """A scikit-learn estimator or a function, fitted to each target by itself, for benchmarks alone.

    A class is made with the parameters and has ``fit(x, y)`` and ``predict(x)``, for targets of classes
    ``predict_proba(x)`` where it has one; an estimator, such as a ``Pipeline``, is cloned. A function is called as
    ``f(x_train, y_train, x_test, **params)`` and returns a value for each test row. Rows without a label are not
    learned from; the table's weights are the ``sample_weight`` of a ``fit`` that takes them; what is handed over are
    copies.

    Args:
        path: where it can be imported, ``module:object``.
        params: of its constructor, or keyword arguments of the function.
        reads: ``fingerprints`` (Morgan bits of radius 2, uint8 [n, 2048]; the default of a class or an estimator), or
            ``smiles``, a list of texts (that of a function).
        seed: given as ``random_state`` or ``seed``, where it takes one.
    """

    name = "own"
    reads_features = False

    def __init__(self, path: str, params: Mapping[str, Any] | None = None, *, reads: Reads = "", seed: int = 0) -> None:
        self.path, self.params, self.reads, self.seed = path, params, reads, seed
        self.object = load_object(path)
        self.is_class = isinstance(self.object, type)
        self.is_made = isinstance(self.object, BaseEstimator)
        lacks = [
            verb for verb in ("fit", "predict") if self.is_class and not callable(getattr(self.object, verb, None))
        ]
        if lacks:
            words = f"{path!r} has no {' and no '.join(lacks)}"
            raise UnsupportedError(words, hint="it needs fit(x, y) and predict(x)")
        if reads not in ("", "fingerprints", "smiles"):
            raise BadValueError(f"reads is {reads!r}", hint="fingerprints or smiles")
        known = self._arguments()
        takes = [p.name for p in known if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        for key in params or {}:
            if known and key not in takes and not any(p.kind is p.VAR_KEYWORD for p in known):
                raise UnknownNameError(f"{path!r} has no parameter {key!r}", hint=nearest(key, takes))
        self.seed_name = next(
            (key for key in ("random_state", "seed") if key in takes and key not in (params or {})), ""
        )

    def _arguments(self) -> list[inspect.Parameter]:
        if self.is_made:
            kept = self.object.get_params()
            return [
                inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=kept[k]) for k in kept if k.isidentifier()
            ]
        try:
            return [*inspect.signature(self.object).parameters.values()]
        except ValueError:  # of a class written in C
            return []

    def resolved_params(self) -> dict[str, Any]:
        """Its parameters, with the defaults of its constructor or function."""
        defaults = {p.name: p.default for p in self._arguments() if p.default is not p.empty}
        return {"path": self.path, "reads": self._reads, **defaults, **(self.params or {})}

    def code_parts(self) -> tuple[Any, ...]:
        """The module of the path too, and the object at it."""
        return (*super().code_parts(), self.object, sys.modules[self.path.partition(":")[0]])

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit a copy to each target; a function learns when it predicts."""
        check_targets(table)
        self.targets, self.learned = table.row_targets, list[Callable[[Any], np.ndarray] | None]()
        x, readable, _ = self._read(table)
        assert table.y is not None
        for j, target in enumerate(self.targets):
            use = readable & np.isfinite(table.y[:, j])
            weights = None if table.weights is None else table.weights[use].copy()
            learned = self._learn(_rows(x, use), table.y[use, j].copy(), target, weights) if use.any() else None
            self.learned.append(learned)
        return self

    def predict(self, table: Table) -> Prediction:
        """A value for each readable row."""
        x, readable, table = self._read(table)
        columns = []
        for target, learned in zip(self.targets, self.learned, strict=True):
            value = np.full((len(table), len(target.columns)), np.nan)
            if learned is not None and readable.any():
                value[readable] = self._checked(learned(_rows(x, readable)), int(readable.sum()), target)
            columns.append(value)
        unlearned = {t.name: "no labels" for t, item in zip(self.targets, self.learned, strict=True) if item is None}
        value = np.concatenate(columns, axis=1)
        return Prediction(table.ids, self.targets, value, table.status, table.reason, unlearned=unlearned)

    def state(self) -> NoReturn:
        """A method of one's own has no model file."""
        words = "a method by import path is benchmarked and not kept"
        raise UnsupportedError(words, hint="register it to train and save it")

    @classmethod
    def from_state(cls, state: State) -> NoReturn:
        """As ``state``."""
        raise UnsupportedError("a method by import path has no model file")

    @property
    def _reads(self) -> str:
        return self.reads or ("fingerprints" if self.is_class or self.is_made else "smiles")

    def _read(self, table: Table) -> tuple[Any, np.ndarray, Table]:
        """What the object reads of each row, which rows can be read, and the table that says why others cannot."""
        smiles = [str(text) for text in table.smiles]
        prints = morgan(smiles)
        bad = np.flatnonzero(table.ok & ~prints.ok)
        table = table.with_status(bad, "unreadable", prints.reasons[bad])
        return smiles if self._reads == "smiles" else prints.x, table.ok, table

    def _learn(self, x: Any, y: np.ndarray, target: Target, weights: np.ndarray | None) -> Callable[[Any], np.ndarray]:
        params = {**(self.params or {}), **({self.seed_name: self.seed} if self.seed_name else {})}
        labels = y if target.kind in ("regression", "bounded") else y.astype(np.int64)
        if not self.is_class and not self.is_made:
            self.notes = (UNWEIGHED,) * (weights is not None)
            return lambda asked: self.object(x, labels, asked, **params)
        estimator = clone(self.object).set_params(**params) if self.is_made else self.object(**params)
        weighs = weights is not None and "sample_weight" in inspect.signature(estimator.fit).parameters
        estimator.fit(x, labels, **({"sample_weight": weights} if weighs else {}))
        if weights is not None and not weighs:
            self.notes = (UNWEIGHED,)
        if target.kind in ("regression", "bounded") or not callable(getattr(estimator, "predict_proba", None)):
            return estimator.predict
        return lambda asked: _by_class(estimator.predict_proba(asked), estimator.classes_, target)

    def _checked(self, value: Any, n: int, target: Target) -> np.ndarray:
        """The values as float64 [n, columns of the target].

        Raises:
            DataError: not one number for each row, or a score of a class outside 0 to 1.
        """
        try:
            if np.iscomplexobj(value):
                raise TypeError("they are complex")
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise FormatError(f"{self.path} returned no numbers: {error}") from error
        width = len(target.columns)
        if array.size and not (np.abs(array) <= np.finfo(np.float32).max).any():
            raise FormatError(f"{self.path} returned no finite number", hint=f"return {n} numbers")
        if width > 1 and array.ndim == 1:  # labels of classes
            if not np.isin(array, np.arange(width)).all():
                raise FormatError(f"{self.path} returned {array.min():g} to {array.max():g}", hint=f"0 to {width - 1}")
            array = np.eye(width)[array.astype(np.int64)]
        if array.size != n * width:
            raise ShapeError(f"{self.path} returned {array.shape} values for {n} rows", hint=f"return {n} numbers")
        if target.kind not in ("regression", "bounded") and ((array < 0) | (array > 1)).any():
            raise FormatError(f"{self.path} returned {np.nanmin(array):g} to {np.nanmax(array):g}", hint=PROBABLE)
        return array.reshape(n, width)


def _rows(x: Any, use: np.ndarray) -> Any:
    """A copy of the rows in use, of a list or an array."""
    return [x[i] for i in np.flatnonzero(use)] if isinstance(x, list) else x[use].copy()


def _by_class(p: np.ndarray, classes: np.ndarray, target: Target) -> np.ndarray:
    """Probabilities by all classes of the target, from those by the classes that were learned."""
    full = np.zeros((len(p), max(2, len(target.columns))))
    full[:, np.asarray(classes, dtype=np.int64)] = p
    return full[:, 1] if len(target.columns) == 1 else full
