"""Where the lab runs: network namespaces and a control group, or what is left where the machine refuses them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PERIOD_US = 10_000
"""Period of the quota: short, so that the limit is a slow processor rather than stops that one can see."""
SERVER, LOOPBACK = "10.93.1.1", "127.0.0.1"
_CLIENT = "10.93.1.2"
_SWITCH = "switch"
_HEAVY = {"cpu.weight": "1000", "cpu.shares": "10240"}
"""Ten times a plain group's: the quota is to be the limit, not whatever else runs."""


def succeeds(*command: str) -> bool:
    """Tell whether a command ends well; what it prints is thrown away."""
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


@dataclass
class Network:
    """Namespaces for client, switch and server, with a shaped port to the server; or the loopback interface."""

    rate_mbit: int
    prefix: str = field(default_factory=lambda: f"vftlab{os.getpid()}")
    is_apart: bool = False
    is_shaped: bool = False

    def open(self) -> None:
        """Make the namespaces; on any refusal take them away again and stay on loopback."""
        self.is_apart = all(succeeds(*line.split()) for line in self._lines())
        if not self.is_apart:
            self._remove()
            return
        tbf = f"tbf rate {self.rate_mbit}mbit burst 16kb limit 256kb"
        shape = f"tc qdisc add dev p1 root stab overhead 24 linklayer ethernet {tbf}"
        self.is_shaped = succeeds(*self.inside(_SWITCH, shape.split()))

    def _lines(self) -> list[str]:
        client, switch, server = (f"{self.prefix}{name}" for name in ("client", _SWITCH, "server"))
        ends = ((client, "eth0", "p0", _CLIENT), (server, "eth0", "p1", SERVER))
        lines = [f"ip netns add {name}" for name in (client, switch, server)]
        lines += [f"ip -n {switch} link add br0 type bridge", f"ip -n {switch} link set br0 up"]
        for space, end, port, address in ends:
            lines += [
                f"ip link add {end} netns {space} type veth peer name {port} netns {switch}",
                f"ip -n {switch} link set {port} master br0 up",
                f"ip -n {space} addr add {address}/24 dev {end}",
                # No segmentation offload: the shaper then counts each frame with its own headers.
                f"ip -n {space} link set {end} up gso_max_segs 1",
                f"ip -n {space} link set lo up",
            ]
        return lines

    @property
    def address(self) -> str:
        """Address of the server."""
        return SERVER if self.is_apart else LOOPBACK

    def inside(self, where: str, command: Sequence[str]) -> list[str]:
        """Return a command that runs in the namespace of ``client``, ``switch`` or ``server``."""
        return ["ip", "netns", "exec", f"{self.prefix}{where}", *command] if self.is_apart else list(command)

    def close(self) -> None:
        """Take the namespaces away."""
        if self.is_apart:
            self._remove()

    def _remove(self) -> None:
        for name in ("client", _SWITCH, "server"):
            succeeds("ip", "netns", "del", f"{self.prefix}{name}")


@dataclass
class CpuLimit:
    """A control group with a CPU quota, of either version; without one only the processor is fixed.

    At 100 % or more nothing is limited, and the group only counts.
    """

    percent: int
    folders: dict[str, Path] = field(default_factory=dict)
    reason: str = ""
    name: str = field(default_factory=lambda: f"vftlab{os.getpid()}")

    def open(self) -> None:
        """Make the group; ``reason`` says why there is none."""
        try:
            self._open_version_2() if Path("/sys/fs/cgroup/cgroup.controllers").exists() else self._open_version_1()
        except OSError as error:
            self.close()
            self.reason = f"{error.strerror}: {error.filename}"

    def _open_version_2(self) -> None:
        root = Path("/sys/fs/cgroup")
        if "cpu" not in (root / "cgroup.subtree_control").read_text(encoding="ascii").split():
            self.reason = "the cpu controller is not enabled in /sys/fs/cgroup/cgroup.subtree_control"
            return
        group = self._make("cpu", root)
        (group / "cpu.max").write_text(f"{self._quota_us or 'max'} {PERIOD_US}", encoding="ascii")
        (group / "cpu.weight").write_text(_HEAVY["cpu.weight"], encoding="ascii")

    def _open_version_1(self) -> None:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        found = {name: m[1] for m in mounts for name in m[3].split(",") if m[2] == "cgroup"}
        if not {"cpu", "cpuacct"} <= set(found):
            self.reason = "neither version 2 nor cpu and cpuacct of version 1 are mounted"
            return
        group = self._make("cpu", Path(found["cpu"]))
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
        (group / "cpu.cfs_quota_us").write_text(str(self._quota_us or -1), encoding="ascii")
        (group / "cpu.shares").write_text(_HEAVY["cpu.shares"], encoding="ascii")
        self._make("cpuacct", Path(found["cpuacct"]))

    def _make(self, name: str, root: Path) -> Path:
        folder = root / self.name
        folder.mkdir(exist_ok=True)
        self.folders[name] = folder
        return folder

    @property
    def _quota_us(self) -> int:
        return PERIOD_US * self.percent // 100 if self.percent < 100 else 0

    @property
    def is_on(self) -> bool:
        """Whether the quota is in force."""
        return bool(self.folders)

    def around(self, command: Sequence[str]) -> list[str]:
        """Return a command that begins in the group."""
        joins = " && ".join(f"echo $$ > '{folder}/cgroup.procs'" for folder in set(self.folders.values()))
        return ["sh", "-c", f'{joins} && exec "$@"', "sh", *command] if joins else list(command)

    def cpu_s(self, parent: int) -> float:
        """Return the CPU seconds of the group; without one those of a process and its present children."""
        if "cpuacct" in self.folders:
            return int((self.folders["cpuacct"] / "cpuacct.usage").read_text(encoding="ascii")) / 1e9
        if "cpu" in self.folders:
            words = (self.folders["cpu"] / "cpu.stat").read_text(encoding="ascii").split()
            return int(words[words.index("usage_usec") + 1]) / 1e6
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
        return sum(_run_time_s(pid) for pid in (str(parent), *children))

    def close(self) -> None:
        """Take the group away; processes that are ending are waited for."""
        for folder in set(self.folders.values()):
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
        self.folders.clear()


def _run_time_s(pid: str) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
    except OSError:
        return 0.0
