"""What SECURITY.md promises is held by tests that exist, and the README leads there."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_tests_that_hold_a_promise_exist(root: Path) -> None:
    text = (root / "SECURITY.md").read_text("utf-8")
    promised = [part.split("\nNot promised:")[0] for part in text.split("\nPromised:\n")[1:]]
    assert len(promised) == 5 and "(SECURITY.md)" in (root / "README.md").read_text("utf-8")
    for point in (point for part in promised for point in part.strip().split("\n- ")):
        tests = re.findall(r"`(tests/[\w/]+\.py)`", point)
        assert tests, f"no test holds: {point}"
    for name in re.findall(r"`((?:tests|pipelines)/[\w/.]+)`", text):
        assert (root / name).is_file(), name
