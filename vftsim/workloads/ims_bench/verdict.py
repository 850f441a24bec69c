"""What becomes of an attempt: its delays, whether it was handled adequately, its end."""

from vftsim.kernel import BESIDE, Sim
from vftsim.platform.delays import add_delay
from vftsim.workloads.ims_bench import metrics
from vftsim.workloads.ims_bench.attempt import Attempt, Bench, Phase, phases
from vftsim.workloads.ims_bench.subscribers import put_back
from vftsim.workloads.sip.messages import Scenario

_WORD = (1 << 62) - 1


def measure(sim: Sim, bench: Bench, attempt: Attempt, delay: int, value_ns: int) -> None:
    """Count a delay in the attempt's phase; one above its threshold makes the attempt inadequate."""
    count(sim, attempt, delay, value_ns)
    if attempt.counted:
        first = phases(sim)[attempt.phase].first_delay
        if delay == metrics.REG1 and attempt.scenario == Scenario.IMS_REG:
            add_delay(sim, first + metrics.REG1_OF_REG, value_ns)
        elif delay == metrics.REG1 and attempt.scenario == Scenario.IMS_DEREG:
            add_delay(sim, first + metrics.REG1_OF_DEREG, value_ns)
    if value_ns > limit_ns(bench, delay):
        inadequate(sim, attempt)


def count(sim: Sim, attempt: Attempt, delay: int, value_ns: int) -> None:
    """Count a delay in the attempt's phase."""
    if attempt.counted:
        add_delay(sim, phases(sim)[attempt.phase].first_delay + delay, value_ns)


def limit_ns(bench: Bench, delay: int) -> int:
    if delay in (metrics.SES1, metrics.SES2):
        return bench.session_setup_ns
    if delay == metrics.REL1:
        return bench.release_ns
    if delay == metrics.PMM1:
        return bench.message_ns
    if delay == metrics.REG4:
        return bench.reregistration_ns
    return bench.registration_ns


def inadequate(sim: Sim, attempt: Attempt, bench: Bench = BESIDE) -> None:
    """Note, once, that an attempt was handled inadequately."""
    if attempt.failed:
        return
    attempt.failed = True
    bench.inadequate += 1
    if attempt.scenario == Scenario.IMS_UAC:
        bench.uac_inadequate += 1
    if attempt.counted:
        phase = phases(sim)[attempt.phase]
        phase.inadequate[attempt.scenario] += 1
        if phase.end_ns == 0:
            judge(phase, attempt)


def judge(phase: Phase, attempt: Attempt) -> None:
    """Count an attempt that cannot be adequate any more, if it began early enough to be judged."""
    if attempt.start_ns <= phase.judged_until_ns:
        phase.judged_inadequate[attempt.scenario] += 1


def end(sim: Sim, bench: Bench, attempt: Attempt) -> None:
    """End an attempt and give its subscribers back; a callee whose answer has no ACK does not know of it."""
    if attempt.ended:
        return
    attempt.ended = True
    bench.over += 1
    scenario = attempt.scenario
    bench.ended[scenario] += 1
    bench.ends_ns[scenario] = (bench.ends_ns[scenario] + sim.now_ns) & _WORD
    if attempt.failed:
        bench.failed[scenario] += 1
    failed_registration = scenario == Scenario.IMS_REG and attempt.failed
    if failed_registration or (scenario == Scenario.IMS_DEREG and not attempt.failed):
        put_back(sim, bench.unregistered, attempt.user)
    else:
        put_back(sim, bench.registered, attempt.user)
    if attempt.destination >= 0:
        put_back(sim, bench.registered, attempt.destination)
