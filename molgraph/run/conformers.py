"""Wrap a model of atoms in space in ``conformers`` where a configuration asks for conformers from SMILES."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import Method
from molgraph.base.errors import ConflictError, UnsupportedError, UnusedSettingError
from molgraph.base.parts import split_model
from molgraph.base.recipe_keys import DataSection
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.train.inputs import encoder_names
from molgraph.train.make_method import method_class
from molgraph.trust.conformers import MadeConformers
from molgraph.trust.ensemble import Ensemble
from molgraph.trust.wrapper import Wrapper


def with_conformers(config: RunConfig, name: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A model's name and parameters, with ``conformers`` around its encoder, or around the ensemble of it.

    Raises:
        ConflictError: positions are given too, or the model makes its conformers by itself.
        UnusedSettingError: a relaxation without conformers.
        UnsupportedError: a model that reads no atoms in space.
    """
    data = config.data
    if data.conformers is None:
        if data.relax != DataSection().relax:
            words = f"relax={data.relax} is of conformers, and none are made"
            raise UnusedSettingError(words, hint="add --conformers 1 (in Python conformers=1)")
        return name, params
    if data.geometry:
        words = f"positions are read from {data.geometry!r}, and --conformers {data.conformers} would make others"
        raise ConflictError(words, hint="leave one of them out")
    return _around(name, params, {"conformers": data.conformers, "relax": data.relax})


def wrapped(cls: type[Wrapper], params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name and the parameters of what a wrapper of these parameters is around."""
    default = inspect.signature(cls).parameters["method"].default
    return str(params.get("method", default)), params.get("params") or {}


def _around(name: str, params: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name, arguments = split_model(name, params)
    cls: type[Method] = method_class(name)
    if cls is MadeConformers:
        raise ConflictError(f"{name} makes conformers by itself", hint="leave --conformers out")
    if issubclass(cls, Wrapper) and cls is not Ensemble:
        method, inner = _around(*wrapped(cls, arguments), settings)
        return name, {**arguments, "method": method, "params": inner}
    _check_reads(name, arguments)
    return MadeConformers.name, {"method": name, "params": arguments, **settings}


def _check_reads(name: str, params: Mapping[str, Any]) -> None:
    cls: type[Method] = method_class(name)
    if issubclass(cls, Wrapper):
        return _check_reads(*split_model(*wrapped(cls, params)))
    encoders = encoder_names(name) if name not in names("method") else (str(params.get("encoder", "")),)
    reads = {encoder: get("encoder", encoder).reads for encoder in names("encoder")}
    if any("geometry" not in reads.get(encoder, ()) for encoder in encoders):
        able = ", ".join(encoder for encoder, kinds in reads.items() if "geometry" in kinds)
        words = f"{name} reads no atoms in space, so it has no use for conformers"
        raise UnsupportedError(words, hint=f"leave --conformers out, or take {able}")
