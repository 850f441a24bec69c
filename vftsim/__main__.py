"""Where the command begins: ``vftsim``, and ``python -m vftsim`` where the console script is not on the path."""

from __future__ import annotations

import gc
import sys

COLLECT_AFTER = 300_000
"""New objects between two searches for garbage; importing makes a million that all stay, and Python looks at 700."""


def begin() -> int:
    """Run the command line; Ctrl-C before it is read, while modules are imported, is said in one line too."""
    gc.set_threshold(COLLECT_AFTER)
    try:
        from vftsim.cli.main import console  # noqa: PLC0415 - the first tenths of a second are spent here
    except KeyboardInterrupt:
        print("vftsim: interrupted", file=sys.stderr)
        return 3
    try:
        return console()
    finally:
        gc.freeze()  # a process that ends gives back all its memory; Python would first look for garbage in it


if __name__ == "__main__":
    raise SystemExit(begin())
