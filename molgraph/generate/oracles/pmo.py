"""The tasks of the PMO benchmark as oracles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.registry import register
from molgraph.chem.pmo_tasks import TASKS, Task
from molgraph.chem.smiles import parse_smiles
from molgraph.generate.oracles.oracle import Oracle, Scores

PMO_TASKS = tuple(TASKS)


@register(
    "oracle",
    "pmo",
    summary="a task of the PMO benchmark: pmo(celecoxib_rediscovery)",
    paper="Brown et al. 2019, J. Chem. Inf. Model. 59:1096; Gao et al. 2022, NeurIPS",
    command="molgraph optimise --oracle 'pmo(celecoxib_rediscovery)' -o found.csv",
)
class PMO(Oracle):
    """A task of GuacaMol (Brown et al. 2019) as the benchmark PMO (Gao et al. 2022) has it, 0 to 1.

    Similarities are of counts, not of bits, and no stereo is seen. Isomers are scored by elements and all atoms,
    hydrogens among them.

    Args:
        task: its name: albuterol_similarity, amlodipine_mpo, celecoxib_rediscovery, deco_hop, fexofenadine_mpo,
            isomers_c7h8n2o2, isomers_c9h10n2o2pf2cl, median1, median2, mestranol_similarity, osimertinib_mpo,
            perindopril_mpo, qed, ranolazine_mpo, scaffold_hop, sitagliptin_mpo, thiothixene_rediscovery,
            troglitazone_rediscovery, valsartan_smarts or zaleplon_mpo.
    """

    name, scale = "pmo", 0.2
    small = MappingProxyType({"task": "perindopril_mpo"})

    def __init__(self, task: str) -> None:
        if task not in TASKS:
            raise UnknownNameError(f"PMO has no task {task!r} here", hint=nearest(task, TASKS))
        self.task = task

    @cached_property
    def _task(self) -> Task:
        return Task(self.task)

    def score(self, smiles: Sequence[str]) -> Scores:
        """The task's score of each SMILES."""
        value, reason = np.full(len(smiles), np.nan), np.full(len(smiles), "", dtype=object)
        for row, text in enumerate(smiles):
            mol, reason[row] = parse_smiles(text)
            if mol is not None:
                value[row] = self._task(mol)
        return Scores(value, reason)
