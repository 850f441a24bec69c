"""``python -m vftsim``: the command, where the console script is not on the path."""

from vftsim.cli.main import console

if __name__ == "__main__":
    raise SystemExit(console())
