"""The conformance suite over every scheduler."""

import pytest

from tests.platform.cpu.host_lab import MS, Lab
from tests.platform.cpu.promises import Case, cases, mixed_lab
from vftsim.kernel import EventKind
from vftsim.platform.cpu.parameters import schedulers
from vftsim.platform.cpu.records import RUNNABLE

ALL = cases()


def each(condition=lambda case: True):
    return pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in ALL if condition(c)])


def test_every_registered_scheduler_has_a_case():
    assert {case.spec.kind for case in ALL} == set(schedulers()), "promises.py says what each of them promises"


@each()
@pytest.mark.parametrize("switch_cost_ns", [0, 5_000])
def test_mixed_load_keeps_the_invariants(case: Case, switch_cost_ns: int):
    """Accounts add up at any time; the recorder asserts affinity and one pCPU for a vCPU."""
    lab = mixed_lab(case, seed=1, switch_cost_ns=switch_cost_ns)
    for until_ms in (0.5, 33.3, 100.0, 612.7, 1500.0):
        lab.run(until_ms)
    assert len(lab.finished) > 100
    assert (lab.switching_ns > 0) == (switch_cost_ns > 0)


@each()
def test_two_runs_are_the_same(case: Case):
    first, second = (mixed_lab(case, seed=2, switch_cost_ns=1_000).run(900) for _ in range(2))
    assert first.recorder.decisions == second.recorder.decisions
    assert first.finished == second.finished


@each(lambda case: case.work_conserving and case.shares_pcpus)
def test_no_pcpu_idles_while_a_vcpu_waits(case: Case):
    """Looked at 2,000 times at odd moments."""
    lab = mixed_lab(case, seed=3, pinned=False)
    seen = {"idle": 0, "waiting": 0}

    def look():
        yield lab.engine.wait(317, EventKind.CONTROL, 0)
        while True:
            waiting = [v for name in lab.domains for v in lab.vcpus(name) if v.state == RUNNABLE]
            idle = "-" in lab.running()
            seen["idle"] += idle
            seen["waiting"] += bool(waiting)
            assert not (idle and waiting), f"at {lab.engine.now_ns} ns"
            yield lab.engine.wait(500_011, EventKind.CONTROL, 0)

    lab.engine.process(look())
    lab.run(1000)
    assert seen["waiting"] > 100
    assert seen["idle"] > 5


@each()
def test_a_lone_vcpu_gets_all(case: Case):
    lab = Lab(case.spec, pcpus=2)
    lab.domain("A")
    lab.hog("A", at_ms=3)
    lab.run(1003)
    assert lab.run_ns("A") == 1000 * MS


@each(lambda case: case.shares_pcpus)
def test_nobody_starves(case: Case):
    """Five hogs on two pCPUs: in every second each gets at least a quarter of its fair 400 ms."""
    lab = Lab(case.spec, pcpus=2)
    for name in "ABCDE":
        lab.domain(name)
    lab.hog(*"ABCDE")
    before = dict.fromkeys("ABCDE", 0)
    for second in range(1, 5):
        lab.run(1000 * second)
        for name in "ABCDE":
            assert lab.run_ns(name) - before[name] > 100 * MS
            before[name] = lab.run_ns(name)


@pytest.mark.thorough
@each(lambda case: case.weights is not None)
@pytest.mark.parametrize(
    "weights",
    [
        (256, 1024),
        (200, 400, 600, 800),
        pytest.param((256, 512), marks=pytest.mark.slow),
        pytest.param((256, 256, 512), marks=pytest.mark.slow),
    ],
)
def test_shares_follow_weights_under_saturation(case: Case, weights: tuple[int, ...]):
    """Over 4 s, every domain with a hog on as many vCPUs as there are pCPUs: within 1 % of the machine.

    Over 20 s of credit, whose shares come near the weights as 1 over the time: 2.5 % off after 6 s.
    """
    assert case.weights is not None
    until_ms = 20_000 if case.spec.kind == "credit" else 4_000
    for pcpus in case.weights_pcpus:
        lab = Lab(case.spec, pcpus)
        for number, weight in enumerate(weights):
            lab.domain(str(number), pcpus, **case.weights(weight))
        lab.hog(*lab.domains)
        lab.run(until_ms)
        shares = [lab.percent(name) / pcpus for name in lab.domains]
        fair = [100 * weight / sum(weights) for weight in weights]
        assert shares == pytest.approx(fair, abs=1.0)


@each(lambda case: case.cap is not None)
@pytest.mark.parametrize(("percent", "vcpus"), [(40.0, 1), (20.0, 1), (80.0, 2)])
def test_cap_holds_over_every_second_even_on_an_idle_host(case: Case, percent: float, vcpus: int):
    """A hog under a cap, alone: ten seconds within 1 point and the grain, their mean within 1 point."""
    assert case.cap is not None
    lab = Lab(case.spec, pcpus=2)
    lab.domain("A", vcpus, **case.cap(percent))
    lab.hog("A")
    lab.run(1000)
    seconds = []
    for second in range(2, 12):
        before_ns = lab.run_ns("A")
        lab.run(1000 * second)
        seconds.append((lab.run_ns("A") - before_ns) / (10 * MS))
    assert seconds == pytest.approx([percent] * 10, abs=1.0 + vcpus * case.cap_grain_points)
    assert sum(seconds) / 10 == pytest.approx(percent, abs=1.0)


@each(lambda case: case.cap is not None)
def test_cap_holds_beside_a_hog(case: Case):
    assert case.cap is not None
    lab = Lab(case.spec, pcpus=1)
    lab.domain("A", **case.cap(25.0))
    lab.domain("B")
    lab.hog("A", "B")
    lab.run(10_020)
    assert lab.percent("A") == pytest.approx(25.0, abs=1.0)
    assert lab.percent("B") == pytest.approx(75.0, abs=1.0)


@each(lambda case: case.shares_pcpus)
def test_a_light_vcpu_waits_no_longer_than_promised(case: Case):
    """50 us every 7 ms (0.7 % of a pCPU) against two hogs on one pCPU; the first 100 ms do not count.

    The bound holds for 97 of 100 wakes: a light vCPU may be found running by a tick, or wake twice
    within one rate limit.
    """
    lab = Lab(case.spec, pcpus=1)
    lab.domain("hog0")
    lab.domain("hog1")
    lab.domain("light")
    lab.hog("hog0", "hog1")
    times_ms = [100.3 + 7.0 * i for i in range(200)]
    lab.burst("light", *times_ms, demand_ms=0.05)
    lab.run(1700)
    done_ms = [time_ms for time_ms, name in lab.finished if name == "light"]
    assert len(done_ms) == len(times_ms)
    waits_ms = sorted(done - due - 0.05 for done, due in zip(done_ms, times_ms, strict=True))
    bound_ms = case.latency_ms * (2 if case.name == "round_robin" else 1)
    assert waits_ms[int(0.97 * len(waits_ms))] <= bound_ms + 1e-6
