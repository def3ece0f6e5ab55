"""``python -m molgraph``: the shell's verbs without the installed script."""

from molgraph.cli.main import main

if __name__ == "__main__":
    main()
