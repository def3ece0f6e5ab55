"""Learned clusters, salient bonds and bits on molecules: atoms in their order, a drawing each, others refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import BadValueError, UnknownNameError, UnsupportedError
from molgraph.explain.explanation import Explanation, read_molecules
from molgraph.train.model import Model
from tests.tiny import series

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
UNCHARGED = "CC1=CC=C[NH+2]([O-])C1"  # it is read, and the standardiser gives a molecule that is not
TABLE = series(60)
OPTIONS = {"epochs": 1, "baseline": False, "params": {"d_hidden": 8}}


def shares_of(found: Explanation) -> list[np.ndarray]:
    """float [atoms, k] of each molecule."""
    columns = [name for name in found.values if name.startswith("share_")]
    rows = [found.values[found.values["molecule"] == i] for i in range(len(found.smiles))]
    return [each[columns].to_numpy() for each in rows]


@pytest.fixture(scope="module")
def model() -> Model:
    return molgraph.train(TABLE, model="structpool", **OPTIONS).model


def test_each_atom_has_its_cluster_whatever_the_order(model: Model) -> None:
    found = molgraph.draw_clusters(model, ["CC(=O)Nc1ccccc1Cl", "C(C", "Clc1ccccc1NC(C)=O"])
    one, none, other = shares_of(found)
    assert one.shape == (11, 10) and none.shape == (0, 10)
    np.testing.assert_allclose(one.sum(1), 1, atol=1e-5)
    same = {1: 8, 2: 10, 0: 9, 3: 7, 4: 6, 9: 1, 10: 0}  # atoms of the first molecule, and where the other has them
    np.testing.assert_allclose(one[[*same]], other[[*same.values()]], atol=1e-5)
    assert np.abs(one[0] - one[10]).max() > 1e-3
    assert (found.values["cluster"] == np.concatenate([one, other]).argmax(1)).all()
    assert found.captions[0].startswith(found.smiles[0]) and found.captions[1] == "C(C: cannot be read"
    assert all(caption in repr(found) for caption in found.captions)
    assert found.smiles[1] == "C(C" and "cannot be read" in found.svgs[1]


def test_rows_without_a_molecule_are_drawn_as_unreadable(model: Model) -> None:
    found = molgraph.draw_clusters(model, ["", "CCO", None])  # type: ignore[list-item]
    assert [len(each) for each in shares_of(found)] == [0, 3, 0] and found.smiles == ("", "CCO", "")
    assert len(molgraph.draw_clusters(model, "").svgs) == 1


def nasty_rows(reasons: tuple[str, ...]) -> tuple[str, bool, bool]:
    return reasons[-1], any(reasons[:-1]), all(reasons)


def test_every_nasty_molecule_is_drawn_or_says_why_not(model: Model) -> None:
    given = [*NASTY, ".", UNCHARGED]
    salient, bits = (molgraph.train(TABLE, model=name, **{**OPTIONS, **own}).model for name, own in (
        ("rfm", {}), ("neural_fingerprint", {"params": {"length": 6, "depth": 2}}),
    ))  # fmt: skip
    drawn, bonds = molgraph.draw_clusters(model, given), molgraph.draw_salience(salient, given)
    assert len(drawn.svgs) == len(bonds.svgs) == len(given)
    assert nasty_rows(drawn.reasons) == nasty_rows(bonds.reasons) == ("cannot be read", True, False)
    assert len(molgraph.explain_bit(bits, 0, given, top=3).svgs) == 3


def test_a_graph_that_is_too_large_is_marked_and_the_others_are_drawn() -> None:
    options = {**OPTIONS, "params": {"pool": "mincut", "max_matrix_gb": 0.001}}
    model = molgraph.train(TABLE, model="pyg_pool", **options).model
    found = molgraph.draw_clusters(model, ["CCO", "C" * 600])
    assert [len(each) for each in shares_of(found)] == [3, 0] and not found.reasons[0]
    assert "600 nodes is too large for mincut" in found.reasons[1] and found.reasons[1] in repr(found)


@pytest.mark.parametrize("name", ["c.png", "c.xyz", "c"])
def test_another_ending_is_refused(model: Model, tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"'{name}'"):
        molgraph.draw_clusters(model, "CCO").save(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_a_page_and_a_picture(model: Model, tmp_path: Path) -> None:
    one = molgraph.draw_clusters(model.save(tmp_path / "m.mgm"), "c1ccccc1O")
    assert one.save(tmp_path / "a.svg").read_text("utf-8").startswith("<svg")
    several = molgraph.draw_clusters(model, ["CCO", "<b>"])
    page = several.save(tmp_path / "a.html").read_text("utf-8")
    assert page.count("<svg") == page.count("<figcaption") == 2 and "<b>" not in page
    with pytest.raises(UnsupportedError, match="svg"):
        several.save(tmp_path / "b.svg")


def test_models_without_clusters_are_refused() -> None:
    other = molgraph.train(TABLE, model="gin", **OPTIONS).model
    with pytest.raises(UnsupportedError, match="clusters"):
        molgraph.draw_clusters(other, "CCO")


def test_salience_is_the_norm_of_each_bonds_states() -> None:
    model = molgraph.train(TABLE, model="rfm", **OPTIONS).model
    smiles = ["CC(=O)Nc1ccccc1Cl", "C(C", "C", "Clc1ccccc1NC(C)=O"]
    drawn = {block: molgraph.draw_salience(model, smiles, block=block) for block in ("encoder", "decoder")}
    bonds = drawn["decoder"].values
    assert bonds["molecule"].tolist() == [0] * 11 + [3] * 11 and (bonds["atom"] < bonds["other"]).all()
    found = {(i, frozenset((a, b))): norm for i, a, b, norm in bonds.itertuples(index=False)}
    same = {1: 8, 2: 10, 0: 9, 3: 7, 4: 6, 5: 5, 6: 4, 7: 3, 8: 2, 9: 1, 10: 0}  # atoms of the first, and of the last
    for ends in (ends for i, ends in found if i == 0):
        assert found[0, ends] == pytest.approx(found[3, frozenset(same[a] for a in ends)], abs=1e-5)
    encoder, (_, batch, _) = model.method.ready().network.encoder, read_molecules(model, smiles)
    states = next(rows.h.detach() for rows in encoder(batch, rows=True).rows if rows.level == "bond")
    here = batch.graph_of("bond") == 0
    known: dict[frozenset[int], float] = {}
    for a, b, h in zip(batch.source[here].tolist(), batch.target[here].tolist(), states[here], strict=True):
        known[frozenset((a, b))] = max(known.get(frozenset((a, b)), 0.0), float(h.norm()))
    assert known == pytest.approx({ends: norm for (i, ends), norm in found.items() if i == 0})
    assert np.abs(drawn["encoder"].values["value"] - bonds["value"]).max() > 1e-3
    own = bonds.loc[bonds["molecule"] == 0, "value"]
    assert f"norm {own.min():.3g} to {own.max():.3g}" in drawn["decoder"]._repr_html_()
    said = repr(drawn["decoder"])
    assert "cannot be read" in drawn["decoder"].svgs[1] and "  C(C: cannot be read\n  C\n" in said
    with pytest.raises(BadValueError, match="middle"):
        molgraph.draw_salience(model, "CCO", block="middle")
    with pytest.raises(UnsupportedError, match="bonds"):
        molgraph.draw_salience(molgraph.train(TABLE, model="gin", **OPTIONS).model, "CCO")


def test_a_bit_is_explained_by_the_fragments_that_add_most_to_it() -> None:
    options = {"model": "neural_fingerprint", "epochs": 1, "baseline": False, "params": {"length": 6, "depth": 2}}
    model = molgraph.train(TABLE, **options).model
    smiles = ["CC(=O)Nc1ccccc1Cl", "C(C", "C", "CCO", "Clc1ccccc1NC(C)=O"]
    every = [molgraph.explain_bit(model, bit, smiles, top=1000).values for bit in range(6)]
    assert len({tuple(sorted(each["fragment"])) for each in every}) == 1, "fragments are all shown, whatever the bit"
    assert set(every[0].columns) == {"fragment", "radius", "value", "molecule", "atom"}
    # a fragment that is a whole molecule adds the same wherever it stands, so a bit of CCO is the sum of its parts
    encoder, (_, batch, _) = model.method.ready().network.encoder, read_molecules(model, "CCO")
    whole = encoder(batch).graphs[0].detach().numpy()
    alone = [molgraph.explain_bit(model, bit, "CCO", top=1000) for bit in range(6)]
    parts = alone[0].values.set_index("fragment")
    assert sorted(parts.index) == ["C(C)O", "CC", "CCO", "OC", "OCC"] and parts.loc[
        "CC", ["radius", "atom"]
    ].tolist() == [1, 0]
    twice = [each.values.set_index("fragment")["value"] for each in alone]  # the middle atom, in both layers
    assert all(
        each.between(0, 1).all() and each.sum() < bit <= each.sum() + each["C(C)O"]
        for each, bit in zip(twice, whole, strict=True)
    )
    best = molgraph.explain_bit(model, 3, smiles, top=2)
    assert len(best.svgs) == 2 and best.values["value"].is_monotonic_decreasing
    assert "highlight" not in best.svgs[0] and "9ecbf0".upper() in best.svgs[0].upper()
    assert "bits" in repr(best) and best.captions[0] in best._repr_html_()
    assert molgraph.explain_bit(model, 0, ["C(C"]).svgs == ()
    for bit, top, words in ((6, 1, "bit 6"), (-1, 1, "bit -1"), (0, 0, "top is 0")):
        with pytest.raises(BadValueError, match=words):
            molgraph.explain_bit(model, bit, "CCO", top=top)
