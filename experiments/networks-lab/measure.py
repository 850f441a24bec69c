"""Measure a small prefork web server and a network on this machine, as material for a prediction.

``python experiments/networks-lab/measure.py OUT [--limit 30] [--short]``, as root.  Apache's prefork pool runs a script
that computes, limited to a share of one processor by a control group; httperf and iperf3 load it from another network
namespace.  Nothing leaves the machine, nothing stays behind, and it ends within ten minutes.  Where namespaces or
control groups are refused it says so and measures on loopback and without a limit.  Needs ``apache2`` (with
``mod_lua``), ``httperf``, ``iperf3``, ``ip``, ``tc`` and ``taskset``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from place import PERIOD_US, CpuLimit, Network

HERE = Path(__file__).parent
PORT, IPERF_PORT = 18099, 18098
LINK_MBIT = 100
TIMEOUT_S, TEST_S = 5, 20
SHARES = (0.4, 0.7, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0)
"""Rates of the curve, of the rate that the CPU carries."""
BURST_RATE, BURST_CONNECTIONS = 100, 200
CALIBRATION = 40
"""Requests of a calibration, two a second: one is served at a time."""
UDP_MBIT = (60, 120)
_MOST_S = 90
_MODULES = ("/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/libexec/apache2")


@dataclass
class Lab:
    """What all measurements share."""

    out: Path
    network: Network
    limit: CpuLimit
    is_short: bool
    runs: list[dict[str, Any]]

    def run(self, name: str, command: Sequence[str], **facts: Any) -> None:
        """Run a tool in the client's namespace, on the last processor; keep what it prints."""
        pinned = ["taskset", "-c", str(_processors() - 1), *command]
        command_there = self.network.inside("client", pinned)
        done = subprocess.run(command_there, capture_output=True, text=True, timeout=_MOST_S, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        (self.out / name).write_text(done.stdout, encoding="utf-8")
        self.runs.append({"file": name, **facts})
        print(f"  {name}", flush=True)


@contextmanager
def apache(lab: Lab) -> Iterator[int]:
    """Run a fresh Apache on the first processor, in the control group; give its process number."""
    with tempfile.TemporaryDirectory(prefix="vftlab") as folder:
        Path(folder).chmod(0o755)
        _write_site(Path(folder), lab.network.address)
        command = ["taskset", "-c", "0", _binary(), "-d", folder, "-f", f"{folder}/httpd.conf", "-D", "FOREGROUND"]
        # A session of its own, because Apache's parent ends its whole process group.
        server = subprocess.Popen(lab.limit.around(lab.network.inside("server", command)), start_new_session=True)
        try:
            time.sleep(2.0)
            if server.poll() is not None:
                sys.exit(f"Apache ended at once: {(Path(folder) / 'error.log').read_text()[-500:]}")
            yield server.pid
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)


def _write_site(folder: Path, address: str) -> None:
    shutil.copy(HERE / "work.lua", folder)
    text = (HERE / "httpd.conf").read_text(encoding="utf-8")
    group = "nogroup" if "\nnogroup:" in Path("/etc/group").read_text(encoding="utf-8") else "nobody"
    modules = next(path for path in _MODULES if Path(path).is_dir())
    values = {"folder": folder, "address": address, "port": PORT, "modules": modules, "group": group}
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    (folder / "httpd.conf").write_text(text, encoding="utf-8")


def _binary() -> str:
    return shutil.which("apache2") or shutil.which("httpd") or sys.exit("no apache2: apt-get install apache2-bin")


def _processors() -> int:
    return os.cpu_count() or 1


def web(lab: Lab, name: str, rate: float, connections: int, **facts: Any) -> float:
    """Run httperf against a fresh server; return the server's CPU seconds meanwhile."""
    address = [f"--server={lab.network.address}", f"--port={PORT}", "--uri=/work"]
    load = [f"--rate={rate:g}", f"--num-conns={connections}", "--num-calls=1", f"--timeout={TIMEOUT_S}"]
    with apache(lab) as server:
        before = lab.limit.cpu_s(server)
        lab.run(name, ["httperf", "--hog", *address, *load], rate=rate, connections=connections, **facts)
        lab.runs[-1]["cpu_s"] = round(lab.limit.cpu_s(server) - before, 6)
    return float(lab.runs[-1]["cpu_s"])


def calibrate(lab: Lab, number: int) -> float:
    """Return the CPU seconds of a request that is served alone."""
    cost_s = web(lab, f"calibration-{number}.txt", 2.0, CALIBRATION, part="calibration") / CALIBRATION
    print(f"a request takes {1e3 * cost_s:.2f} ms of CPU time", flush=True)
    return cost_s


def measure_web(lab: Lab) -> None:
    """Calibrate on single requests before and after a curve of rates, and after bursts."""
    carried = (lab.limit.percent / 100.0 if lab.limit.is_on else 1.0) / calibrate(lab, 1)
    for share in SHARES[1::3] if lab.is_short else SHARES:
        rate = round(share * carried, 1)
        web(lab, f"web-{rate:g}.txt", rate, round(rate * TEST_S), part="curve")
    calibrate(lab, 2)
    for number in range(1 if lab.is_short else 3):
        web(lab, f"burst-{number + 1}.txt", BURST_RATE, BURST_CONNECTIONS, part="burst")
    calibrate(lab, 3)


def measure_network(lab: Lab) -> None:
    """Run iperf3 with one to three TCP flows, and UDP below and above the line's rate."""
    seconds = 3 if lab.is_short else 10
    command = ["iperf3", "-s", "-p", str(IPERF_PORT)]
    server = subprocess.Popen(
        lab.network.inside("server", command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    client = ["iperf3", "-c", lab.network.address, "-p", str(IPERF_PORT), "-J", "-t", str(seconds)]
    try:
        time.sleep(0.5)
        for flows in (1, 2, 3):
            lab.run(f"tcp-{flows}.json", [*client, "-P", str(flows)], part="tcp", flows=flows)
        for rate in UDP_MBIT if lab.network.is_shaped else UDP_MBIT[:1]:
            lab.run(f"udp-{rate}.json", [*client, "-u", "-b", f"{rate}M", "-l", "1448"], part="udp", rate_mbit=rate)
    finally:
        server.terminate()
        server.wait(timeout=10)


def write_facts(lab: Lab) -> None:
    """Write what was measured where, with what was refused."""
    facts = {
        "kernel": platform.release().split("-")[0],
        "processors": _processors(),
        "namespaces": lab.network.is_apart,
        "link_mbit": LINK_MBIT if lab.network.is_shaped else None,
        "cpu_limit_percent": lab.limit.percent if lab.limit.is_on else None,
        "period_us": PERIOD_US,
        "timeout_s": TIMEOUT_S,
        "syn_linear_timeouts": _syn_linear_timeouts(),
        "runs": lab.runs,
    }
    (lab.out / "lab.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _syn_linear_timeouts() -> int:
    """Return how many SYNs Linux repeats before it waits longer; 0 before 6.5."""
    path = Path("/proc/sys/net/ipv4/tcp_syn_linear_timeouts")
    return int(path.read_text(encoding="ascii")) if path.exists() else 0


def tell_what_is_missing(lab: Lab) -> None:
    """Say what the machine refused, and what that means."""
    if not lab.network.is_apart:
        print("No network namespaces here (needs root): measuring on loopback, whose rate nothing limits.")
    elif not lab.network.is_shaped:
        print("No traffic shaping here (tc, sch_tbf): the link's rate is not limited.")
    if not lab.limit.is_on:
        print(f"No CPU limit in force ({lab.limit.reason}): the server has the whole of processor 0 (taskset).")
    if _processors() < 2:
        print("One processor only: httperf takes it all while it waits, and the figures will be those of the two.")


def main() -> None:
    """Measure all, and take everything away again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=int, default=30, help="percent of one processor that the server gets")
    parser.add_argument("--short", action="store_true", help="fewer rates, shorter flows: two minutes")
    asked = parser.parse_args()
    missing = [tool for tool in ("httperf", "iperf3", "taskset") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    _binary()
    asked.out.mkdir(parents=True, exist_ok=True)
    lab = Lab(asked.out, Network(LINK_MBIT), CpuLimit(asked.limit), asked.short, [])
    try:
        lab.network.open()
        lab.limit.open()
        tell_what_is_missing(lab)
        measure_web(lab)
        measure_network(lab)
        write_facts(lab)
    finally:
        lab.limit.close()
        lab.network.close()


if __name__ == "__main__":
    main()
