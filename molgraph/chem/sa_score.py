"""Score how hard a molecule looks to synthesise, by RDKit's own script."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location

from rdkit import Chem

from molgraph.base.errors import DataError
from molgraph.chem.rdkit_data import contrib_dir


def sa_score(mol: Chem.Mol) -> float:
    """Synthetic accessibility from 1 (easy) to 10 (hard), Ertl and Schuffenhauer 2009 (J. Cheminform. 1:8).

    Raises:
        DataError: RDKit was installed without its Contrib folder.

    Example:
        >>> round(sa_score(Chem.MolFromSmiles("CC(=O)Oc1ccccc1C(=O)O")), 2)
        1.58
    """
    return float(_script()(mol))


@cache
def _script() -> Callable[[Chem.Mol], float]:
    folder = contrib_dir()
    path = None if folder is None else folder / "SA_Score" / "sascorer.py"
    spec = None if path is None or not path.is_file() else spec_from_file_location("molgraph_sascorer", path)
    if spec is None or spec.loader is None:
        raise DataError(
            "this rdkit installation has no Contrib/SA_Score, which scores synthetic accessibility",
            hint="the wheels on PyPI bring it: pip install --force-reinstall rdkit",
        )
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Chem.Mol], float] = module.calculateScore
    return found
