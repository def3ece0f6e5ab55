"""Train the language model that ships as `prior`: SMILES without stereo of the ChEMBL sample and of ZINC-250k.

MOLGRAPH_DATA=... python pipelines/prior/make.py            # about an hour and a half on one core; stopped, it goes on
MOLGRAPH_DATA=... python pipelines/prior/make.py --page     # PRIOR.md again, of 30,000 samples of the model as it ships

Writes pipelines/models/prior.mgm. Every 100th molecule of the corpus is kept out of it, for the page.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from rdkit import Chem, RDLogger

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import molgraph  # noqa: E402
from molgraph.base.paths import data_dir, write_whole  # noqa: E402
from molgraph.chem.standardise import standardise_smiles  # noqa: E402
from molgraph.chem.tokens import tokens_of  # noqa: E402

MODEL = ROOT / "pipelines" / "models" / "prior.mgm"
RARE = 200  # molecules that a token must be in
APART = 100  # every so many-th molecule is not learned from
HOW: dict[str, Any] = {
    "model": "language",
    "params": {"d_hidden": 384, "n_layers": 2, "max_length": 120},
    "fractions": (0.99, 0.01, 0.0),
    "epochs": 4,
    "warmup_epochs": 0.1,
    "batch_size": 128,
    "schedule": "cosine",
    "precision": "bfloat16",
    "threads": 1,
}


def molecules() -> list[str]:
    """Distinct canonical SMILES without stereo, neutral, of tokens that are not rare."""
    folder = data_dir()
    if folder is None:
        raise SystemExit("MOLGRAPH_DATA names no folder: the corpus is zinc250k and chembl_sample there")
    with gzip.open(folder / "chembl_sample" / "chembl.validation.smi.gz", "rt") as file:
        texts = [line.split()[0] for line in file if line.strip()]
    texts += pd.read_csv(folder / "zinc250k" / "zinc250k_properties.csv.gz").iloc[:, 0].str.strip().tolist()
    neutral = standardise_smiles(texts, "standard").values
    RDLogger.DisableLog("rdApp.*")
    found = [Chem.MolFromSmiles(str(text)) for text in neutral if text]
    flat = dict.fromkeys(Chem.MolToSmiles(each, isomericSmiles=False) for each in found if each is not None)
    tokens = {text: {*tokens_of(text)} for text in flat if "." not in text}
    count = Counter(token for each in tokens.values() for token in each)
    return [text for text, each in tokens.items() if all(count[token] >= RARE for token in each)]


def make(work: Path) -> None:
    """Train and write the model."""
    work.mkdir(parents=True, exist_ok=True)
    path = work / "corpus.smi"
    if not path.exists():
        known = molecules()
        write_whole(work / "apart.smi", "\n".join(known[::APART]) + "\n")
        write_whole(path, "\n".join(text for i, text in enumerate(known) if i % APART) + "\n")
    model = molgraph.train_generator(str(path), workdir=work, **HOW)
    model.save(MODEL)


def main() -> None:
    """Make the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=ROOT / "bench" / "prior", type=Path, help="where a stopped run goes on")
    args = parser.parse_args()
    make(args.work)


if __name__ == "__main__":
    main()
