"""MiniMol answers as the package minimol 1.3.5 does, whose own code made the vectors in ``minimol_golden.npz``.

``published`` are those of its weights. ``drawn`` are those of weights drawn by the rule below and loaded into the
package's network, so that features, names and network are compared where the package is not installed too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import FormatError, NotInstalledError
from molgraph.base.registry import get
from molgraph.base.resources import model_path
from molgraph.cli.main import app
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize_graphium import MAX_ATOMS, GraphiumMolecules
from molgraph.nn.encoder import Encoder
from molgraph.train import minimol_weights

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = np.load(Path(__file__).with_name("minimol_golden.npz"), allow_pickle=False)
SMILES = [str(text) for text in GOLDEN["smiles"]]
DRAWN, PUBLISHED = [1, 3, 7, 8], [*range(1, 9)]  # the molecules of each
NEAR = 3e-4  # the vectors are rounded to four decimals


def drawn_weights() -> dict[str, Tensor]:
    """Weights by the package's names, in half precision as its file has them."""
    made = {}
    for number, (name, shape) in enumerate(zip(GOLDEN["names"].tolist(), GOLDEN["shapes"].tolist(), strict=True)):
        size = [*map(int, shape.split("x"))]
        value = 2 * np.random.default_rng(number).random(size) - 1
        if len(size) == 2:
            value = 2 * value / np.sqrt(size[1])
        else:
            value = 1 + 0.1 * value if "norm" in name and name.endswith("weight") else 0.1 * value
        made[name] = torch.from_numpy((0 * value if name.endswith(".eps") else value).astype(np.float16))
    return made


@pytest.fixture(scope="module")
def drawn() -> Encoder:
    return with_drawn_weights()


def with_drawn_weights() -> Encoder:
    """The network with the drawn weights."""
    store = GraphiumMolecules().featurise(SMILES)
    encoder: Encoder = get("encoder", "minimol")(store.spec)
    encoder.load_state_dict(minimol_weights.own_weights(drawn_weights(), store.spec.width("atom")))
    return encoder.eval()


def batch() -> GraphBatch:
    return collate(GraphiumMolecules().featurise(SMILES), np.array(DRAWN))


def gap(encoder: nn.Module, graphs: GraphBatch) -> float:
    with torch.no_grad():
        return float(np.abs(encoder(graphs).graphs.numpy() - GOLDEN["drawn"]).max())


def test_its_network_is_that_of_the_package() -> None:
    """With the kernels of LAPACK that the package had: those of other processors give eigenvectors other signs."""
    code = "from tests.models.test_minimol import *; print(gap(with_drawn_weights(), batch()))"
    env = {**os.environ, "OPENBLAS_CORETYPE": "Haswell", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) < NEAR


def no_place(graphs: GraphBatch) -> GraphBatch:
    return graphs.with_level("atom", place=torch.zeros_like(graphs["atom"].arrays["place"]))


def swapped(graphs: GraphBatch) -> GraphBatch:
    values, vectors, walks = graphs["atom"].arrays["place"].split([8, 8, 16], dim=1)
    return graphs.with_level("atom", place=torch.cat([vectors, values, walks], dim=1))


@pytest.mark.parametrize("change", [no_place, swapped])
def test_places_are_read(drawn: Encoder, change: Callable[[GraphBatch], GraphBatch]) -> None:
    assert gap(drawn, change(batch())) > 30 * NEAR


@pytest.mark.parametrize(
    ("part", "times"),
    [("to_atoms.weight", 0), ("to_atoms.weight", 2), ("update.0.weight", 0), ("of_bond.weight", 0), ("norm.weight", 0)],
)
def test_without_a_part_it_is_another_network(drawn: Encoder, part: str, times: float) -> None:
    kept = {name: value.clone() for name, value in drawn.state_dict().items()}
    drawn.load_state_dict({name: times * value if name.endswith(part) else value for name, value in kept.items()})
    found = gap(drawn, batch())
    drawn.load_state_dict(kept)
    assert found > 10 * NEAR


def test_the_published_vectors() -> None:
    try:
        model = minimol_weights.minimol_model()
    except NotInstalledError:
        pytest.skip(minimol_weights.INSTALL)
    if gap(with_drawn_weights(), batch()) > NEAR:
        pytest.skip("this processor's LAPACK gives eigenvectors other signs than the package's had")
    found = molgraph.embed(model, [SMILES[i] for i in PUBLISHED]).value
    np.testing.assert_allclose(found, GOLDEN["published"], rtol=0, atol=NEAR)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package minimol with drawn weights, and an empty cache."""
    place = folder / "site" / "minimol" / "ckpts" / "minimol_v1"
    place.mkdir(parents=True)
    (place.parents[1] / "__init__.py").touch()  # so that it goes before one that is installed
    torch.save(drawn_weights(), place / "state_dict.pth")
    monkeypatch.setattr(sys, "path", [str(folder / "site"), *sys.path])
    monkeypatch.setenv("MOLGRAPH_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)


def test_by_its_name(drawn: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    with pytest.raises(FormatError, match=r"state_dict\.pth is not the file"):
        model_path("minimol")
    digest = hashlib.sha256(minimol_weights.installed_weights().read_bytes()).hexdigest()
    monkeypatch.setattr(minimol_weights, "SHA256", digest)
    rows = [SMILES[DRAWN[0]], "not_a_molecule", "C" * (MAX_ATOMS + 1), *(SMILES[i] for i in DRAWN[1:])]
    Path("t.csv").write_text("\n".join(["smiles,y", *(f"{text},{i}" for i, text in enumerate(rows))]))
    done = CliRunner().invoke(app, ["embed", "minimol", "t.csv", "-o", "v.csv"])
    assert done.exit_code == 0 and "of which 500 are read at most" in done.output, done.output
    found = molgraph.embed("minimol", rows).value
    with torch.no_grad():
        expected = drawn(batch()).graphs.numpy()
    np.testing.assert_allclose(found[[0, 3, 4, 5]], expected, rtol=0, atol=NEAR)
    assert np.isnan(found[[1, 2]]).all() and len(Path("v.csv").read_text().splitlines()) == 7
    monkeypatch.setattr(minimol_weights, "write_published", None)  # the cache has it
    assert model_path("minimol").parent == tmp_path / "cache" / "models"


def test_where_the_package_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLGRAPH_CACHE", str(tmp_path))
    monkeypatch.setattr(minimol_weights, "find_spec", lambda name: None)
    with pytest.raises(NotInstalledError, match="not installed") as found:
        molgraph.load("minimol")
    assert "pip install --no-deps minimol==1.3.5" in str(found.value)


def test_a_molecule_has_one_place_however_it_is_written() -> None:
    texts = "OC(=O)C(C)Cc1ccccn1.[Na+]", "[Na+].CC(Cc1ncccc1)C(O)=O", "[Na+].C[CH:3](Cc1ncccc1)C([OH:1])=O"
    places = [GraphiumMolecules().featurise([text]).levels["atom"].arrays["place"] for text in texts]
    assert all((place == places[0]).all() for place in places)
