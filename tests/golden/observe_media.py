"""What is recorded of a run of the media host.

Beside the families of :mod:`.observe`; flows are ``media`` and ``signaling``.  Every running vCPU is charged at
the end of the warm-up, which matters to a scheduler that rounds when it charges.  A stub domain of the domain D
is called ``D-stub``.

::

    flow.<flow>.delivered, .dropped, .late, .loss_events      packets that reached the host after the warm-up
    flow.<flow>.all_delivered, .all_dropped                   all packets
    flow.<flow>.delay                      distribution, there and back, after the warm-up
    flow.<flow>.jitter.mean                mean over streams with a packet, ns
    flow.<flow>.jitter                     list: RFC 3550 jitter of each stream in ns
    drop.<place>.<cause>                   from the start; only what happened
    nic.<nic>.admitted, .interrupts        packets that came; interrupts raised
    in_flight                              packets in the host at the end: nic, rings, hands of stages and threads
    ring.<name>.occupied                   slots taken at the end: "eth0 receive ring", "media socket buffer", ...
    stage.<domain>.<stage>.batches         batches that a stage began; stages of the driver domain by NIC
    application.<domain>.<program>.blocked threads asleep in the send call at the end
    application.<domain>.<program>.active  threads with a packet at the end
    application.<domain>.<program>.bursts  of a CPU-bound program
    warm_up.vcpu.<domain>.<n>.run_ns, warm_up.pcpu.<n>.busy_ns     at the end of the warm-up
    warm_up.host.context_switches
"""

from collections.abc import Iterator
from typing import Any

from vftsim.engine import EventKind
from vftsim.media.build import MediaHost
from vftsim.media.flows import FlowAccount
from vftsim.media.run import finish
from vftsim.media.system import CpuBoundSpec, MediaSystem
from vftsim.sampling import Streams

from .observe import Values, Watch, histogram_values, list_values, machine_values, watch

_ENTITY = 1


def observe_media(spec: MediaSystem, seed: int, replication: int) -> tuple[Values, int]:
    """Run a host; return the values and the number of events."""
    warm_up_ns = spec.workload.warm_up
    media = MediaHost(spec, Streams(seed, replication), warm_up_ns)
    watching = watch(media.host, {name: guest.vcpus for name, guest in media.guests.items()})
    found: Values = {}
    media.clock.at(
        warm_up_ns, EventKind.CONTROL, _ENTITY, lambda _: found.update(_at_warm_up_end(media, watching)), None
    )
    result = finish(media, spec.workload.duration, warm_up_ns)
    found |= machine_values(media.host, watching)
    for name, flow in media.flows.items():
        found |= _flow(f"flow.{name}", flow)
    for (place, cause), count in result.drops.items():
        found[f"drop.{place}.{cause}"] = count
    found["in_flight"] = result.in_flight
    return found | dict(_parts(media)), media.clock.events


def _at_warm_up_end(media: MediaHost, watching: Watch) -> Values:
    host = media.host
    host.busy_ns()
    found: Values = {f"warm_up.vcpu.{watching.names[vcpu.index]}.run_ns": vcpu.run_ns for vcpu in host.vcpus}
    found |= {f"warm_up.pcpu.{pcpu}.busy_ns": busy_ns for pcpu, busy_ns in enumerate(host.pcpu_busy_ns)}
    return found | {"warm_up.host.context_switches": host.context_switches}


def _flow(head: str, flow: FlowAccount) -> Values:
    flow.flush()
    found: Values = {
        f"{head}.delivered": flow.delivered_packets,
        f"{head}.dropped": flow.dropped_packets,
        f"{head}.late": flow.late_packets,
        f"{head}.loss_events": flow.loss_events,
        f"{head}.all_delivered": flow.all_delivered,
        f"{head}.all_dropped": flow.all_dropped,
        f"{head}.jitter.mean": flow.jitter.mean_ns().hex(),
    }
    found |= list_values(f"{head}.jitter", flow.jitter._jitter_ns)
    return found | histogram_values(f"{head}.delay", flow.delays)


def _parts(media: MediaHost) -> Iterator[tuple[str, Any]]:
    for name, nic in media.nics.items():
        yield f"nic.{name}.admitted", nic.admitted
        yield f"nic.{name}.interrupts", nic.interrupts
    for name, occupied in media.occupancies():
        yield f"ring.{name}.occupied", occupied
    for name, port in media.ports.items():
        for stage in port.stages():
            yield f"stage.{name}.{stage.name}.batches", stage.batches
    if media.driver is not None:
        for receive in media.driver.receive:
            yield f"stage.driver.receive {receive.source.name}.batches", receive.batches  # type: ignore[attr-defined]
        yield "stage.driver.transmit.batches", media.driver.transmit.batches
    for name, pool in media.pools.items():
        yield f"application.{name}.blocked", pool.blocked
        yield f"application.{name}.active", pool.active
    for name, process in zip(_cpu_bound(media.system), media.cpu_bound, strict=True):
        yield f"application.{name}.bursts", process.bursts


def _cpu_bound(spec: MediaSystem) -> Iterator[str]:
    for name, domain in spec.domains.items():
        for program, application in domain.applications.items():
            if isinstance(application, CpuBoundSpec):
                yield f"{name}.{program}"
