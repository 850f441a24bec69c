"""What the statistics packages export and what they cost to import."""

import subprocess
import sys


def printed(code: str) -> str:
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def test_scipy_is_not_loaded_at_import():
    show = "print(sorted(m for m in sys.modules if m.startswith('scipy')))"
    assert printed(f"import sys, vftsim.stats, vftsim.sampling; {show}") == "[]"


def test_answering_does_not_load_scipy_stats():
    work = "s.mean_interval(range(12)); s.sequential_binomial_interval(2, 9)"
    assert printed(f"import sys, vftsim.stats as s; {work}; print('scipy.stats' in sys.modules)") == "False"
