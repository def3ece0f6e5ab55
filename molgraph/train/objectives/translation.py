"""Translation: read a random SMILES of each molecule and write the canonical one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.atom_order import shuffled_smiles
from molgraph.chem.tokens import ALPHABETS, alphabet
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.text_to_text import TextToText, vocabulary


@register(
    "objective",
    "translation",
    systems=(
        SystemCard(
            "cove",
            left_out="languages and words' vectors from elsewhere; the vector of a molecule stands for those of tokens",
            off="-s params.objective.shuffle=false",
            beside=("the encoder without training", "token counts"),
            command="molgraph pretrain dataset:nci -m tokens --objective translation -o encoder.mgm",
            modules=("molgraph.train.text_to_text", "molgraph.nn.token_writer", "molgraph.models.tokens"),
        ),
    ),
    summary="write the canonical SMILES from a random one (CoVe), for tokens",
    paper="McCann et al. 2017, NeurIPS; Winter et al. 2019, Chem. Sci. 10:1692",
)
class Translation(TextToText):
    """Translation between two notations of a molecule, for pretraining an encoder of tokens.

    McCann et al. 2017, "Learned in Translation: Contextualized Word Vectors", section 3: an encoder and a decoder with
    attention learn to translate, ``-sum_t log p(y_t | y_<t, x)``, and the encoder's states are features of other tasks,
    beside those that these had (``--descriptors``). The source x is a new random SMILES in every epoch, the target y
    the canonical text, as of Winter et al. 2019. A molecule with a token outside the vocabulary is written from its
    canonical text.

    Args:
        network: its encoder is ``tokens``, of SMILES or SELFIES.
        inputs: the one column of molecules that it reads.
        shuffle: whether the source is a random SMILES in place of the canonical one.

    Raises:
        UnsupportedError: another encoder, several columns, or tokens that are not of SMILES or SELFIES.
    """

    def __init__(self, network: Network, inputs: Sequence[Input], *, shuffle: bool = True) -> None:
        super().__init__(network, inputs, "translation writes molecules anew")
        spec = inputs[0].spec
        name = spec.featuriser.partition(".")[0]
        if name not in ALPHABETS:
            words = f"translation reads tokens of SMILES or SELFIES, not those of {name}"
            raise UnsupportedError(words, hint="leave params.tokens out, or set it to smiles or selfies")
        self.alphabet, self.shuffle = alphabet(name), shuffle
        self.place = dict(spec.settings)
        self.tokens = vocabulary(spec)

    def pair(self, text: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """A random writing of the molecule, and the text with its end."""
        source, target = text, np.append(text, self.end)
        if self.shuffle and len(text) and text.min() > 0:
            smiles = self.alphabet.join([self.tokens[code] for code in text])
            ((tokens, why),) = self.alphabet.split([shuffled_smiles(smiles, rng)])
            source = text if why or not tokens else np.array([self.place.get(token, 0) for token in tokens])
        return source, target
