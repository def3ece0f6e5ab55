"""Count how many molecules junction trees give back, and how many latent vectors of a model decode to molecules.

    MOLGRAPH_DATA=... python pipelines/jtvae/check.py trees                      # ZINC-250k, its first 10,000 molecules
    python pipelines/jtvae/check.py latents jtvae-zinc -n 100000                 # stopped, it goes on
    MOLGRAPH_DATA=... python pipelines/jtvae/check.py reconstruction jtvae-zinc  # 10 encodings x 10 decodings of each
    MOLGRAPH_DATA=... python pipelines/jtvae/check.py curve jt.mgm a.ckpt b.ckpt # copies of training.ckpt

Results stand in ``check.json``, and as tables in ``CHECK.md``, both written here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rdkit import Chem

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import molgraph  # noqa: E402
from molgraph.base.paths import atomic_write, data_dir  # noqa: E402
from molgraph.base.progress import bar  # noqa: E402
from molgraph.chem.fragments.assembly import assemble  # noqa: E402
from molgraph.chem.fragments.atom_ranks import canonical_order  # noqa: E402
from molgraph.chem.fragments.stereo import Site, stereo_sites, with_stereo  # noqa: E402
from molgraph.chem.fragments.vocabulary import read_corpus  # noqa: E402
from pipelines.jtvae.page import PIECE, page  # noqa: E402
from pipelines.jtvae.reconstruction import curve, reconstruction  # noqa: E402

RESULTS, PAGE = HERE / "check.json", HERE / "CHECK.md"
SCALES = (1.0, 3.0, 10.0)  # of the normal distribution that random vectors are drawn from


def zinc() -> list[str]:
    """The molecules of ZINC-250k in their order."""
    import pandas as pd

    return pd.read_csv(data_dir() / "zinc250k" / "zinc250k_properties.csv.gz").iloc[:, 0].tolist()


def trees(n: int) -> dict[str, Any]:
    """Decompose molecules and put them together again, without stereochemistry and with it."""
    smiles = zinc()[:n]
    began = time.process_time()
    found, vocabulary = read_corpus(smiles, workers=1)
    seconds = time.process_time() - began
    failed: list[dict[str, str]] = []
    counts: Counter[str] = Counter()
    with bar("putting together", n) as line:
        for text, each in zip(smiles, found, strict=True):
            line.advance()
            if each.tree is None:
                failed.append({"smiles": text, "reason": each.reason})
                continue
            mol, bare = Chem.MolFromSmiles(text), Chem.MolFromSmiles(text)
            Chem.RemoveStereochemistry(bare)
            bonds = {
                frozenset((atoms[i], atoms[j]))
                for label, atoms in zip(each.tree.labels, each.tree.atoms, strict=True)
                for i, j, _ in label.bonds
            }
            counts["every bond in a cluster"] += len(bonds) == mol.GetNumBonds()
            made = assemble(each.tree).mol()
            same = made is not None and Chem.MolToSmiles(made) == Chem.CanonSmiles(Chem.MolToSmiles(bare))
            counts["same without stereochemistry"] += same
            if not same:
                failed.append({"smiles": text, "reason": "another constitution"})
                continue
            to = dict(zip(canonical_order(bare), canonical_order(made), strict=True))
            sites = [Site(to[i], to[j], label) for i, j, label in stereo_sites(mol)]
            whole = Chem.CanonSmiles(Chem.MolToSmiles(with_stereo(made, sites))) == Chem.CanonSmiles(text)
            counts["same with stereochemistry"] += whole
            if not whole:
                failed.append({"smiles": text, "reason": "another stereoisomer"})
    per_molecule = sum(len(each.tree) for each in found if each.tree) / max(
        sum(each.tree is not None for each in found), 1
    )
    facts = {
        "molecules": n,
        "clusters in the vocabulary": len(vocabulary),
        "clusters a molecule": round(per_molecule, 2),
    }
    return {**facts, **counts, "decomposed a second": round(n / seconds), "failed": failed}


def latents(model: str, n: int) -> dict[str, Any]:
    """Decode random vectors; a folder beside the results keeps the pieces that are done."""
    generator = molgraph.load(model, threads=1).method
    kept = HERE / "check-latents.json"
    done: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    with bar("decoding", n) as line:
        for piece in range(-(-n // PIECE)):
            line.advance(PIECE)
            key = f"{model} {piece}"
            if key in done:
                continue
            rng = np.random.default_rng(piece)
            scale = SCALES[piece % len(SCALES)]
            z = scale * rng.standard_normal((PIECE, generator.d_latent))
            began = time.process_time()
            texts = generator.decode(z, piece)
            seconds = time.process_time() - began
            valid = [text for text in texts if text and Chem.MolFromSmiles(text) is not None]
            atoms = [Chem.MolFromSmiles(text).GetNumHeavyAtoms() for text in valid]
            unchecked = None
            if piece < len(SCALES):
                generator.check_chemistry = False
                unchecked = sum(bool(text) for text in generator.decode(z, piece))
                generator.check_chemistry = True
            row = {"scale": scale, "n": PIECE, "valid": len(valid), "unique": len({*valid}), "seconds": seconds}
            done[key] = {**row, "atoms": sum(atoms), "most atoms": max(atoms), "unchecked": unchecked}
            with atomic_write(kept, "w") as file:
                json.dump(done, file)
    rows = [done[f"{model} {piece}"] for piece in range(-(-n // PIECE))]
    out: dict[str, Any] = {"model": Path(model).stem}
    for scale in SCALES:
        mine = [row for row in rows if row["scale"] == scale]
        total = {name: sum(row[name] for row in mine) for name in ("n", "valid", "unique", "seconds", "atoms")}
        bare = next(row["unchecked"] / row["n"] for row in mine if row["unchecked"] is not None)
        out[str(scale)] = {
            "vectors": total["n"],
            "molecules": total["valid"],
            "molecules without the check": round(bare, 4),
            "mean heavy atoms": round(total["atoms"] / max(total["valid"], 1), 1),
            "most heavy atoms": max(row["most atoms"] for row in mine),
            "a second": round(total["n"] / total["seconds"]),
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("trees", "latents", "reconstruction", "curve"))
    parser.add_argument("model", nargs="?", default="jtvae-zinc")
    parser.add_argument("checkpoints", nargs="*", type=Path)
    parser.add_argument("-n", type=int)
    given = parser.parse_args()
    kept: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    name = Path(given.model).stem
    if given.what == "trees":
        found = {"trees": trees(given.n or 10_000)}
    elif given.what == "latents":
        found = {f"latents of {name}": latents(given.model, given.n or 100_000)}
    elif given.what == "reconstruction":
        found = {f"reconstruction by {name}": reconstruction(given.model, given.n or 200)}
    else:
        found = {f"curve of {name}": curve(given.model, given.checkpoints, given.n or 100)}
    for path, text in ((RESULTS, json.dumps(kept | found, indent=1) + "\n"), (PAGE, page(kept | found))):
        with atomic_write(path, "w") as file:
            file.write(text)
    print(page(found))


if __name__ == "__main__":
    main()
