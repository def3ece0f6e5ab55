"""The tasks of PMO: published values of named molecules, and the molecules that a task is named after."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.errors import UnknownNameError
from molgraph.generate.oracles.pmo import PMO, PMO_TASKS
from molgraph.generate.oracles.read_oracle import read_oracle

ZINC = "CC[C@@H]1CCCC[C@H]1c1noc(-c2cn3c(n2)COCC3)n1"
#: values of PyTDC's oracles, as published beside ZINC-250k and with the tasks of DemoDiff
PUBLISHED = [
    ("albuterol_similarity", ZINC, 0.194444),
    ("amlodipine_mpo", ZINC, 0.095698),
    ("celecoxib_rediscovery", ZINC, 0.0625),
    ("deco_hop", ZINC, 0.524572),
    ("perindopril_mpo", "CCOC(=O)C(Cc1c[nH]c2ccccc12)NC(C)C(=O)N1C2CCCCC2C[C@H]1C(=O)O", 0.789786),
    ("perindopril_mpo", "COC(=O)[C@@H]1C[C@@H]2CCCC[C@@H]2N1C(=O)CCc1nc(-c2ccc[nH+]c2)no1", 0.546942),
    ("zaleplon_mpo", "Nc1nc(N)c2c(n1)CCC(c1ccccc1)C2", 0.044115),
    ("zaleplon_mpo", "Cc1ccc(NC(=O)c2cccc(Oc3ncccn3)c2)c(C)c1", 0.502331),
]
#: molecules that have all that a task asks for
WHOLE = {
    "albuterol_similarity": "CC(C)(C)NCC(O)c1ccc(O)c(CO)c1",
    "celecoxib_rediscovery": "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "isomers_c7h8n2o2": "Nc1ccc(N)c(C(=O)O)c1",
    "isomers_c9h10n2o2pf2cl": "CCN(C(=O)NO)c1cc(F)c(F)c(P)c1Cl",
    "mestranol_similarity": "COc1ccc2c(c1)CCC1C2CCC2(C)C1CCC2(O)C#C",
    "thiothixene_rediscovery": "CN(C)S(=O)(=O)c1ccc2Sc3ccccc3C(=CCCN4CCN(C)CC4)c2c1",
    "troglitazone_rediscovery": "Cc1c(C)c2OC(C)(COc3ccc(CC4SC(=O)NC4=O)cc3)CCc2c(C)c1O",
}


@pytest.mark.parametrize(("task", "smiles", "value"), PUBLISHED)
def test_published_values(task: str, smiles: str, value: float) -> None:
    assert PMO(task).score([smiles]).value[0] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("task", PMO_TASKS)
def test_scores_are_from_0_to_1(task: str) -> None:
    found = PMO(task).score([*WHOLE.values(), "C", "not a molecule"])
    assert found.reason[-1] and np.isnan(found.value[-1])
    assert ((found.value[:-1] >= 0) & (found.value[:-1] <= 1)).all()
    if task in WHOLE:
        assert found.value[[*WHOLE].index(task)] == pytest.approx(1.0)


def test_a_task_is_an_oracle_by_name() -> None:
    assert read_oracle("pmo(median1)").score(["CC(C)C1CCC(C)CC1O"]).value[0] > 0.2
    with pytest.raises(UnknownNameError, match="celecoxib_rediscovery"):
        read_oracle("pmo(celecoxib)")
