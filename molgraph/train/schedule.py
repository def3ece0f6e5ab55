"""The learning rate of every step: a step's number in, a rate out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up, then exponential decay (chemprop's default; after Vaswani et al. 2017, section 5.3).

    ``lr(i) = initial + (peak - initial) i / warmup`` for ``i < warmup``, then
    ``peak (final / peak)^((i - warmup) / cooldown)``, and ``final`` after that.

    Args:
        initial, peak, final: rates.
        warmup, cooldown: numbers of steps.

    Example:
        >>> s = Schedule(1e-4, 1e-3, 1e-4, warmup=10, cooldown=90)
        >>> [round(s.rate(i), 6) for i in (0, 5, 10, 100, 500)]
        [0.0001, 0.00055, 0.001, 0.0001, 0.0001]
    """

    initial: float
    peak: float
    final: float
    warmup: int
    cooldown: int

    @classmethod
    def of_epochs(cls, peak: float, epochs: int, warmup_epochs: float, steps: int) -> Schedule:
        """A tenth of the peak at both ends, over epochs of ``steps`` steps."""
        warmup = int(warmup_epochs * steps)
        return cls(peak / 10, peak, peak / 10, warmup, max(epochs * steps - warmup, 1))

    def rate(self, step: int) -> float:
        """The learning rate of step ``step``, the first one being 0."""
        if step < self.warmup:
            return self.initial + (self.peak - self.initial) * step / self.warmup
        done = min((step - self.warmup) / self.cooldown, 1.0)
        return self.peak * (self.final / self.peak) ** done
