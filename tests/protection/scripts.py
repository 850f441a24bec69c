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

from random import Random
from typing import Any

MS = 1_000_000
S = 1_000_000_000

Script = dict[str, Any]

QUICK_FAILOVER = {
    "detection": {"heartbeat_interval": 3 * MS, "timeout": 9 * MS, "log_timeout": 8 * MS, "secondary_delay": 1 * MS},
    "go_live": 2 * MS,
    "announcement": 1 * MS,
    "storage_latency": 500_000,
}
QUICK_COPY = {
    "delay": 5 * MS,
    "memory": 200_000,
    "rate": 800_000_000,
    "dirty_rate": 80_000_000,
    "stop_below": 4096,
    "resume": 300_000,
}


def script(**parts: Any) -> Script:
    """A script with what is not given left at simple values."""
    plain: Script = {
        "protection": {"kind": "lockstep"},
        "faults": [],
        "packets": [],
        "jobs": [],
        "looks": [],
        "nic": {"ring": 256, "moderation_ns": 0, "interrupt_cost_ns": 0, "packet_cost_ns": 0},
        "link": {"rate_bits_per_s": 1_000_000_000, "latency_ns": 0, "queue_bytes": 256 * 1024},
        "until_ns": 20 * MS,
    }
    return {**plain, **parts}


_BUSY_NS = 60 * MS


def any_script(seed: int) -> Script:
    """A script of a number: mechanism, load and faults as it falls."""
    pick = Random(seed)
    protection = _protection(pick)
    packets = _packets(pick)
    return script(
        protection=protection,
        faults=_faults(pick, protection["kind"] == "lockstep", [packet[0] for packet in packets]),
        packets=packets,
        jobs=[(_instant(pick), pick.randint(1, 20 * MS)) for _ in range(pick.randrange(4))],
        looks=sorted(_instant(pick) for _ in range(pick.randrange(10))),
        nic={
            "ring": pick.choice([2, 256, 256]),
            "moderation_ns": pick.choice([0, 125_000]),
            "interrupt_cost_ns": pick.choice([0, 9_000]),
            "packet_cost_ns": pick.choice([0, 4_000]),
        },
        link={
            "rate_bits_per_s": pick.choice([5_000_000, 1_000_000_000]),
            "latency_ns": 0,
            "queue_bytes": pick.choice([3000, 256 * 1024]),
        },
        until_ns=150 * MS,
    )


def _instant(pick: Random) -> int:
    return pick.randint(1, _BUSY_NS)


def _protection(pick: Random) -> dict[str, Any]:
    kind = pick.choice(["lockstep"] * 8 + ["none", "ha_restart"])
    if kind == "lockstep":
        return _lockstep(pick)
    if kind == "none":
        return {"kind": "none"}
    return {
        "kind": kind,
        "failover": {
            "detection": {"heartbeat_interval": 2 * MS, "timeout": 5 * MS},
            "placement": 100_000,
            "boot_time": pick.choice([1 * MS, 9 * MS]),
        },
    }


def _lockstep(pick: Random) -> dict[str, Any]:
    secondary = {
        "factor": pick.choice([0.3, 1.0, 1.5, 7.0]),
        "entry_cost": pick.choice([0, 5_000, 400_000]),
        "buffer": pick.choice([100, 900, 20_000, 512 * 1024, 512 * 1024]),
    }
    throttle = {
        "lag_limit": pick.choice([0, 1 * MS, 1 * S]),
        "caught_up": pick.choice([0, 2 * MS]),
        "step": pick.choice([3.0, 12.5, 40.0]),
        "period": pick.choice([2 * MS, 7 * MS]),
        "cycle": pick.choice([900_001, 3 * MS]),
    }
    channel = {
        "shared": pick.random() < 0.3,
        "rate": pick.choice([1_000_000, 20_000_000, 20_000_000, 1_000_000_000]),
        "latency": pick.choice([0, 74_500, 2 * MS, 7 * MS]),
        "ack": pick.choice([0, 64]),
    }
    failover = {
        **QUICK_FAILOVER,
        "fencing": pick.random() < 0.7,
    }
    failover["detection"] = {
        **QUICK_FAILOVER["detection"],
        "secondary_delay": pick.choice([0, 1 * MS]),
        "log_timeout": pick.choice([8 * MS, 20 * MS]),
    }
    cost = {"execution": pick.choice([1.0, 1.21]), "output": pick.choice([0, 10_000])}
    return {
        "kind": "lockstep",
        "log": _log(pick),
        "secondary": secondary,
        "throttle": throttle,
        "channel": channel,
        "failover": failover,
        "cost": cost,
        "reprotection": pick.choice([None, QUICK_COPY]),
        "active_from": pick.choice([None, None, None, "11 ms"]),
    }


def _log(pick: Random) -> dict[str, Any]:
    return {
        "timer_rate": pick.choice([0.0, 0.0, 250.0, 1000.0, 7001.0]),
        "timer_entry": pick.choice([0, 1, 120, 400]),
        "disk_read_rate": pick.choice([0.0, 0.0, 0.0, 333.0, 2000.0]),
        "clock_reads_per_packet": pick.choice([0, 3]),
        "transport_overhead": pick.choice([1.0, 1.2, 1.37]),
        "buffer": pick.choice([200, 3000, 60_000, 512 * 1024, 512 * 1024]),
    }


def _packets(pick: Random) -> list[tuple[int, int, int, list[int]]]:
    """Trains of packets, single ones among them."""
    packets = []
    for _ in range(pick.randrange(8)):
        at_ns, period_ns, count = _instant(pick), pick.randint(20_000, 1 * MS), pick.choice([1, 1, 5, 60])
        size, demand_ns = pick.randint(1, 3000), pick.choice([0, 10_000, 70_000, 2 * MS])
        outputs = [pick.randint(1, 2000) for _ in range(pick.choice([0, 1, 1, 3]))]
        packets += [(at_ns + i * period_ns, size, demand_ns, outputs) for i in range(count)]
    return packets


def _faults(pick: Random, has_backup: bool, packets_ns: list[int]) -> list[dict[str, Any]]:
    """Some faults, most of them soon after a packet."""
    kinds = ["primary_crash", "pause", *(["primary_crash", "backup_crash", "channel_loss"] if has_backup else [])]
    faults = []
    for _ in range(pick.choice([0, 1, 1, 2, 3])):
        at_ns = _instant(pick)
        if packets_ns and pick.random() < 0.7:
            at_ns = pick.choice(packets_ns) + pick.choice([0, 1, 100_000, 300_000, 3 * MS, 8 * MS])
        fault: dict[str, Any] = {"kind": pick.choice(kinds), "at": f"{at_ns} ns"}
        if fault["kind"] == "pause" or (fault["kind"] == "channel_loss" and pick.random() < 0.5):
            fault["duration"] = pick.randint(1, 25 * MS)
        faults.append(fault)
    return faults
