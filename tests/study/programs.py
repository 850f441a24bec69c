"""Programs under test that never outlive the test: one that is aborted would leave hours of simulation behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def _end_with_parent():
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


@contextlib.contextmanager
def started(words, **named):
    """Start a program in a process group of its own; kill what is left of the group at the end."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(words, start_new_session=True, preexec_fn=_end_with_parent, **streams, **named)  # noqa: PLW1509
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
