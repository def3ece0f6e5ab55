"""Define ``Oracle``: a score of each molecule, which a search makes better."""

from __future__ import annotations

import ast
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.errors import FormatError, MissingOptionError, UnknownNameError, UnusedSettingError
from molgraph.base.import_path import load_object
from molgraph.base.parameters import check_params
from molgraph.base.paths import missing_file, storage_error
from molgraph.base.registry import get


class Scores(NamedTuple):
    """The scores of a list of molecules, in order.

    Args:
        value: float64 [n], NaN where there is none.
        reason: object [n], why there is none; empty where there is one.
    """

    value: np.ndarray
    reason: np.ndarray

    @property
    def ok(self) -> np.ndarray:
        """bool [n], whether each has a score."""
        return np.isfinite(self.value)


class Oracle(ABC):
    """The base class of oracles: pure, so that the same SMILES always has the same score and may be cached.

    A subclass is registered with ``@register("oracle", name)``; its parameters are the constructor's arguments, of
    which the first one may be written in brackets: ``similarity(CCO)``.

    ``better``: 1 where a higher score is better, -1 where a lower one is. ``scale``: a typical difference between two
    molecules, in which distances from bounds are counted. ``step``: the smallest difference, 1 for a count.
    ``small``: parameters for trials.
    ``batched``: whether many molecules are scored in one call; where not, each call is bounded in time by itself.
    ``free``: whether a score is read off the structure at once, so that its bounds are checked before a call is spent.
    ``unit``: whether every score lies from 0 to 1, and higher is better, as a product of oracles needs.
    ``time_limit``: seconds that it gives each molecule itself, which a caller's limit then does not cut short; 0 where
    it leaves the limit to its caller.
    ``cautious``: whether scores are made worse on purpose where they are in doubt, which a weight below 0 would reward.
    ``shard``: molecules that a process of a cluster is given at once; one where it is not ``batched``.
    ``version``: changes whenever the scores would; an oracle outside molgraph has its calls kept where it names one.
    """

    name: str = ""
    better: int = 1
    scale: float = 1.0
    step: float = 0.0
    batched: bool = True
    free: bool = False
    unit: bool = False
    time_limit: float = 0.0
    cautious: bool = False
    shard: int = 16
    small: Mapping[str, Any] = MappingProxyType({})
    version: str = ""

    @property
    def content(self) -> str:
        """What the scores depend on, equal for equal oracles: version and parameters, or hashes of files.

        It is empty where nothing tells; then calls are not kept from run to run.
        """
        values = {name: getattr(self, name, ...) for name in parameters_of(type(self))}
        versioned = self.version or type(self).__module__.startswith("molgraph.")
        plain = all(isinstance(v, str | int | float | None) for v in values.values())
        return f"{self.version}{values}" if versioned and plain else ""

    @abstractmethod
    def score(self, smiles: Sequence[str]) -> Scores:
        """The score of each SMILES; NaN and a reason where it has none."""

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what still runs for it, as processes; it may be asked again afterwards."""


class FunctionOracle(Oracle):
    """An oracle from a function of one SMILES, asked one molecule at a time.

    Args:
        function: ``SMILES -> number``.
        name: what its column is called.
        version: what its scores depend on, as ``"vina 1.2, receptor 7KK3"``. It must change whenever the scores would;
            where it is given, calls are kept from run to run.

    Example:
        >>> FunctionOracle(len, "letters").score(["CCO", "C"]).value.tolist()
        [3.0, 1.0]
    """

    batched = False

    def __init__(self, function: Callable[[str], float], name: str = "", version: str = "") -> None:
        self.function, self.name = function, name or getattr(function, "__name__", "objective")
        self.version = version

    @property
    def content(self) -> str:
        """The version; empty where none is given: a function's code does not tell all that its scores depend on."""
        return self.version

    def score(self, smiles: Sequence[str]) -> Scores:
        """The function's value of each SMILES; what it raises is the caller's to handle."""
        value = np.array([float(self.function(text)) for text in smiles], dtype=np.float64)
        return Scores(value, reasons_of(value))


def reasons_of(value: np.ndarray) -> np.ndarray:
    """object [n]: the words for scores that are no numbers."""
    return np.array(["" if np.isfinite(v) else f"the score is {v}" for v in value], dtype=object)


def oracle_at(path: str, *argument: Any, **params: Any) -> Oracle:
    """The oracle, or the function of one SMILES, that an import path names; calls are kept while its file is the same.

    Args:
        path: ``module:object``, ``FILE.py:object``, or ``FILE.py`` of its function ``score`` or its only one.
        argument, params: of an oracle's class.
    """
    if path.endswith(".py"):
        path = f"{path}:{_only_function(path)}"
    obj = load_object(path)
    if isinstance(obj, type) and issubclass(obj, Oracle):
        return make_of(obj, path, *argument, **params)
    if argument or params:
        raise UnusedSettingError(f"{path!r} takes nothing in brackets", hint="only a class that is an Oracle does")
    if isinstance(obj, Oracle):
        return obj
    file = inspect.getsourcefile(inspect.unwrap(obj)) if inspect.isfunction(obj) else None
    version = f"{path} {sha256(Path(file).read_bytes()).hexdigest()[:16]}" if file else ""
    return FunctionOracle(obj, path.rpartition(":")[2], version)


def _only_function(path: str) -> str:
    """The name of the function in a file that scores: ``score``, else the only public one that it defines."""
    try:
        body = ast.parse(Path(path).read_bytes()).body
    except FileNotFoundError:
        raise missing_file(path, "file of the oracle") from None
    except OSError as error:
        raise storage_error(f"cannot read {path}", error) from error
    except (SyntaxError, ValueError) as error:
        raise FormatError(f"{path} is no Python: {error}", hint="try it with python first") from error
    names = [node.name for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    if "score" in names or len(names) == 1:
        return "score" if "score" in names else names[0]
    words = f"{path} has {len(names)} functions" if names else f"{path} has no function"
    raise MissingOptionError(words, hint=f"name one of one SMILES, as in {path}:{names[0] if names else 'score'}")


def oracle_class(name: str) -> type[Oracle] | None:
    """The class of oracles that a registered name or an import path names; None of a function's path."""
    if name.endswith(".py"):
        return None
    obj = load_object(name) if ":" in name else get("oracle", name)
    return obj if isinstance(obj, type) and issubclass(obj, Oracle) else None


def make_oracle(name: str, *argument: Any, **params: Any) -> Oracle:
    """A registered oracle.

    Args:
        name: its name; that of a file which ends in .mgm stands for the model in it.
        argument: the value of its first parameter, if any.
        params: others by name.

    Raises:
        UsageError: no such oracle, or parameters that it does not have.

    Example:
        >>> make_oracle("qed").score(["CCO"]).value.round(3).tolist()
        [0.407]
    """
    if name.endswith(".mgm"):
        return make_oracle("model", name, **params)
    try:
        cls = get("oracle", name)
    except UnknownNameError:
        if Path(f"{name}.py").is_file():
            words = f"no oracle is named {name!r}"
            raise UnknownNameError(words, hint=f"of the file that is here: ./{name}.py:FUNCTION") from None
        raise
    return make_of(cls, name, *argument, **params)


def make_of(cls: type[Oracle], name: str, *argument: Any, **params: Any) -> Oracle:
    """An oracle of a class; ``name``: what a person wrote, for messages."""
    wanted = [*parameters_of(cls)]
    if len(argument) > len(wanted):
        raise UnusedSettingError(f"the oracle {name!r} takes no argument in brackets", hint=f"write {name}")
    params = dict(zip(wanted, argument, strict=False)) | params
    check_params(cls, params, owner=name)
    if missing := [key for key, needed in parameters_of(cls).items() if needed and key not in params]:
        hint = f"as in {name}({missing[0].upper()})"
        raise MissingOptionError(f"the oracle {name!r} needs a {missing[0]}", hint=hint)
    return cls(**params)


def parameters_of(cls: type) -> dict[str, bool]:
    """The names of an oracle's parameters, in order, and whether each must be given."""
    known = inspect.signature(cls).parameters.values()
    return {p.name: p.default is p.empty for p in known if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
