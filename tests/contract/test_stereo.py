"""Each molecule has one answer, however its SMILES is written, and stereoisomers have different ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch import nn

from molgraph.base.registry import entry, names
from molgraph.data.batch import collate
from molgraph.train.inputs import featuriser_of
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.tiny import SMALL, series

READERS = [name for name in names("encoder") if "molecule" in entry("encoder", name).value.reads]
N = 6
MOLECULES = """\
C[C@H](N)C(=O)O C[C@H]([NH3+])C(=O)[O-] C[C@@H](N)C(=O)O.Cl N[C@@H](CS)C(=O)O [2H][C@H](C)O [H][C@](C)(N)C(=O)O
C[S@](=O)c1ccccc1 C[P@@](=O)(O)c1ccccc1 C[N@+](CC)(c1ccccc1)CC=C F[P@TB1](Cl)(Br)(I)C Cl[Pt@SP1](F)(Br)N CC=[C@]=CC
F/C=C/F C/C=C\\C(C)=O Cl[C@@H](/C=C/C)/C=C\\C C/C=C/[C@H](O)/C=C\\C C[C@H](Cl)/C(=C/C)[C@@H](C)Cl OC1C/C=C/CCCC1
C[C@H](O)[C@@H](C)O C[C@H](O)[C@H](C)O OC(=O)[C@H](O)[C@@H](O)C(=O)O OC(=O)[C@@H](O)[C@@H](O)C(=O)O
C[C@H](O)[C@H](O)[C@@H](C)O C[C@H](O)[C@@H](O)[C@@H](C)O C[C@H](F)C=C([C@H](C)O)[C@@H](C)O
C[C@H]1C[C@@H]1C C[C@H]1C[C@H]1C C[C@H]1C[C@@H](C)C1 F[C@H]1[C@@H](Cl)[C@H](F)[C@@H]1Cl C[C@H]1[C@@H](C)[C@@H](C)[C@H]1C
C[C@H]1CC[C@@H](C)CC1 C[C@H]1CC[C@H](C)CC1 C[C@H]1C[C@@H](C)C[C@@H](C)C1 C/C=C1/CC[C@H](C)CC1
O[C@H]1[C@H](O)[C@@H](O)[C@H](O)[C@H](O)[C@@H]1O O[C@H]1[C@H](O)[C@H](O)[C@H](O)[C@H](O)[C@@H]1O
C1C[C@H]2CCCC[C@H]2CC1 C1C[C@H]2CCCC[C@@H]2CC1 C[C@H]1CC[C@]2(CC1)CC[C@@H](C)CC2 C12[C@H]3[C@@H]1[C@H]1[C@@H]3C21
O[C@H]1CC[C@@H](CC1)[C@]1(O)CC[C@@H](O)CC1 CO[C@@H]1CC[C@@]2(CC1)Cc3ccc(OCC(C)C)cc3C24N=C(C)C(=N4)N
CN1[C@@H]2CC[C@H]1C[C@H](C2)OC(c1ccccc1)c1ccccc1 CC(C)[C@H]1CC[C@@H](C)C[C@@H]1O O=C1N[C@@H](C)C(=O)N[C@@H]1C
N[C@@H](C)C(=O)N[C@H](C)C(=O)O C[C@]12CC[C@H]3[C@@H](CC[C@@H]4CC(=O)CC[C@]34C)[C@@H]1CC[C@@H]2O
OC[C@H]1O[C@@H](O[C@H]2[C@H](O)[C@@H](O)[C@H](O)O[C@@H]2CO)[C@H](O)[C@@H](O)[C@@H]1O
CN(C)C(=O)[C@H](O)[C@H](Cc1ccccc1)NC(=O)c2cc3cc(Cl)ccc3[nH]2 C[C@@](F)(Cl)[C@](F)(Br)[C@H](F)I
""".replace("\n", " ").split(" ")[:-1]
STEREOISOMERS = [
    ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC(N)C(=O)O"],
    ["C[C@H]1CC[C@@H](C)CC1", "C[C@H]1CC[C@H](C)CC1"],
    ["OC(=O)[C@H](O)[C@@H](O)C(=O)O", "OC(=O)[C@@H](O)[C@H](O)C(=O)O", "OC(=O)[C@H](O)[C@H](O)C(=O)O"],
    ["C[C@H](O)[C@H](O)[C@@H](C)O", "C[C@H](O)[C@@H](O)[C@@H](C)O"],
    ["C1C[C@H]2CCCC[C@H]2CC1", "C1C[C@H]2CCCC[C@@H]2CC1"],
    ["C[S@](=O)c1ccccc1", "C[S@@](=O)c1ccccc1"],
]


@cache
def writings() -> tuple[str, ...]:
    """Each molecule's own text and five random ones, one molecule after another."""
    out: list[str] = []
    for text in MOLECULES:
        mol = Chem.MolFromSmiles(text)
        own = [text, *Chem.MolToRandomSmilesVect(mol, N - 1, randomSeed=1)]
        assert len({Chem.CanonSmiles(each) for each in own}) == 1, own
        out += own
    return tuple(out)


def predictions(name: str, smiles: tuple[str, ...]) -> torch.Tensor:
    """float64 [molecules], of an encoder and a head with fresh weights: a difference is one of the features."""
    store = featuriser_of(name, "molecule").featurise(smiles)
    assert (store.status == "ok").all()
    torch.manual_seed(0)
    make = entry("encoder", name).value
    encoder = make(store.spec, **make.small).eval().double()
    head, batch = nn.Linear(encoder.d_out, 1).double(), collate(store, np.arange(len(smiles)))
    for level, own in batch.levels.items():
        batch = batch if own.table is None else batch.with_level(level, table=own.table.double())
    with torch.no_grad():
        return head(encoder(batch).graphs)[:, 0]


def test_fifty_molecules_whose_raw_tags_depend_on_the_writing() -> None:
    tags = [sorted(int(a.GetChiralTag()) for a in Chem.MolFromSmiles(text).GetAtoms()) for text in writings()]
    assert len(MOLECULES) == 50 and sum(len({*map(tuple, tags[i : i + N])}) > 1 for i in range(0, 50 * N, N)) > 30


@pytest.mark.parametrize("name", READERS)
def test_every_encoder_has_one_answer_for_a_molecule(name: str) -> None:
    values = predictions(name, writings()).reshape(-1, N)
    torch.testing.assert_close(values, values[:, :1].expand(-1, N), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name", [name for name in READERS if name != "mol2vec"]
)  # whose environments have no chirality
def test_every_encoder_tells_stereoisomers_apart(name: str) -> None:
    values = predictions(name, tuple(text for group in STEREOISOMERS for text in group)).tolist()
    for group in STEREOISOMERS:
        own = sorted(values.pop(0) for _ in group)
        assert min(np.diff(own)) > 1e-7, group


@pytest.mark.parametrize("preset", ["none", "desalt", "standard", "canonical"])
@pytest.mark.parametrize(("encoder", "descriptors"), [("dmpnn", "rdkit"), ("deepdta", "none")])
def test_a_model_has_one_answer_under_every_preset(preset: str, encoder: str, descriptors: str) -> None:
    table = series(24)
    make = entry("encoder", encoder).value
    method = GraphMethod(encoder, **{**SMALL, "params": dict(make.small), "epochs": 1}, descriptors=descriptors)
    model = Model(method.fit(table), targets=table.targets, standardiser=preset)
    found = model.predict(list(writings()))
    readable = found.ok.reshape(-1, N)  # one has no carbon, which the presets but none take for no molecule
    assert (readable == readable[:, :1]).all() and readable.mean() > 0.9
    values = found.value.reshape(-1, N)
    np.testing.assert_allclose(values, np.repeat(values[:, :1], N, axis=1), rtol=1e-5, atol=1e-5)
