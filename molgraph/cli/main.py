"""Define the ``molgraph`` command: its verbs, its errors and its exit codes.

How to write a verb: ``molgraph/cli/<verb>.py`` defines a function of the verb's name with typer's annotations;
``molgraph data audit`` is ``audit`` in ``molgraph/cli/data.py``. A line in ``cli/verbs.py`` gives it a place.
The docstring is its help: a sentence, more paragraphs if needed, then ``Examples:`` with one indented command a line.
A function ``listing()`` of the module gives the help further lines, such as the members of a kind.
A verb raises ``MolgraphError`` for what a user can act on; on Ctrl-C it lets ``KeyboardInterrupt`` pass, whose text, or
notes (``error.add_note("kept: ...")``), say what was kept. Both are shown here, without a traceback.
"""

from __future__ import annotations

import errno
import functools
import importlib
import inspect
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from molgraph.base.errors import MolgraphError
from molgraph.base.paths import storage_error
from molgraph.base.version import __version__
from molgraph.cli.interrupt import at_work, pressed
from molgraph.cli.verbs import BENCH, DATA, TRAIN, VERBS, Verb

EXAMPLES = """
    molgraph demo                                   # train, compare, predict
    molgraph data audit assay.csv                   # look before you learn
    molgraph train assay.csv --target pIC50 -o m.mgm
    molgraph predict m.mgm new.smi -o predicted.csv
    molgraph train --help                           # each verb explains itself"""
_UNOPENED = (errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE, errno.ENFILE)
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)  # a full disk, or a stream that is closed
EXIT_CODES = {0: "done", 2: "unknown option or name", 3: "unusable data", 4: "unusable model file"}
EXIT_CODES |= {5: "missing file or disk", 1: "anything else", 130: "Ctrl-C: what was done is kept"}


class LazyGroup(TyperGroup):
    """A group whose verbs are light stand-ins until one of them is called."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The group's options; those that install shell completion work, but are not worth five lines of help."""
        params = _plain_switches(super().get_params(ctx))
        for param in params:
            param.hidden = param.hidden or param.name in ("install_completion", "show_completion")
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the verb typed, and load the real one in the stand-in's place."""
        name, command, rest = super().resolve_command(ctx, args)
        loader = getattr(getattr(command, "callback", None), "load", None)
        return name, loader() if loader is not None else command, rest


class VerbCommand(TyperCommand):
    """A verb once loaded.

    ``listing``: more lines of its help, such as the members of a kind, which are made when the help is asked for.
    """

    listing: Callable[[], str] | None = None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, with the listing before the examples."""
        if self.listing is not None:
            self.epilog = "\n\n".join(filter(None, (_escape(self.listing()), self.epilog)))
        super().format_help(ctx, formatter)

    def get_params(self, ctx: Any) -> list[Any]:
        """The verb's options."""
        return _plain_switches(super().get_params(ctx))


def load(verb: Verb) -> Any:
    """Import a verb's module and make its command."""
    module = importlib.import_module(f"molgraph.cli.{verb.module}")
    function = getattr(module, verb.word.replace("-", "_"))
    text, examples = split_docstring(inspect.getdoc(function) or verb.summary)
    single = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    options: dict[str, Any] = {"cls": VerbCommand, "help": text, "epilog": examples or None}
    single.command(verb.word, no_args_is_help=_needs_words(function), **options)(guarded(function))
    command: Any = typer.main.get_command(single)
    command.listing = getattr(module, "listing", None)
    return command


def split_docstring(text: str) -> tuple[str, str]:
    r"""A verb's docstring as rich markup: its help, and its examples.

    Example:
        >>> split_docstring("Do it.\n\nExamples:\n    molgraph do  # now\n\nArgs:\n    x: never shown")
        ('Do it.', '[bold]Examples[/bold]\n[cyan]  molgraph do[/cyan]  [dim]# now[/dim]')
    """
    text = re.split(r"\n\s*(?:Args|Returns|Raises):\s*\n", inspect.cleandoc(text))[0].split("\f")[0]
    body, _, examples = text.partition("\nExamples:\n")
    return _escape(body.strip()), _coloured("Examples", examples) if examples else ""


def guarded(function: Callable[..., None]) -> Callable[..., None]:
    """The verb's function with its failures turned into a sentence and an exit code."""

    @functools.wraps(function)
    @at_work()
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                function(*args, **kwargs)
                sys.stdout.flush()
        except MolgraphError as error:
            _say("error: ", "bold red", error.message, error.hint)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt as stop:
            first, *rest = (str(stop) or "stopped").splitlines()  # who stopped on purpose says what was kept
            notes = [*(line.strip() for line in rest), *getattr(stop, "__notes__", [])]
            _say(first, "bold yellow", "", "\n".join(notes))
            raise typer.Exit(130) from None
        except BrokenPipeError:
            _forget_output()
            raise typer.Exit(0) from None
        except MemoryError:
            _say("error: ", "bold red", "this machine has not enough memory for that", "try smaller batches or parts")
            raise typer.Exit(1) from None
        except Exception as error:
            if type(error).__module__.split(".")[0] in ("typer", "click"):
                raise  # an exit, or a bad parameter, which typer shows with the usage line
            if pressed():
                _say("stopped", "bold yellow", "")
                raise typer.Exit(130) from None
            if isinstance(error, OSError) and error.errno in _UNOPENED:
                problem = storage_error(f"cannot open {error.filename!r}", error)
                _say("error: ", "bold red", problem.message, problem.hint or "check the path")
                raise typer.Exit(problem.exit_code) from None
            if isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None:
                raise typer.Exit(_stream_failed(error)) from None
            traceback.print_exc()
            advice = "Please report the lines above together with what `molgraph doctor` prints."
            _say("error: ", "bold red", "this is a fault in molgraph itself", advice)
            raise typer.Exit(1) from None

    return run


def main() -> None:
    """Run the command line; help that cannot be written ends as the output of a verb does."""
    try:
        app(prog_name="molgraph")
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        raise SystemExit(_stream_failed(error)) from None


def _stream_failed(error: OSError) -> int:
    """Say that a stream cannot be written, and return the exit code."""
    _forget_output()
    failure = storage_error("cannot read or write a file or stream", error)
    _say("error: ", "bold red", failure.message, failure.hint)
    return failure.exit_code


def _forget_output() -> None:
    """Lead standard output nowhere, so that Python's last flush is silent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _plain_switches(params: list[Any]) -> list[Any]:
    """The same options, with no type shown for a switch: that it takes no value says enough."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _needs_words(function: Callable[..., None]) -> bool:
    """Whether a verb called with nothing should answer with its help: it has an argument that must be given."""
    parameters = inspect.signature(function).parameters.values()
    return any(p.default is p.empty for p in parameters)


def _escape(text: str) -> str:
    return re.sub(r"(\\*)(\[[a-z#/@][^[]*?])", r"\1\1\\\2", text)  # as rich.markup.escape, without importing rich


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, UserWarning) and not issubclass(category, DeprecationWarning | FutureWarning):
        _say("warning: ", "yellow", str(message))


def _say(label: str, style: str, message: str, hint: str = "") -> None:
    from rich.console import Console
    from rich.text import Text

    text = Text.assemble((label, style), message)
    text.append("".join(f"\n  {line}" for line in hint.splitlines()))
    with suppress(OSError):  # nobody can be told
        Console(stderr=True, highlight=False, soft_wrap=True).print(text)


def _coloured(title: str, examples: str) -> str:
    """Commands, one a line, as rich markup: comments dim."""
    lines = [f"[bold]{title}[/bold]"]
    for line in filter(str.strip, examples.splitlines()):
        command, gap, comment = line.strip().partition("  #")
        shown = f"[cyan]  {_escape(command.rstrip())}[/cyan]" + " " * (len(command) - len(command.rstrip()))
        lines.append(shown + (f"  [dim]#{_escape(comment)}[/dim]" if gap else ""))
    return "\n".join(lines)


def _epilog() -> str:
    codes = [f"[green]{code:>3}[/green]  {meaning:<23}" for code, meaning in EXIT_CODES.items()]
    rows = ["  " + "".join(codes[i : i + 2]).rstrip() for i in range(0, len(codes), 2)]
    return "\n".join([_coloured("A first model", EXAMPLES), "", "[bold]Exit codes[/bold]", *rows])


def _stand_in(verb: Verb) -> Callable[[], None]:
    def stand_in() -> None: ...

    stand_in.load = functools.partial(load, verb)  # type: ignore[attr-defined]
    return stand_in


def _version(asked: bool) -> None:
    if asked:
        print(f"molgraph {__version__}")
        raise typer.Exit


_OPTIONS: dict[str, Any] = {"cls": LazyGroup, "no_args_is_help": True, "rich_markup_mode": "rich"}
_OPTIONS |= {"context_settings": {"help_option_names": ["-h", "--help"]}, "pretty_exceptions_enable": False}
app = typer.Typer(name="molgraph", epilog=_epilog(), **_OPTIONS)
data_app = typer.Typer(name="data", **_OPTIONS)
bench_app = typer.Typer(name="bench", **_OPTIONS)
latent_app = typer.Typer(name="latent", **_OPTIONS)
_GROUPS = {"data": data_app, "bench": bench_app, "latent": latent_app}


@app.callback()
def _front(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")] = False,
) -> None:
    """Predict properties of molecules, generate candidates, and run benchmarks."""
    if quiet:
        os.environ["MOLGRAPH_QUIET"] = "1"


@data_app.callback()
def _data() -> None:
    """Find a dataset; look at a table, divide it, and build its graphs."""


@bench_app.callback()
def _bench() -> None:
    """Compare methods over datasets, splits and seeds, and rank them honestly."""


@latent_app.callback()
def _latent() -> None:
    """Work in a generator's latent space: molecules to vectors and back, and what lies between and around them."""


for _verb in VERBS:
    _place, _panel = (_GROUPS[_verb.path.split()[0]], None) if " " in _verb.path else (app, _verb.panel)
    _place.command(_verb.word, help=_verb.summary, rich_help_panel=_panel)(_stand_in(_verb))
    if _place is latent_app:  # the spelling of older versions
        app.command(_verb.word, hidden=True)(_stand_in(_verb))
app.add_typer(
    latent_app, rich_help_panel=TRAIN, help="Encode, decode, interpolate and look around in a generator's latent space."
)
app.add_typer(
    data_app, rich_help_panel=DATA, help="Find datasets; audit a table, split it without leaks, build its graphs ahead."
)
app.add_typer(bench_app, rich_help_panel=BENCH, help="Compare methods over datasets, splits and seeds.")
