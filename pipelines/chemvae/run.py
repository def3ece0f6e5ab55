"""Train chemvae on molecules of ZINC-250k in both alphabets, with a property head and with either prior, and measure.

    MOLGRAPH_DATA=... python pipelines/chemvae/run.py [NAME ...]  # writes results.json, RESULTS.md; stopped, it goes on

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
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from molgraph.base.contracts import Latents  # noqa: E402
from molgraph.base.paths import atomic_write  # noqa: E402
from molgraph.chem.fingerprints import morgan  # noqa: E402
from molgraph.chem.quality import measure  # noqa: E402
from molgraph.chem.tanimoto import tanimoto  # noqa: E402
from molgraph.data.datasets import load_dataset  # noqa: E402
from molgraph.data.table import Table, make_table  # noqa: E402
from molgraph.generate.alphabets import write_tokens  # noqa: E402
from molgraph.generate.chemvae import ChemVAE  # noqa: E402
from molgraph.generate.generated import judge  # noqa: E402

OUT, PAGE = HERE / "results.json", HERE / "RESULTS.md"
SIZES = {"space": 5_000, "trained": 10_000}
HELD, VALID, SAMPLES, LEADS, DECODINGS = 1_000, 300, 1_000, 100, 5
POINTS, AGAIN = 100, 10  # latent vectors that are decoded several times, and how often
SHAPE: dict[str, Any] = {"d_latent": 56, "d_embedding": 32, "d_hidden": 128, "n_layers": 1, "max_length": 80}
SHAPE |= {"learning_rate": 3e-3, "schedule": "cosine", "warmup_epochs": 1.0, "threads": 1, "feedback": "all"}
SPACE = SHAPE | {"encoder": "convolution", "epochs": 12, "batch_size": 64, "beta": 0.03, "warmup_start": 0.5}
TRAINED = SHAPE | {"encoder": "gru", "epochs": 25, "batch_size": 32, "beta": 0.03, "warmup_start": 0.5}
PRIOR = SHAPE | {"encoder": "gru", "epochs": 10, "batch_size": 32, "beta": 1.0, "warmup_slope": 0.0}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "selfies": ("space", SPACE | {"tokens": "selfies"}),
    "selfies, head on logP": ("space", SPACE | {"tokens": "selfies", "properties": ["logp"]}),
    "smiles": ("trained", TRAINED),
    "smiles, beta 0.1": ("trained", TRAINED | {"beta": 0.1}),
    "smiles, normal prior": ("trained", PRIOR),
    "smiles, associative prior": ("trained", PRIOR | {"prior": "acn"}),
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


def information(points: Latents) -> float:
    """Nats that a latent vector tells of which of the held-out molecules it is from, at most their logarithm.

    ``E[log q(z|x) - log mean_x' q(z|x')]``: what codes hold, whichever prior they are paid by.
    """
    mean, deviation = points.mean[points.ok], np.exp(points.log_variance[points.ok] / 2)
    z = mean + deviation * np.random.default_rng(2).standard_normal(mean.shape)
    of = np.stack([norm.logpdf(each, mean, deviation).sum(axis=1) for each in z])
    return float(np.mean(np.diag(of) - logsumexp(of, axis=1) + np.log(len(z))))


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
    made = ChemVAE(**params).fit(train, held.take(np.arange(VALID)))
    curves = made.curves
    assert curves is not None and made.best_epoch is not None
    best = curves.iloc[made.best_epoch - 1]
    out: dict[str, Any] = {"parameters": params, "cpu_seconds": round(time.process_time() - began)}
    points = made.encode(held)
    out["active units"] = int((points.mean[points.ok].var(axis=0) > 0.01).sum())
    out["kl"], out["reconstruction"] = (round(float(best[f"valid_{part}"]), 2) for part in ("kl", "reconstruction"))
    out["negative elbo"] = round(out["kl"] + out["reconstruction"], 2)
    out["information"] = round(information(points), 2)
    out["unigram"] = round(unigram_nats(train, held, made.tokens), 2)
    drawn = judge(made.sample(SAMPLES, 1), None)
    out["valid"], out["unique"] = drawn.n_valid / SAMPLES, drawn.n_unique / max(drawn.n_valid, 1)
    rows = np.flatnonzero(points.ok)[:LEADS]
    repeated = {"of held-out molecules": points.mean[rows]}
    if made.prior == "normal":
        repeated["of the prior"] = np.random.default_rng(1).standard_normal((POINTS, made.d_latent))
    for of, z in repeated.items():
        valid = judge(made.decode(z.repeat(AGAIN, axis=0), 1), None).valid.reshape(-1, AGAIN)
        out[f"valid decodings of a vector {of}"] = {
            "single": round(float(valid.mean()), 3),
            f"any of {AGAIN}": round(float(valid.any(axis=1).mean()), 3),
        }
    cold = made.set_params(temperature=0.1).decode(points.mean[rows], 1)
    own, again = (judge(texts, None).canonical for texts in (held.smiles[rows].tolist(), cold))
    out["reconstructed"] = float(np.mean([a == b for a, b in zip(own, again, strict=True)]))
    out["valid at temperature 0.1"] = judge(made.sample(SAMPLES, 1), None).n_valid / SAMPLES
    made.set_params(temperature=1.0)
    out["r2 of a linear probe for logP"] = round(probe(made, held), 3)
    around, anywhere = likeness(made, held.take(rows))
    out["similarity to a lead"] = {"around it": round(around, 3), "anywhere": round(anywhere, 3)}
    return out


def results() -> dict[str, Any]:
    """The runs that are done."""
    return json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}


def page(found: dict[str, Any]) -> str:
    """The results as markdown."""
    lines = [
        "# chemvae: reconstruction, validity and the two priors",
        "",
        "Written by `python pipelines/chemvae/run.py`.",
    ]
    lines += [f"Molecules of ZINC-250k; held out are {HELD:,}. A vector is decoded once, or {AGAIN} times.", ""]
    columns = [
        "run",
        "molecules",
        "beta",
        "CPU s",
        "KL",
        "information",
        "-log p(x\\|z)",
        "reconstructed by the mean, T 0.1",
        "valid",
    ]
    columns += ["valid, T 0.1", f"valid, any of {AGAIN}", f"around held-out ones: valid, any of {AGAIN}"]
    columns += ["R2 of logP", "Tanimoto to a lead: around it, anywhere"]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, each in found.items():
        params, lead = each["parameters"], each["similarity to a lead"]
        held, some = each["valid decodings of a vector of held-out molecules"], f"any of {AGAIN}"
        prior = each.get("valid decodings of a vector of the prior", {some: ""})
        cells = [
            name,
            f"{SIZES[RUNS[name][0]]:,}",
            params["beta"],
            each["cpu_seconds"],
            each["kl"],
            each["information"],
        ]
        cells += [each["reconstruction"], each["reconstructed"], each["valid"], each["valid at temperature 0.1"]]
        cells += [prior[some], f"{held['single']}, {held[some]}", each["r2 of a linear probe for logP"]]
        cells += [f"{lead['around it']}, {lead['anywhere']}"]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return "\n".join([*lines, ""])


def main(names: list[str]) -> None:
    """Fill in the runs that results.json lacks, those that are named or all."""
    table = load_dataset("zinc250k").table
    pick = np.random.default_rng(0).permutation(len(table))[: max(SIZES.values()) + HELD]
    smiles = [str(text).strip() for text in table.smiles[pick]]
    for name in names or RUNS:
        if name not in results():
            found = figures(name, smiles)
            done = results() | {name: found}
            done = {each: done[each] for each in RUNS if each in done}
            for path, text in ((OUT, json.dumps(done, indent=1) + "\n"), (PAGE, page(done))):
                with atomic_write(path, "w") as file:
                    file.write(text)
            print(name, json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
