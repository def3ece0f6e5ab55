"""A number that no fit can have is refused in a sentence, before anything is read, for whatever is registered."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from molgraph.base import registry
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, MolgraphError, UnknownNameError, UsageError
from molgraph.base.parameters import type_hints
from molgraph.base.ranges import HUGE, Range
from molgraph.data.batch import collate
from molgraph.data.table import Table, make_table
from molgraph.train.inputs import featuriser_of
from molgraph.train.make_method import make_method
from molgraph.train.network import encoder_params
from tests.contract.members import two_of
from tests.contract.test_methods import NAMES as METHODS
from tests.contract.test_methods import readable, small

NAMES = sorted({*METHODS, *registry.names("encoder")} - {"mean"})
ODD: tuple[float, ...] = (-1, 0, 10**12, 1e300, -0.5, 1.5)
SECONDS = 60  # for one fit of twelve rows
#: smaller still, where a method has the parameter: a trial fits it some hundred times
SMALLER = {"epochs": 1, "n_estimators": 2, "iterations": 2, "steps": 2, "n_bits": 64, "features": "morgan"}
TREES = {"method": "random_forest", "n": 2, "params": {"n_estimators": 2, "n_bits": 64, "features": "morgan"}}


def smallest(name: str) -> dict[str, Any]:
    """Hyper-parameters of the quickest fit."""
    if name == "ensemble":
        return TREES
    known = make_method(name, **small(name)).param_names()
    return {**small(name), **{key: value for key, value in SMALLER.items() if key in known}}


def numeric(name: str) -> dict[str, Any]:
    """Every parameter that takes a number, of a method or of an encoder and its training."""
    kinds = [registry.get(kind, name) for kind in ("method", "encoder") if name in registry.names(kind)]
    kinds += [registry.get("method", "graph")] * (name in registry.names("encoder"))
    hints = {key: hint for cls in kinds for key, hint in type_hints(cls).items() if key not in ("return", "spec")}
    return {key: hint for key, hint in hints.items() if {int, float} & {*leaves(hint)}}


def leaves(hint: Any) -> list[Any]:
    """The plain types and the ranges within an annotation."""
    parts = getattr(hint, "__metadata__", ()) + get_args(hint)
    return [hint] if not parts else [leaf for part in parts for leaf in leaves(part)]


def tiny(kind: str) -> Table:
    target = Target("y") if kind == "regression" else Target("y", "binary")
    y = np.arange(12) if kind == "regression" else np.arange(12) % 2
    return make_table([f"{'C' * n}O" for n in range(1, 13)], targets=(target,), y=y)


def numbers(hint: Any) -> list[float]:
    """Odd numbers for a parameter, and the ends of its range where they cost little."""
    edges = [edge for r in leaves(hint) if isinstance(r, Range) for edge in (r.low, r.high)]
    tried = [*ODD, *(edge for edge in edges if edge < 100 or int not in leaves(hint))]
    return tried if int in leaves(hint) else [float(value) for value in tried]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*METHODS} - {"mean"}))
def test_every_number_works_or_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    cls = registry.get("method", name if name in registry.names("method") else "graph")
    for library in cls.needs if isinstance(cls.needs, tuple) else ():  # a wrapper needs what its method needs
        pytest.importorskip(library)
    table, faults = readable(tiny("regression"), name), []
    for key, hint in numeric(name).items():
        for value in numbers(hint):
            settings = {**smallest(name), key: value}
            settings |= {"store": str(tmp_path)} if name == "maplight" else {}  # its descriptors take the longest
            started = time.perf_counter()
            try:
                make_method(name, **settings).fit(table).predict(table)
            except MolgraphError as error:
                if isinstance(error, UsageError) and key not in error.message:
                    faults.append(f"{key}={value}: {error.message}")
            except Exception as error:
                faults.append(f"{key}={value}: {type(error).__name__}: {str(error)[:80]}")
            if time.perf_counter() - started > SECONDS:
                faults.append(f"{key}={value}: {time.perf_counter() - started:.0f} s")
    assert not faults


@pytest.mark.parametrize("name", sorted({*registry.names("encoder")} - {*two_of("GraphMethod")}))
def test_every_number_of_an_encoder_works_or_is_refused_in_a_sentence(name: str) -> None:
    """Its own numbers alone, in one step: those of the training around it are tried with two encoders above."""
    make = registry.get("encoder", name)
    featuriser = featuriser_of(name, make.reads[0])
    store, faults = featuriser.featurise(featuriser.examples[:3]), []
    for key, hint in numeric(name).items():
        for value in numbers(hint) if key in encoder_params(name) else ():
            settings = {**make.small, key: value}
            try:
                make_method(name, params=settings)
                made = make(store.spec, **settings).train()(collate(store, np.arange(len(store)))).graphs
                made.sum().backward()
                if not made.isfinite().all():
                    faults.append(f"{key}={value}: not finite")
            except (UsageError, ValueError) as error:  # a fit makes the second into the first
                if key not in str(error):
                    faults.append(f"{key}={value}: {error}")
            except Exception as error:
                faults.append(f"{key}={value}: {type(error).__name__}: {str(error)[:80]}")
    assert not faults


@pytest.mark.parametrize("name", NAMES)
def test_every_number_declares_its_range(name: str) -> None:
    bare = [key for key, hint in numeric(name).items() if not any(isinstance(leaf, Range) for leaf in leaves(hint))]
    assert {*bare} <= {"seed", "threads", "class_weights"}  # any seed; the machine's cores; their own check


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        (
            "random_forest",
            {"n_bits": 100},
            "n_bits is 100, expected a whole number from 8 to 1,048,576, a multiple of 8",
        ),
        (
            "random_forest",
            {"min_samples_leaf": 0},
            "min_samples_leaf is 0, expected a whole number from 1 to .* or a number",
        ),
        ("knn", {"radius": 10**12}, "radius is 1000000000000, expected a whole number from 0 to 16"),
        ("xgboost", {"subsample": 2}, "subsample is 2, expected a number from 1e-06 to 1"),
        ("svm", {"cost": 1e9}, "cost is .*, expected a number above 0 and up to 1,000,000"),
        ("knn", {"power": HUGE * 10}, r"power is .*, expected a number from 0 to 1e\+30"),
        ("dmpnn", {"dropout": 1.5}, "dropout is 1.5, expected a number from 0 to 1"),
        ("ensemble", {"n": 0}, "n is 0, expected a whole number from 1 to 1,000"),
    ],
)
def test_the_sentence_names_what_is_allowed(name: str, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(BadValueError, match=f"{name}: {words}"):
        make_method(name, **wrong)


def test_a_fit_checks_what_a_constructor_or_set_params_was_given() -> None:
    forest = registry.get("method", "random_forest")
    with pytest.raises(BadValueError, match="n_bits is 100"):
        forest(n_bits=100).fit(tiny("regression"))
    with pytest.raises(BadValueError, match="radius is -1"):
        forest().set_params(radius=-1).fit(tiny("regression"))


def test_typing_errors_are_answered_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="'dmpnn'"):
        make_method("dmpn")
    with pytest.raises(UnknownNameError, match="'depth'"):
        make_method("dmpnn", dept=3)
    with pytest.raises(UnknownNameError, match="'epochs'"):
        make_method("dmpnn", epoch=3)
    assert make_method("dmpnn", depth=2, params={"d_hidden": 9}).params == {"depth": 2, "d_hidden": 9}
