"""Contract trials over every registered generator: samples, files, bad rows and hostile files."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from molgraph.base import errors, registry
from molgraph.base.contracts import Generator, LatentGenerator, Method, State, Trainable
from molgraph.data.table import make_table
from molgraph.generate.network_generator import NetworkGenerator
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.modelwriter import plain
from pipelines.attack.mutate import pack, unpack
from tests.tiny import series

NAMES = registry.names("generator")
BAD = ["not a molecule", "", "C1CC", "C" * 6000, "[" * 40]


def quick(name: str, **params: Any) -> Generator:
    """A generator that fits in a blink."""
    cls = registry.get("generator", name)
    return cls(**{**cls.small, **params})


@pytest.fixture(scope="module", params=NAMES)
def fitted(request: pytest.FixtureRequest) -> Generator:
    """Each generator, fitted once, on a corpus with bad rows."""
    return learned(request.param)


def learned(name: str) -> Generator:
    return quick(name).fit(make_table([*series(48).smiles, *BAD]), make_table(list(series(12, 100).smiles)))


@pytest.fixture(scope="module")
def whole(fitted: Generator, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small file of each generator."""
    return Model(fitted, targets=()).save(tmp_path_factory.mktemp("file") / "a.mgm").read_bytes()


def test_methods_and_generators_share_their_parameters_and_states() -> None:
    shared = ("get_params", "set_params", "check_params", "state", "from_state", "fit")
    for name in shared:
        assert name in vars(Trainable) and name not in vars(Method) and name not in vars(Generator)


def test_as_many_samples_as_asked_for_each_a_text(fitted: Generator) -> None:
    for n in (0, 1, 7):
        found = fitted.sample(n, 3)
        assert len(found) == n and all(type(text) is str for text in found)
        assert found == fitted.sample(n, 3), "the same seed gives the same list"
    assert found != fitted.sample(n, 4)


def test_pieces_are_the_samples(fitted: Generator) -> None:
    pieces = [*fitted.pieces(130, 3)]
    assert [text for piece in pieces for text in piece] == fitted.sample(130, 3)
    assert len(pieces) > 1 or not isinstance(fitted, NetworkGenerator), "more than one"


def test_samples_read_no_global_randomness(fitted: Generator) -> None:
    import torch

    before = torch.get_rng_state()
    np.random.seed(1)  # noqa: NPY002 - the global state on purpose
    first = fitted.sample(9)
    np.random.seed(2)  # noqa: NPY002
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(5)
    assert fitted.sample(9) == first


def test_state_and_back_draws_the_same(fitted: Generator) -> None:
    state = fitted.state()
    meta = json.loads(json.dumps(plain(state.meta), allow_nan=False))
    again = type(fitted).from_state(State(dict(state.arrays), meta))
    assert again.sample(40, 2) == fitted.sample(40, 2)
    for name in state.arrays:
        with pytest.raises(errors.DamagedModelError):
            type(fitted).from_state(State({k: v for k, v in state.arrays.items() if k != name}, state.meta))
    for key in ("params", *({"vocabulary"} & {*state.meta})):
        with pytest.raises(errors.DamagedModelError):
            type(fitted).from_state(State(state.arrays, {k: v for k, v in state.meta.items() if k != key}))
    for name, value in state.arrays.items():
        if value.dtype.kind == "f":
            with pytest.raises(errors.MolgraphError, match="not finite"):
                State({**state.arrays, name: np.full_like(value, np.nan)}, state.meta)


def test_model_file_and_back(fitted: Generator, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.mgm"
    path.write_bytes(whole)
    again = load_model(path)
    assert again.method.sample(40, 2) == fitted.sample(40, 2)
    assert verify(path).largest_gap == 0
    assert again.save(tmp_path / "again.mgm").read_bytes() == whole
    with pytest.raises(errors.UnsupportedError, match="molgraph generate"):
        again.predict(["CCO"])


def test_samples_other_than_the_saved_ones_are_found(whole: bytes, tmp_path: Path) -> None:
    opened = unpack(whole)
    samples = opened.parts["vectors.json"]["samples"]
    path = tmp_path / "odd.mgm"
    for changed, sound in ((2, True), (3, False)):
        opened.parts["vectors.json"]["samples"] = ["no sample"] * changed + samples[changed:]
        path.write_bytes(pack(opened))
        if sound:
            assert verify(path).largest_gap == changed / len(samples)
        else:
            with pytest.raises(errors.ModelFileError, match="'no sample'"):
                verify(path)
    for odd in (None, [], {}, ["C"], {"0": "C"}):
        opened.parts["vectors.json"]["samples"] = odd
        path.write_bytes(pack(opened))
        with pytest.raises(errors.DamagedModelError, match="test samples"):
            verify(path)


def test_same_seed_same_generator(fitted: Generator) -> None:
    again = learned(fitted.name)
    arrays = fitted.state().arrays
    assert all(np.array_equal(arrays[key], value) for key, value in again.state().arrays.items())
    assert again.sample(7) == fitted.sample(7)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_by_name(name: str) -> None:
    made = quick(name)
    assert clone(made).get_params() == made.get_params()
    with pytest.raises(errors.UnknownNameError, match="no_such_parameter"):
        made.set_params(no_such_parameter=1)
    with pytest.raises(errors.NotFittedError):
        made.sample(1)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_learn_from_is_refused(name: str) -> None:
    with pytest.raises(errors.EmptyError):
        quick(name).fit(make_table([*BAD, None]))
    table = make_table(["MKT"])
    protein = replace(table, entities=(replace(table.entities[0], kind="sequence"),))
    with pytest.raises(errors.AmbiguousColumnError, match="sequence"):
        quick(name).fit(protein)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("corpus", [["C"], ["C", "C"], ["[Na+].[Cl-]", "C%10CCCCC%10"]])
def test_the_smallest_corpus_is_learned(name: str, corpus: list[str]) -> None:
    assert len(quick(name).fit(make_table(corpus)).sample(3)) == 3


def test_bad_rows_are_counted_in_the_notes(fitted: Generator) -> None:
    assert any(str(len(BAD)) in note and "unreadable" in note for note in fitted.notes), fitted.notes


@pytest.fixture
def latent(fitted: Generator) -> LatentGenerator:
    """Each generator that has a latent space."""
    if not isinstance(fitted, LatentGenerator):
        pytest.skip("no latent space")
    return fitted


def test_every_row_is_encoded_in_order_or_has_a_reason(latent: LatentGenerator) -> None:
    table = make_table([BAD[0], *series(6).smiles, None, *BAD, series(7).smiles[6]])
    found = latent.encode(table)
    bad = [0, 7, *range(8, 8 + len(BAD))]
    assert np.flatnonzero(~found.ok).tolist() == bad and all(found.reason[row].strip() for row in bad)
    assert found.mean.shape == found.log_variance.shape == (len(table), latent.d_latent)
    for values in (found.mean, found.log_variance):
        assert np.isfinite(values[found.ok]).all() and np.isnan(values[~found.ok]).all()
    assert len(np.unique(found.mean[found.ok], axis=0)) == found.ok.sum(), "different molecules, different points"
    again = latent.encode(table.take(np.arange(len(table))[::-1]))
    np.testing.assert_allclose(again.mean[::-1], found.mean, rtol=0, atol=1e-5)
    assert again.reason[::-1].tolist() == found.reason.tolist()
    assert (found.draw(1)[found.ok] != found.draw(2)[found.ok]).any()


def test_the_writing_of_a_molecule_does_not_move_it(latent: LatentGenerator) -> None:
    smiles = list(series(4).smiles)
    turned = [written_backwards(text) for text in smiles]
    assert turned != smiles
    np.testing.assert_allclose(
        latent.encode(make_table(turned)).mean, latent.encode(make_table(smiles)).mean, atol=1e-5
    )


def written_backwards(smiles: str) -> str:
    """The molecule written from its last atom on."""
    from rdkit import Chem

    mol = Chem.MolFromSmiles(smiles)
    return Chem.MolToSmiles(mol, rootedAtAtom=mol.GetNumAtoms() - 1, canonical=False)


def test_texts_depend_on_vector_place_and_seed_alone(latent: LatentGenerator) -> None:
    z = np.random.default_rng(0).normal(size=(70, latent.d_latent))
    found = latent.decode(z, 3)
    assert len(found) == 70 and all(type(text) is str for text in found)
    assert latent.decode(z, 3) == found and latent.decode(z, 4) != found
    for n in (0, 1, 5, 69):
        assert latent.decode(z[:n], 3) == found[:n], "however many rows follow"
    assert len(latent.sample(3)) == 3 and latent.sample(9)[:3] == latent.sample(3)


@pytest.mark.parametrize("wide", [1, -1])
def test_no_vectors_of_this_space_are_refused(latent: LatentGenerator, wide: int) -> None:
    good = np.zeros((3, latent.d_latent))
    for odd in (np.nan, np.inf):
        bad = good.copy()
        bad[1, 0] = odd
        with pytest.raises(errors.BadValueError, match=r"vector 1 .*not finite"):
            latent.decode(bad)
    with pytest.raises(errors.BadValueError, match="shape"):
        latent.decode(np.zeros((2, latent.d_latent + wide)))
    with pytest.raises(errors.BadValueError, match="shape"):
        latent.decode(np.zeros(latent.d_latent))
    with pytest.raises(errors.BadValueError, match="-1 samples"):
        latent.sample(-1)


def test_points_around_one_lie_near_it(latent: LatentGenerator) -> None:
    centre = latent.encode(make_table([series(1).smiles[0]])).mean[0]
    near, far = (latent.around(centre, 40, spread, seed=1) for spread in (0.01, 1.0))
    assert near.shape == far.shape == (40, latent.d_latent)
    assert np.linalg.norm(near - near.mean(axis=0)) < np.linalg.norm(far - far.mean(axis=0))
    assert np.array_equal(latent.around(centre, 40, 0.01, seed=1), near)
    assert np.allclose(latent.around(centre, 7, 0.01, seed=1), near[:7])


def test_a_model_file_and_back_encodes_and_decodes_the_same(
    latent: LatentGenerator, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "model.mgm"
    path.write_bytes(whole)
    again = load_model(path).method
    assert isinstance(again, LatentGenerator) and again.d_latent == latent.d_latent
    table = make_table([*series(5).smiles, BAD[0]])
    a, b = latent.encode(table), again.encode(table)
    assert np.array_equal(a.mean, b.mean, equal_nan=True) and np.array_equal(
        a.log_variance, b.log_variance, equal_nan=True
    )
    assert a.reason.tolist() == b.reason.tolist()
    assert again.decode(a.mean[a.ok], 2) == latent.decode(a.mean[a.ok], 2)


@pytest.mark.parametrize("name", NAMES)
def test_a_latent_space_before_fit_is_refused(name: str) -> None:
    made = quick(name)
    if isinstance(made, LatentGenerator):
        with pytest.raises(errors.NotFittedError):
            made.encode(make_table(["C"]))
        with pytest.raises(errors.NotFittedError):
            made.decode(np.zeros((1, made.d_latent)))
