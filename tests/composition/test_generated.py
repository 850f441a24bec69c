"""Both engines, to the last bit, on models drawn from everything that a model file can say, over one kernel."""

import subprocess
import sys

import pytest

from tests.composition.generated import model

COUNT = 500


@pytest.mark.thorough
@pytest.mark.parametrize("which", [("--lean",), pytest.param((), marks=pytest.mark.slow)], ids=["lean", "all"])
def test_the_engines_agree_on_generated_models(which):
    """In a process of its own: compiling the kernel of all parts takes minutes and 2 GB."""
    command = [sys.executable, "-m", "tests.composition.generated", *which, str(COUNT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr
    ran, ended = (int(words.split()[0]) for words in done.stdout.splitlines()[-1].split(", ")[1:])
    assert ran >= 500 if which else ran >= 450
    assert ended >= 0.8 * ran


@pytest.mark.thorough
def test_what_is_drawn_covers_every_part():
    drawn = [spec for n in range(600) if (spec := model(n)) is not None]
    guests = [spec.domains["guest"] for spec in drawn]
    assert len({spec.hosts["host"].scheduler.kind for spec in drawn}) == 9
    assert len({guest.interfaces["eth0"].path.kind for guest in guests}) == 6
    assert len({guest.protection.kind for guest in guests}) == 8
    assert len({guest.guest_scheduler.kind for guest in guests}) == 4
    assert {w.kind for spec in drawn for w in spec.workloads.values()} >= {
        "rtp", "calls", "ims_bench", "request_response", "bulk_tcp", "bulk_udp", "httperf"
    }  # fmt: skip
