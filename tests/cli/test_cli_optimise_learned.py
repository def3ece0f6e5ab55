"""``molgraph optimise --learned``: the language model that a search trained, as a file that others begin with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from molgraph.cli.main import app
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.searches.search import make_search
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from tests.tiny import series


def test_the_shared_prior_is_kept_and_begins_another_search(tmp_path: Path) -> None:
    made = LanguageGenerator(**LanguageGenerator.small, tokens="selfies", threads=1).fit(series(48))
    first, both = tmp_path / "first.mgm", tmp_path / "both.mgm"
    Model(made, targets=()).save(first)
    quick = ["--budget", "30", "--batch", "10", "--no-compare", "--threads", "1"]

    def optimise(*words: str, out: str) -> str:
        path = tmp_path / out
        done = CliRunner().invoke(app, ["optimise", *words, *quick, "-o", str(path)])
        return path.read_text() if not done.exit_code else done.output

    search = "shared-prior(learning_rate=0.02)"
    optimise(str(first), "--oracle", "qed,logp", "--search", search, "--learned", str(both), out="a.csv")
    kept, smiles = load_model(both), series(48).smiles
    assert isinstance(kept.method, LanguageGenerator) and "qed,logp" in kept.card.notes[-1]
    assert not np.allclose(kept.method.log_prob([*smiles]), made.log_prob([*smiles]), equal_nan=True)
    assert (made.log_prob([*smiles]) == load_model(first).method.log_prob([*smiles])).any(), "the start is as it was"
    one, other = (optimise(str(path), "--oracle", "sa", "--search", "reinvent", out=f"{path.stem}.csv")
                  for path in (first, both))  # fmt: skip
    assert one != other and len(pd.read_csv(tmp_path / "both.csv")) == 30
    words = optimise("--search", "graph-ga", "--oracle", "qed", "--learned", str(tmp_path / "none.mgm"), out="none.csv")
    assert "trains no generator" in words and not (tmp_path / "none.csv").exists()


def test_a_part_that_joins_begins_with_the_prior_as_it_is() -> None:
    made = LanguageGenerator(**LanguageGenerator.small, tokens="selfies", threads=1).fit(series(48))
    search = make_search("shared-prior(learning_rate=0.02)")

    class Parts:
        labels: tuple[str, ...] = ("a",)

        def __call__(self, smiles: list[str], score: np.ndarray) -> np.ndarray:
            return np.tile(score[:, None], len(self.labels))

    search.terms = parts = Parts()
    search.begin(made)
    for step in range(3):
        texts = search.ask(8, step).smiles
        search.tell(texts, np.linspace(0, 1, len(texts)))
    parts.labels = ("a", "b")
    search.forget()
    prior, new, first = search.agent.network.state_dict(), *(
        search.policy(label).agent.network.state_dict() for label in "ba"
    )  # fmt: skip
    assert all(value.equal(new[name]) for name, value in prior.items())
    assert not all(value.equal(first[name]) for name, value in prior.items())
    assert not all(value.equal(new[name]) for name, value in search.prior.network.state_dict().items())
