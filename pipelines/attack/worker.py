"""Load the model files that standard input names, predict three molecules or draw three, and say how it went.

A line in is a path; a line out is JSON: how it ended (``refused``, ``answered`` or ``fault``), the error, the seconds
of CPU time, and the highest memory of this file in MB.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

QUESTIONS = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "not a molecule"]
MOST = 16 << 30  # bytes of address space: torch alone names some


def attempt(path: str, load: Callable[[Path], object]) -> tuple[str, str]:
    """How loading and asking ended, and the error where it was one that no file may cause."""
    import numpy as np

    from molgraph.base.contracts import Generator
    from molgraph.base.errors import ModelFileError
    from molgraph.data.table import Entities, Table

    try:
        model = load(Path(path))
        names = model.feature_names  # type: ignore[attr-defined]
        read = model.columns_read  # type: ignore[attr-defined]
        entities = tuple(Entities(name, kind, np.array(questions()[kind], dtype=object)) for kind, name in read)
        ids, ok, empty = (np.array(each, dtype=object) for each in (list("123"), ["ok"] * 3, [""] * 3))
        table = Table(ids, entities, ok, empty,
                      features=np.ones((3, len(names))) if names else None, feature_names=names)  # fmt: skip
        if isinstance(model.method, Generator):  # type: ignore[attr-defined]
            assert [type(text) for text in model.method.sample(3)] == [str] * 3  # type: ignore[attr-defined]
        else:
            found = model.predict_table(table)  # type: ignore[attr-defined]
            assert len(found) == 3 and list(found.status[2:]) == ["unreadable"]
            found.to_frame().to_csv()
        str(model.summary()), repr(model), model._repr_html_()  # type: ignore[attr-defined]
    except ModelFileError:
        return "refused", ""
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        ours = [f"{Path(f.filename).name}:{f.lineno}" for f in where if "molgraph" in f.filename][-3:]
        return "fault", f"{type(error).__name__}: {str(error)[:120]} ({' '.join(ours)})"
    return "answered", ""


def questions() -> dict[str, list[object]]:
    """Three values of each kind of entity, the last of which cannot be read."""
    from molgraph.data.featurize_geometry import METHANE, WATER

    return {"molecule": [*QUESTIONS], "sequence": ["MKT", "ACD", "J"], "geometry": [WATER, METHANE, "junk"]}


def peak_mb() -> float:
    """The highest memory since it was last reset, where Linux tells; else of the process."""
    try:
        line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Answer until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    warnings.simplefilter("ignore")
    import torch_geometric.nn  # noqa: F401 - its seconds are no file's fault

    import molgraph.auxiliary.peers  # noqa: F401
    from molgraph.api import load

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the highest memory starts anew
        started, before = time.process_time(), peak_mb()
        ended, error = attempt(line.strip(), load)
        told = {"ended": ended, "error": error, "seconds": round(time.process_time() - started, 3)}
        print(json.dumps(told | {"peak_mb": round(peak_mb()), "before_mb": round(before)}), flush=True)


if __name__ == "__main__":
    main()
