"""Every file operation of a command may fail: the experiment with the injected faults, a few of them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "experiments" / "io-faults" / "io_faults.py"
CASES = ("compare", "import again", "check --repair")


@pytest.mark.slow  # beside the calls that fail one by one in tests/study/test_store_faults.py
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="compiles a library to preload")
def test_faults_lose_nothing_and_are_said_in_one_message():
    words = [sys.executable, str(SCRIPT), "--every", "300", *(word for case in CASES for word in ("--case", case))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for case in CASES:
        assert int(re.search(rf"`{case}` \| (\d+)", done.stdout)[1]) >= 4
