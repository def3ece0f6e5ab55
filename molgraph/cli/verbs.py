"""List the verbs of the ``molgraph`` command, in the order of its help."""

from __future__ import annotations

from typing import NamedTuple

TRAIN, INSPECT, DATA, BENCH = "Train & predict", "Inspect", "Data", "Benchmarks"


class Verb(NamedTuple):
    """A verb's line in the help, and where its function is."""

    path: str
    panel: str
    summary: str
    module: str

    @property
    def word(self) -> str:
        """The last word, which is the function's name too."""
        return self.path.split()[-1]


VERBS = (
    Verb("train", TRAIN, "Learn from a table of molecules; compare with a baseline; keep one model file.", "train"),
    Verb("tune", TRAIN, "Search a method's hyper-parameters out of fold, and train with the best.", "tune"),
    Verb("predict", TRAIN, "Predict the molecules of a file of any size, row for row.", "predict"),
    Verb("pretrain", TRAIN, "Learn an encoder, with or without targets, for train --init.", "pretrain"),
    Verb("finetune", TRAIN, "Train a model that starts from a pretrained encoder.", "finetune"),
    Verb("embed", TRAIN, "Write the vector that a model's encoder makes of each row of a file.", "predict"),
    Verb("rank", TRAIN, "List what to make first and what to measure, by a model's predictions.", "rank"),
    Verb("select", TRAIN, "Choose the next plate to measure, by what an ensemble would learn from it.", "select"),
    Verb("nearest", TRAIN, "Find the molecules of a library that are nearest to a query.", "nearest"),
    Verb(
        "conformers",
        TRAIN,
        "Place the atoms of molecules in space by a model that knows distances.",
        "conformers",
    ),
    Verb("morph", TRAIN, "Turn one conformer into another, or one molecule by single edits.", "morph"),
    Verb("train-generator", TRAIN, "Learn from a list of molecules to propose new ones.", "generate"),
    Verb("generate", TRAIN, "Propose molecules; tell which are valid, unique and novel.", "generate"),
    Verb("latent encode", TRAIN, "Write the latent vector of each molecule of a file, row for row.", "latents"),
    Verb("latent decode", TRAIN, "Write the molecule of each latent vector, row for row.", "latents"),
    Verb("latent interpolate", TRAIN, "Decode the points on the way from one molecule to another.", "latents"),
    Verb("latent neighbours", TRAIN, "Find valid molecules near one in latent space.", "latents"),
    Verb("optimise", TRAIN, "Search for molecules that are better, by a generator or without one.", "optimise"),
    Verb(
        "judge-generation",
        TRAIN,
        "Measure generated molecules: valid, new, diverse, like a reference.",
        "judge_generation",
    ),
    Verb("temperature-sweep", TRAIN, "Draw a generator's frontier of quality and diversity.", "judge_generation"),
    Verb("evaluate", TRAIN, "Score a model on molecules whose values are known.", "evaluate"),
    Verb("report", TRAIN, "Write a page on how good a model is on measured molecules, with your ids.", "report"),
    Verb("compress", TRAIN, "Make a model smaller or faster, and say what it cost.", "compress"),
    Verb("explain", TRAIN, "Draw molecules by what a model holds of their atoms and bonds.", "explain"),
    Verb("serve", TRAIN, "Serve models over HTTP: a page for molecules and files, and a JSON API.", "serve"),
    Verb("demo", TRAIN, "The whole story on 1,017 measured molecules that need no download.", "demo"),
    Verb("data list", DATA, "Name the datasets that have a card, and where each is found.", "datasets"),
    Verb("data info", DATA, "Show a dataset's card: what it is, what is known against it.", "datasets"),
    Verb("data get", DATA, "Download datasets into the cache, check them, and say what came.", "datasets"),
    Verb("data audit", DATA, "Count and list what is wrong with a table before anything learns from it.", "data"),
    Verb("data curate", DATA, "Merge duplicates, take unreadable rows out; write the rest, and a list why.", "curate"),
    Verb("data split", DATA, "Divide a table into train, valid and test without leaks; write the lists.", "data"),
    Verb("data decoys", DATA, "Choose decoys that simple properties cannot tell from actives.", "decoys"),
    Verb(
        "data tasks",
        DATA,
        "Make tasks of two classes from molecules without labels, to learn from a few.",
        "cluster_tasks",
    ),
    Verb("data reactions", DATA, "Make mapped reactions from a library of molecules by named rules.", "reactions"),
    Verb("data field", DATA, "Compute the electrostatic potential at points around molecules.", "field"),
    Verb("data featurize", DATA, "Build a table's graphs ahead, once, on disk.", "data"),
    Verb("data trajectory", DATA, "Simulate the motion of one molecule, with energies and forces.", "trajectory"),
    Verb("bench run", BENCH, "Run a benchmark: datasets x splits x methods x seeds, each cell on its own.", "bench"),
    Verb("bench report", BENCH, "Rank the methods of a run; write a page, and a leaderboard.", "bench"),
    Verb("bench export", BENCH, "Write the folds of a benchmark as csv files for any program.", "bench_submit"),
    Verb("bench submit", BENCH, "Enter the predictions of another program into a benchmark.", "bench_submit"),
    Verb("bench site", BENCH, "Write the pages of several benchmarks, an index, and a page a method.", "bench_site"),
    Verb("bench xray", BENCH, "Show what each split of a table asks, before any training.", "bench_xray"),
    Verb("bench audit", BENCH, "Say whether one split of a run ranks methods as another does.", "bench_audit"),
    Verb("bench verify", BENCH, "Hash and score everything that a run stored once more.", "bench"),
    Verb("study", INSPECT, "Analyse data, a model or a generator, with controls.", "study"),
    Verb("models", INSPECT, "What can be trained, from which paper, with which parameters.", "models"),
    Verb(
        "systems", INSPECT, "The systems of the literature that are built, each with its file and command.", "systems"
    ),
    Verb("verify", INSPECT, "Check that a model file is whole and still predicts what it did.", "verify"),
    Verb("doctor", INSPECT, "Versions and devices of this machine, with advice.", "doctor"),
)
