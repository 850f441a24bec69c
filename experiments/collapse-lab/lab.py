"""One ramp: proxy, callee, capture and caller on loopback of a network of their own, and what they used meanwhile."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "networks-lab"))
from capture import CALLER_PORT, calls_of, packets, step_rows
from design import Cell
from place import CpuLimit, succeeds

HERE = Path(__file__).parent
TOOLS = ("kamailio", "sipp", "dumpcap", "taskset", "ip")
PROXY_PORT, CALLEE_PORT = 5060, 5062
ROUNDS = 60
"""Rounds of MD5 for a message of weight 1; an INVITE has 5, a BYE 3, any other but 100 has 1 (proxy.cfg): 12 a call."""
TAIL_S = 2.5
"""How long the last load goes on, so that the last calls are decided."""
SAMPLE_S = 0.25
_NEW_NETWORK, _PIDFD_GETFD, _SO_RCVBUFFORCE = 0x40000000, 438, 33
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_GROUPS = "vftcollapse"


@dataclass(frozen=True, slots=True)
class Rates:
    """The calls a second of a ramp."""

    first: int
    rise: int
    steps: int
    step_s: float

    def of(self, step: int) -> int:
        """Return the rate of a step, counted from 0."""
        return self.first + step * self.rise

    @property
    def length_s(self) -> float:
        """Length of the ramp and its tail."""
        return self.steps * self.step_s + TAIL_S


def enter_network() -> None:
    """Give this process and all that it starts a network with a loopback interface and nothing else."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK):
        sys.exit(f"no network namespace: {os.strerror(ctypes.get_errno())}; this needs root")
    if not succeeds("ip", "link", "set", "lo", "up"):
        sys.exit("the loopback interface of the new network cannot be set up")


def sweep() -> None:
    """End what a killed run of this lab left in its control groups, and take the groups away."""
    for folder in Path("/sys/fs/cgroup").glob(f"**/{_GROUPS}-*"):
        owner = folder.name.split("-")[1]
        if Path(f"/proc/{owner}").exists():
            sys.exit(f"another collapse lab is running (process {owner})")
        for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.5)
        folder.rmdir()
    for left in _memory().glob(f"{_GROUPS}*"):
        shutil.rmtree(left)


def _memory() -> Path:
    """Return a folder in memory, where captures disturb no disk."""
    return Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())


def check_machine() -> list[str]:
    """Return what is missing here; nothing if the lab can be run."""
    missing = [f"{tool} is not installed" for tool in TOOLS if shutil.which(tool) is None]
    if os.geteuid():
        missing.append("not root (network, control groups, socket buffers)")
    if (os.cpu_count() or 1) < 2:
        missing.append("fewer than two processors")
    return missing


@contextmanager
def running(group: CpuLimit, core: int, command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program on a core and in a group; end it with its children."""
    pinned = group.around(["taskset", "-c", str(core), *command])
    with (folder / f"{Path(command[0]).name}-{core}.log").open("ab") as log:
        process = subprocess.Popen(pinned, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1.0)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=10.0)


def play(cell: Cell, rates: Rates, rounds: int = ROUNDS) -> dict[str, Any]:
    """Play a ramp and return its rows."""
    sizes = {"proxy": cell.core_percent, "load": 100}
    groups = [CpuLimit(percent, name=f"{_GROUPS}-{os.getpid()}-{name}") for name, percent in sizes.items()]
    with tempfile.TemporaryDirectory(prefix=_GROUPS, dir=_memory()) as folder:
        try:
            for group in groups:
                group.open()
                if not group.is_on:
                    sys.exit(f"no control group for CPU: {group.reason}")
            return _play(cell, rates, rounds, Path(folder), *groups)
        finally:
            for group in groups:
                group.close()


def _play(
    cell: Cell, rates: Rates, rounds: int, folder: Path, proxy_group: CpuLimit, load_group: CpuLimit
) -> dict[str, Any]:
    core = (os.cpu_count() or 1) - 1
    for name in ("caller.xml", "callee.xml"):
        text = (HERE / name).read_text(encoding="utf-8").replace("@T1@", str(cell.t1_ms))
        (folder / name).write_text(text, encoding="utf-8")
    defined = ["-A", f"T1={cell.t1_ms}", "-A", f"ROUNDS={rounds}"]
    memory = ["-m", "512"]  # MB for transactions: a proxy that runs out of it would refuse calls for that
    command = ["kamailio", "-f", str(HERE / "proxy.cfg"), "-DD", "-E", *memory, "-n", str(cell.workers), *defined]
    pcap = folder / "caller.pcap"
    with running(proxy_group, core, command, folder) as proxy:
        _register(proxy)
        buffer_bytes = _set_buffer(proxy.pid, cell.buffer_kib * 1024)
        with (
            running(load_group, 0, _capture(pcap), folder),
            running(load_group, 0, _sipp("callee", CALLEE_PORT), folder),
        ):
            time.sleep(0.7)
            with running(load_group, 0, _caller(rates), folder):
                samples, freezes = _watch(cell, rates, proxy.pid, (proxy_group, load_group))
            time.sleep(0.2)
        if proxy.poll() is not None:
            raise RuntimeError(f"the proxy ended: {(folder / f'kamailio-{core}.log').read_text()[-500:]}")
    calls, end = calls_of(packets(pcap))
    if not calls:
        raise RuntimeError("no call was seen; the logs of the tools say why")
    start = min(call.invite for call in calls.values())
    rows = step_rows(list(calls.values()), end, rates.step_s, rates.steps)
    for row, used in zip(rows, usage_rows(samples, start, rates), strict=True):
        row.update(rate=rates.of(row["step"] - 1), **used)
    return {
        "kernel_buffer_bytes": buffer_bytes,
        "freezes_ms": [round(1e3 * (until - since), 1) for since, until in freezes],
        "freezes_at_s": [round(since - start, 2) for since, _ in freezes],
        "capture_lost": _lost((folder / "dumpcap-0.log").read_text(encoding="utf-8")),
        "proxy_errors": (folder / f"kamailio-{core}.log").read_text(encoding="utf-8").count("ERROR"),
        "steps": rows,
    }


def _capture(path: Path) -> list[str]:
    what, how = ["-i", "lo", "-f", f"udp port {CALLER_PORT}"], ["-q", "-P", "-s", "600", "-B", "64"]
    return ["dumpcap", *what, *how, "-w", str(path)]


def _lost(log: str) -> int:
    """Return how many datagrams the capture lost, as it says when it ends."""
    found = re.search(r"received/dropped on interface .*: \d+/(\d+) ", log)
    return int(found[1]) if found else 0


def _sipp(name: str, port: int) -> list[str]:
    fixed = ["-nostdin", "-timer_resol", "1", "-T2", "4000", "-buff_size", "4194304", "-l", "1000000"]
    return ["sipp", "-sf", f"{name}.xml", "-i", "127.0.0.1", "-p", str(port), *fixed, "-default_behaviors", "none"]


def _caller(rates: Rates) -> list[str]:
    last = rates.of(rates.steps - 1)
    ramp = ["-r", str(rates.first), "-rate_increase", str(rates.rise), "-rate_interval", f"{rates.step_s:g}"]
    return [*_sipp("caller", CALLER_PORT), *ramp, "-rate_max", str(last), "-no_rate_quit", f"127.0.0.1:{PROXY_PORT}"]


def _register(proxy: subprocess.Popen[bytes]) -> None:
    """Register the callee; the answer tells that the proxy is up."""
    lines = (
        f"REGISTER sip:127.0.0.1:{PROXY_PORT} SIP/2.0",
        f"Via: SIP/2.0/UDP 127.0.0.1:{CALLEE_PORT};branch=z9hG4bKregister",
        "From: <sip:callee@127.0.0.1>;tag=1",
        "To: <sip:callee@127.0.0.1>",
        "Call-ID: register",
        "CSeq: 1 REGISTER",
        f"Contact: <sip:callee@127.0.0.1:{CALLEE_PORT}>",
        "Expires: 3600",
        "Content-Length: 0",
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", CALLEE_PORT))
        sender.settimeout(0.2)
        for _ in range(50):
            sender.sendto(("\r\n".join(lines) + "\r\n\r\n").encode(), ("127.0.0.1", PROXY_PORT))
            with suppress(TimeoutError, ConnectionRefusedError):
                if sender.recv(4096).startswith(b"SIP/2.0 200"):
                    return
            if proxy.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError("the proxy does not answer a REGISTER")


def _set_buffer(pid: int, wanted_bytes: int) -> int:
    """Give the proxy's socket a receive buffer of so much kernel memory (Linux doubles what is asked for)."""
    inode = next(row[9] for row in _udp_sockets() if row[1].endswith(f":{PROXY_PORT:04X}"))
    number = next(int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir() if os.readlink(fd) == f"socket:[{inode}]")
    libc = ctypes.CDLL(None, use_errno=True)
    of_process = os.pidfd_open(pid)
    descriptor = libc.syscall(_PIDFD_GETFD, of_process, number, 0)
    os.close(of_process)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "the proxy's socket cannot be reached")
    with socket.socket(fileno=descriptor) as shared:
        shared.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, wanted_bytes // 2)
        found = shared.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    if found != wanted_bytes:
        raise RuntimeError(f"the kernel gives the socket {found} bytes, not {wanted_bytes}")
    return found


def _udp_sockets() -> list[list[str]]:
    return [line.split() for line in Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]]


# What is used meanwhile


def _watch(
    cell: Cell, rates: Rates, proxy: int, groups: tuple[CpuLimit, CpuLimit]
) -> tuple[list[list[float]], list[tuple[float, float]]]:
    """Sample the machine until the ramp is over, and freeze the proxy in the middle of each step."""
    begun = time.time()
    samples: list[list[float]] = []
    freezes: list[tuple[float, float]] = []
    due = [begun + (step + 0.5) * rates.step_s for step in range(rates.steps)] if cell.freeze_ms else []
    next_sample = begun
    while time.time() < begun + rates.length_s:
        until = min([next_sample, *due[:1]])
        time.sleep(max(0.0, until - time.time()))
        if due and time.time() >= due[0]:
            del due[0]
            freezes.append(_freeze(proxy, cell.freeze_ms / 1e3))
        else:
            samples.append(_sample(groups))
            next_sample += SAMPLE_S
    return samples, freezes


def _freeze(pid: int, length_s: float) -> tuple[float, float]:
    since = time.time()
    os.killpg(pid, signal.SIGSTOP)
    try:
        time.sleep(max(0.0, since + length_s - time.time()))
    finally:
        os.killpg(pid, signal.SIGCONT)
    return since, time.time()


SAMPLED = ("proxy", "load", "busy", "stolen", "dropped", "load_dropped")


def _sample(groups: tuple[CpuLimit, CpuLimit]) -> list[float]:
    """Return the time and the running totals of :data:`SAMPLED`: CPU seconds and datagrams."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, interrupt, soft, stolen = ticks
    drops = {row[1].rpartition(":")[2]: int(row[12]) for row in _udp_sockets()}
    at_proxy = drops.get(f"{PROXY_PORT:04X}", 0)
    at_load = sum(drops.get(f"{port:04X}", 0) for port in (CALLER_PORT, CALLEE_PORT))
    used = [group.cpu_s(os.getpid()) for group in groups]
    busy = (user + nice + system + interrupt + soft) * _TICK_S
    return [time.time(), *used, busy, stolen * _TICK_S, at_proxy, at_load]


def usage_rows(samples: Sequence[Sequence[float]], start: float, rates: Rates) -> list[dict[str, float]]:
    """Return the CPU in percent of a core, and the datagrams dropped, of each step.

    ``other_percent`` is what neither the proxy nor the load used of all cores; this script is part of it.
    """
    table = np.asarray(samples)
    edges = start + rates.step_s * np.arange(rates.steps + 1)
    totals = {name: np.interp(edges, table[:, 0], table[:, 1 + column]) for column, name in enumerate(SAMPLED)}
    gained = {name: np.diff(values) for name, values in totals.items()}
    percent = {name: 100.0 * gained[name] / rates.step_s for name in ("proxy", "load", "busy", "stolen")}
    return [
        {
            "cpu_percent": round(float(percent["proxy"][step]), 2),
            "load_percent": round(float(percent["load"][step]), 2),
            "other_percent": round(float(percent["busy"][step] - percent["proxy"][step] - percent["load"][step]), 2),
            "stolen_percent": round(float(percent["stolen"][step]), 2),
            "dropped": round(float(gained["dropped"][step])),
            "load_dropped": round(float(gained["load_dropped"][step])),
        }
        for step in range(rates.steps)
    ]
