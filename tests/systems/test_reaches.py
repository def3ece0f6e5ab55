"""The first rung: every card's command runs at a small size, twice equal to the bit, and otherwise with ``off``."""

from __future__ import annotations

import shlex
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem
from typer.testing import CliRunner

import molgraph
from molgraph.api.systems import Built, built
from molgraph.base import registry
from molgraph.base.contracts import Generator, LatentGenerator
from molgraph.base.parts import read_part
from molgraph.chem.complexes import Structure, write_structure
from molgraph.chem.graph_edits import mutate
from molgraph.chem.trajectory import simulate
from molgraph.cli.main import app
from molgraph.data.sources import builtin
from molgraph.generate.chemvae import ChemVAE
from molgraph.generate.language import LanguageGenerator
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.trust.ensemble import Ensemble
from tests.systems.test_bench_audit import scores as made_scores
from tests.systems.test_space_complexes import toys
from tests.tiny import SMALL, curve_points, series

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
PROTEINS = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "ACDEFGHIKLMNPQRSTVWY")
FRAGMENTS = ("OC(=O)c1ccccc1", "CC(=O)c1ccccc1", "NC(=O)c1ccccc1", "Oc1ccccc1")
GROUPS = ("F", "Cl", "Br", "C", "OC", "N#C", "FC(F)(F)", "N")  # in series in which they replace each other
RESTS = ("c1ccc2ccccc2c1", "c1ccc(C(=O)NC2CC2)cc1", "C1CCN(CC1)c1ccccn1", "c1ccc(cc1)N1CCOCC1")
TRIALS = 3  # of the card of a latency
#: what a verb is told besides, so that it ends soon
QUICK = {
    "train": "-t y --split random --no-baseline --epochs 1 --batch-size 16 --threads 1",
    "pretrain": "--epochs 1 --batch-size 16 --threads 1",
    "generate": "--threads 1",
    "train-generator": "--epochs 1 --batch-size 16 --threads 1",
    "optimise": "--budget 40 --batch 10 --no-compare --threads 1",
    "finetune": "-t y --split random --no-baseline --epochs 2 --batch-size 16 --threads 1",
    "study": "--seconds 60",
    "tune": "-t y --split random --no-baseline --threads 1",
    "latent encode": "",
    "latent interpolate": "--steps 4",
    "judge-generation": "--no-controls",
    "morph": "--steps 4",
    "embed": "--threads 1",
    "nearest": "--threads 1",
    "select": "--seed 0",
    "predict": "--threads 1",
    "explain": "-n 4",
    "compress": "--seed 0",
    "data tasks": "",
    "data decoys": "--rounds 6",
    "bench audit": "",
    "bench run": "--dry-run --only dataset=freesolv,method=mean",
}


def small(words: list[str]) -> list[str]:
    """The options that make the named members small."""
    text, chosen = " ".join(words), {}
    files = ("finetune", "study", "latent", "morph", "embed", "nearest", "select", "predict", "judge-generation")
    if words[0] in files or "--init" in words:  # of a file that is small
        return []
    named = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-m", "--model")]
    if any("+" in name for name in named):  # each column has its own
        return ["-s", "params.head_width=8"]
    encoders = registry.names("encoder")
    for name in named or (["dmpnn"] if words[0] in ("train", "pretrain") else []):
        kind = "generator" if words[0] == "train-generator" else "encoder" if name in encoders else "method"
        chosen |= {f"params.{k}": v for k, v in registry.get(kind, name).small.items()}
        chosen |= {"params.head_width": 8} if kind == "encoder" else {}
    chosen |= {"params.warmup_slope": 0} if "chemvae" in named else {}  # one epoch with the divergence's whole weight
    chosen |= {"params.method": "random_forest", "params.n": 2} if "ensemble" in named else {}
    if "--search" in words:
        search, few = read_part(words[words.index("--search") + 1]).name, {"initial": 20}
        fast = {"learning_rate": 0.02}  # four batches are few
        tried = {"cyclegan": {**few, "steps": 100, "width": 16}, "bayes": few, "policy": fast, "reinvent": fast}
        chosen |= tried.get(search, {})
    plain = {
        k: v for k, v in chosen.items() if not isinstance(v, dict) and k.split(".")[-1] not in ("epochs", "batch_size")
    }
    return [part for k, v in plain.items() if f"{k}=" not in text for part in ("-s", f"{k}={v}")]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Small tables in the place of the datasets that commands name, and a small generator for the one that ships."""
    folder, few = tmp_path_factory.mktemp("tables"), series(48)
    smiles, y = [str(text) for text in few.smiles], few.y
    assert y is not None
    rng = np.random.default_rng(0)
    frames = {
        "chembl2321810": {"smiles": smiles, "y": y[:, 0]},
        "adme_sol": {"smiles": smiles, "pActivity": y[:, 0]},  # of assay.mgm's own target
        "nci": {"smiles": [str(text) for text in builtin.nci().smiles[:32]]},
        "bace": {"smiles": [f"{g}{rest}" for rest in RESTS for g in GROUPS]},
        "tox21": {"smiles": smiles, **{name: rng.integers(0, 2, 48) for name in "abc"}},
        "davis": {"smiles": smiles, "sequence": [PROTEINS[i % 3] for i in range(48)], "y": y[:, 0]},
        "ppi_yeast": {
            name: [PROTEINS[i % 3][: k + i % k] for i in range(48)] for name, k in (("protein_a", 7), ("protein_b", 8))
        },
    }
    frames["ppi_yeast"]["y"] = y[:, 0]
    for name, columns in frames.items():
        pd.DataFrame(columns).to_csv(folder / f"{name}.csv", index=False)
    with Chem.SDWriter(str(folder / "gdb7_3d.sdf")) as file:
        for i in range(30):
            mol = Chem.AddHs(Chem.MolFromSmiles("C" * (1 + i % 10) + "ONF"[i // 10]))
            AllChem.EmbedMolecule(mol, randomSeed=i + 1)
            mol.SetProp("y", str(i % 7))
            file.write(mol)
    complexes = toys("first", 30, 0)
    texts = [write_structure(Structure(**value.arrays())) for value in complexes.entities[0].values]
    frame = pd.DataFrame({"geometry": texts, "y": complexes.y[:, 0] + np.arange(30) % 3})
    frame.to_csv(folder / "pdbbind_complexes.csv", index=False)
    for seed, name in enumerate(("folded", "open"), 2):
        mol = Chem.AddHs(Chem.MolFromSmiles("CCCCCO"))
        AllChem.EmbedMolecule(mol, randomSeed=seed)
        (folder / f"{name}.sdf").write_text(Chem.MolToMolBlock(mol) + "$$$$\n")
    encoder = molgraph.pretrain(few, model="dmpnn", params={"d_hidden": 8}, epochs=1, threads=1)
    encoder.save(folder / "encoder.mgm")
    Model(GraphMethod(**{**SMALL, "head_dropout": 0.3}).fit(few), targets=few.targets).save(folder / "assay.mgm")
    forests = Ensemble("random_forest", n=3, params={"n_estimators": 5, "n_bits": 256}, threads=1).fit(few)
    Model(forests, targets=few.targets).save(folder / "ensemble.mgm")
    pd.DataFrame({"smiles": smiles, "pActivity": y[:, 0] + 0.5}).to_csv(folder / "measured.csv", index=False)
    attentive = {**SMALL, "encoder": "gin", "params": {"d_hidden": 8, "readout": "self_attentive"}}
    Model(GraphMethod(**attentive).fit(few), targets=few.targets).save(folder / "attentive.mgm")
    gps = {**SMALL, "encoder": "graphgps", "params": {"d_hidden": 8, "walk": 4, "depth": 2}}
    Model(GraphMethod(**gps).fit(few), targets=few.targets).save(folder / "gps.mgm")
    molgraph.pretrain(few, model="gin", params={"d_hidden": 8}, epochs=1, threads=1).save(folder / "gin.mgm")
    older = molgraph.pretrain(few, model="dmpnn", params={"d_hidden": 8}, epochs=1, threads=1, seed=1)
    molgraph.embed(older, str(folder / "chembl2321810.csv"), folder / "old.parquet")
    (folder / "library.smi").write_text("".join(f"{text}\n" for text in [*smiles, *FRAGMENTS]))
    ranks = {"a": smiles[:24], "b": [*smiles[24:46], "", ""], "soluble": [1, 0, ""] * 8}
    pd.DataFrame(ranks).to_csv(folder / "pairs.csv", index=False)
    edits = {"from": smiles, "to": [mutate(text, rng) or text for text in smiles], "y": y[:, 0]}
    pd.DataFrame(edits).to_csv(folder / "edits.csv", index=False)
    curve_points().to_csv(folder / "curves.csv", index=False)
    gaps = pd.DataFrame(np.where(rng.random((48, 3)) < 0.5, np.nan, rng.normal(3, 1, (48, 3))), columns=[*"abc"])
    gaps.assign(smiles=smiles, y=y[:, 0]).to_csv(folder / "profile.csv", index=False)
    generator = ChemVAE(**{**ChemVAE.small, "tokens": "selfies", "epochs": 1, "threads": 1}).fit(few)
    Model(generator, targets=()).save(folder / "jtvae-zinc.mgm")
    writer = LanguageGenerator(**LanguageGenerator.small, tokens="selfies", threads=1).fit(few)
    Model(writer, targets=()).save(folder / "prior.mgm")
    found = {f"dataset:{name}": str(folder / f"{name}.csv") for name in frames}
    found["dataset:esol"] = found["dataset:chembl2321810"]
    found["dataset:pdbbind_complexes"] = str(folder / "pdbbind_complexes.csv")
    made = {
        "dataset:gdb7_3d": "gdb7_3d.sdf",
        "jtvae-zinc": "jtvae-zinc.mgm",
        "prior": "prior.mgm",
        "vae.mgm": "jtvae-zinc.mgm",
        "encoder.mgm": "encoder.mgm",
    }
    found |= {"NR-AhR": "a", "NR-ER": "b", "SR-ARE": "c"}  # columns
    made |= {
        name: name
        for name in (
            "assay.mgm",
            "ensemble.mgm",
            "measured.csv",
            "attentive.mgm",
            "gin.mgm",
            "gps.mgm",
            "folded.sdf",
            "open.sdf",
            "traj.npz",
            "old.parquet",
            "library.smi",
        )
    }
    made |= {name: name for name in ("pairs.csv", "edits.csv", "curves.csv", "profile.csv")}
    (folder / "quick").mkdir()
    made_scores().to_csv(folder / "quick" / "scores.csv", index=False)
    found["bench/quick"] = str(folder / "quick")
    simulate("CCCC", steps=1600, every=10, equilibrate=100).save(folder / "traj.npz")
    for how in ("", ", pessimistic=true"):
        found[f"model(assay.mgm{how})"] = f"model({folder / 'assay.mgm'}{how})"
    for how in ("", ", shaped=false"):
        found[f"airl(edits.csv{how})"] = f"airl({folder / 'edits.csv'}{how})"
    return found | {name: str(folder / file) for name, file in made.items()}


def run(command: str, tables: dict[str, str], folder: Path) -> bytes:
    """What a command, or the last of several, makes in bytes: answers for the nasty molecules, samples, or its file."""
    folder.mkdir()
    last = command.split(" && ")[-1].replace("-o frontier.png", "-o frontier.csv")  # a picture has the same figures
    words = shlex.split(last)[1:]
    words = [
        word if before == "-o" else tables.get(word, word) for before, word in zip(["", *words], words, strict=False)
    ]
    words = [word.replace("(library.smi", f"({tables['library.smi']}") for word in words]  # within a part
    if words[0] == "study":
        part = read_part(words[1])
        settings = {**registry.get("study", part.name).small, **part.settings}
        words[1] = f"{part.name}({', '.join(f'{name}={value}' for name, value in settings.items())})"
    verb = next(name for name in QUICK if " ".join(words).startswith(f"{name} "))
    quick = shlex.split(QUICK[verb])
    if "davis" in command and "+" in command:
        quick += ["--sequence", "sequence"]
    if verb == "study" and (
        "davis" in command
        or words[1].startswith(("shortcuts", "benchmark", "fragile", "federated", "tickets", "cue-conflict"))
        or words[1].startswith(("pretraining", "likelihood", "init", "direction", "endpoints"))
    ):
        quick += ["-t", "y"]
    if "ppi_yeast" in command:
        quick += ["--sequence", "protein_a", "--sequence", "protein_b"]
    if ":curve" in command:
        quick = quick[2:]
    if "tox21" in command:
        quick = quick[2:] if quick[:2] == ["-t", "y"] else quick
        quick += ["-t", "a", "-t", "b", "-t", "c"]
    out = folder / (words[words.index("-o") + 1] if "-o" in words else "model.mgm")
    if "-o" in words:
        words[words.index("-o") + 1] = str(out)
    elif verb != "bench run":
        words += ["-o", str(out)]
    again = ("--sequence",) if "--helper" in words else ("-t", "--sequence")
    extra = [pair for pair in _pairs(quick) if pair[0] not in words or pair[0] in again]
    done = CliRunner().invoke(app, [*words, *(w for pair in extra for w in pair), *small(words)])
    assert done.exit_code == 0, f"{command}\n{done.output[-2000:]}"
    if verb == "bench run":
        return done.output.encode()
    if out.suffix != ".mgm":
        return out.read_bytes()
    assert verify(out).largest_gap == 0
    model = load_model(out)
    if isinstance(model.method, Generator):
        points = model.method.encode(series(8)).mean.tobytes() if isinstance(model.method, LatentGenerator) else b""
        return points + "\n".join(model.method.sample(20, 1)).encode()
    data: Any = NASTY
    if "gdb7_3d" in command or "pdbbind_complexes" in command:
        data = tables["dataset:gdb7_3d" if "gdb7_3d" in command else "dataset:pdbbind_complexes"]
    elif "davis" in command:
        data = pd.DataFrame({"smiles": NASTY, "sequence": PROTEINS[0]})
    elif "ppi_yeast" in command:
        data = pd.DataFrame({"protein_a": NASTY, "protein_b": PROTEINS[0]})
    elif "profile.csv" in command:
        data = tables["profile.csv"]
    elif "edits.csv" in command:
        data = pd.DataFrame({"from": NASTY, "to": "CCO"})
    found = model.predict(data) if verb in ("train", "tune", "finetune", "compress") else molgraph.embed(out, data)
    n = 48 if "profile.csv" in command else 30 if isinstance(data, str) else len(NASTY)
    assert len(found.value) == n and all(np.isfinite(found.value[np.asarray(found.ok)]).ravel())
    return found.value.tobytes() + b"".join(_bytes(found.extra[name]) for name in sorted(found.extra) if "_" in name)


def _pairs(words: list[str]) -> list[list[str]]:
    """Options with their values."""
    pairs: list[list[str]] = []
    for word in words:
        pairs.append([word]) if word.startswith("-") else pairs[-1].append(word)
    return pairs


CARDS = [
    pytest.param(each, id=f"{each.card.id}-{each.name}", marks=pytest.mark.system(each.card.id, rung="reaches"))
    for each in built()
    if each.module.startswith("molgraph.")
]


def _bytes(values: np.ndarray) -> bytes:
    """Those of numbers, or of texts, whose arrays hold pointers."""
    return "\n".join(map(str, values)).encode() if values.dtype == object else values.tobytes()


@pytest.mark.parametrize("made", CARDS)
def test_its_command_runs_twice_alike_and_otherwise_without_the_mechanism(
    made: Built, tables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--latency" in made.command:  # a clock is not equal twice: the last configuration is the fastest
        times = cycle([*[1e3] * (TRIALS - 1), 1e-6])
        monkeypatch.setattr("molgraph.train.tuning.seconds_in_turn", lambda runs: [next(times) for _ in runs])
    whole = run(made.command, tables, tmp_path / "a")
    assert run(made.command, tables, tmp_path / "b") == whole, "two runs are equal to the bit"
    if made.card.off:
        assert run(made.without(), tables, tmp_path / "c") != whole, f"no difference: {made.without()}"
