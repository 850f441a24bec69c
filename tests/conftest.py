import os
import signal

import pytest

# Compiling a kernel takes longer than the short runs of the tests: those that are about the compiled engine name it.
os.environ.setdefault("VFTSIM_ENGINE", "simpy")


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_reaches_the_programs_under_test():
    """A shell ignores Ctrl-C for what it starts in the background (``pytest &``), and programs inherit that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
