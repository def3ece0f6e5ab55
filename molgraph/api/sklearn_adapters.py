"""Use any method of molgraph as a scikit-learn estimator over SMILES or RDKit molecules."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import BadValueError, DataError, UnsupportedError
from molgraph.chem.smiles import parse_smiles
from molgraph.data.labels import check_targets, check_weights
from molgraph.data.table import OK, Table, make_table
from molgraph.train.make_method import make_method


class InputError(DataError, ValueError):
    """A ``DataError`` that scikit-learn's tools know too: they expect a ``ValueError`` where X or y is refused."""


class _MoleculeEstimator(BaseEstimator):
    """What the two adapters share: parameters by name, SMILES to a table, rows that cannot be predicted."""

    def __init__(self, model: str = "dmpnn", *, invalid: Literal["raise", "impute"] = "raise", **params: Any) -> None:
        self.model, self.invalid, self._params = model, invalid, params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """``model``, ``invalid`` and the model's parameters that were given."""
        return {"model": self.model, "invalid": self.invalid, **self._params}

    def set_params(self, **params: Any) -> Self:
        """Set ``model``, ``invalid`` or any parameter of the model; an unknown one raises ``UnknownNameError``."""
        own_params = {name: params.pop(name) for name in ("model", "invalid") if name in params}
        for name, value in own_params.items():
            setattr(self, name, value)
        if params:
            make_method(self.model, **params)  # refuses a name that the model does not know
            self._params = self._params | params
        return self

    def _fit(self, X: Any, targets: tuple[Target, ...], y: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Fit the method on the rows that can be read; their values of ``y`` are returned."""
        if self.invalid not in ("raise", "impute"):
            raise BadValueError(f"invalid is {self.invalid!r}", hint="'raise' or 'impute'")
        try:
            table = make_table(as_smiles(X), targets=targets, y=y, weights=_weights(sample_weight, len(y)))
            check_weights(table)
            method = make_method(self.model, **self._params)
            table = self._readable(table)
            for name, reason in check_targets(table).unlearned.items():  # scikit-learn has no word for half an answer
                raise InputError(f"target {name!r} cannot be learned: {reason}", hint="leave that column of y out")
            self.method_ = method.fit(table)
        except DataError as error:
            raise InputError(error.message, hint=error.hint) from None
        self.n_features_in_ = 1
        assert table.y is not None
        return table.y

    def _readable(self, table: Table) -> Table:
        """The rows whose molecule can be read; with ``invalid="raise"`` one that cannot is an error."""
        reasons = np.array([parse_smiles(text).reason for text in table.smiles], dtype=object)
        bad = np.flatnonzero(((reasons != "") | ~table.ok).astype(bool))
        if len(bad) and self.invalid == "raise":
            raise _refusal(bad, table.smiles, np.where(table.ok, reasons, table.reason))
        rows = np.setdiff1d(np.arange(len(table)), bad)
        if not len(rows):
            raise InputError("none of the molecules can be read", hint="X is a sequence of SMILES")
        return table.take(rows)

    def _predicted(self, X: Any) -> Prediction:
        check_is_fitted(self, "method_")
        table = make_table(as_smiles(X))
        prediction = self.method_.predict(table)
        bad = np.flatnonzero(prediction.status != OK)
        if len(bad) and self.invalid == "raise":
            raise _refusal(bad, table.smiles, prediction.reason)
        return prediction

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.two_d_array = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


class MoleculeRegressor(RegressorMixin, _MoleculeEstimator):
    """A regression model over SMILES for scikit-learn's tools.

    Args:
        model: any registered model: ``dmpnn``, ``mpnn``, ``random_forest``, ...
        invalid: a molecule that cannot be read is an error (``"raise"``), or (``"impute"``) is left out of
            the training and predicted with the mean of the training values.
        params: the model's own parameters (``epochs=20``, ``depth=4``, ``seed=1``), which a grid search may name;
            ``descriptors="rdkit"`` gives a network what ``molgraph.train`` gives ``dmpnn`` by itself.

    Example:
        >>> from molgraph import MoleculeRegressor
        >>> smiles, y = ["C", "CC", "CCC", "CCCC"] * 3, [1.0, 2.0, 3.0, 4.0] * 3
        >>> model = MoleculeRegressor("random_forest").fit(smiles, y)
        >>> model.predict(["CCC"]).shape
        (1,)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from SMILES ``X`` [n] (or [n, 1]) and values ``y`` [n] or [n, targets].

        NaN in ``y`` is an error, as in scikit-learn; of several targets a molecule may lack some, and not all.
        """
        values = _values(y, len(as_smiles(X)))
        self._flat = np.ndim(y) == 1
        targets = tuple(Target(f"y{j}" if values.shape[1] > 1 else "y") for j in range(values.shape[1]))
        used = self._fit(X, targets, values, sample_weight)
        self.mean_, self.std_ = np.nanmean(used, axis=0), np.nanstd(used, axis=0)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Values, float64 [n], or [n, targets] where ``y`` had two dimensions.

        With ``return_std``, as scikit-learn's Gaussian processes have it, a pair of the values and their standard
        deviations; a model that gives none raises ``UnsupportedError``.
        """
        prediction = self._predicted(X)
        pairs = [(prediction.value, self.mean_)]
        if return_std:
            if prediction.spread is None:
                raise UnsupportedError(f"{self.model} gives no standard deviation", hint="a model that does: gp")
            pairs.append((prediction.spread, self.std_))
        both = [np.where(prediction.ok[:, None], values, other) for values, other in pairs]
        both = [values[:, 0] for values in both] if self._flat else both
        return tuple(both) if return_std else both[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class MoleculeClassifier(ClassifierMixin, _MoleculeEstimator):
    """A classifier over SMILES for scikit-learn's tools; labels may be any values.

    Args:
        model: any registered model.
        invalid: a molecule that cannot be read is an error (``"raise"``), or (``"impute"``) is left out of
            the training and predicted with the shares of the classes in the training data.
        params: the model's own parameters, which a grid search may name.

    Example:
        >>> from molgraph import MoleculeClassifier
        >>> smiles, y = ["C", "CC", "CO", "CCO"] * 3, ["alkane", "alkane", "alcohol", "alcohol"] * 3
        >>> model = MoleculeClassifier("random_forest").fit(smiles, y)
        >>> model.predict(["CCO"]).tolist(), model.predict_proba(["CCO"]).shape
        (['alcohol'], (1, 2))
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from SMILES ``X`` [n] (or [n, 1]) and labels ``y`` [n]; NaN is an error, as in scikit-learn."""
        self.classes_, codes = np.unique(_labels(y, len(as_smiles(X))), return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class alone: {self.classes_.tolist()}", hint="two or more are needed")
        if len(self.classes_) == 2:
            target = Target("y", "binary")
        else:
            target = Target("y", "multiclass", classes=tuple(str(c) for c in self.classes_))
        used = self._fit(X, (target,), codes[:, None], sample_weight)
        self.shares_ = np.bincount(used[:, 0].astype(np.int64), minlength=len(self.classes_)) / len(used)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, float64 [n, classes], in the order of ``classes_``."""
        prediction = self._predicted(X)
        value = prediction.value
        if len(self.classes_) == 2:
            value = np.column_stack([1 - value[:, 0], value[:, 0]])
        return np.where(prediction.ok[:, None], value, self.shares_)

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest label of each molecule, [n]."""
        check_is_fitted(self, "method_")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def as_smiles(X: Any) -> list[Any]:
    """The SMILES or RDKit molecules of a list, Series, or array of one dimension or one column."""
    if isinstance(X, str):
        raise InputError("X is one text, expected a sequence of SMILES", hint=f"write [{X!r}]")
    values = _flat(np.asarray(X, dtype=object))
    if values.ndim != 1:
        raise InputError(f"X has shape {values.shape}, expected (n,) or (n, 1)", hint="one SMILES a row")
    return values.tolist()


def _flat(values: np.ndarray) -> np.ndarray:
    """One column as an array of one dimension."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _values(y: Any, n: int) -> np.ndarray:
    """Values [n, targets], those that are missing in any of Python's ways NaN."""
    array = np.asarray(y, dtype=object)
    values = _floats(np.where(pd.isna(array), np.nan, array), "y", "for labels use MoleculeClassifier")
    if values.ndim not in (1, 2) or len(values) != n:
        raise InputError(f"y has shape {values.shape}, X has {n} molecules", hint="one row of y a molecule")
    values = values[:, None] if values.ndim == 1 else values
    _check_known(np.isnan(values).all(axis=1))
    return values


def _labels(y: Any, n: int) -> np.ndarray:
    """The labels, [n], none missing."""
    labels = _flat(y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object))
    if labels.ndim != 1 or len(labels) != n:
        raise InputError(f"y has shape {labels.shape}, expected ({n},)", hint="one label a molecule")
    _check_known(pd.isna(labels))
    if len({isinstance(label, str) for label in labels.tolist()}) > 1:
        raise InputError("y holds text and numbers", hint="labels are all text, or all numbers")
    return np.array(labels.tolist()) if labels.dtype == object else labels


def _check_known(missing: np.ndarray) -> None:
    """Refuse rows of ``y`` that teach nothing, and a ``y`` of no rows."""
    if not len(missing):
        raise InputError("X and y are empty: there is nothing to learn from", hint="give molecules and their values")
    if missing.any():
        words = f"y contains NaN: {int(missing.sum()):,} of {len(missing):,} molecules have no value"
        raise InputError(f"{words}, the first is {int(missing.argmax())}", hint="leave them out of X and y")


def _floats(values: Any, name: str, hint: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not numbers: {error}", hint=hint) from None


def _weights(sample_weight: Any, n: int) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = _floats(sample_weight, "sample_weight", "one weight a molecule")
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}, expected ({n},)", hint="one weight a molecule")
    return weights


def _refusal(bad: np.ndarray, smiles: Any, reasons: np.ndarray) -> InputError:
    first = int(bad[0])
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return InputError(
        f"molecule {first} cannot be read: {smiles[first]!r}: {reasons[first]}{more}",
        hint='invalid="impute" leaves such molecules out of the training and predicts a mean for them',
    )
