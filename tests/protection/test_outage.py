"""How many attempts an outage fails, from the retransmission timers alone."""

import math

from .sip import GuardedLab, guarded_spec

S = 1_000_000_000


def test_messages_fail_that_began_in_all_but_the_last_second_and_a_half():
    """Threshold 2 s, sends at 0, 0.5, 1.5, 3.5 s: of an outage D the arrivals of D - 1.5 s fail.

    Crash at a whole second, 2 s + 10 ms timeout, 5 ms storage, 100 ms go-live, 10 ms MAC: D = 2.125 s.
    """
    rate, runs = 40.0, 4
    spec = guarded_spec(
        server={"touch_cost": "0.5 ms"},
        protection={"kind": "lockstep", "failover": {"detection": {"log_timeout": "2 s"}}, "reprotection": None},
        faults=[{"kind": "primary_crash", "at": "step 1 + 10 s"}],
        workload={
            "pre_registration": {"duration": 0},
            "stir": {"duration": 0},
            "steps": {"initial": rate, "duration": 20 * S, "transient": 1 * S, "most": 1},
            "mix": {"ims_rereg": 0.0, "ims_reg": 0.0, "ims_uac": 0.0, "ims_dereg": 0.0, "ims_msgc": 100.0},
        },
    )
    failed = sum(sum(GuardedLab(spec, 11, run).play()[0].inadequate) for run in range(runs))
    expected = runs * rate * (2.125 - 1.5)
    assert abs(failed - expected) <= 3.5 * math.sqrt(expected)
