"""Cards of the published systems that are settings of the objective ``contrast``, such as CLAE and RoCL."""

from __future__ import annotations

from molgraph.base.systems import SystemCard

_RUN = "molgraph pretrain dataset:chembl2321810 -m gin --objective 'contrast({})' -o encoder.mgm"

CARDS = (
    SystemCard(
        "infonce-cpc",
        left_out="prediction of later steps by an autoregressive context; audio and images",
        off="masked-atoms",
        beside=("the encoder without training", "chance"),
        modules=("molgraph.nn.contrastive",),
    ),
    SystemCard(
        "debiased-contrastive-loss",
        left_out="several positives of an anchor",
        off="contrast",
        beside=("the loss with true negatives",),
        command=_RUN.format("debias=auto"),
        modules=("molgraph.nn.contrastive", "molgraph.train.scaffold_labels"),
    ),
    SystemCard(
        "lwm-with-w-mse",
        left_out="the world model and its reward; sub-batches of the whitening",
        off="contrast",
        beside=("the squared distance of states as they are",),
        command=_RUN.format("loss=whitening, width=16"),
        modules=("molgraph.nn.whitening",),
    ),
    SystemCard(
        "clae",
        left_out="weights of the batch norms for changed molecules; images",
        off="contrast",
        beside=("contrast without the change",),
        command=_RUN.format("adversarial=1"),
        modules=("molgraph.nn.contrastive", "molgraph.train.adversary"),
    ),
    SystemCard(
        "rocl",
        left_out="smoothed and transformed tests of the linear probe; images",
        off="contrast",
        beside=("contrast without the change",),
        command=_RUN.format("adversarial=7, positive=true"),
        modules=("molgraph.nn.contrastive", "molgraph.train.adversary"),
    ),
    SystemCard(
        "wdm-wasserstein-predictive-coding",
        left_out="gradients with respect to pixels: those of the encoder's states are kept at 1",
        off="contrast",
        beside=("InfoNCE",),
        command=_RUN.format("bound=wpc"),
        modules=("molgraph.nn.contrastive", "molgraph.nn.wasserstein"),
    ),
    SystemCard(
        "lump",
        left_out="mixtures of inputs: graphs have none, and states are mixed; SimSiam",
        off="'contrast(loss=barlow)'",
        beside=("the new corpus alone",),
        command="molgraph pretrain dataset:chembl2321810 --init encoder.mgm"
        " --objective 'contrast(loss=barlow, replay=dataset:nci)' -o new.mgm",
        modules=("molgraph.nn.barlow_twins", "molgraph.train.replay"),
    ),
)
