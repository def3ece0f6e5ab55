"""List the published methods that are options of the commands on generated molecules and latent spaces."""

from __future__ import annotations

from molgraph.api.built_system import Built
from molgraph.base.systems import SystemCard

#: systems that are an option of ``morph``, ``latent`` or ``judge-generation``
GENERATION_VERBS = (
    Built(
        SystemCard(
            "causal-infogan",
            left_out="the network: molecules are their own states, and edits the transitions that it would learn",
            off="--breadth-first",
            beside=("breadth-first search with the same budget",),
            modules=("molgraph.chem.edit_neighbours", "molgraph.cli.morph"),
        ),
        "option",
        "--how edits",
        "molgraph.chem.edit_path",
        "Kurutach et al. 2018, NeurIPS",
        'molgraph morph "CCOc1ccccc1" "Cc1ccc(CN)cc1O" --how edits --budget 30 -o way.csv',
    ),
    Built(
        SystemCard(
            "time-control",
            left_out="its encoder, which learns bridges by contrast, and a decoder trained along them: those of the "
            "generator stand",
            off="--spread 0",
            beside=("the straight line",),
            modules=("molgraph.api.latent_space",),
        ),
        "option",
        "--path bridge",
        "molgraph.generate.brownian_bridge",
        "R. E. Wang et al. 2022, ICLR",
        "molgraph latent interpolate jtvae-zinc CCO c1ccccc1O --path bridge --paths 20 -o ways.csv",
    ),
    Built(
        SystemCard(
            "ilqr-vae",
            left_out="series of observations, the covariance of the posterior, and gradients of training through the "
            "optimum: vectors of a trained model are refined, by first-order steps",
            off="--refine 0",
            beside=("the encoder's mean",),
            modules=("molgraph.generate.vae_texts",),
        ),
        "option",
        "--refine",
        "molgraph.generate.map_latent",
        "Schimel et al. 2022, ICLR",
        "molgraph train-generator dataset:chembl2321810 -m chemvae -o vae.mgm && "
        "molgraph latent encode vae.mgm library.smi --refine 50 -o latents.csv",
    ),
    Built(
        SystemCard(
            "sumo",
            left_out="training by its gradients; generators whose vectors are codes or have a learned prior",
            beside=("the bound of one point",),
            modules=("molgraph.generate.vae_texts", "molgraph.evaluate.generation.measures"),
        ),
        "verb",
        "judge-generation",
        "molgraph.generate.sumo",
        "Luo et al. 2020, ICLR",
        "molgraph train-generator dataset:chembl2321810 -m chemvae -o vae.mgm && "
        "molgraph judge-generation vae.mgm -n 100 --likelihood library.smi -o scores.csv",
    ),
    Built(
        SystemCard(
            "factorgan",
            left_out="the training of a generator by these ratios: they judge one that is there",
            off="--no-parts",
            beside=("a sample of the same molecules",),
            modules=("molgraph.evaluate.generation.measures",),
        ),
        "option",
        "--parts",
        "molgraph.evaluate.generation.factorised",
        "Stoller et al. 2020, ICLR",
        "molgraph judge-generation dataset:nci --reference dataset:chembl2321810 --parts -o scores.csv",
    ),
)
