"""Ctrl-C ends every verb within two seconds with exit code 130, also where a library would keep it from Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rdkit import Chem

from molgraph.chem.smiles import quiet
from molgraph.data.sources.builtin import chembl2321810

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT there")
ROOT = Path(__file__).resolve().parents[2]
LATEST = 10  # seconds, on a busy machine; idle, each takes less than two
# In the background Ctrl-C may be ignored, which a process hands on. The verb tells when it has called ``at`` once.
BEGIN = """
import importlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from molgraph.__main__ import main
def tell(place):
    module, _, path = place.partition(":")
    owner = importlib.import_module(module)
    *owners, name = path.split(".")
    for each in owners:
        owner = getattr(owner, each)
    real = getattr(owner, name)
    def told(*args, **kwargs):
        print("working", file=sys.stderr, flush=True)
        setattr(owner, name, real)
        return real(*args, **kwargs)
    setattr(owner, name, told)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table that keeps every verb busy: 9,000 different molecules, each charged, so that rdkit searches in it."""
    folder = tmp_path_factory.mktemp("library")
    smiles = [Chem.CanonSmiles(s) for s in chembl2321810().to_frame()["smiles"][:300]]
    rows = [f"{s}.[NH4+].{'C' * n},{n + i / 300},1,2" for n in range(1, 31) for i, s in enumerate(smiles)]
    (folder / "library.csv").write_text("smiles,y,f,g\n" + "\n".join(rows), encoding="utf-8")
    return folder


def pressed(code: str, *words: object, cwd: Path, wait: float = 0.1) -> tuple[int, str, float]:
    """Exit code, standard error and seconds to the end of a process that gets SIGINT while it works."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *map(str, words)]
    with subprocess.Popen(command, cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            before = "".join(iter(lambda: next(lines, "working\n"), "working\n"))
            time.sleep(wait)
            assert process.poll() is None, before + process.stderr.read()
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            process.wait(LATEST)
            seconds = time.monotonic() - start
        finally:
            process.kill()
        return process.returncode, before + process.stderr.read(), seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "words", "kept"),
    [
        ("molgraph.train.pipelined_predict:start_worker", "predict NETWORK LIBRARY -o out.csv", ""),
        ("molgraph.evaluate.benchmark.local:LocalEngine.start", "bench run quick -o bench", "goes on from here"),
    ],
)
def test_ctrl_c_while_rows_are_worked_on(library: Path, tmp_path: Path, place: str, words: str, kept: str) -> None:
    files = {"LIBRARY": library / "library.csv", "NETWORK": ROOT / "tests/golden/0.1.0-dmpnn.mgm"}
    told = [files.get(word, word) for word in words.split()]
    code, text, seconds = pressed(BEGIN + f"tell({place!r})\nmain()", *told, cwd=tmp_path)
    assert code == 130 and seconds < LATEST, text
    assert "stopped" in text and kept in text and "Traceback" not in text
    assert not [path for path in tmp_path.iterdir() if path.name in ("out.csv", "m.mgm", "store")]


def test_ctrl_c_ends_a_call_that_python_cannot_interrupt(tmp_path: Path) -> None:
    body = "print('working', file=sys.stderr, flush=True); hashlib.pbkdf2_hmac('sha256', b'', b'', 2 * 10**8)"
    code = "import hashlib, sys\nfrom molgraph.cli import interrupt, main\ninterrupt.answer_ctrl_c()\n"
    code = BEGIN + code + f"main.guarded(lambda: ({body.replace('; ', ', ')}))()"
    found, text, seconds = pressed(code, cwd=tmp_path)
    assert (found, text) == (130, "stopped; files and checkpoints that were already written are kept\n")
    assert seconds < LATEST


@pytest.mark.slow
def test_a_search_that_has_to_be_ended_names_its_journal(tmp_path: Path) -> None:
    code = (
        BEGIN
        + """
import hashlib
from molgraph import api
def search(*_, journal, **__):
    journal.write_text("calls")
    print("working", file=sys.stderr, flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**8)
api.optimise = search
main()
"""
    )
    found, text, seconds = pressed(code, "optimise", "gen.mgm", "-o", "a.csv", cwd=tmp_path)
    assert found == 130 and seconds < LATEST, text
    assert "kept in a.csv.journal" in text and "run the same command again" in text and "Traceback" not in text, text


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(tmp_path: Path) -> None:
    code = "import signal, sys, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nfrom molgraph.cli import interrupt"
    code += "\ninterrupt.answer_ctrl_c()\nprint('working', file=sys.stderr, flush=True)\ntime.sleep(1)"
    assert pressed(code, cwd=tmp_path, wait=0)[:2] == (0, "")


def test_a_verb_that_has_stopped_ends_the_process_at_once() -> None:
    code = "import atexit, sys\nfrom molgraph import __main__\nfrom molgraph.cli import main\n"
    code += "atexit.register(print, 'the end of the interpreter')\n"
    code += "main.app = lambda **_: sys.exit(int(sys.argv[1]))\n__main__.main()"
    for status, said in ((130, ""), (3, "the end of the interpreter\n")):
        done = subprocess.run([sys.executable, "-c", code, str(status)], capture_output=True, text=True, cwd=ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (status, said, "")


def test_rdkit_leaves_ctrl_c_to_python() -> None:
    mol, pattern = Chem.MolFromSmiles("CC(=O)[O-]"), Chem.MolFromSmarts("CC")
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with quiet():
            mol.GetSubstructMatches(pattern)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
