"""Scripts of a protected machine: packets for its card, jobs, faults, looks at the lag.

A script is a dict::

    protection      parameters of the mechanism, with its kind
    faults          parameters of the faults, with their kinds
    packets         [at_ns, size_bytes, demand_ns, [size_bytes of each output, ...]]
    jobs            [at_ns, demand_ns]
    looks           [at_ns, ...] at the lag
    nic             ring, moderation_ns, interrupt_cost_ns, packet_cost_ns
    link            rate_bits_per_s, latency_ns, queue_bytes of the transmitter for outputs
    until_ns
"""

from typing import Any

from hypothesis import strategies as st

MS = 1_000_000
S = 1_000_000_000

Script = dict[str, Any]

QUICK_FAILOVER = {
    "heartbeat_interval": 3 * MS, "heartbeat_timeout": 9 * MS, "log_timeout": 8 * MS, "go_live": 2 * MS,
    "announcement": 1 * MS, "storage_latency": 500_000, "secondary_delay": 1 * MS,
}  # fmt: skip
QUICK_COPY = {"delay": 5 * MS, "memory": 200_000, "rate": 800_000_000, "dirty_rate": 80_000_000, "stop_below": 4096,
              "resume": 300_000}  # fmt: skip


def script(**parts: Any) -> Script:
    """A script with what is not given left at simple values."""
    plain: Script = {
        "protection": {"kind": "lockstep"}, "faults": [], "packets": [], "jobs": [], "looks": [],
        "nic": {"ring": 256, "moderation_ns": 0, "interrupt_cost_ns": 0, "packet_cost_ns": 0},
        "link": {"rate_bits_per_s": 1_000_000_000, "latency_ns": 0, "queue_bytes": 256 * 1024},
        "until_ns": 20 * MS,
    }  # fmt: skip
    return {**plain, **parts}


_INSTANT = st.integers(1, 60 * MS)
_LENGTH = st.integers(1, 25 * MS)


def _log(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "timer_rate": draw(st.sampled_from([0.0, 0.0, 250.0, 1000.0, 7001.0])),
        "timer_entry": draw(st.sampled_from([0, 1, 120, 400])),
        "disk_read_rate": draw(st.sampled_from([0.0, 0.0, 333.0, 2000.0])),
        "clock_reads_per_packet": draw(st.sampled_from([0, 3])),
        "transport_overhead": draw(st.sampled_from([1.0, 1.2, 1.37])),
        "buffer": draw(st.sampled_from([200, 3000, 60_000, 512 * 1024])),
    }


def _lockstep(draw: st.DrawFn) -> dict[str, Any]:
    secondary = {
        "factor": draw(st.sampled_from([0.3, 1.0, 1.5, 7.0])),
        "entry_cost": draw(st.sampled_from([0, 5_000, 400_000])),
        "buffer": draw(st.sampled_from([100, 900, 20_000, 512 * 1024])),
    }
    throttle = {
        "lag_limit": draw(st.sampled_from([0, 1 * MS, 1 * S])), "caught_up": draw(st.sampled_from([0, 2 * MS])),
        "step": draw(st.sampled_from([3.0, 12.5, 40.0])), "period": draw(st.sampled_from([2 * MS, 7 * MS])),
        "cycle": draw(st.sampled_from([900_001, 3 * MS])),
    }  # fmt: skip
    channel = {
        "shared": draw(st.booleans()), "rate": draw(st.sampled_from([1_000_000, 20_000_000, 20_000_000, 1_000_000_000])),
        "latency": draw(st.sampled_from([0, 74_500, 2 * MS, 7 * MS])), "ack": draw(st.sampled_from([0, 64])),
    }  # fmt: skip
    failover = {**QUICK_FAILOVER, "fencing": draw(st.booleans()), "secondary_delay": draw(st.sampled_from([0, MS]))}
    cost = {"execution": draw(st.sampled_from([1.0, 1.21])), "output": draw(st.sampled_from([0, 10_000]))}
    return {
        "kind": "lockstep", "log": _log(draw), "secondary": secondary, "throttle": throttle, "channel": channel,
        "failover": failover, "cost": cost, "reprotection": draw(st.sampled_from([None, QUICK_COPY])),
        "active_from": draw(st.sampled_from([None, None, "11 ms"])),
    }  # fmt: skip


def _protection(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["lockstep"] * 6 + ["none", "ha_restart"]))
    if kind == "lockstep":
        return _lockstep(draw)
    if kind == "none":
        return {"kind": "none"}
    return {"kind": kind, "heartbeat_interval": 2 * MS, "heartbeat_timeout": 5 * MS, "placement": 100_000,
            "boot_time": draw(st.sampled_from([1 * MS, 9 * MS]))}  # fmt: skip


def _faults(draw: st.DrawFn, has_backup: bool) -> list[dict[str, Any]]:
    kinds = ["primary_crash", "pause", *(["primary_crash", "backup_crash", "channel_loss"] if has_backup else [])]
    faults = []
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=4)):
        fault: dict[str, Any] = {"kind": kind, "at": f"{draw(_INSTANT)} ns"}
        if kind == "pause":
            fault["duration"] = draw(_LENGTH)
        elif kind == "channel_loss":
            fault["duration"] = draw(st.none() | _LENGTH)
        faults.append(fault)
    return faults


def _packets(draw: st.DrawFn) -> list[tuple[int, int, int, list[int]]]:
    """Single packets, and trains of them."""
    content = st.tuples(
        st.integers(1, 3000), st.sampled_from([0, 10_000, 70_000, 2 * MS]), st.lists(st.integers(1, 2000), max_size=3)
    )
    packets = []
    for at_ns, (size, demand_ns, outputs) in draw(st.lists(st.tuples(_INSTANT, content), max_size=10)):
        packets.append((at_ns, size, demand_ns, outputs))
    train = st.tuples(_INSTANT, st.integers(20_000, 1 * MS), st.integers(1, 60), content)
    for at_ns, period_ns, count, (size, demand_ns, outputs) in draw(st.lists(train, max_size=3)):
        packets += [(at_ns + i * period_ns, size, demand_ns, outputs) for i in range(count)]
    return packets


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Any script."""
    protection = _protection(draw)
    return script(
        protection=protection,
        faults=_faults(draw, protection["kind"] == "lockstep"),
        packets=_packets(draw),
        jobs=draw(st.lists(st.tuples(_INSTANT, st.integers(1, 20 * MS)), max_size=4)),
        looks=sorted(draw(st.lists(_INSTANT, max_size=10))),
        nic={
            "ring": draw(st.sampled_from([2, 256])), "moderation_ns": draw(st.sampled_from([0, 125_000])),
            "interrupt_cost_ns": draw(st.sampled_from([0, 9_000])), "packet_cost_ns": draw(st.sampled_from([0, 4_000])),
        },
        link={
            "rate_bits_per_s": draw(st.sampled_from([5_000_000, 1_000_000_000])), "latency_ns": 0,
            "queue_bytes": draw(st.sampled_from([3000, 256 * 1024])),
        },
        until_ns=150 * MS,
    )  # fmt: skip
