"""Pages that packets dirty, by application: counted once each, said where costs are printed."""

from types import SimpleNamespace

import pytest

from vftsim.composition.run import Run
from vftsim.composition.without_effect import without_effect
from vftsim.platform.io.paths.moderated import guest_nics
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.memory import memories
from vftsim.study.figures.protection_costs import cost_notes, pages_of_requests
from vftsim.workloads.parts import APPLICATIONS

from .composed import checked, interface, relay

PAGES = {"answers": 5.0, "sink": 0.5}
REMUS = {"kind": "checkpoint", "interval": "20 ms", "memory": {"working_set": 0}}


def model(protection=REMUS, **server):
    """Two applications behind one interface, both with traffic."""
    programs = {"answers": {"kind": "service"}, "sink": {"kind": "udp_sink"}}
    for key, pages in PAGES.items():
        programs[key]["pages_per_request"] = pages
    return checked(
        {
            "domains": {
                "server": {
                    "interfaces": interface("moderated"),
                    "applications": programs,
                    "protection": protection,
                    **server,
                }
            },
            "workloads": {
                "asks": {"kind": "request_response", "to": "server.answers", "turn_around": "3 ms"},
                "sends": {"kind": "bulk_udp", "to": "server.sink", "rate": "2 Mbit/s"},
            },
            "measure": {"warm_up": "10 ms", "duration": "490 ms"},
        }
    )


def played(spec):
    run = Run(spec, 1, 0)
    return run, run.run().whole.outcomes["domains.server.protection"]


def received(run):
    """Packets that each application has taken in."""
    return {name: int(run.engine.rows(guest_nics)[row].received) for (name, _), row in run.built.ports.items()}


def test_each_packet_dirties_what_its_application_says():
    run, summary = played(model())
    taken = received(run)
    assert all(count > 20 for count in taken.values())
    row = run.built.guards["server"]
    counted = float(run.engine.rows(guards)[row].request_pages)
    waiting = sum(taken.values()) * max(PAGES.values())
    expected = sum(PAGES[name.rpartition(".")[2]] * count for name, count in taken.items())
    assert counted == pytest.approx(expected, abs=20), "but for packets in the card"
    assert counted <= waiting
    assert summary.dirty_pages == float(run.engine.rows(memories)[row].request_pages), "each once, with one state"
    assert counted - summary.dirty_pages < 0.1 * counted


def test_a_batch_dirties_what_its_transactions_write():
    """Transactions of 2 ms that write 7 pages each, one after the other; a state each 20 ms takes them once."""
    jobs = {"kind": "batch", "processes": 1, "demand": "2 ms", "demand_cv": 0.0, "disk_operations": 0, "pages": 7}
    server = {"applications": {"jobs": jobs}, "interfaces": {}, "protection": REMUS}
    spec = checked({"domains": {"server": server}, "workloads": {}, "measure": {"warm_up": 0, "duration": "500 ms"}})
    run = Run(spec, 1, 0)
    record = run.run()
    written = record.whole.outcomes["domains.server.applications.jobs"].pages_written
    assert written > 7 * 200
    assert record.whole.outcomes["domains.server.protection"].dirty_pages % 7 == 0
    assert 0 <= written - record.whole.outcomes["domains.server.protection"].dirty_pages <= 7 * 11


def test_one_number_for_all_replaces_them():
    protection = {**REMUS, "memory": {"working_set": 0, "per_request": 2.0}}
    run, summary = played(model(protection))
    states = summary.states
    assert summary.dirty_pages % 2.0 == 0.0
    assert 0.0 < 2.0 * sum(received(run).values()) - summary.dirty_pages < 0.1 * 2.0 * sum(received(run).values())
    assert states == 24


def test_pages_are_printed_with_the_costs():
    (note,) = cost_notes(model())
    assert "each packet received dirties 5 (answers), 0.5 (sink) pages" in note
    (note,) = cost_notes(model({**REMUS, "memory": {"per_request": 2.0}}))
    assert note.endswith("each packet received dirties 2 pages")
    (note,) = cost_notes(model({"kind": "lockstep"}))
    assert "dirties" not in note
    batch = {"applications": {"jobs": {"kind": "batch"}}, "interfaces": {}, "protection": REMUS}
    (note,) = cost_notes(checked({"domains": {"server": batch}, "workloads": {}}))
    assert "no application takes packets; jobs: what computing touches and transactions write" in note
    without = SimpleNamespace(applications={"store": SimpleNamespace(speaks="calls", pages_a_packet=None)})
    assert pages_of_requests(without, None).startswith("packets received dirty no pages; store: what computing touches")


def test_a_number_that_nothing_reads_is_named():
    assert not [text for text in without_effect(model()) if "pages_per_request" in text]
    assert without_effect(model({"kind": "lockstep"}))[0].startswith(
        "domains.server.applications.answers.pages_per_request: no mechanism sends states"
    )
    replaced = without_effect(model({**REMUS, "memory": {"per_request": 2.0}}))
    assert any("protection.memory.per_request replaces it" in text for text in replaced)
    assert without_effect(checked({"domains": {"media": relay()}, "workloads": {}})) == []


def test_every_application_that_takes_packets_says_how_many():
    known = {kind: APPLICATIONS[kind] for kind in APPLICATIONS}
    takers = {kind for kind, spec in known.items() if spec.speaks}
    assert takers == {kind for kind, spec in known.items() if "pages_per_request" in spec.model_fields}
    assert all(known[kind].model_fields["pages_per_request"].default > 0.0 for kind in takers)
    assert all("Assumption" in str(known[kind].model_fields["pages_per_request"].description) for kind in takers)


def test_a_price_of_sending_that_nobody_pays_is_named():
    priced = {**REMUS, "sender": {"page": "9 us", "state": "0 us"}}
    why = "no domain pays for it: the host has no driver domain"
    place = "domains.server.protection.sender"
    assert without_effect(model(priced)) == [f"{place}.page: {why}", f"{place}.state: {why}"]
    assert without_effect(model({**priced, "sender": {"page": "9 us", "domain": "server"}})) == []
    (found,) = (
        text
        for text in without_effect(model({"kind": "hypervisor_epoch", "sender": {"page": "9 us"}}))
        if "sender" in text
    )
    assert found == f"{place}.page: the mechanism sends no states"
