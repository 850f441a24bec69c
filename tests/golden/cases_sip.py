"""Cases of the SIP lab, unprotected (:data:`SIP`) and protected (:data:`PROTECTED`): model and assignments."""

Table = dict[str, tuple[str, tuple[str, ...]]]

_SHORT = (
    "workload.pre_registration={duration: 3 s, rate: 50 /s, transient: 1 s}",
    "workload.stir={duration: 2 s, steps: 2}",
    "workload.steps={loads: [60 /s, 110 /s], duration: 6 s, transient: 1500 ms}",
    "workload.ring_time=1 s",
    "workload.hold_time=4 s",
)
_CROWD = (
    "host.switch_cost=5 us",
    "domains.vmkernel={vcpus: 1, affinity: [0], background: {busy: 12 ms, period: 50 ms}}",
    "domains.other={vcpus: 2, background: {busy: 7 ms, period: 20 ms}}",
    "domains.third={vcpus: 1, affinity: [0, 1], background: {busy: 2 ms, period: 11 ms}}",
)
_LOAD_60 = "workload.steps.loads=[45 /s, 60 /s]"


def _steps(loads: str, more: str = "duration: 6 s, transient: 1500 ms") -> str:
    return f"workload.steps={{loads: [{loads}], {more}}}"


def _case(model: str, *assignments: str) -> tuple[str, tuple[str, ...]]:
    return model, (*_SHORT, *assignments)


def _native(*assignments: str) -> tuple[str, tuple[str, ...]]:
    return _case("lab-native", *assignments)


def _virtual(*assignments: str) -> tuple[str, tuple[str, ...]]:
    return _case("lab-virtual", *assignments)


def _crowded(scheduler: str, *assignments: str) -> tuple[str, tuple[str, ...]]:
    return _virtual(*_CROWD, _LOAD_60, f"host.scheduler={{{scheduler}}}", *assignments)


SIP: Table = {
    # The benchmark and the server
    "native-ramp": _native(),
    "native-three-steps": _native(_steps("50 /s, 90 /s, 130 /s")),
    "native-initial-and-increment": _native(
        "workload.steps={initial: 60 /s, increment: 35 /s, duration: 5 s, transient: 1 s, most: 3}"
    ),
    "native-calls-of-full-length": _native("workload.ring_time=5 s", "workload.hold_time=30 s"),
    "native-no-transient": _native(_steps("80 /s, 120 /s", "duration: 5 s, transient: 0 s")),
    "native-steps-at-once": _native("workload.pre_registration.duration=0 s", "workload.stir.duration=0 s"),
    "native-overload-and-stop": _native(_steps("120 /s, 220 /s, 260 /s", "duration: 10 s, transient: 2 s")),
    "native-overload-goes-on": _native(
        _steps("230 /s, 60 /s, 60 /s", "duration: 8 s, transient: 1 s, stop_above_ihs: 100 %")
    ),
    "native-socket-buffer-small": _native("server.socket_buffer=16 KiB", _steps("140 /s, 180 /s")),
    "native-one-worker": _native("server.processes=1", _steps("80 /s, 140 /s")),
    "native-workers-hinder-each-other": _native("server.processes=8", "server.growth_per_active_worker=0.05"),
    "native-growth-per-attempt": _native("server.growth_per_attempt=0.0004", "server.growth_per_transaction=0"),
    "native-no-query": _native("server.database_cost=0 s"),
    "native-location-flushes": _native("server.location_flush_period=2 s", "server.location_write_cost=900 us"),
    "native-stalls": _native("server.stall_period=3 s", "server.stall_duration=700 ms"),
    "native-timeouts-408": _native(
        "server.reply_timeout=1500 ms", "server.ringing_timeout=2500 ms", "workload.ring_time=2 s",
        "workload.t1=2 s", _steps("150 /s, 210 /s", "duration: 8 s, transient: 1 s, stop_above_ihs: 100 %"),
    ),
    "native-two-vcpus": _native("host.pcpus=2", "domains.sut.vcpus=2", _steps("150 /s, 260 /s")),
    "native-quantum-1ms": _native("server.quantum=1 ms", _steps("100 /s, 150 /s")),
    "native-exact-demands": _native("server.demand_cv=0"),
    "native-wild-demands": _native("server.demand_cv=3"),
    "native-calls-only": _native(
        "workload.mix={ims_rereg: 0 %, ims_reg: 0 %, ims_uac: 100 %, ims_dereg: 0 %, ims_msgc: 0 %}",
        _steps("50 /s, 85 /s"),
    ),
    "native-registrations-only": _native(
        "workload.mix={ims_rereg: 40 %, ims_reg: 30 %, ims_uac: 0 %, ims_dereg: 30 %, ims_msgc: 0 %}",
        _steps("200 /s, 300 /s"),
    ),
    "native-few-subscribers": _native("workload.subscribers=300", "workload.registered=60 %"),
    "native-impatient-agents": _native(
        "workload.t1=40 ms", "workload.t2=120 ms", "workload.invite_retransmissions=1",
        "workload.request_retransmissions=2", _steps("100 /s, 145 /s", "duration: 6 s, transient: 1 s"),
    ),
    "native-impatient-server": _native("server.t1=5 ms", "server.t2=20 ms", "server.retransmission_cost=1"),
    "native-tight-thresholds": _native(
        "workload.thresholds={registration: 8 ms, reregistration: 15 ms, session_setup: 40 ms, release: 10 ms, "
        "message: 10 ms}",
        "workload.steps.stop_above_ihs=100 %",
    ),
    "native-slow-link": _native(
        "nics.cards.vmnic0={rate: 1500 kbit/s, latency: 2 ms, queue: 6 KiB}", "workload.steps.stop_above_ihs=100 %"
    ),
    "native-fine-samples": _native("workload.sample_period=230 ms"),
    "native-quick-timer": _native("server.timer_period=170 ms", "server.transaction_wait=900 ms"),
    "native-all-work-before-sending": _native("server.work_after_send=0", "workload.test_systems=3"),
    # The virtual machine: hypervisor costs, interrupts, neighbours
    "virtual-ramp": _virtual(_steps("50 /s, 80 /s, 100 /s")),
    "virtual-overload": _virtual(_steps("90 /s, 150 /s, 170 /s", "duration: 8 s, transient: 1 s")),
    "virtual-interrupts": _virtual(
        "virtualization.interrupt_cost=30 us", "virtualization.packet_cost=20 us", "nic.moderation=2 ms"
    ),
    "virtual-ring-small": _virtual(
        "virtualization.interrupt_cost=30 us", "virtualization.packet_cost=5 us", "nic={ring: 2, moderation: 20 ms}",
        "workload.steps.stop_above_ihs=100 %",
    ),
    "virtual-busy-neighbour": _virtual(
        "domains.vmkernel={vcpus: 1, affinity: [0], background: {busy: 50 ms, period: 100 ms}}", _LOAD_60
    ),
    "virtual-two-vcpus": _virtual(
        "host.pcpus=3", "domains.sut={vcpus: 2, affinity: null}", "domains.vmkernel.affinity=null",
        "domains.vmkernel.background={busy: 30 ms, period: 90 ms}", _steps("80 /s, 150 /s"),
    ),
    "virtual-shared-core-round-robin": _crowded("kind: round_robin, quantum: 4 ms"),
    **{
        f"virtual-shared-core-credit-{version}": _crowded(f"kind: credit, version: '{version}'")
        for version in ("3.2", "4.0", "4.3", "4.8", "4.18")
    },
    "virtual-shared-core-credit-cap": _crowded(
        "kind: credit, version: '4.13'", "domains.other.cap=30 %", "domains.sut.weight=512", "domains.third.cap=10 %"
    ),
    "virtual-shared-core-credit-no-boost": _crowded("kind: credit, version: '4.7', boost: false, slice: 5 ms"),
    "virtual-shared-core-credit2": _crowded("kind: credit2", "domains.sut.weight=400"),
    "virtual-shared-core-credit2-cap": _crowded("kind: credit2, rate_limit: 0 s", "domains.other.cap=40 %"),
    "virtual-shared-core-sedf": _crowded(
        "kind: sedf", "domains.sut.period=10 ms", "domains.sut.slice=6 ms", "domains.other.extratime=false",
        "domains.other.period=40 ms", "domains.other.slice=9 ms",
    ),
    "virtual-shared-core-rtds": _crowded(
        "kind: rtds", "domains.sut.period=8 ms", "domains.sut.budget=6 ms", "domains.other.extratime=false"
    ),
    "virtual-shared-core-cfs": _crowded("kind: cfs", "domains.sut.nice=-3", "domains.other.quota=25 ms"),
    "virtual-shared-core-esxi": _crowded(
        "kind: esxi, quantum: 10 ms", "domains.sut.shares=2000", "domains.vmkernel.reservation=20 %",
        "domains.other.limit=30 %",
    ),
    "virtual-shared-core-zvm": _crowded(
        "kind: zvm", "domains.sut.absolute_share=30 %", "domains.other.relative_share=40"
    ),
    # Cards shared by several kinds of traffic
    "shared-nic-ramp": _case("lab-virtual-shared-nic", _steps("50 /s, 85 /s")),
    "shared-nic-bursts": _case(
        "lab-virtual-shared-nic", _LOAD_60,
        "nics.background={storage: {burst: 40 KiB, period: 15 ms}, management: {burst: 90 KiB, period: 100 ms}, "
        "migration: {burst: 10 KiB, period: 7 ms}}",
        "nics.cards.vmnic0={rate: 60 Mbit/s, latency: 300 us, queue: 96 KiB}",
        "workload.steps.stop_above_ihs=100 %",
    ),
    "two-cards": _case(
        "lab-virtual-shared-nic", _LOAD_60, "nics.cards.vmnic1={rate: 100 Mbit/s}", "nics.layout.storage=vmnic1",
        "nics.background.storage={burst: 200 KiB, period: 9 ms}",
    ),
    # Everything on one host
    "single-host-ramp": _case("lab-single-host", _steps("50 /s, 90 /s")),
    "single-host-one-cpu": _case("lab-single-host", "host.pcpus=1", _LOAD_60),
    "single-host-one-cpu-credit": _case(
        "lab-single-host", "host={pcpus: 1, scheduler: {kind: credit, version: '4.3'}, switch_cost: 3 us}", _LOAD_60
    ),
    "single-host-agents-slow": _case(
        "lab-single-host", "domains.uac.message_cost=700 us", "host.pcpus=2", _LOAD_60,
        "host.scheduler={kind: cfs}",
    ),
    # Stops and crashes without protection
    "native-pause": _native("faults=[{kind: pause, at: step 1 + 2 s, duration: 1500 ms}]"),
    "virtual-constant-after-stop": _virtual(
        "workload.pre_registration.duration=0 s", _steps("70 /s", "duration: 16 s, transient: 9 s"),
        "faults=[{kind: pause, at: step 1 + 2 s, duration: 3 s}]",
    ),
    "virtual-constant-high-after-stop": _virtual(
        "workload.pre_registration.duration=0 s", _steps("98 /s", "duration: 16 s, transient: 9 s"),
        "faults=[{kind: pause, at: step 1 + 2 s, duration: 4 s}]", "nic.ring=64",
    ),
    "virtual-crash": _virtual(
        "faults=[{kind: primary_crash, at: step 1 + 3 s}]", _steps("60 /s", "duration: 6 s, transient: 1 s")
    ),
}  # fmt: skip


_QUICK = (
    "protection.failover={heartbeat_interval: 200 ms, heartbeat_timeout: 600 ms, log_timeout: 500 ms, go_live: 60 ms}"
)
_REPROTECT = "protection.reprotection={delay: 700 ms, memory: 64 MiB, rate: 800 Mbit/s, dirty_rate: 80 Mbit/s}"
_NO_REPROTECTION = "protection.reprotection=null"


def _ft(*assignments: str) -> tuple[str, tuple[str, ...]]:
    return _case("lab-virtual-ft", "workload.steps.loads=[20 /s, 28 /s]", *assignments)


def _failing(faults: str, *assignments: str) -> tuple[str, tuple[str, ...]]:
    return _ft(f"faults=[{faults}]", _QUICK, "workload.steps.stop_above_ihs=100 %", *assignments)


_CRASH = "{kind: primary_crash, at: step 1 + 2300 ms}"

PROTECTED: Table = {
    # Lockstep while nothing fails
    "ft-ramp": _ft("workload.steps.loads=[15 /s, 25 /s, 32 /s]"),
    "ft-overload": _ft(_steps("40 /s, 90 /s, 110 /s", "duration: 10 s, transient: 2 s")),
    "ft-overload-slow-secondary": _ft(
        _steps("30 /s, 60 /s", "duration: 8 s, transient: 1 s, stop_above_ihs: 100 %"),
        "protection.secondary.factor=2.5",
        "protection.throttle={lag_limit: 200 ms, caught_up: 50 ms, step: 12 %, period: 500 ms, least_share: 40 %}",
    ),
    "ft-from-step-1": _ft("protection.active_from=step 1 + 2 s"),
    "ft-from-stir": _ft("protection.active_from=stir"),
    "ft-shared-card": _ft("protection.channel.shared=true"),
    "ft-shared-slow-card": _ft(
        "protection.channel.shared=true", "nics.cards.vmnic0={rate: 5 Mbit/s, latency: 200 us, queue: 64 KiB}",
        "nics.layout={vm: vmnic0, storage: vmnic0, management: vmnic1, migration: vmnic1, ft_logging: vmnic0}",
        "nics.background.storage={burst: 6 KiB, period: 50 ms}",
    ),
    "ft-no-inflation": _ft("protection.cost={entry: 3 us, kibibyte: 2 us, timer: 5 us, output: 20 us}"),
    "ft-slow-secondary": _ft(
        "protection.secondary.factor=1.6",
        "protection.throttle={lag_limit: 40 ms, caught_up: 10 ms, step: 7 %, period: 250 ms, cycle: 20 ms}",
        "workload.steps.stop_above_ihs=100 %",
    ),
    "ft-log-buffer-small": _ft(
        "protection.log.buffer=3000 B", "protection.channel.rate=1500 kbit/s", "workload.steps.stop_above_ihs=100 %"
    ),
    "ft-secondary-buffer-small": _ft(
        "protection.secondary={factor: 1.2, buffer: 5000 B, entry_cost: 300 us}", "workload.steps.stop_above_ihs=100 %"
    ),
    "ft-clock-reads": _ft("protection.log.clock_reads_per_packet=12", "protection.log.event_entry=40 B"),
    "ft-disk-reads": _ft("protection.log.disk_read_rate=150 /s", "protection.log.timer_rate=250 /s"),
    "ft-no-timer": _ft("protection.log.timer_rate=0 /s"),
    "ft-latent-channel": _ft("protection.channel={rate: 20 Mbit/s, latency: 9 ms}"),
    "ft-neighbour-credit": _ft(
        "host={scheduler: {kind: credit, version: '4.3'}, switch_cost: 5 us}", "domains.vmkernel.affinity=[0]",
        "domains.vmkernel.background={busy: 6 ms, period: 40 ms}",
    ),
    "ft-neighbour-esxi": _ft(
        "domains.vmkernel.affinity=[0]", "domains.vmkernel.background={busy: 9 ms, period: 60 ms}",
        "domains.sut.reservation=50 %",
    ),
    "ft-on-one-host": _case(
        "lab-single-host", "protection={kind: lockstep, cost: {execution: 1.2, exits: 4}}", "host.pcpus=2",
        "workload.steps.loads=[25 /s, 40 /s]",
    ),
    # Lockstep when something fails
    "ft-crash": _failing(_CRASH, _NO_REPROTECTION),
    "ft-crash-usual-timeouts": _ft(f"faults=[{_CRASH}]", "workload.steps.stop_above_ihs=100 %"),
    "ft-crash-reprotected": _failing(_CRASH, _REPROTECT),
    "ft-crash-reprotected-shared": _failing(_CRASH, _REPROTECT, "protection.channel.shared=true"),
    "ft-two-crashes": _failing(f"{_CRASH}, {{kind: primary_crash, at: step 2 + 2 s}}", _REPROTECT),
    "ft-crash-of-the-survivor": _failing(f"{_CRASH}, {{kind: primary_crash, at: step 2}}", _NO_REPROTECTION),
    "ft-crash-in-overload": _failing(_CRASH, _REPROTECT, "workload.steps.loads=[45 /s, 45 /s]"),
    "ft-crash-before-protection": _failing(
        "{kind: primary_crash, at: stir + 1 s}", "protection.active_from=step 1", "workload.steps.most=1"
    ),
    "ft-crash-outputs-on-the-way": _failing(
        _CRASH, _REPROTECT, "protection.channel={rate: 10 Mbit/s, latency: 70 ms}",
        "workload.steps.loads=[40 /s, 40 /s]",
    ),
    "ft-crash-outputs-again": _failing(
        "{kind: primary_crash, at: step 1 + 2335 ms}", _REPROTECT, "protection.log.timer_rate=0 /s"
    ),
    "ft-crash-log-on-the-way": _failing(
        _CRASH, _NO_REPROTECTION, "protection.channel={rate: 300 kbit/s, latency: 30 ms}",
        "workload.steps.loads=[40 /s, 40 /s]",
    ),
    "ft-crash-during-copy": _failing(f"{_CRASH}, {{kind: primary_crash, at: step 1 + 3900 ms}}", _REPROTECT),
    "ft-crash-during-pause": _failing(
        "{kind: pause, at: step 1 + 2 s, duration: 900 ms}, {kind: primary_crash, at: step 1 + 2500 ms}", _REPROTECT
    ),
    "ft-crash-beside-neighbour": _failing(
        _CRASH, _REPROTECT, "host={scheduler: {kind: credit, version: '3.2'}, switch_cost: 5 us}",
        "domains.vmkernel.affinity=[0]", "domains.vmkernel.background={busy: 6 ms, period: 40 ms}",
    ),
    "ft-crash-slow-secondary": _failing(_CRASH, _REPROTECT, "protection.secondary.factor=1.5"),
    "ft-backup-crash": _failing("{kind: backup_crash, at: step 1 + 2 s}", _NO_REPROTECTION),
    "ft-backup-crash-reprotected": _failing("{kind: backup_crash, at: step 1 + 2 s}", _REPROTECT),
    "ft-backup-crash-twice": _failing(
        "{kind: backup_crash, at: step 1 + 1 s}, {kind: backup_crash, at: step 1 + 2600 ms}", _REPROTECT
    ),
    "ft-channel-loss-short": _failing("{kind: channel_loss, at: step 1 + 2 s, duration: 300 ms}"),
    "ft-channel-loss-short-buffer-full": _failing(
        "{kind: channel_loss, at: step 1 + 2 s, duration: 400 ms}", "protection.log.buffer=20 KiB"
    ),
    "ft-channel-loss-for-good": _failing("{kind: channel_loss, at: step 1 + 2 s}", _REPROTECT),
    "ft-channel-loss-secondary-wins": _failing(
        "{kind: channel_loss, at: step 1 + 2001900 us}", _REPROTECT, "protection.failover.secondary_delay=0 s",
        "protection.channel.latency=400 us",
    ),
    "ft-channel-loss-both-live": _failing(
        "{kind: channel_loss, at: step 1 + 2 s}", _NO_REPROTECTION, "protection.failover.fencing=false"
    ),
    "ft-channel-loss-both-live-outputs": _failing(
        "{kind: channel_loss, at: step 1 + 2 s}", _NO_REPROTECTION, "protection.failover.fencing=false",
        "protection.channel={rate: 10 Mbit/s, latency: 70 ms}", "workload.steps.loads=[40 /s, 40 /s]",
    ),
    "ft-crash-while-channel-lost": _failing(
        "{kind: channel_loss, at: step 1 + 2 s}, {kind: primary_crash, at: step 1 + 2200 ms}", _REPROTECT
    ),
    "ft-pause": _failing("{kind: pause, at: step 1 + 2 s, duration: 800 ms}", "nic.ring=16"),
    "ft-constant-after-stop": _ft(
        "workload.pre_registration.duration=0 s", _steps("24 /s", "duration: 16 s, transient: 9 s"),
        "faults=[{kind: pause, at: step 1 + 2 s, duration: 3 s}]",
    ),
    # Restart
    "ha-restart": _virtual(
        "protection={kind: ha_restart, heartbeat_timeout: 1 s, placement: 100 ms, boot_time: 1500 ms}",
        "faults=[{kind: primary_crash, at: step 1 + 1 s}]", "workload.steps.stop_above_ihs=100 %",
        "workload.steps.loads=[60 /s, 60 /s, 60 /s]",
    ),
    "ha-restart-twice": _native(
        "protection={kind: ha_restart, heartbeat_timeout: 1 s, placement: 50 ms, boot_time: 600 ms}",
        "faults=[{kind: primary_crash, at: step 1 + 500 ms}, {kind: primary_crash, at: step 2 + 1700 ms}]",
        "workload.steps.stop_above_ihs=100 %", "nic.moderation=3 ms",
    ),
    "ha-restart-usual-times": _virtual(
        "protection={kind: ha_restart}", "faults=[{kind: primary_crash, at: step 1 + 1 s}]",
        _steps("40 /s", "duration: 95 s, transient: 1 s, stop_above_ihs: 100 %"),
    ),
    "ha-restart-nothing-fails": _virtual("protection={kind: ha_restart}", _LOAD_60),
}  # fmt: skip
