"""Define ``Built``: a record of where a published method is implemented (registered part, verb or option)."""

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
            >>> from molgraph.api.verb_systems import VERBS
            >>> next(each for each in VERBS if each.name == "--diversity").without()
            'molgraph optimise jtvae-zinc --oracle qed --search bayes -o best.csv --diversity 0'
        """
        if not self.card.off.startswith("-"):
            regex = rf"(?<=[ =])({re.escape(self.name)}|'{re.escape(self.name)}\([^']*\)')(?= |$)"  # with its settings
            return self.card.off and re.sub(regex, lambda _: self.card.off, self.command)
        kept, options = self.command, re.findall(r"(-\S+) ([^\s=]+)(\S*)", self.card.off)
        for flag, first, rest in options:  # an option takes the place of the one that it contradicts
            same = rf"{flag} {re.escape(first)}=\S+" if rest else rf"{flag} [^\s=]+(?= |$)"
            kept = re.sub(rf" {same}", "", kept)
        return f"{kept} {self.card.off}"
