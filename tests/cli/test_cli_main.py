"""The shell's front page: its help, and how failures turn into a sentence and an exit code."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import molgraph
from molgraph.base import errors
from molgraph.cli import doctor
from molgraph.cli.main import VERBS, Verb, app, guarded, load
from molgraph.train.runtime import Interrupted

run = CliRunner().invoke
KEPT = "kept: out.csv.part; give the same command again to go on"


@pytest.fixture
def make_verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., None]], typer.Typer]:
    """A shell of one verb, loaded as the real ones are."""

    def make(function: Callable[..., None]) -> typer.Typer:
        module = ModuleType("molgraph.cli.sample")
        setattr(module, function.__name__, function)
        monkeypatch.setitem(sys.modules, "molgraph.cli.sample", module)
        return load(Verb(function.__name__, "Data", "Sample.", "sample"))  # type: ignore[no-any-return]

    return make


def call(command: typer.Typer, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    with pytest.raises(SystemExit) as end:
        command(list(words), prog_name="molgraph sample")
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def test_the_front_page_shows_every_verb_examples_and_exit_codes() -> None:
    page = run(app, ["--help"], env={"COLUMNS": "100"})
    assert page.exit_code == 0
    for verb in VERBS:
        assert verb.path.split()[0] in page.stdout
    for words in ("Train & predict", "Inspect", "Data", "molgraph demo", "Exit codes", "130"):
        assert words in page.stdout
    assert "install-completion" not in page.stdout
    assert "<bool>" not in page.stdout


def test_the_data_verbs_have_a_page() -> None:
    page = run(app, ["data", "--help"])
    assert page.exit_code == 0
    assert all(word in page.stdout for word in ("audit", "split", "featurize"))


@pytest.mark.parametrize("words", [[], ["data"]])
def test_no_words_get_the_page(words: list[str]) -> None:
    assert "Usage: " in run(app, words).output


def test_version() -> None:
    assert run(app, ["--version"]).stdout == f"molgraph {molgraph.__version__}\n"


@pytest.mark.parametrize("words", [["tran", "x.csv"], ["data", "audti"], ["--nonsense"], ["models", "--nonsense"]])
def test_unknown_words_are_usage_errors(words: list[str]) -> None:
    result = run(app, words)
    assert result.exit_code == 2
    if len(words) == 2 and words[1] != "--nonsense":
        assert "Did you mean" in result.stderr


def test_a_verbs_docstring_is_its_help_and_examples(
    make_verb: Callable[..., typer.Typer], capsys: pytest.CaptureFixture[str]
) -> None:
    def sample(path: Annotated[str, typer.Argument(help="A file.")], fast: bool = False) -> None:
        """Do it to [square] brackets.

        A second paragraph.

        Examples:
            molgraph sample x[1].csv  # with care

        Args:
            path: for readers of the code.
        """

    code, out, _ = call(make_verb(sample), capsys, "--help")
    assert code == 0
    for words in (
        "[square] brackets",
        "A second paragraph",
        "Examples",
        "molgraph sample x[1].csv  # with care",
        "A file.",
    ):
        assert words in out
    assert "readers of the code" not in out
    code, out, err = call(make_verb(sample), capsys)
    assert "Usage:" in out + err, "a verb that needs words shows its help without them"


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (errors.MolgraphError("it broke", hint="do [this]"), 1, ["error: it broke", "  do [this]"]),
        (errors.UsageError("no such [name]"), 2, ["error: no such [name]"]),
        (errors.DataError("no column 'y'"), 3, ["error: no column 'y'"]),
        (errors.ModelFileError("truncated"), 4, ["error: truncated"]),
        (errors.StorageError("disk full"), 5, ["error: disk full"]),
        (KeyboardInterrupt(), 130, ["stopped"]),
        (MemoryError(), 1, ["not enough memory"]),
        (ZeroDivisionError("x"), 1, ["Traceback", "ZeroDivisionError", "fault in molgraph itself", "molgraph doctor"]),
        (typer.BadParameter("not so"), 2, ["Usage:", "not so"]),
        (typer.Exit(7), 7, []),
    ],
)
def test_failures_become_a_sentence_and_a_code(
    make_verb: Callable[..., typer.Typer],
    capsys: pytest.CaptureFixture[str],
    failure: BaseException,
    code: int,
    words: list[str],
) -> None:
    def sample() -> None:
        raise failure

    found, out, err = call(make_verb(sample), capsys)
    assert found == code
    assert out == ""
    assert all(each in err for each in words), err
    assert ("Traceback" in err) == ("Traceback" in words)


def test_ctrl_c_says_what_was_kept(make_verb: Callable[..., typer.Typer], capsys: pytest.CaptureFixture[str]) -> None:
    def sample() -> None:
        stop = KeyboardInterrupt()
        stop.add_note(KEPT)
        raise stop

    assert KEPT in call(make_verb(sample), capsys)[2]


def test_ctrl_c_in_training_says_what_the_loop_said(
    make_verb: Callable[..., typer.Typer], capsys: pytest.CaptureFixture[str]
) -> None:
    def sample() -> None:
        raise Interrupted("stopped by Ctrl-C in epoch 3; the checkpoint is [x]\n  run the same command again")

    code, out, err = call(make_verb(sample), capsys)
    assert (code, out) == (130, "")
    assert err == "stopped by Ctrl-C in epoch 3; the checkpoint is [x]\n  run the same command again\n"


def test_our_warnings_are_one_line_and_library_chatter_is_not_shown(
    make_verb: Callable[..., typer.Typer], capsys: pytest.CaptureFixture[str]
) -> None:
    def sample() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("mind [this]", UserWarning, stacklevel=1)
            warnings.warn("old", FutureWarning, stacklevel=1)

    assert call(make_verb(sample), capsys) == (0, "", "warning: mind [this]\n")


def test_long_sentences_are_not_broken(
    make_verb: Callable[..., typer.Typer], capsys: pytest.CaptureFixture[str]
) -> None:
    def sample() -> None:
        raise errors.DataError("x" * 300)

    assert "x" * 300 in call(make_verb(sample), capsys)[2]


def test_the_wrapped_verb_is_still_the_function() -> None:
    def sample(path: str) -> None: ...

    assert guarded(sample).__name__ == "sample"
    assert guarded(sample)("x") is None  # type: ignore[func-returns-value]


def process(body: str) -> subprocess.Popen[str]:
    """A real process whose verb runs ``body``; in the background Ctrl-C may be ignored, which a process hands on."""
    code = "import signal as s, sys, typer\nfrom molgraph.cli.main import guarded\ns.signal(2, s.default_int_handler)"
    code += "\napp = typer.Typer(pretty_exceptions_enable=False)"
    code += f"\n@app.command()\n@guarded\ndef sample() -> None:\n    {body}\napp()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code], text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def test_a_real_ctrl_c_ends_with_130() -> None:
    with process("print('ready', flush=True); import time; time.sleep(60)") as running:
        assert running.stdout is not None
        running.stdout.readline()
        start = time.monotonic()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
    assert time.monotonic() - start < 20
    assert (running.returncode, err) == (130, "stopped\n")


def test_a_closed_pipe_is_no_failure() -> None:
    with process("[print('x' * 1000, flush=True) for _ in range(1000)]") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="no /dev/full")
@pytest.mark.parametrize(
    ("words", "streams", "code", "said"),
    [
        ("data audit small.csv", ">/dev/full", 5, "cannot read or write a file or stream: no space left on device"),
        ("--help", ">/dev/full", 5, "no space left on device"),
        ("data audit small.csv", ">&-", 5, "cannot read or write a file or stream: bad file descriptor"),
        ("data audit small.csv", "2>&-", 0, ""),
        ("models no-such", "2>/dev/full", 2, ""),
        ("data audit -", "<&-", 3, "standard input cannot be read"),
        ("data audit small.csv -o list.csv", "<&- >page.txt 2>&-", 0, ""),
    ],
)
def test_standard_streams_may_be_closed_or_full(words: str, streams: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text("smiles\nCCO\n")
    line = f"{shlex.quote(sys.executable)} -m molgraph {words} {streams}"
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        line, shell=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert said in done.stderr


def test_doctor_tells_versions_and_devices() -> None:
    result = run(app, ["doctor", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["versions"]["molgraph"] == molgraph.__version__
    assert report["devices"][0]["device"] == "cpu"
    assert report["cores"] >= 1
    page = run(app, ["doctor"], env={"COLUMNS": "120"}).stdout
    assert all(words in page for words in ("rdkit", "cache", "MOLGRAPH_DATA"))


def test_advice_follows_what_was_found() -> None:
    well = {
        "versions": {"rdkit": "2026.3.5", "cuik-molmaker-pin": "2026.03.5", "deepchem": "2.8.0"},
        "featuriser_matches_rdkit": True,
        "threads": 2,
        "cores": 2,
        "cache": {"path": "c", "writable": True, "free_bytes": 1e12},
        "data": {"named": None, "found": None},
    }
    assert doctor.featuriser_matches(well["versions"]) is True  # type: ignore[arg-type]
    assert doctor.featuriser_matches({"rdkit": "2026.3.5", "cuik-molmaker-pin": "2026.3.4"}) is False
    assert doctor.featuriser_matches({"rdkit": "2026.3.5", "cuik-molmaker-pin": None}) is None
    assert doctor.advice(well) == []
    changes = [
        ("featuriser_matches_rdkit", None, "not installed"),
        ("featuriser_matches_rdkit", False, "another rdkit"),
        ("threads", 8, "OMP_NUM_THREADS"),
        ("cache", {"path": "c", "writable": False, "free_bytes": 1e12}, "MOLGRAPH_CACHE"),
        ("cache", {"path": "c", "writable": True, "free_bytes": 1e6}, "under 2 GB"),
        ("data", {"named": "there", "found": None}, "not a folder"),
    ]
    for key, value, words in changes:
        said = doctor.advice(well | {key: value})
        assert len(said) == 1
        assert words in said[0]
