"""Name the hidden units of a graph network by SMARTS patterns, with a test of each name and of what the unit does."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
import torch

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import LARGEST, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.atom_labels import AtomLabels, atom_labels
from molgraph.study.ablation import ablation_change, atom_states, can_ablate
from molgraph.study.graph_subject import GraphSubject, graph_subject
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.unit_names import EPS, By, belief_names, exemplar_names
from molgraph.train.inputs import input_graphs
from molgraph.train.runtime import torch_settings

LEAST, MOST_ABLATED, SHOWN = 60, 256, 12  # molecules; molecules of ablations; names in the picture
Q, SURE = 0.05, 0.01  # false discoveries among names; p of the planted unit
NULLS, ALARMS, COMMON = 200, 0.10, 0.02  # random units; of which so many may have p < 0.05; share of the planted label


@register(
    "study",
    "units",
    summary="names of a graph network's hidden units in SMARTS, and whether they act where the name says",
    paper="Hernandez et al. 2022, ICLR",
    systems=(
        SystemCard(
            "milan",
            left_out="images, and descriptions by a captioner and a language model: labels are SMARTS patterns",
            off="units(prior=0)",
            beside=("random units",),
            command="molgraph study units builtin:chembl2321810 -m 'gin(depth=3, epochs=10)' -o units.csv",
            modules=("molgraph.study.unit_names", "molgraph.study.ablation", "molgraph.chem.atom_labels"),
        ),
        SystemCard(
            "belief-matching-translation",
            left_out="two players, the listener's own context, and the policies of their game",
            off="units(by=overlap)",
            beside=("co-occurrence",),
            command="molgraph study 'units(by=belief)' builtin:chembl2321810 -m 'gin(depth=3, epochs=10)' -o units.csv",
            modules=("molgraph.study.unit_names", "molgraph.chem.atom_labels"),
        ),
    ),
)
class Units(Study):
    """A row for each unit of the atoms' last states: its name, how sure that is, and what the unit does to the output.

    Hernandez et al. 2022, "Natural Language Descriptions of Deep Visual Features" (``by=exemplars``): a unit's
    exemplars are the atoms that excite it most, one of each of ``k`` molecules, and its name the label of most
    information about them, ``log p(d | E) - prior log p(d)``. ``p`` is the share of random units whose best label of
    all is as good; ``q`` the false discovery rate over the units. Andreas et al. 2017, "Translating Neuralese"
    (``by=belief``): a unit is a code, on or off in each molecule by its largest value, and its name the label whose
    molecules a listener believes in most alike; large molecules have larger largest values, so labels of large
    molecules are frequent. ``matching`` and ``others`` say how far the output of molecules with the label, and of
    others, moves, in its deviations, where the unit has its median in all atoms. Labels are environments of atoms and
    RDKit's 85 fragments. ``-m`` is a file, or the name of a graph network, which then learns the table's targets; a
    file needs no data and looks at RDKit's NCI list. Controls: a planted unit is named, random ones are not.

    Args:
        by: ``exemplars``, ``belief``, or ``overlap`` (the label of most molecules with the code).
        k: exemplars; one in twenty of the molecules, at most.
        prior: weight of how usual a label is, of ``exemplars``; 0 names the commonest label.
        eps: share of molecules that the listener takes for others, of ``belief``.
        most: molecules, drawn by the seed.

    Raises:
        UnsupportedError: a model that is no graph network with states of atoms.
        EmptyError: fewer than 60 molecules, or all atoms alike.
    """

    needs = ("graph_model",)
    small = MappingProxyType({"most": 120})

    def __init__(
        self,
        *,
        by: By = "exemplars",
        k: Annotated[int, Range(5, LARGEST)] = 50,
        prior: NotNegative = 0.2,
        eps: Annotated[float, Range(0.001, 0.4)] = EPS,
        most: Annotated[int, Range(LEAST, LARGEST)] = 1000,
    ) -> None:
        self.by, self.k, self.prior, self.eps, self.most = by, k, prior, eps, most

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Name all units, then take those with a sure name out one by one."""
        end = time.process_time() + 0.9 * seconds
        sample = graph_subject(subject, what="units", most=self.most, least=LEAST, seed=seed)
        labels = atom_labels(sample.mols)
        if not labels.names:
            raise EmptyError("no label tells the atoms of these molecules apart", hint="give other molecules")
        graphs = input_graphs(sample.table, sample.method.graph_inputs())[0]
        with torch_settings(1, derive(seed, "units")):
            states = atom_states(sample.method.ready().network.encoder, graphs)
        alive = np.flatnonzero(states.std(axis=0) > 1e-9)
        frame = self.names(states[:, alive], labels, seed)
        frame["unit"] = alive[frame["unit"]]
        frame = frame.sort_values(["p", "score"], ascending=[True, False], kind="stable", ignore_index=True)
        sure = frame[frame["q"] < Q]
        usual = np.median(states, axis=0)
        frame, notes = self._with_changes(frame, sample, labels, usual, len(sure), end)
        dead = states.shape[1] - len(alive)
        notes += [f"{dead} units are the same in every atom, and have no name"] * (dead > 0)
        names = sure["name"].value_counts()
        most = ", ".join(f"{name} ({count})" for name, count in names.head(5).items())
        words = f"{len(sure)} of {len(frame)} units have a name (q < {Q})" + f", the most frequent: {most}" * bool(most)
        if "matching" in frame and frame["matching"].notna().any():
            acts = int((frame["matching"] > 2 * frame["others"]).sum())
            words += f"; {acts} of {frame['matching'].notna().sum()} act twice as much on molecules with their label"
        return Findings(
            f"Units of {sample.method.model_name}, {len(sample.mols):,} molecules",
            f"{words}.",
            frame,
            *self._controls(labels, seed),
            lambda form: _drawn(frame, form),
            tuple(notes),
        )

    def names(self, values: np.ndarray, labels: AtomLabels, seed: int) -> pd.DataFrame:
        """A row for each column of ``values``, float [atoms, units]."""
        if self.by == "exemplars":
            k = max(min(self.k, len(labels.start) // 20), 3)
            return exemplar_names(values, labels, k=k, prior=self.prior, seed=seed)
        return belief_names(values, labels, by=self.by, eps=self.eps, seed=seed)

    def _with_changes(
        self, frame: pd.DataFrame, found: GraphSubject, labels: AtomLabels, usual: np.ndarray, n_sure: int, end: float
    ) -> tuple[pd.DataFrame, list[str]]:
        """The rows with what happens without each unit, as far as there is time, those with a sure name first."""
        if not can_ablate(found.method.ready().network.encoder):
            return frame, ["the readout of this encoder is given more than the states of atoms: no unit is taken out"]
        table = found.table.take(np.arange(min(len(found.table), MOST_ABLATED)))
        graphs = input_graphs(table, found.method.graph_inputs())[0]
        has = labels.of_molecules[: len(table)]
        both = np.full((len(frame), 2), np.nan)
        done = 0
        for done, (unit, name) in enumerate(zip(frame["unit"], frame["name"], strict=True), 1):
            if done > n_sure or time.process_time() > end:
                done -= 1
                break
            with torch_settings(1), torch.no_grad():
                change = ablation_change(found.method, table, graphs, {unit: float(usual[unit])})[0]
            mask = has[:, labels.names.index(name)]
            both[done - 1] = [change[rows].mean() if rows.any() else np.nan for rows in (mask, ~mask)]
        frame.insert(frame.columns.get_loc("smarts"), "matching", both[:, 0])
        frame.insert(frame.columns.get_loc("smarts"), "others", both[:, 1])
        return frame, [f"{done} of {n_sure} named units were taken out, for want of time"] * (done < n_sure)

    def _controls(self, labels: AtomLabels, seed: int) -> tuple[Control, Control]:
        """A unit that tells the atoms of a label, and random units, of which there is one value a molecule."""
        rng, usual = generator(seed, "planted"), labels.has.mean(axis=0)
        m = int(np.abs(np.log(usual / COMMON)).argmin())
        sizes = np.diff([*labels.start, len(labels.has)])
        planted = np.repeat(labels.of_molecules[:, m], sizes) if self.by != "exemplars" else labels.has[:, m]
        values = np.repeat(rng.normal(size=(len(sizes), NULLS)), sizes, axis=0)
        if self.by == "exemplars":
            values = rng.normal(size=(len(labels.has), NULLS))
        first = self.names(planted[:, None].astype(float), labels, derive(seed, "planted")).iloc[0]
        random = float((self.names(values, labels, derive(seed, "random"))["p"] < 0.05).mean())
        same = first["name"] == labels.names[m]
        return (
            Control(f"a unit that is 1 in {labels.names[m]}", f"its name, p < {SURE}",
                    f"{first['name']}, p = {first['p']:.2g}", same and bool(first["p"] < SURE)),
            Control(f"{NULLS} random units", f"names with p < 0.05 in {ALARMS:.0%} at most", f"{random:.1%}",
                    random <= ALARMS),
        )  # fmt: skip


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    sure = frame["q"] < Q
    names = frame[sure]["name"].value_counts() if sure.any() else frame["name"].value_counts()
    top = [*names.index[:SHOWN]]
    both = {
        f"q < {Q}": [float((sure & (frame["name"] == name)).sum()) for name in top],
        "others": [float((~sure & (frame["name"] == name)).sum()) for name in top],
    }
    return paired_bars(top, both, "units with the name", form)
