"""List the published methods that are commands, options of commands or recipes, and not registered parts."""

from __future__ import annotations

import re
from typing import NamedTuple

from molgraph.base.systems import SystemCard


class Built(NamedTuple):
    """One implementation of a system: its card, and the registered thing, verb or option that is it."""

    card: SystemCard
    kind: str
    name: str
    module: str
    paper: str
    command: str

    @property
    def place(self) -> str:
        """Its file in the repository."""
        return f"{self.module.replace('.', '/')}.py"

    def without(self) -> str:
        """The command with the mechanism taken out; empty where the card says no way.

        Example:
            >>> next(each for each in VERBS if each.name == "--diversity").without()
            'molgraph optimise jtvae-zinc --oracle qed --search bayes -o best.csv --diversity 0'
        """
        if not self.card.off.startswith("-"):
            own = rf"(?<=[ =])({re.escape(self.name)}|'{re.escape(self.name)}\([^']*\)')(?= |$)"  # with its settings
            return self.card.off and re.sub(own, lambda _: self.card.off, self.command)
        kept, options = self.command, re.findall(r"(-\S+) ([^\s=]+)(\S*)", self.card.off)
        for flag, first, rest in options:  # an option takes the place of the one that it contradicts
            same = rf"{flag} {re.escape(first)}=\S+" if rest else rf"{flag} [^\s=]+(?= |$)"
            kept = re.sub(rf" {same}", "", kept)
        return f"{kept} {self.card.off}"


#: systems that are a verb, an option of one or a recipe
VERBS = (
    Built(
        SystemCard(
            "cactus",
            left_out="more than two clusters a task; images' encoders, for which fingerprints or any encoder stand",
            off="--scaling 0",
            beside=("random weights", "one partition alone"),
            modules=("molgraph.cli.cluster_tasks",),
        ),
        "verb",
        "data tasks",
        "molgraph.data.cluster_tasks",
        "Hsu et al. 2019, ICLR",
        "molgraph data tasks dataset:chembl2321810 --clusters 5 --least 5 --number 8 -o tasks.csv",
    ),
    Built(
        SystemCard(
            "dvd",
            left_out="the bandit that adapts the weight; batches are chosen, no population of policies is trained",
            off="--diversity 0",
            beside=("the batch of best scores",),
            modules=("molgraph.generate.run_search",),
        ),
        "option",
        "--diversity",
        "molgraph.generate.diversity",
        "Parker-Holder et al. 2020, NeurIPS",
        "molgraph optimise jtvae-zinc --oracle qed --search bayes --diversity 0.7 -o best.csv",
    ),
    Built(
        SystemCard(
            "gumbel-top-k-stochastic-beam-search",
            left_out="weights that are normalised; the use for BLEU",
            off="--no-distinct",
            beside=("independent draws",),
            modules=("molgraph.generate.policy", "molgraph.generate.language"),
        ),
        "option",
        "--distinct",
        "molgraph.generate.distinct",
        "Kool et al. 2019, ICML",
        "molgraph generate prior -n 20 --distinct -o new.csv",
    ),
    Built(
        SystemCard(
            "adamw-sgdw",
            left_out="decay normalised by the number of steps; warm restarts",
            off="adam",
            beside=("adam with the penalty in its gradient",),
            modules=("molgraph.train.phases",),
        ),
        "optimizer",
        "adamw",
        "molgraph.train.optimizers",
        "Loshchilov and Hutter 2019, ICLR",
        "molgraph train dataset:chembl2321810 -m dmpnn --optimizer adamw --weight-decay 0.1",
    ),
    Built(
        SystemCard("radam", off="adam", beside=("adam without a warm-up",)),
        "optimizer",
        "radam",
        "molgraph.train.optimizers",
        "Liu et al. 2020, ICLR",
        "molgraph train dataset:chembl2321810 -m dmpnn --optimizer radam",
    ),
    Built(
        SystemCard(
            "smoothness-clipped-gd",
            off="--gradient-clip 1000",
            beside=("steps as they are",),
            modules=("molgraph.train.engine",),
        ),
        "option",
        "--gradient-clip",
        "molgraph.train.smoothness",
        "Zhang et al. 2020, ICLR",
        "molgraph train dataset:chembl2321810 -m dmpnn --gradient-clip auto --epochs 4",
    ),
    Built(
        SystemCard(
            "sparsity-normalization",
            left_out="states of hidden layers, which the paper leaves alone too; forests and "
            "linear models fill gaps by the median",
            off="--gaps mean",
            beside=("zeros in the gaps", "the column's mean"),
            modules=("molgraph.train.outputs", "molgraph.data.observed"),
        ),
        "option",
        "--gaps",
        "molgraph.train.sparsity",
        "Yi et al. 2020, ICLR",
        "molgraph train profile.csv -m dmpnn --feature a --feature b --feature c --gaps scale",
    ),
    Built(
        SystemCard(
            "mnasnet",
            left_out="the controller that learns by reinforcement, for which the sampler of trials stands; a search "
            "over layers of different kinds",
            off="--latency-weight 0",
            beside=("random trials",),
            modules=("molgraph.evaluate.trials", "molgraph.train.tuning"),
        ),
        "option",
        "--latency",
        "molgraph.evaluate.latency",
        "Tan et al. 2019, CVPR",
        "molgraph tune dataset:chembl2321810 -m random_forest --trials 3 --latency 5000/s -o quick.mgm",
    ),
    Built(
        SystemCard(
            "citynav-multicitynav",
            left_out="navigation, its recurrent policy and the curriculum by distance: the description of a goal by "
            "its distances to landmarks stands",
            off="--descriptors landmarks(library.smi,32,0)",
            beside=("ECFP4 of 2,048 bits",),
            part=True,
        ),
        "option",
        "--descriptors",
        "molgraph.embed.landmarks",
        "Mirowski et al. 2018, NeurIPS",
        "molgraph train dataset:chembl2321810 -m linear -s params.features=vectors "
        "--descriptors 'landmarks(library.smi,32)'",
    ),
    Built(
        SystemCard(
            "max",
            left_out="the simulator and the policy that plans a way to what is new: all of a pool is at hand",
            off="--score random",
            beside=("a random plate", "the variance of the members"),
            modules=("molgraph.api.selecting", "molgraph.chem.max_min"),
        ),
        "verb",
        "select",
        "molgraph.trust.disagreement",
        "Shyam et al. 2019, ICML",
        "molgraph select ensemble.mgm dataset:nci --batch 8 -o plate.csv",
    ),
    Built(
        SystemCard(
            "cf-gps-cf-pe",
            left_out="the search for a policy, and effects that are not normal: abduction, action and prediction stand",
            off="--parent-share 0",
            beside=("the model alone", "the whole error of the analogue added"),
            modules=("molgraph.train.parents",),
        ),
        "option",
        "--parent",
        "molgraph.train.analogues",
        "Buesing et al. 2019, ICLR",
        "molgraph predict assay.mgm dataset:chembl2321810 --parent measured.csv -o predicted.csv",
    ),
    Built(
        SystemCard(
            "adversarial-filtering",
            left_out="a generator of candidates, the pool's molecules stand for its; the test without the context",
            off="--replace 0",
            beside=("random decoys",),
            modules=("molgraph.cli.decoys",),
        ),
        "verb",
        "data decoys",
        "molgraph.chem.decoys",
        "Zellers et al. 2019, ACL",
        "molgraph data decoys dataset:chembl2321810 dataset:nci --number 10 -o decoys.csv",
    ),
    Built(
        SystemCard(
            "nerfies",
            left_out="the radiance field, the network and the latents of the deformation; bands that open in training",
            off="--straight",
            beside=("straight lines",),
            modules=("molgraph.chem.rigidity", "molgraph.chem.turn_field"),
            part=True,
        ),
        "verb",
        "morph",
        "molgraph.chem.morph",
        "Park et al. 2020, ICCV 2021",
        "molgraph morph folded.sdf open.sdf --rigid -o way.sdf",
    ),
    Built(
        SystemCard(
            "muse",
            left_out="the adversarial start without a dictionary: the anchors are the molecules that both sides have",
            off="--align none",
            beside=("vectors as they are",),
            modules=("molgraph.embed.csls", "molgraph.embed.heads"),
        ),
        "option",
        "--align",
        "molgraph.embed.align",
        "Conneau et al. 2018, ICLR",
        "molgraph embed encoder.mgm dataset:chembl2321810 --align old.parquet -o new.parquet",
    ),
    Built(
        SystemCard(
            "muse",
            left_out="the adversarial start without a dictionary",
            off="--cosine",
            beside=("the cosine",),
        ),
        "option",
        "--csls",
        "molgraph.embed.csls",
        "Conneau et al. 2018, ICLR",
        "molgraph nearest old.parquet old.parquet --csls -o near.csv",
    ),
    Built(
        SystemCard(
            "ae-comm",
            left_out="the agents and their policies: a code of frozen vectors stands, which no task changes",
            off="--code-by projection",
            beside=("a random projection", "principal components", "the whole vector"),
            modules=("molgraph.embed.heads",),
        ),
        "option",
        "--code",
        "molgraph.embed.code",
        "Lin et al. 2021, NeurIPS",
        "molgraph embed encoder.mgm dataset:chembl2321810 --code 4 -o codes.csv",
    ),
    Built(
        SystemCard(
            "real-to-binary",
            left_out="networks of binary layers: their gates of channels and the chain of ever more binary teachers",
            off="--code-by hyperplanes",
            beside=("random hyperplanes", "principal components, 16 numbers"),
            modules=("molgraph.embed.heads", "molgraph.train.row_formats"),
        ),
        "option",
        "--code-by",
        "molgraph.embed.binary",
        "Martinez et al. 2020, ICLR",
        "molgraph embed encoder.mgm dataset:chembl2321810 --code 64 --code-by binary -o library.bits",
    ),
    Built(
        SystemCard(
            "embedding-grammars",
            left_out="words and their learned vectors: fragments by properties, or by an encoder; the other rules than "
            "a ball around exemplars",
            off="--eps 0",
            beside=("the exemplars alone", "Morgan fingerprints", "random vectors"),
            modules=("molgraph.api.soft_search", "molgraph.chem.substituents"),
        ),
        "option",
        "--smarts",
        "molgraph.embed.grammar",
        "Wingate et al. 2018, arXiv 1808.04891",
        'molgraph nearest library.smi --smarts "c1ccccc1[*:1]" --like "[*:1]C(=O)O" --eps 0.8 -o matches.csv',
    ),
    Built(
        SystemCard(
            "musicvae",
            left_out="the decoder of two levels, and vectors of attributes; the way between two molecules stands",
            beside=("a straight line",),
            part=True,
        ),
        "verb",
        "latent interpolate",
        "molgraph.api.latent_space",
        "Roberts et al. 2018, ICML",
        "molgraph latent interpolate jtvae-zinc CCO c1ccccc1O -o way.csv",
    ),
    Built(
        SystemCard(
            "moleculenet",
            left_out="Tox21, ToxCast, MUV, PCBA and the quantum sets in the stored run; HIV is a recipe of its own",
            beside=("mean", "random_forest"),
        ),
        "recipe",
        "moleculenet",
        "molgraph.evaluate.benchmark.recipe",
        "Wu et al. 2018, Chem. Sci. 9:513",
        "molgraph bench run moleculenet",
    ),
)
