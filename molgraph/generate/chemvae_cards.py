"""List the published methods that are settings of the SMILES VAE ``chemvae``, such as flow posteriors."""

from __future__ import annotations

from molgraph.base.systems import SystemCard

MODULES = ("molgraph.models.chemvae", "molgraph.nn.variational", "molgraph.generate.vae_objective")
TRAIN = "molgraph train-generator dataset:chembl2321810 -m chemvae"

CARDS = (
    SystemCard("chemvae", off="gru", beside=("gru",), modules=MODULES),
    SystemCard(
        "vae",
        off="-s params.beta=0",
        beside=("beta=0", "gru"),
        command=f"{TRAIN} -s params.encoder=convolution -o generator.mgm",
        modules=MODULES,
    ),
    SystemCard(
        "variational-inference",
        left_out="bounds other than the Gaussian one of a network; the importance-weighted one is a function",
        off="-s params.beta=0",
        beside=("beta=0.1", "beta=0"),
        command=f"{TRAIN} -s params.beta=1 -o generator.mgm",
        modules=MODULES,
    ),
    SystemCard(
        "acn",
        left_out="images; the network of the prior reads the code of a neighbour alone",
        off="-s params.prior=normal",
        beside=("prior=normal",),
        command=f"{TRAIN} -s params.prior=acn -o generator.mgm",
        modules=("molgraph.nn.bottlenecks.associative", *MODULES),
    ),
    SystemCard(
        "flow-posterior",
        left_out="the infinitesimal flows",
        off="-s params.posterior=gaussian",
        beside=("posterior=gaussian",),
        command=f"{TRAIN} -s params.posterior=planar -o generator.mgm",
        modules=("molgraph.nn.bottlenecks.flows", *MODULES),
    ),
    SystemCard(
        "normalizing-flows",
        left_out="coupling layers, the inverse, a prior or a density of data: posteriors alone are bent",
        off="-s params.posterior=gaussian",
        beside=("posterior=gaussian",),
        command=f"{TRAIN} -s params.posterior=radial -o generator.mgm",
        modules=("molgraph.nn.bottlenecks.flows", *MODULES),
        part=True,
    ),
    SystemCard(
        "wsc",
        left_out="the GAN of Shu et al., on purpose: pairs align the axes by their loss alone; goals and rewards of an "
        "agent in the latent space; pictures",
        off="-s params.ranked_weight=0",
        beside=("the best single axis of the VAE without ranks",),
        command="molgraph train-generator pairs.csv --smiles a --smiles b -m chemvae "
        "-s 'params.ranked=[\"soluble\"]' -o g.mgm",
        modules=("molgraph.nn.ranked_axes", "molgraph.generate.ranked_pairs", *MODULES),
    ),
)
