"""Make a model file of MiniMol's published encoder, from the weights that the package minimol on PyPI holds."""

from __future__ import annotations

import hashlib
import os
import re
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor

from molgraph.base.errors import FormatError, NotInstalledError
from molgraph.base.paths import missing_file
from molgraph.base.registry import get
from molgraph.train.card import ModelCard
from molgraph.train.inference import FittedNetworks
from molgraph.train.inputs import Input, featuriser_of
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.network import build_network
from molgraph.train.outputs import DescriptorScale
from molgraph.train.pretraining import state_outputs

PACKAGE = "minimol==1.3.5"
SHA256 = "a3061e1cdbbd5e544168fbf8c1e01836c8c19ac030891d495a2ae9f29cfe97a7"
INSTALL = f"pip install --no-deps {PACKAGE}  (19 MB; molgraph reads its weights and needs none of its requirements)"
_WITHIN = Path("ckpts") / "minimol_v1" / "state_dict.pth"
_PLACES = "encoder_manager.pe_encoders"
_RENAMED = (  # of the network in the package, as patterns, to those of the encoder ``minimol``
    (rf"{_PLACES}.la_pos.linear_in.linear", "eigen.0"),
    (rf"{_PLACES}.la_pos.pe_encoder.fully_connected.0.linear", "eigen.1"),
    (rf"{_PLACES}.la_pos.pe_encoder.fully_connected.1.linear", "eigen.3"),
    (rf"{_PLACES}.la_pos.post_mlp.fully_connected.0.linear", "eigen_sum"),
    (rf"{_PLACES}.rw_pos.pe_encoder.first_normalization", "walks.0"),
    (rf"{_PLACES}.rw_pos.pe_encoder.fully_connected.0.linear", "walks.1"),
    (rf"{_PLACES}.rw_pos.pe_encoder.fully_connected.0.normalization", "walks.2"),
    (rf"{_PLACES}.rw_pos.pe_encoder.fully_connected.1.linear", "walks.4"),
    (rf"{_PLACES}.rw_pos.pe_encoder.fully_connected.1.normalization", "walks.5"),
    (r"pre_nn(_edges)?.layers.0.linear", r"embed\1.0"),
    (r"pre_nn(_edges)?.layers.0.normalization", r"embed\1.1"),
    (r"pre_nn(_edges)?.layers.1.linear", r"embed\1.3"),
    (r"pre_nn(_edges)?.layers.1.normalization", r"embed\1.4"),
    (r"gnn.layers.(\d+).norm_layer", r"norms.\1.norm"),
    (r"gnn.layers.(\d+).model.lin", r"layers.\1.of_bond"),
    (r"gnn.layers.(\d+).model.nn.fully_connected.0.linear", r"layers.\1.mlp.0"),
    (r"gnn.layers.(\d+).model.nn.fully_connected.0.normalization", r"layers.\1.mlp.1"),
    (r"gnn.layers.(\d+).model.nn.fully_connected.1.linear", r"layers.\1.mlp.3"),
    (r"gnn.virtual_node_layers.(\d+).fc_layer.linear", r"nodes.\1.update.0"),
    (r"gnn.virtual_node_layers.(\d+).fc_layer.normalization", r"nodes.\1.update.1"),
    (r"gnn.virtual_node_layers.(\d+).node_projection", r"nodes.\1.to_atoms"),
)


def write_published(path: str | Path, weights: str | os.PathLike[str] | None = None) -> Path:
    """Write the encoder as an ordinary model file, which every verb takes.

    Args:
        path: the file to write.
        weights: the package's ``state_dict.pth``; None for that of the installed package, which is not imported.

    Returns:
        The path that was written.

    Raises:
        NotInstalledError: the package is not there. MissingFileError: no such file of weights.
        FormatError: another file than that of minimol 1.3.5.
    """
    return minimol_model(weights).save(path)


def minimol_model(weights: str | os.PathLike[str] | None = None) -> Model:
    """The encoder as a model without targets; see ``write_published``."""
    state = _read(installed_weights() if weights is None else Path(weights))
    spec = featuriser_of("minimol", "molecule").featurise([]).spec
    inputs = (Input("smiles", "molecule", "minimol", spec),)
    network = build_network(inputs, {}, joiner="concat", d_extra=0)
    network.encoder.load_state_dict(own_weights(state, spec.width("atom")))
    method = GraphMethod("minimol", objective="descriptors")  # an encoder alone: no head, no targets
    method.predicts = get("objective", method.objective).labelled
    nothing = DescriptorScale.fit(None, ())
    method.fitted = FittedNetworks(network.eval(), state_outputs(network.d_state), nothing, inputs)
    notes = (
        "weights of the package minimol 1.3.5 (MIT, Graphcore Ltd.), Kläser et al. 2024, arXiv:2404.14986",
        "pretrained on 6 million molecules of LINCS L1000, PCBA and PCQM4M; test molecules of other sets may be among "
        "them",
    )
    card = ModelCard(name="minimol", what="the published encoder of MiniMol", notes=notes)
    return Model(method, targets=(), standardiser="none", card=card)


def installed_weights() -> Path:
    """The weights in the installed package, found without importing it.

    Raises:
        NotInstalledError: it is not there.
    """
    spec = find_spec("minimol")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(place) / _WITHIN).is_file():
            return Path(place) / _WITHIN
    raise NotInstalledError("the weights of minimol are in a package that is not installed", hint=INSTALL)


def own_weights(state: dict[str, Tensor], width: int) -> dict[str, Tensor]:
    """The weights by the names of the encoder ``minimol``, in single precision.

    What atoms have beyond Graphium's columns, their handedness, gets weights of 0. Half of the projection of virtual
    nodes is taken here: the package divides what goes into it by 2, its width over that of a base network.

    Args:
        state: those of the package's network by name.
        width: columns of an atom.
    """
    weights = {}
    for name, value in state.items():
        module, _, kind = name.removeprefix("model.").rpartition(".")
        for pattern, replacement in _RENAMED:
            if (match := re.fullmatch(pattern.replace(".", r"\."), module)) is not None:
                weights[f"{match.expand(replacement)}.{kind}".replace("embed_edges", "embed_bonds")] = value.float()
    for name in weights:
        if name.endswith("to_atoms.weight"):
            weights[name] = weights[name] / 2
    first = weights["embed.0.weight"]
    weights["embed.0.weight"] = torch.nn.functional.pad(first, (0, 32 + width - first.shape[1]))
    return weights


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise missing_file(path)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        words = f"{path.name} is not the file whose answers were compared with the package's"
        raise FormatError(words, hint=f"pip install --no-deps {PACKAGE}")
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state
