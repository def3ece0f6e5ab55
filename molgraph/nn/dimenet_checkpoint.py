"""Load published weights of DimeNet and DimeNet++, of PyG's networks or of the authors' TensorFlow code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from molgraph.base.errors import CannotReadError, FormatError, MissingFileError
from molgraph.base.registry import get
from molgraph.data.featurize_geometry import WATER, Geometries
from molgraph.nn.directional import Directional

_OF_TENSORFLOW = {
    "rbf_layer": "rbf", "frequencies": "freq", "emb_block": "emb", "embeddings": "emb.weight",
    "int_blocks": "interaction_blocks", "dense_layers": "lins", "dense_final": "lin", "final_before_skip": "lin",
    "bilinear": "W", "kernel": "weight", "up_projection": "lin_up", "down_projection": "lin_down", "dense": "lin",
    "dense_1": "lin1", "dense_2": "lin2",
}  # fmt: skip
_WHOLE = {"rbf": "radial", "emb": "", "output_blocks": "outputs", "interaction_blocks": "blocks"}
_PARTS = {
    "rbf": {"freq": "frequencies"},
    "emb": {"emb": "embed", "lin_rbf": "embed_radial", "lin": "embed_pair"},
    "output_blocks": {"lin_rbf": "gate", "lin_up": "up", "lins": "layers", "lin": "last"},
    "interaction_blocks": {
        "lin_rbf": "radial", "lin_rbf1": "radial.0", "lin_rbf2": "radial.1", "lin_sbf": "spherical",
        "lin_sbf1": "spherical.0", "lin_sbf2": "spherical.1", "lin_kj": "send", "lin_ji": "keep", "lin_down": "down",
        "lin_up": "up", "W": "bilinear", "layers_before_skip": "refine.before", "lin": "refine.middle",
        "layers_after_skip": "refine.after", "lin1": "first", "lin2": "second",
    },
}  # fmt: skip
_NOT_ONE = "a state dict of PyG's DimeNet or DimeNetPlusPlus (.pt), or the authors' variables by name (.npz)"


def load_dimenet(
    path: str | os.PathLike[str], *, cutoff_angstrom: float = 5.0, envelope_exponent: int = 5
) -> Directional:
    """Build the encoder that a file of published weights is of, and load them.

    The sum over a molecule's atoms is its property, in the file's unit: the authors' of QM9 have one property each, in
    debye, bohr^3, bohr^2, eV and cal/(mol K).

    Args:
        path: a ``.pt`` file with the state dict of PyG's network, read without running code; or an ``.npz`` file of the
            variables of the authors' checkpoint by name, such as ``int_blocks/0/dense_ji/kernel``.
        cutoff_angstrom, envelope_exponent: of the network, which no file holds.

    Returns:
        An encoder of geometries whose ``graphs`` are float [molecules, properties]; elements that the file has no
        embedding of have zeros.

    Raises:
        MissingFileError: no such file.
        FormatError: other weights, or a part of them; the message names one that is missing or has another shape.
    """
    weights = _read(path)
    try:
        network = _network(weights, cutoff_angstrom, envelope_exponent)
    except (KeyError, IndexError, ZeroDivisionError) as error:
        words = f"{os.fspath(path)} holds no weights of DimeNet ({error})"
        raise FormatError(words, hint=f"give {_NOT_ONE}") from error
    known = dict(network.named_parameters())
    state = {name: value for key, value in weights.items() if (name := _own_name(key)) in known}
    if missing := sorted(known.keys() - state.keys()):
        raise FormatError(f"{os.fspath(path)} lacks the weight {missing[0]}", hint=f"give {_NOT_ONE}, whole")
    table = torch.zeros_like(known["embed.weight"])
    table[:, : len(state["embed.weight"])] = state["embed.weight"].t()[:, : table.shape[1]]
    for name, value in {**state, "embed.weight": table}.items():
        if value.shape != known[name].shape:
            wrong = f"{name} of the shape {[*value.shape]}, where {[*known[name].shape]} fits the others"
            raise FormatError(f"{os.fspath(path)} has the weight {wrong}", hint=f"give {_NOT_ONE}")
        known[name].data.copy_(value)
    return network


def _network(weights: Mapping[str, Tensor], cutoff_angstrom: float, envelope_exponent: int) -> Directional:
    """The network of the weights' sizes."""
    first, count = "interaction_blocks.0.", _counter(weights)
    bilinear, n_radial = weights.get(f"{first}W"), len(weights["rbf.freq"])
    sizes: dict[str, Any] = {
        "d_hidden": len(weights["emb.lin.bias"]),
        "depth": count("interaction_blocks.", 1),
        "d_atom": len(weights["output_blocks.0.lin.weight"]),
        "n_radial": n_radial,
        "n_before_skip": count(f"{first}layers_before_skip.", 3),
        "n_after_skip": count(f"{first}layers_after_skip.", 3),
        "n_output_layers": count("output_blocks.0.lins.", 3),
        "cutoff_angstrom": cutoff_angstrom,
        "envelope_exponent": envelope_exponent,
    }
    spherical = weights[f"{first}lin_sbf.weight" if bilinear is not None else f"{first}lin_sbf1.weight"]
    sizes["n_spherical"] = spherical.shape[1] // n_radial
    if bilinear is not None:
        name, sizes["n_bilinear"] = "dimenet", bilinear.shape[1]
    else:
        name, sizes["d_basis"] = "dimenet_plus_plus", len(spherical)
        sizes["d_interaction"] = len(weights[f"{first}lin_down.weight"])
        sizes["d_output"] = len(weights["output_blocks.0.lin_up.weight"])
    network: Directional = get("encoder", name)(Geometries().featurise([WATER]).spec, **sizes)
    return network


def _counter(weights: Mapping[str, Tensor]) -> Callable[[str, int], int]:
    """A function that counts the layers whose names begin alike, by the number at a place of them."""
    return lambda start, place: len({name.split(".")[place] for name in weights if name.startswith(start)})


def _read(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The weights of a file by PyG's names."""
    if not os.path.isfile(path):
        raise MissingFileError(f"{os.fspath(path)} is not there", hint=f"give the path of {_NOT_ONE}")
    try:
        if os.fspath(path).endswith(".npz"):
            with np.load(path, allow_pickle=False) as file:
                return dict(_of_tensorflow(name, file[name]) for name in file.files if file[name].dtype.kind == "f")
        weights = torch.load(path, map_location="cpu", weights_only=True)
        return {str(name): value for name, value in weights.items() if isinstance(value, Tensor)}
    except Exception as error:  # libraries raise all kinds for damaged files
        raise CannotReadError(f"{os.fspath(path)} cannot be read: {error}", hint=f"give {_NOT_ONE}") from error


def _of_tensorflow(name: str, value: np.ndarray) -> tuple[str, Tensor]:
    """PyG's name and layout of a variable of the authors' code."""
    parts = name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE").split("/")
    words = [_OF_TENSORFLOW.get(part, part.replace("dense_", "lin_")) for part in parts]
    return ".".join(words), torch.from_numpy(value.T.copy() if parts[-1] == "kernel" else value)


def _own_name(name: str) -> str:
    """Our name of a weight of PyG's network."""
    whole, *rest = name.split(".")
    words = [_PARTS.get(whole, {}).get(word, word) for word in rest]
    return ".".join(word for word in (_WHOLE.get(whole, whole), *words) if word)
