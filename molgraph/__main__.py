"""Run the ``molgraph`` command; Ctrl-C is answered before anything slow is imported."""

from molgraph.cli.interrupt import answer_ctrl_c


def main() -> None:
    """The console script."""
    answer_ctrl_c()
    from molgraph.cli.main import app

    app(prog_name="molgraph")


if __name__ == "__main__":
    main()
