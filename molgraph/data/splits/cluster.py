"""The recipe ``cluster/butina``: molecules that resemble each other stay together."""

from __future__ import annotations

from molgraph.base.errors import UsageError
from molgraph.chem.cluster import cluster_butina
from molgraph.chem.fingerprints import morgan
from molgraph.data.splits.recipe import Grouping, Task, register_split
from molgraph.data.splits.structures import group_by_parent

MOST_BITS, MOST_RADIUS = 2**16, 100


@register_split(
    "group",
    "cluster/butina",
    "Taylor-Butina clusters kept whole, large ones in train, the rest at random",
    "Butina 1999, J. Chem. Inf. Comput. Sci. 39:747",
    balanced=True,
    grouped=True,
    params={"similarity": 0.4, "radius": 2, "n_bits": 2048},
    asks="New clusters: molecules that resemble no centre of a cluster that trained.",
)
def group_by_cluster(task: Task) -> Grouping:
    """One group a Taylor-Butina cluster of the stereo-free parents' Morgan fingerprints.

    Settings: ``similarity``, least Tanimoto similarity to the cluster's centre; ``radius`` and ``n_bits`` of the
    fingerprint. Members resemble their centre; two molecules of different clusters may still resemble each other.
    """
    similarity = float(task.params["similarity"])
    if not 0 < similarity <= 1:
        raise UsageError(f"similarity is {similarity}", hint="give more than 0 and up to 1, such as 0.4")
    n_bits, radius = int(task.params["n_bits"]), int(task.params["radius"])
    if n_bits % 8 or not 8 <= n_bits <= MOST_BITS:
        raise UsageError(f"n_bits is {n_bits}", hint=f"give a multiple of 8 up to {MOST_BITS:,}, such as 2048")
    if not 0 <= radius <= MOST_RADIUS:
        raise UsageError(f"radius is {radius}", hint=f"give 0 to {MOST_RADIUS}, such as 2")
    forms, parents = group_by_parent(task)
    prints = morgan(list(parents), radius=radius, n_bits=n_bits)
    return Grouping(forms.rows, cluster_butina(prints.x, similarity)[forms.group_of], forms.left_out)
