"""Train chemvae on molecules of ZINC-250k in both alphabets, with a property head and with either prior, and measure.

    MOLGRAPH_DATA=... python pipelines/chemvae/run.py      # writes pipelines/chemvae/results.json; stopped, it goes on

Each figure is one that the paper of a system leads one to expect: SELFIES are always molecules, a property head makes
its property easier to read from a latent vector, and an associative prior keeps codes in use beside a decoder that
could do without them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from molgraph.base.paths import atomic_write  # noqa: E402
from molgraph.chem.fingerprints import morgan  # noqa: E402
from molgraph.chem.quality import measure  # noqa: E402
from molgraph.chem.tanimoto import tanimoto  # noqa: E402
from molgraph.data.datasets import load_dataset  # noqa: E402
from molgraph.data.table import Table, make_table  # noqa: E402
from molgraph.generate.alphabets import write_tokens  # noqa: E402
from molgraph.generate.chemvae import ChemVAE  # noqa: E402
from molgraph.generate.generated import judge  # noqa: E402

OUT = HERE / "results.json"
SIZES = {"space": 5_000, "prior": 10_000}
HELD, SAMPLES, LEADS, DECODINGS = 1_000, 1_000, 100, 5
SHAPE: dict[str, Any] = {"d_latent": 56, "d_embedding": 32, "d_hidden": 128, "n_layers": 1, "max_length": 80}
SHAPE |= {"batch_size": 128, "learning_rate": 3e-3, "schedule": "cosine", "warmup_epochs": 1.0, "threads": 1}
SPACE = SHAPE | {"epochs": 12, "batch_size": 64, "beta": 0.03, "warmup_start": 0.5, "feedback": "all"}
PRIOR = SHAPE | {"epochs": 5, "beta": 0.1, "feedback": "all", "warmup_slope": 0.0}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "selfies": ("space", SPACE | {"tokens": "selfies"}),
    "smiles": ("space", SPACE | {"tokens": "smiles"}),
    "selfies, head on logP": ("space", SPACE | {"tokens": "selfies", "properties": ["logp"]}),
    "smiles, normal prior": ("prior", PRIOR),
    "smiles, associative prior": ("prior", PRIOR | {"prior": "acn"}),
}


def unigram_nats(train: Table, held: Table, tokens: str) -> float:
    """Nats of a held-out molecule by the frequencies of single tokens and of the end, add-one smoothed."""
    texts = [text for text in write_tokens(train, tokens, SHAPE["max_length"]).tokens if text]
    known = sorted({token for text in texts for token in text})
    counts = dict.fromkeys([*known, ""], 1.0)
    for text in texts:
        for token in [*text, ""]:
            counts[token] += 1
    total = sum(counts.values())
    judged = [text for text in write_tokens(held, tokens, SHAPE["max_length"], known).tokens if text]
    return -float(np.mean([sum(np.log(counts[token] / total) for token in [*text, ""]) for text in judged]))


def probe(made: ChemVAE, held: Table) -> float:
    """R2 of a linear model from latent vectors to logP, fitted on half of the held-out molecules, on the other."""
    points, values = made.encode(held), measure("logp", held.smiles.tolist()).value
    fine = points.ok & np.isfinite(values)
    x, y = points.mean[fine], values[fine]
    half = len(x) // 2
    return float(r2_score(y[half:], Ridge(1.0).fit(x[:half], y[:half]).predict(x[half:])))


def likeness(made: ChemVAE, leads: Table) -> tuple[float, float]:
    """Mean Tanimoto similarity to leads of molecules decoded around each, and of samples without a lead."""
    points = made.encode(leads)
    rows = np.flatnonzero(points.ok)
    z = np.concatenate([made.around(points.mean[row], DECODINGS, seed=int(row)) for row in rows])
    of_lead = np.repeat(rows, DECODINGS)
    prints = morgan(leads.smiles.tolist())
    found = []
    for texts in (made.decode(z, 1), made.sample(len(z), 1)):
        drawn = morgan(list(judge(texts, None).canonical))
        both = tanimoto(drawn.x, prints.x)[np.arange(len(z)), of_lead]
        found.append(float(both[drawn.ok].mean()))
    return found[0], found[1]


def figures(name: str, smiles: list[str]) -> dict[str, Any]:
    """Train one model and measure it."""
    size, params = RUNS[name]
    train, held = make_table(smiles[: SIZES[size]]), make_table(smiles[-HELD:])
    began = time.process_time()
    made = ChemVAE(**params).fit(train, held)
    curves = made.curves
    assert curves is not None and made.best_epoch is not None
    best = curves.iloc[made.best_epoch - 1]
    out: dict[str, Any] = {"parameters": params, "cpu_seconds": round(time.process_time() - began)}
    points = made.encode(held)
    out["active units"] = int((points.mean[points.ok].var(axis=0) > 0.01).sum())
    out["kl"], out["reconstruction"] = (round(float(best[f"valid_{part}"]), 2) for part in ("kl", "reconstruction"))
    out["negative elbo"] = round(out["kl"] + out["reconstruction"], 2)
    out["unigram"] = round(unigram_nats(train, held, made.tokens), 2)
    drawn = judge(made.sample(SAMPLES, 1), None)
    out["valid"], out["unique"] = drawn.n_valid / SAMPLES, drawn.n_unique / max(drawn.n_valid, 1)
    rows = np.flatnonzero(points.ok)[:LEADS]
    cold = made.set_params(temperature=0.1).decode(points.mean[rows], 1)
    own, again = (judge(texts, None).canonical for texts in (held.smiles[rows].tolist(), cold))
    out["reconstructed"] = float(np.mean([a == b for a, b in zip(own, again, strict=True)]))
    made.set_params(temperature=1.0)
    out["r2 of a linear probe for logP"] = round(probe(made, held), 3)
    around, anywhere = likeness(made, held.take(rows))
    out["similarity to a lead"] = {"around it": round(around, 3), "anywhere": round(anywhere, 3)}
    return out


def results() -> dict[str, Any]:
    """The runs that are done."""
    return json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}


def main(names: list[str]) -> None:
    """Fill in the runs that results.json lacks, those that are named or all."""
    table = load_dataset("zinc250k").table
    pick = np.random.default_rng(0).permutation(len(table))[: max(SIZES.values()) + HELD]
    smiles = [str(text).strip() for text in table.smiles[pick]]
    for name in names or RUNS:
        if name not in results():
            found = figures(name, smiles)
            done = results() | {name: found}
            with atomic_write(OUT, "w") as file:
                file.write(json.dumps({each: done[each] for each in RUNS if each in done}, indent=1) + "\n")
            print(name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
