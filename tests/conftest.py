import os
import signal

import pytest
from hypothesis import settings

# A slow machine is no fault.
settings.register_profile("vftsim", deadline=None)
settings.load_profile("vftsim")

# Compiling a kernel takes longer than the short runs of the tests: those that are about the compiled engine name it.
os.environ.setdefault("VFTSIM_ENGINE", "simpy")


@pytest.fixture(autouse=True, scope="session")
def _signals_reach_the_programs_under_test():
    """A shell ignores Ctrl-C for what it starts in the background, ``nohup`` the hang-up, and programs inherit that."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
