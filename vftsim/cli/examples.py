"""Examples below the help of each command; a test reads every one as the command does."""

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "availability": (
        "vftsim availability lab-virtual --mtbf '8760 h' --quick",
        "vftsim availability two-tier --mtbf '30 d' --protection none,checkpoint --simulate 5",
    ),
    "calibrate": (
        "vftsim calibrate sip-lab/native --keep fit",
        "vftsim calibrate sip-lab/ft --at sip-lab/ft --profile --coverage 20 --report ft.html",
    ),
    "capacity": (
        "vftsim capacity lab-virtual --quick -n 5 --headroom 30%",
        "vftsim capacity net-bare --vary workloads.web.rate --objective 'web.answered >= 90' "
        "--set workloads.tcp=null --set workloads.udp=null",
    ),
    "check": ("vftsim check result", "vftsim check result --repair"),
    "compare": (
        "vftsim compare lab-native lab-virtual --quick",
        "vftsim compare lab-virtual --protection none,lockstep --quick -n 2 --objective 'calls.setup.p95 <= 100 ms' "
        "--crossovers round_trip",
    ),
    "explain": ("vftsim explain xen-media", "vftsim explain lab-virtual --of exchange --length '10 s'"),
    "export": ("vftsim export study-weights --csv runs.csv", "vftsim export study-weights --parquet runs.parquet"),
    "failover": (
        "vftsim failover lab-virtual --protection lockstep --quick",
        "vftsim failover lab-virtual --protection checkpoint -n 10 --load 40",
    ),
    "import": (
        "vftsim import uac_stat.csv sar.txt -o my-lab -e virtual",
        "vftsim import report.txt -o my-lab -e virtual --repeat 2",
    ),
    "merge": ("vftsim merge shard-1 shard-2 -o whole", "vftsim merge more -o whole"),
    "models": ("vftsim models", "vftsim models lab-virtual --set domains.sut.weight=512"),
    "optimize": (
        "vftsim optimize xen-media --choose streams=400 --choose hosts.host.pcpus=1,2,4 --choose weight=256,1024 "
        "--objective 'media.loss <= 0.1' --quick",
        "vftsim optimize lab-virtual --choose protection=lockstep,checkpoint --choose domains.sut.vcpus=1 "
        "--objective 'domains.sut.protection.output_held <= 50' --quick",
    ),
    "pilot": ("vftsim pilot lab-virtual --quick", "vftsim pilot lab-native --load 80"),
    "predict": (
        "vftsim predict lab-virtual --quick --fit sip-lab/virtual --draws 3",
        "vftsim predict linux-lab --fit linux-lab/base --held-out linux-lab --set domains.sut.quota=40ms "
        "--set domains.sut.period=100ms --figure cpu --figure SES2/p90",
    ),
    "rare": (
        "vftsim rare two-tier --event 'database.rows.held >= 16' --quick",
        "vftsim rare xen-media --event 'media.relay.lost >= 1' --brute-force --trials 2 -n 10 --quick",
    ),
    "record": ("vftsim record xen-media --quick", "vftsim record remus --quick"),
    "replay": (
        "vftsim replay study-weights --run 7",
        "vftsim replay study-weights --run 7 --trace run-7.json --length '50 ms'",
    ),
    "report": ("vftsim report result -o result.html", "vftsim report result variant -o beside.html"),
    "run": (
        "vftsim run lab-virtual --quick -n 2 -o result",
        "vftsim run net-kvm -n 5 --set workloads.udp=null --set workloads.web=null --set workloads.tcp.clients=3",
    ),
    "schema": ("vftsim schema", "vftsim schema dataset"),
    "sensitivity": (
        "vftsim sensitivity xen-media --figure media.delay.p99 --range streams=200..400 "
        "--range 'hosts.host.switch_cost=1 us..10 us log' --range domains.dom0.weight=256..1024",
        "vftsim sensitivity lab-virtual-ft --figure domains.sut.protection.output_held --prices --quick",
    ),
    "studies": ("vftsim studies", "vftsim studies results --json"),
    "study": ("vftsim study weights --dry-run", "vftsim study weights --quick -n 2 -o result"),
    "sweep": (
        "vftsim sweep xen-media --grid domains.dom0.weight=256,1024 --quick",
        "vftsim sweep xen-media --scheduler credit,esxi --grid streams=200,600",
    ),
    "trace": ("vftsim trace xen-media -o trace.json", "vftsim trace lab-virtual --pcap calls.pcap --length '10 s'"),
    "ui": ("vftsim ui", "vftsim ui lab-virtual-ft --port 0 -o questions -j 1"),
    "validate": (
        "vftsim validate sip-lab/validation -e virtual -n 2 --held-out rows.json",
        "vftsim validate linux-lab/validation -n 2 --set domains.sut.applications.proxy.processes=1",
    ),
    "warmup": ("vftsim warmup", "vftsim warmup lab-virtual xen-media"),
}


def epilog_of(command: str) -> str:
    """Return the examples as the help of a command ends with them, each on a line of its own."""
    lines = "\n".join(f"  {example}" for example in EXAMPLES.get(command, ()))
    return f"\b\nExamples:\n{lines}" if lines else ""
