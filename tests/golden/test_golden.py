"""Every case gives the recorded values, to the last digit, in both engines.

Recorded is what the object model did that came before the kernel (``golden.json.gz``), with the models in the form of
that time, which is said anew for the run; but for cases that a later change of a rule has moved: those are in
``changed.json.gz`` with their new values.  Changes so far, the first found by recorded schedules of Xen's own code
(``tests/platform/cpu/test_xen_traces.py``):

* order at one instant: ticks and accounting of a scheduler come before ends of slices, and a pCPU that several
  causes ask chooses once (Xen 3.2, ``schedule.c``: a slice timer only raises a softirq, served after all timers);
* credit: the idle slice of 3.2, the tick that moves a running vCPU to an idle pCPU, stealing in turn, the residue of
  a debit, kicks of the pre-empted, last tickled pCPU kept by each pCPU;
* order at one instant: pCPUs that run out of work together choose after all of them have, in the order of their
  numbers; credit from 4.8: a choice within 100 ns of a dispatch;
* credit2: the rules of the real code (who goes on and for how long, who is asked, overdrawn caps);
* cfs: the kernel's table of weights, instead of powers of 1.25;
* a vCPU that is chosen again in the callback of its own work does what that continues with (the rate limit of credit
  from 4.2 on: two cases of ``media``).

Further, by the closed forms of ``tests/protection``: extremes of a mechanism begin with the measured time (the least
share of a throttle), and a crash while the channel is lost is taken over from where that failed; an output under
lockstep has waited for when it leaves, whatever was foreseen (``wait_ns`` of five cases).  By counting CPU time: a
program that never pauses keeps its CPU from one piece of work to the next (``media-restless-jobs``).  A crash of a host
took one domain, which is now said (``alone``).  By Erlang's formula: attempts of a step that find no free subscriber
are counted in its measured time, as those that begin are (``native-few-subscribers``).  By the rate of a link: what
a frame's time has beyond whole ns goes to the next one (1.5 and 60 Mbit/s: ``native-slow-link``,
``shared-nic-bursts``).  By the closed form of pre-copy over a shared link: a copy goes there in pieces of 64 KiB
(``ft-crash-reprotected-shared``).  By Linux's ``unthrottle_cfs_rq``: who was throttled has no more lead than a sleeper
(``media-cfs-quota-shares``, ``virtual-shared-core-cfs``).  By the rate of a line that a log shares: entries that wait
for room keep their turn on it, and are no drops (``ft-crash-outputs-on-the-way``, ``ft-shared-slow-card``).
By what a pending interrupt is: a card counts no other before the guest comes to it (``nic.sut.interrupts`` of six).
By the rate and the queue of a line that one workload overfills: 98 Mbit/s on 60 queue for 35 ms, and are lost
(``media-slow-link``).  By Xen's ``repl_timer_handler``: one that runs goes on at the end of a period, unless the first
that waits is more urgent (``media-rtds``, ``virtual-shared-core-rtds``).  By equal shares of users that meet late: one
that wakes under z/VM counts from the present of those it meets (``media-zvm``, ``media-zvm-shares``,
``virtual-shared-core-zvm``).  By Linux's ``update_min_vruntime`` and its run queue for each pCPU, and by equal shares
of pinned machines that meet late: one that wakes under cfs or esxi counts from those on the pCPUs that it may use
(``media-cfs-quota-shares``, ``virtual-shared-core-cfs``, ``virtual-shared-core-esxi``).  By queues of loads that know
nothing of each other: those whose periods divide each other do not begin together (20 with a vmkernel and a manager),
nor does background traffic of several kinds (``shared-nic-bursts``, ``shared-nic-ramp``).  By the time that there is:
what a secondary has not replayed when its host crashes it never does (three of a backup's crash).  By a model of the
lists and timers of Xen's ``rt.c``: who goes first of those that are equally urgent (``media-rtds``,
``virtual-shared-core-rtds``).  By limits of machines with several vCPUs: what those run that are on a pCPU has been
consumed (``media-esxi``, ``media-esxi-shares-limits``, ``virtual-shared-core-esxi``).  By shares below a limit: one
that its limit under esxi has held keeps what it is behind (``media-esxi-shares-limits``, ``virtual-shared-core-esxi``).
By when the last entry of a log, or its acknowledgement, has come: the silence begins then (seven of ``ft-``; 23 ms
later where the log is 23 ms on its way).  By ticks in whole microseconds
(``virtual-shared-core-credit-no-boost``, 5 ms).  By RFC 3261, 13.3.1.4: a callee repeats its 200 until the ACK comes,
also when its caller has given up meanwhile (``native-timeouts-408``).  By the rate of a log's channel: what has not
left when that is lost leaves when it works again, and what is on its way when it is lost for good is not replayed (nine
of ``ft-``, by one entry of 144 bytes; one secondary's CPU time by the 28 ms of such entries).  By what changes nothing:
packets of a driver domain go before a device model whether or not it has programs (four of ``media-emulated``).
"""

from typing import Any

import pytest

from vftsim.composition.model import ModelSpec

from .cases import FAST, GOLDEN, STORED
from .compact import differences, read
from .observe_media import observe_media
from .observe_sip import observe_sip
from .old_form import in_new_form

CHANGED = read(GOLDEN.with_name("changed.json.gz"))


def test_cases_are_many():
    assert len(STORED) == 181
    assert set(FAST) <= STORED.keys()
    assert CHANGED.keys() <= STORED.keys()


def _runs() -> list[Any]:
    runs = []
    for name in sorted(STORED):
        for engine in ("simpy", "compiled"):
            marks = () if name in FAST else pytest.mark.slow
            runs.append(pytest.param(name, engine, marks=marks, id=f"{name}-{engine}"))
    return runs


def _order(domain: tuple[str, Any]) -> int:
    """Order of creation, which the record does not keep and a scheduler may show."""
    return ("dom0", "linux", "media", "signaling", "cpu1", "cpu2").index(domain[0])


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "engine"), _runs())
def test_case_as_recorded(name: str, engine: str):
    stored = STORED[name]["input"]
    kind = stored["model"]["kind"]
    if kind == "media_host":
        stored["model"]["domains"] = dict(sorted(stored["model"]["domains"].items(), key=_order))
    spec = ModelSpec.model_validate(in_new_form(kind, stored["model"]))
    observe = observe_sip if kind == "sip_lab" else observe_media
    values, _ = observe(spec, stored["seed"], stored["replication"], engine)
    recorded = CHANGED.get(name, STORED[name]["values"])
    # A card that carries nothing is not modelled any more.
    expected = {key: value for key, value in recorded.items() if value != 0 or key in values or "card" not in key}
    differing = list(differences(expected, values))
    assert not differing, f"{name}: {len(differing)} values differ, the first: {differing[0]}"
