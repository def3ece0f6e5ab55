"""Any Method as a scikit-learn estimator: a sequence of SMILES and labels in, arrays out."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from molgraph.base.contracts import Method, Prediction, Target
from molgraph.base.errors import DataError, UsageError
from molgraph.data.labels import check_targets
from molgraph.data.table import OK, Table, make_table


class _MoleculeEstimator(BaseEstimator):
    """What the two adapters share: parameters by name, SMILES to a table, rows that cannot be predicted."""

    def __init__(self, model: str = "dmpnn", *, invalid: Literal["raise", "impute"] = "raise", **params: Any) -> None:
        self.model, self.invalid, self._params = model, invalid, params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """``model``, ``invalid`` and the model's parameters that were given."""
        return {"model": self.model, "invalid": self.invalid, **self._params}

    def set_params(self, **params: Any) -> Self:
        """Set ``model``, ``invalid`` or any parameter of the model; an unknown one raises ``UsageError``."""
        own = {name: params.pop(name) for name in ("model", "invalid") if name in params}
        for name, value in own.items():
            setattr(self, name, value)
        if params:
            _make(self.model, params)  # refuses a name that the model does not know
            self._params = self._params | params
        return self

    def _fit(self, X: Any, targets: tuple[Target, ...], y: np.ndarray, sample_weight: Any) -> np.ndarray:
        """Fit the method on the rows that can be read; their values of ``y`` are returned."""
        if self.invalid not in ("raise", "impute"):
            raise UsageError(f"invalid is {self.invalid!r}", hint="'raise' or 'impute'")
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        table = make_table(as_smiles(X), targets=targets, y=y, weights=weights)
        method = _make(self.model, self._params)
        readable = self._readable(table)
        for name, why in check_targets(readable).unlearned.items():  # scikit-learn has no word for half an answer
            raise DataError(f"target {name!r} cannot be learned: {why}", hint="leave that column of y out")
        self.method_ = method.fit(readable)
        self.n_features_in_ = 1
        assert readable.y is not None
        return readable.y

    def _readable(self, table: Table) -> Table:
        """The rows whose molecule can be read; with ``invalid="raise"`` the first other one is an error."""
        from molgraph.chem.smiles import parse_smiles

        reasons = np.array([parse_smiles(text).reason for text in table.smiles], dtype=object)
        bad = np.flatnonzero(((reasons != "") | ~table.ok).astype(bool))
        if len(bad) and self.invalid == "raise":
            raise _refusal(bad, table.smiles, np.where(table.ok, reasons, table.reason))
        if len(bad) == len(table):
            raise DataError("none of the molecules can be read", hint="X is a sequence of SMILES")
        return table.take(np.setdiff1d(np.arange(len(table)), bad))

    def _predicted(self, X: Any) -> Prediction:
        check_is_fitted(self, "method_")
        smiles = as_smiles(X)
        prediction = self.method_.predict(make_table(smiles))
        bad = np.flatnonzero(prediction.status != OK)
        if len(bad) and self.invalid == "raise":
            raise _refusal(bad, smiles, prediction.reason)
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
        params: the model's own parameters (``epochs=20``, ``depth=4``, ``seed=1``), which a grid search may name.

    Example:
        >>> from molgraph import MoleculeRegressor
        >>> smiles, y = ["C", "CC", "CCC", "CCCC"] * 3, [1.0, 2.0, 3.0, 4.0] * 3
        >>> model = MoleculeRegressor("random_forest").fit(smiles, y)
        >>> model.predict(["CCC"]).shape
        (1,)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from SMILES ``X`` [n] (or [n, 1]) and values ``y`` [n] or [n, targets]; NaN is a missing value."""
        values = _values(y, len(as_smiles(X)))
        self._flat = np.ndim(y) == 1
        targets = tuple(Target(f"y{j}" if values.shape[1] > 1 else "y") for j in range(values.shape[1]))
        self.mean_ = np.nanmean(self._fit(X, targets, values, sample_weight), axis=0)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Values, float64 [n], or [n, targets] where ``y`` had two dimensions."""
        prediction = self._predicted(X)
        value = np.where(prediction.ok[:, None], prediction.value, self.mean_)
        return value[:, 0] if self._flat else value

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
        """Learn from SMILES ``X`` [n] (or [n, 1]) and labels ``y`` [n]."""
        labels = np.asarray(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1 or len(labels) != len(as_smiles(X)):
            raise DataError(f"y has shape {labels.shape}, expected ({len(as_smiles(X))},)", hint="one label a molecule")
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise DataError(f"y has one class alone: {self.classes_.tolist()}", hint="two or more are needed")
        if len(self.classes_) == 2:
            target = Target("y", "binary")
        else:
            target = Target("y", "multiclass", classes=tuple(str(c) for c in self.classes_))
        used = self._fit(X, (target,), codes.astype(np.float64)[:, None], sample_weight)
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
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def as_smiles(X: Any) -> list[Any]:
    """The SMILES of a list, Series, or array of one dimension or one column."""
    if isinstance(X, str):
        raise DataError("X is one text, expected a sequence of SMILES", hint=f"write [{X!r}]")
    values = np.asarray(X, dtype=object)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"X has shape {values.shape}, expected (n,) or (n, 1)", hint="one SMILES a row")
    return values.tolist()


def _make(model: str, params: dict[str, Any]) -> Method:
    from molgraph.train.method import make_method

    return make_method(model, **params)


def _values(y: Any, n: int) -> np.ndarray:
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y is not numbers: {error}", hint="for labels use MoleculeClassifier") from None
    if values.ndim not in (1, 2) or len(values) != n:
        raise DataError(f"y has shape {values.shape}, X has {n} molecules", hint="one row of y a molecule")
    return values.reshape(n, -1)


def _refusal(bad: np.ndarray, smiles: Any, reasons: np.ndarray) -> DataError:
    first = int(bad[0])
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    return DataError(
        f"molecule {first} cannot be read: {smiles[first]!r}: {reasons[first]}{more}",
        hint='invalid="impute" leaves such molecules out of the training and predicts a mean for them',
    )
