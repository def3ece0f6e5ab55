"""Pack QM9's own files into one npz of geometries and targets, without the molecules that its authors except.

    python pipelines/space/qm9_full.py gdb9.sdf gdb9.sdf.csv uncharacterized.txt -o qm9_full.npz

The SD file and the table of the archive gdb9 hold the same molecules in the same order; the list names gdb numbers in
its first column, and is the one at figshare (file 3195404).
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np
import pandas as pd
from rdkit import Chem

from molgraph.base.paths import write_whole

TARGETS = {"u0_atom": "U0_atom", "gap": "gap", "mu": "mu"}  # kcal/mol, hartree, debye


def excepted(text: str) -> set[int]:
    """The gdb numbers of a list whose lines of data begin with one."""
    first = (line.split()[0] for line in text.splitlines() if line.split())
    return {int(word) for word in first if word.isdigit()}


def pack(sdf: Path, table: Path, exceptions: Path) -> dict[str, np.ndarray]:
    """Arrays as in the npz of QM7 and QM9: id, N atoms of each molecule, Z and R of all in a row, targets."""
    frame, left_out = pd.read_csv(table), excepted(exceptions.read_text())
    ids, sizes, numbers, positions, kept = [], [], [], [], []
    molecules = Chem.SDMolSupplier(str(sdf), sanitize=False, removeHs=False)
    if len(molecules) != len(frame):
        raise SystemExit(f"{sdf} has {len(molecules):,} molecules, {table} has {len(frame):,} rows")
    for row, mol in enumerate(molecules):
        number = int(str(frame["mol_id"].iloc[row]).removeprefix("gdb_"))
        if mol is None or number in left_out:
            continue
        ids.append(number)
        kept.append(row)
        sizes.append(mol.GetNumAtoms())
        numbers += [atom.GetAtomicNum() for atom in mol.GetAtoms()]
        positions.append(mol.GetConformer().GetPositions())
    arrays = {"id": np.array(ids), "N": np.array(sizes), "Z": np.array(numbers), "R": np.concatenate(positions)}
    return arrays | {name: frame[column].to_numpy()[kept] for column, name in TARGETS.items()}


def main() -> None:
    """Read the three files, write one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sdf", type=Path, help="gdb9.sdf")
    parser.add_argument("table", type=Path, help="gdb9.sdf.csv, with mol_id and the targets")
    parser.add_argument("exceptions", type=Path, help="uncharacterized.txt")
    parser.add_argument("-o", "--out", type=Path, default=Path("qm9_full.npz"))
    given = parser.parse_args()
    np.savez(out := io.BytesIO(), **pack(given.sdf, given.table, given.exceptions))
    print(f"{write_whole(given.out, out.getvalue())}")


if __name__ == "__main__":
    main()
