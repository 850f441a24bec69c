"""Code and tables in a process that holds many of them: each trial is a process, which must not end early."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory of Linux")

STATE = 2_500_000_000
"""Bytes of the tables of one kernel with every part, of which a run touches few."""


def alone(code, *words):
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-600:]


def test_code_is_loaded_wherever_room_is_left_between_tables_of_gigabytes():
    """Its sections may not lie more than 2 GiB apart: holes of all sizes, and tables, made at random."""
    alone(
        """
        import random, sys
        from vftsim.composition import one_kernel
        from vftsim.kernel import code_cache
        from vftsim.kernel.compiled_engine import zeroed

        caught, call = [], code_cache.called
        code_cache.called = lambda code, *rest, **more: caught.append(code) or call(code, *rest, **more)
        one_kernel.the_kernel()
        code_cache.called = call
        random, state = random.Random(1), int(sys.argv[1])
        tables, codes = [], []
        for _ in range(200):
            tables.append(zeroed(random.choice([4096 * random.randint(1, 200), state])))
            while len(tables) > 12:
                del tables[random.randrange(len(tables))]
            codes.append(code_cache.called(caught[0]))
            del codes[: -random.randint(1, 20)]
        """,
        STATE,
    )


def test_a_process_of_many_engines_can_start_another_one():
    """Their tables are more than the machine's memory; what nobody touches is not counted again for a child."""
    alone(
        """
        import os, sys
        from vftsim.kernel.compiled_engine import zeroed

        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        tables = [zeroed(int(sys.argv[1])) for _ in range(2 + pages // int(sys.argv[1]))]
        child = os.fork()
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        STATE,
    )
