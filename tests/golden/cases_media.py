"""Cases of the media host: model and assignments."""

Table = dict[str, tuple[str, tuple[str, ...]]]

_SHORT = ("workload.duration=180 ms", "workload.warm_up=50 ms")
_LOAD = ("workload.rtp.streams=480", "workload.signaling.calls_per_s=60")
_EMULATED = "domains.media.io_path={kind: emulated, ring_packets: 32}"
_STUB = "domains.media.io_path={kind: stub_domain}"


def _case(model: str, *assignments: str) -> tuple[str, tuple[str, ...]]:
    return model, (*_SHORT, *assignments)


def _media(*assignments: str) -> tuple[str, tuple[str, ...]]:
    return _case("xen-media", *_LOAD, *assignments)


def _scheduled(scheduler: str, *assignments: str) -> tuple[str, tuple[str, ...]]:
    return _media(f"host.scheduler={{{scheduler}}}", "workload.duration=250 ms", *assignments)


MEDIA: Table = {
    # Shipped models
    "media-default": _case("xen-media", "workload.duration=140 ms"),
    "media-native": _case("xen-media-native"),
    "media-turnkey": _case("xen-media-turnkey"),
    "media-two-core": _case("xen-media-two-core", "workload.rtp.streams=360"),
    "media-two-core-default": _case("xen-media-two-core"),
    "media-bypass": _case("xen-media-bypass"),
    # Schedulers
    "media-round-robin": _scheduled("kind: round_robin"),
    "media-round-robin-5ms": _scheduled("kind: round_robin, quantum: 5 ms"),
    **{
        f"media-credit-{version}": _scheduled(f"kind: credit, version: '{version}'")
        for version in ("3.2", "4.0", "4.1", "4.2", "4.3", "4.7", "4.8", "4.13", "4.18")
    },
    "media-credit-no-boost": _scheduled("kind: credit, version: '3.2', boost: false"),
    "media-credit-rate-limit-slice": _scheduled("kind: credit, version: '4.13', slice: 6 ms, rate_limit: 3 ms"),
    "media-credit-migration-balance": _scheduled(
        "kind: credit, version: '4.18', migration_delay: 2 ms, balance_limit: 5 ms, accounting_phase: 7 ms"
    ),
    "media-credit-weights": _scheduled(
        "kind: credit, version: '3.2'", "domains.dom0.weight=512", "domains.media.weight=1024",
        "domains.cpu1.weight=64",
    ),
    "media-credit-caps": _scheduled(
        "kind: credit, version: '3.2'", "domains.media.cap=40 %", "domains.cpu1.cap=20 %", "domains.cpu2.cap=50 %"
    ),
    "media-credit-cap-4.3": _scheduled(
        "kind: credit, version: '4.3'", "domains.dom0.cap=120 %", "domains.cpu1.cap=20 %"
    ),
    "media-credit-pinned": _scheduled(
        "kind: credit, version: '3.2'", "domains.dom0.affinity=[0]", "domains.media.affinity=[1, 2]",
        "domains.signaling.affinity=[3]", "domains.cpu1.affinity=[1]", "domains.cpu2.affinity=[3]",
    ),
    "media-credit2": _scheduled("kind: credit2"),
    "media-credit2-weights-cap": _scheduled(
        "kind: credit2, rate_limit: 200 us, migration_resistance: 0 s", "domains.media.weight=512",
        "domains.dom0.cap=110 %", "domains.cpu2.cap=30 %",
    ),
    "media-sedf": _scheduled(
        "kind: sedf", "domains.dom0.period=20 ms", "domains.dom0.slice=12 ms", "domains.media.period=10 ms",
        "domains.media.slice=2 ms", "domains.cpu1.extratime=false", "domains.cpu1.slice=20 ms",
        "domains.media.latency=3 ms",
    ),
    "media-sedf-best-effort": _scheduled("kind: sedf, extra_quantum: 1 ms"),
    "media-rtds": _scheduled(
        "kind: rtds", "domains.dom0.period=5 ms", "domains.dom0.budget=3 ms", "domains.cpu1.extratime=false"
    ),
    "media-cfs": _scheduled("kind: cfs"),
    "media-cfs-quota-shares": _scheduled(
        "kind: cfs, scaling: false, bandwidth_slice: 2 ms", "domains.media.quota=20 ms", "domains.media.period=40 ms",
        "domains.dom0.shares=4096", "domains.cpu1.nice=5", "domains.cpu2.quota=30 ms",
    ),
    "media-esxi": _scheduled("kind: esxi"),
    "media-esxi-shares-limits": _scheduled(
        "kind: esxi, quantum: 5 ms, limit_period: 20 ms", "domains.dom0.shares=8000", "domains.media.reservation=60 %",
        "domains.cpu1.limit=40 %", "domains.cpu2.shares=500",
    ),
    "media-zvm": _scheduled("kind: zvm"),
    "media-zvm-shares": _scheduled(
        "kind: zvm, minor_slice: 2 ms", "domains.dom0.absolute_share=40 %", "domains.media.relative_share=300",
        "domains.cpu1.relative_share=50",
    ),
    "media-switches-free": _media("host.switch_cost_ns=0 s"),
    "media-switches-dear": _media("host.switch_cost_ns=40 us"),
    # I/O paths and their costs
    "media-emulated": _media(_EMULATED),
    "media-emulated-both": _media(_EMULATED, "domains.signaling.io_path={kind: emulated}"),
    "media-stub-domain": _media(_STUB, "domains.media.weight=400"),
    "media-stub-domain-credit2": _media(_STUB, "host.scheduler={kind: credit2}"),
    "media-direct-both": _case(
        "xen-media", *_LOAD, "nics={eth0: {}, eth1: {}}", "driver_domain=null",
        "domains.media.io_path={kind: direct, interrupt_exit_ns: 4 us}",
        "domains.signaling.io_path={kind: direct}", "domains.signaling.nic=eth1",
    ),
    "media-two-cards-of-dom0": _media(
        "nics={eth0: {}, eth1: {receive_ring_packets: 64}}", "domains.signaling.nic=eth1"
    ),
    "media-placement-one": _media("driver.placement=one"),
    "media-placement-spread": _media("driver.placement=spread"),
    "media-placement-spread-credit2": _media("driver.placement=spread", "host.scheduler={kind: credit2}"),
    "media-batches-of-4": _media("driver.budget_packets=4"),
    "media-dear-backend": _case(
        "xen-media", "driver={event_ns: 10 us, receive_ns: 9 us, transmit_ns: 8 us}", "workload.duration=120 ms"
    ),
    "media-coalescing-3-packets": _media("nics.eth0={coalescing_time_ns: 40 us, coalescing_packets: 3}"),
    "media-coalescing-time": _media("nics.eth0={coalescing_time_ns: 700 us, coalescing_packets: 200}"),
    "media-coalescing-two-core": _case(
        "xen-media-two-core", "nics.eth0={coalescing_time_ns: 80 us, coalescing_packets: 6}"
    ),
    # Drops
    "media-nic-ring-small": _media("nics.eth0.receive_ring_packets=6"),
    "media-rings-small": _media("domains.media.io_path.ring_packets=5"),
    "media-socket-buffer-small": _media("domains.media.applications.relay.receive_buffer_bytes=2000"),
    "media-emulated-queues-small": _media(
        "domains.media.io_path={kind: emulated, ring_packets: 4, tap_packets: 8}"
    ),
    "media-emulated-tap-small": _media(
        "domains.media.io_path={kind: emulated, ring_packets: 64, tap_packets: 3, emulation_ns: 2 us}"
    ),
    "media-stub-ring-small": _media("domains.media.io_path={kind: stub_domain, ring_packets: 6, tap_packets: 12}"),
    "media-overload": _case(
        "xen-media-two-core", "workload.rtp.streams=1500", "workload.duration=110 ms", "workload.warm_up=40 ms"
    ),
    "media-native-overload": _case(
        "xen-media-native", "host.pcpus=1", "domains.linux.vcpus=1", "workload.rtp.streams=1200",
        "workload.duration=120 ms",
    ),
    # Programs and traffic
    "media-one-thread": _media(
        "domains.media.applications.relay.threads=1", "domains.media.applications.relay.packet_ns=30 us"
    ),
    "media-many-threads": _media("domains.media.vcpus=4", "domains.media.applications.relay.threads=64"),
    "media-guest-quantum": _media(
        "domains.media.quantum_ns=1 ms", "domains.dom0.quantum_ns=1 ms", "domains.signaling.quantum_ns=1 ms"
    ),
    "media-restless-jobs": _media(
        "domains.cpu1.applications.job={kind: cpu_bound, duty: 50 %, cycle_ns: 3 ms, cv: 1.5}",
        "domains.cpu2.applications.job={kind: cpu_bound, duty: 100 %, cycle_ns: 10 ms, cv: 0}",
    ),
    "media-job-beside-relay": _media(
        "domains.media.applications.job={kind: cpu_bound, duty: 70 %, cycle_ns: 5 ms}", "domains.dom0.vcpus=1"
    ),
    "media-streams-only": _media("workload.signaling=null", "workload.rtp.streams=300"),
    "media-calls-only": _media(
        "workload.rtp=null", "workload.signaling={calls_per_s: 900, received_packets: 8, packet_gap_ns: 5 ms, "
        "hold_ns: 80 ms}", "workload.duration=400 ms",
    ),
    "media-sending-grid": _media("workload.rtp.sending_grid_ns=4 ms"),
    "media-clocks-err": _media(
        "workload.rtp.clock_error_ppm=900", "workload.rtp.streams_per_client=7", "workload.rtp.interval_ns=10 ms",
        "workload.rtp.streams=250", "workload.rtp.playout_ns=2 ms",
    ),
    "media-slow-link": _media(
        "workload.rtp={link_bit_per_s: 60 Mbit/s, frame_bytes: 300, sending_grid_ns: 10 ms}",
        "workload.link_latency_ns=150 us",
    ),
    "media-longer": _case("xen-media", "workload.rtp.streams=240", "workload.signaling.calls_per_s=20",
                          "workload.duration=900 ms", "workload.warm_up=100 ms"),
}  # fmt: skip
