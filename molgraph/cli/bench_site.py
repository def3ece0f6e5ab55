"""``molgraph bench site``: pages of several benchmarks, with an index of all boards and a page for each method."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli.options import argument, out_option


def site(
    folders: Annotated[list[Path], argument("What `molgraph bench run` filled, or records of it.")],
    out: Annotated[Path, out_option("Where the pages stand.", "FOLDER")] = Path("site"),
    brief: Annotated[bool, typer.Option("--brief", help="Leave out what reads the predictions once more.")] = False,
) -> None:
    """Write the pages of several benchmarks, an index of all boards, and a page for each method.

    Open FOLDER/index.html: boards with a search and a filter by question, where
    each method stands on every board, its cost and settings. The pages load
    nothing from a network.

    Examples:
        molgraph bench site bench/quick -o site
        molgraph bench site pipelines/records/adme pipelines/records/zoo -o site
    """
    from molgraph.cli.show import say, steps
    from molgraph.evaluate.benchmark.report import write_bench_report
    from molgraph.evaluate.benchmark.site import write_site

    with steps():
        reports = [write_bench_report(folder, None, slices=not brief) for folder in folders]
        files = write_site(reports, out)
    say(f"{count(len(files), 'page')} written; open {files[0]}")
