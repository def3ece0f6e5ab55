"""Sample a generator at several temperatures and plot quality against diversity."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

from scipy.stats import spearmanr

from molgraph.base.contracts import Generator
from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.evaluate.generation.sweep import DIVERSITY, frontier_report, sweep_temperatures, telling_quality
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

RISES = 0.8  # rank correlation of temperature and diversity


@register(
    "study",
    "temperature-sweep",
    summary="quality against diversity of a generator, at several temperatures",
    paper="Caccia et al. 2020, ICLR",
    systems=(
        SystemCard(
            "temperature-sweep",
            left_out="the language GANs that it judges",
            beside=("the generator itself",),
            modules=("molgraph.evaluate.generation.sweep",),
        ),
    ),
    command="molgraph study 'temperature-sweep(n=200)' -m jtvae-zinc -o frontier.png",
)
class TemperatureSweep(Study):
    """One temperature says little about a generator: each trades quality for diversity by it.

    Caccia et al. 2020, "Language GANs Falling Short". ``molgraph temperature-sweep`` has more options and compares two
    generators. Controls: diversity rises with temperature, and the generator ties with itself under another seed.

    Args:
        temperatures: to draw at.
        n: draws at each.
        quality: a measure's name, such as ``valid``; the one that tells most if empty.
        diversity: of the other axis.
    """

    needs = ("fitted",)
    small = {"temperatures": (0.6, 1.0, 1.4), "n": 150}  # noqa: RUF012 # settings of trials

    def __init__(
        self,
        *,
        temperatures: Sequence[float] = (0.5, 0.75, 1.0, 1.25, 1.5),
        n: Annotated[int, Range(2, LARGEST)] = 1000,
        quality: str = "",
        diversity: str = DIVERSITY,
    ) -> None:
        self.temperatures, self.n, self.quality, self.diversity = temperatures, n, quality, diversity

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Draw and measure; ``data`` are the molecules that were learned from, for measures that need them."""
        model = subject.fitted()
        if not isinstance(model.method, Generator):
            hint = "train one: molgraph train-generator CORPUS"
            raise UnsupportedError(f"{model.kind} proposes no molecules", hint=hint)
        train = None if subject.data is None else subject.table().smiles.tolist()
        names = [*{*filter(None, [self.quality]), self.diversity, "valid", "unique", "filters"}]
        how: dict[str, Any] = {"n": self.n, "train": train, "measures": names, "standardiser": model.standardiser}
        started = time.process_time()
        sweep = sweep_temperatures(model.name, model.method, self.temperatures, seed=seed, **how)
        quality = self.quality or telling_quality(sweep)
        spent = time.process_time() - started
        again = self.temperatures if 2 * spent < seconds else self.temperatures[:: max(len(self.temperatures) - 1, 1)]
        other = sweep_temperatures(model.name, model.method, again, seed=derive(seed, "other"), **how)
        itself = frontier_report(sweep, other, quality=quality, diversity=self.diversity)
        rank = float(spearmanr(sweep.temperatures, sweep.column(self.diversity)[:, 0]).statistic)
        front = ", ".join(f"{t:g}" for t in sweep.front(quality, self.diversity))
        gap = f"{itself.area.value:+.4f} ({itself.area.low:+.4f} to {itself.area.high:+.4f})"
        return Findings(
            f"Temperature sweep of {model.name}, {sweep.about}",
            f"On the front of {quality} and {self.diversity} are the temperatures {front}.",
            sweep.to_frame(),
            Control("temperature and diversity", f"rank correlation above {RISES}", f"{rank:.2f}", rank > RISES),
            Control("the generator against itself", "a tie", f"difference of {quality} {gap}", itself.tie),
            lambda form: sweep.picture(form, quality, self.diversity),
            () if again is self.temperatures else (f"{len(again)} temperatures of the second sweep, for want of time",),
        )  # fmt: skip
