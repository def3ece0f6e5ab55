"""The contracts between the layers: the base classes of methods and generators, and the predictions they return."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np

from molgraph.base import registry
from molgraph.base.errors import BadValueError
from molgraph.base.finite import check_finite
from molgraph.base.latents import Latents as Latents
from molgraph.base.metric import Metric as Metric
from molgraph.base.parameters import check_names, check_params
from molgraph.base.parts import part_names, with_older
from molgraph.base.prediction import Prediction as Prediction
from molgraph.base.search_space import Space
from molgraph.base.seeds import generator
from molgraph.base.table import Kind as Kind
from molgraph.base.table import Table
from molgraph.base.table import Target as Target

if TYPE_CHECKING:
    import pandas as pd

RUN_ONLY = ("device", "devices", "strategy", "threads", "predict_batch", "checkpoint_seconds", "store")


@dataclass(frozen=True)
class State:
    """A fitted method without pickle: named arrays and plain JSON values.

    Every model passes here when it is written and when it is read, so weights that are not finite are refused here.

    Raises:
        MolgraphError: an array holds NaN or infinity.
    """

    arrays: Mapping[str, np.ndarray]
    meta: Mapping[str, Any]

    def __post_init__(self) -> None:
        check_finite(self.arrays)

    def by_owner(self) -> dict[str, dict[str, np.ndarray]]:
        """The arrays of each part, under the part's name, which ends at the first dot.

        Example:
            >>> State({"fill": np.ones(1), "member-0.w.a": np.ones(2)}, {}).by_owner()
            {'': {'fill': array([1.])}, 'member-0': {'w.a': array([1., 1.])}}
        """
        owned: dict[str, dict[str, np.ndarray]] = {}
        for name, value in self.arrays.items():
            owner, dot, rest = name.partition(".")
            owned.setdefault(owner if dot else "", {})[rest if dot else name] = value
        return owned


class Trainable(ABC):
    """The base class of methods and generators: something with hyper-parameters that learns from a table.

    Hyper-parameters are the constructor's keyword arguments, kept under the same names, as scikit-learn has it.

    After ``fit``, ``notes`` say what a person should know. ``uses_valid``: whether ``fit`` learns from its ``valid``
    (else those rows may go to ``table``). ``gradient_descent``: whether its ``learning_rate`` and the like are a
    recipe's (``base.recipe_keys``). ``needs``: the importable names of libraries that molgraph does not install.
    ``run_only``: parameters of the machine at hand, whose values in a model file are dropped on load. ``members``: the
    methods whose predictions it combines. ``curves``: losses by epoch after ``fit``, where it has epochs.
    ``n_learned``: after ``fit`` how many rows of both tables were learned from, where that is not all that were given.
    ``learns_limits``: whether it learns ``Table.limits``. ``reads_features``: whether it reads a table's features.
    ``small``: hyper-parameters of one that fits in a blink, for trials. ``older``: names that were hyper-parameters and
    are settings of a part now: its kind, and the hyper-parameter that names it (``base.parts.with_older``).
    """

    name: str = ""
    notes: tuple[str, ...] = ()
    uses_valid: bool = False
    reads_features: bool = True
    learns_limits: bool = False
    gradient_descent: bool = False
    needs: tuple[str, ...] = ()
    run_only: tuple[str, ...] = RUN_ONLY
    members: Sequence[Trainable] = ()
    curves: pd.DataFrame | None = None
    n_learned: tuple[int, int] | None = None
    small: Mapping[str, Any] = MappingProxyType({})
    older: Mapping[str, tuple[str, str]] = MappingProxyType({})

    @property
    def model_name(self) -> str:
        """The name of the model that it fits: its own, unless it fits models of many names."""
        return self.name

    @property
    def title(self) -> str:
        """What it is in words, such as ``ensemble of 5 dmpnn``."""
        return self.model_name

    @property
    def with_members(self) -> tuple[Trainable, ...]:
        """The thing itself, then its members, each with its own."""
        return (self, *(part for member in self.members for part in member.with_members))

    @property
    def innermost(self) -> tuple[Trainable, ...]:
        """Those of them that have no members."""
        return tuple(part for part in self.with_members if not part.members)

    @abstractmethod
    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Learn from ``table``; ``valid`` stops early and picks weights; ``workdir`` keeps what a resume needs."""

    @abstractmethod
    def state(self) -> State:
        """Everything that prediction or sampling needs, as arrays and JSON."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild what was fitted; raise ``ModelFileError`` where the state is not whole."""

    def space(self) -> Space:
        """Hyper-parameters that a search may try, each with its range; nothing by default."""
        return {}

    def sizes(self) -> Space:
        """Further ones that the speed of ``predict`` hangs on, for a search that weighs it; nothing by default."""
        return {}

    @classmethod
    def param_names(cls) -> tuple[str, ...]:
        """Names of the hyper-parameters: the constructor's keyword arguments."""
        return tuple(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Hyper-parameters by name."""
        return {name: getattr(self, name) for name in self.param_names()}

    def named_parts(self) -> dict[str, Any]:
        """The registered encoders, joiners, objectives, callbacks and views that its hyper-parameters name, by name."""
        params = self.get_params()
        asked = {kind: params.get(kind) for kind in ("encoder", "joiner", "objective", "callback")}
        asked["view"] = params.get("views")
        names = [(kind, name) for kind, text in asked.items() if isinstance(text, str) for name in part_names(text)]
        return {name: registry.get(kind, name) for kind, name in names if name in registry.names(kind)}

    def code_parts(self) -> tuple[Any, ...]:
        """The classes and functions whose code its results depend on."""
        return (type(self), *self.named_parts().values())

    def resolved_params(self) -> dict[str, Any]:
        """Hyper-parameters by name, with those of its members, and the defaults of the encoders and the like it names.

        A benchmark's cell depends on them.
        """
        params, defaults = self.get_params(), {}
        for name, part in self.named_parts().items():
            known = inspect.signature(part.__init__).parameters.values()
            defaults[name] = {p.name: p.default for p in known if p.default is not p.empty}
        members = [member.resolved_params() for member in self.members]
        return {**params, **({"defaults": defaults} if defaults else {}), **({"members": members} if members else {})}

    def set_params(self, **params: Any) -> Self:
        """Set hyper-parameters by name; an unknown name raises ``UnknownNameError``; ``fit`` checks the values."""
        check_names(type(self), params)
        named = {owner: getattr(self, owner) for _, owner in self.older.values()}
        for name, value in with_older({**named, **params}, self.older).items():
            setattr(self, name, value)
        return self

    def check_params(self) -> None:
        """Raise ``BadValueError`` for a hyper-parameter of another type or range than the constructor declares."""
        check_params(type(self), self.get_params(), owner=self.name)


class Method(Trainable):
    """Anything that learns from a table and predicts one row for each row of another.

    ``predicts``: False for a pretrained encoder, whose "predictions" are states. ``held_out``: after ``fit`` what it
    predicts of rows that were not learnt from. ``follows_split``: whether ``split`` is that of the test part.
    """

    predicts: bool = True
    held_out: Any = None
    follows_split: bool = False

    @abstractmethod
    def predict(self, table: Table) -> Prediction:
        """Predict every row of ``table``, in order; NaN and a reason where there is no value."""


class Generator(Trainable):
    """Anything that learns from a table of molecules and proposes new ones."""

    @abstractmethod
    def sample(self, n: int, seed: int = 0) -> list[str]:
        """Propose ``n`` SMILES, not all of which need be molecules; the same seed gives the same list.

        Raises:
            UsageError: nothing was learned yet, or a hyper-parameter of sampling has an impossible value.
        """

    def pieces(self, n: int, seed: int = 0) -> Iterator[list[str]]:
        """The texts of ``sample`` in pieces, each as soon as it is drawn, which a run that is stopped keeps."""
        yield self.sample(n, seed)


class LatentGenerator(Generator):
    """A generator with a latent space, whose prior is a standard normal distribution."""

    @property
    @abstractmethod
    def d_latent(self) -> int:
        """Width of a latent vector."""

    @abstractmethod
    def encode(self, table: Table) -> Latents:
        """The posterior of each row's molecule; a row that has none, such as one outside the vocabulary, a reason."""

    @abstractmethod
    def decode(self, z: np.ndarray, seed: int = 0) -> list[str]:
        """A SMILES for each latent vector, in order, drawn at the generator's ``temperature``.

        A row's text depends on its vector, its place and the seed, not on how many rows there are.

        Args:
            z: float [n, d_latent].

        Raises:
            UsageError: vectors of another width, or values that are not finite; nothing was learned yet.
        """

    def decode_pieces(self, z: np.ndarray, seed: int = 0) -> Iterator[list[str]]:
        """The texts of ``decode`` in pieces, each as soon as it is drawn; one piece by default."""
        yield self.decode(z, seed)

    def prior_vectors(self, n: int, seed: int = 0) -> np.ndarray:
        """float [n, d_latent]: vectors of the prior, the first the same whatever n is."""
        if n < 0:
            raise BadValueError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        return generator(seed, "prior").standard_normal((n, self.d_latent))

    def sample(self, n: int, seed: int = 0) -> list[str]:
        """Decode ``n`` vectors of the prior."""
        return self.decode(self.prior_vectors(n, seed), seed)

    def pieces(self, n: int, seed: int = 0) -> Iterator[list[str]]:
        """The same in pieces."""
        return self.decode_pieces(self.prior_vectors(n, seed), seed)

    def around(self, point: np.ndarray, n: int, spread: float = 0.5, seed: int = 0) -> np.ndarray:
        """float [n, d_latent]: points near one, ``point + spread * epsilon``, the first the same whatever n is.

        Args:
            point: float [d_latent].
            n: how many.
            spread: how far, in standard deviations of the prior.
            seed: the same seed gives the same points.
        """
        centre = self.check_latents(np.atleast_2d(point))
        return centre + spread * generator(seed, "around").standard_normal((n, self.d_latent))

    def check_latents(self, z: np.ndarray) -> np.ndarray:
        """The vectors as float64 [n, d_latent]; ``UsageError`` where they are none."""
        z = np.asarray(z, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != self.d_latent:
            words = f"latent vectors have the shape {[*z.shape]}, expected [n, {self.d_latent}]"
            raise BadValueError(words, hint="give vectors that this model's encode made")
        if wrong := np.flatnonzero(~np.isfinite(z).all(axis=1)).tolist():
            raise BadValueError(f"latent vector {wrong[0]} (counted from 0) holds a value that is not finite")
        return z


@runtime_checkable
class PredictsGraphs(Protocol):
    """A method that predicts a table whose graphs are made already."""

    def predict_graphs(self, table: Table, graphs: Any) -> Prediction:
        """Predict every row of ``table``; ``graphs`` are those of each of ``graph_inputs()``."""

    def graph_inputs(self) -> tuple[Any, ...]:
        """The entity columns that are read (``molgraph.train.inputs.Input``); none where graphs cannot be shared."""


@runtime_checkable
class SamplesUnchecked(Protocol):
    """A generator that checks the chemistry of what it draws, and can leave the check out."""

    def sample_unchecked(self, n: int, seed: int = 0) -> list[str]:
        """``n`` SMILES drawn without the check, for the validity before it."""
