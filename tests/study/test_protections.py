"""Mechanisms side by side: which fit, what is compared, what is said of their costs."""

import pytest
from tiny import TINY, tiny

import vftsim
from vftsim.composition.run import run_model
from vftsim.errors import ModelFileError, UsageError
from vftsim.platform.protection.mechanism import ProtectionSpec, protections
from vftsim.report.terminal import as_text
from vftsim.study.blocks.head import head
from vftsim.study.designs import failover
from vftsim.study.designs.decision import decide
from vftsim.study.designs.decision_crossovers import DecisionRequest
from vftsim.study.designs.protections import fitting, kinds_named, of_domain, under
from vftsim.study.execution import Execution
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.runs.model import load_model

pytestmark = pytest.mark.thorough

S = 1_000_000_000


def variant(tmp_path, change, pcpus=1):
    path = tmp_path / "variant.yaml"
    path.write_text(TINY.replace("  sut:\n", f"  sut:\n    {change}\n") + f"hosts: {{host: {{pcpus: {pcpus}}}}}\n")
    return load_model(path)


def test_all_are_all_with_none_first():
    assert kinds_named("all")[0] == "none"
    assert set(kinds_named("all")) == set(protections())
    assert kinds_named("lockstep, none,lockstep") == ("lockstep", "none")


def test_unknown_mechanisms_are_refused_with_a_suggestion():
    with pytest.raises(UsageError, match=r"no mechanism 'lockstp'; did you mean 'lockstep'\?"):
        kinds_named("none,lockstp")


def test_what_does_not_fit_is_left_out_with_the_reason(tmp_path):
    model = variant(tmp_path, "vcpus: 2", pcpus=2)
    models, refused = fitting(model, kinds_named("all"))
    assert set(refused) == {"lockstep", "hypervisor_epoch"}
    assert refused["lockstep"] == "lockstep handles 1 vCPU at most, and 'sut' has 2"
    assert set(models) | set(refused) == set(protections())
    with pytest.raises(UsageError, match="no mechanism fits: lockstep handles 1 vCPU"):
        fitting(model, ["lockstep"])


def test_the_models_own_mechanism_keeps_its_parameters(tmp_path):
    model = variant(tmp_path, "protection: {kind: lockstep, secondary: {factor: 1.5}}")
    assert under(model, "lockstep").spec.domains["sut"].protection.secondary.factor == 1.5
    assert under(under(model, "none"), "lockstep").spec.domains["sut"].protection.secondary.factor == 1.0


TWO_GUESTS = """
format: 2
hosts: {host: {pcpus: 2, scheduler: {kind: credit}}}
domains:
  left: &guest
    interfaces: {eth0: {path: {kind: moderated}}}
    applications: {web: {kind: service}}
    protection: {kind: checkpoint}
  right: *guest
workloads:
  few: {kind: open_requests, to: left, rate: 100 /s}
  many: {kind: open_requests, to: right, rate: 200 /s}
"""


@pytest.mark.parametrize(("domain", "rate_per_s"), [(None, 100.0), ("left", 100.0), ("right", 200.0)])
def test_one_of_several_guests_may_be_chosen(domain, rate_per_s, tmp_path):
    """What a guest without protection loses is all that comes while somebody restarts it: 77 s, ten times a year."""
    path, kept, year_s = tmp_path / "two.yaml", tmp_path / "kept", 365.25 * 86_400
    path.write_text(TWO_GUESTS)
    found = vftsim.availability(path, year_s / 10, "none", 2, domain=domain, directory=kept)
    assert found.rows[0]["failed_per_year"] == pytest.approx(year_s / (year_s / 10 + 77.0) * 77.0 * rate_per_s)
    assert as_text(vftsim.open(kept).blocks()) == as_text(found.blocks())
    decided = vftsim.decide(path, "lockstep", replications=2, domain=domain, prices=False)
    domains = decided.manifest["models"][0]["resolved"]["domains"]
    chosen = domain or "left"
    assert {name: each["protection"]["kind"] for name, each in domains.items()} == {
        "left": "checkpoint",
        "right": "checkpoint",
        chosen: "lockstep",
    }


def test_a_domain_that_does_not_exist_is_refused(tiny):
    with pytest.raises(UsageError, match=r"no domain 'sud'; did you mean 'sut'\?"):
        of_domain(tiny, "sud")
    for several in ("all", "none,lockstep"):
        with pytest.raises(UsageError, match="one mechanism here"):
            under(tiny, several)


def test_every_mechanism_says_what_is_not_calibrated():
    silent = {
        kind for kind, mechanism in protections().items() if mechanism.uncalibrated == ProtectionSpec.uncalibrated
    }
    assert silent == {"lockstep", "none"}, "lockstep says it of each price"


def test_lockstep_says_of_each_price_whether_it_is_known(tmp_path):
    def said(protection: str) -> str:
        (line,) = cost_notes(variant(tmp_path, f"protection: {protection}").spec)
        return line

    plain = said("{kind: lockstep}")
    assert plain.startswith("lockstep (sut): prices of counted events; assumed, not calibrated for this model: entry,")
    assert "not known, taken as 0: context_switch" in plain
    assert "are not counted, so free" in plain
    given = said("{kind: lockstep, cost: {context_switch: 3 us, entry: 11 us}}")
    assert "not known" not in given
    assert ": kibibyte, timer," in given
    assert "hold for the server that they were fitted to" in said("{kind: lockstep, cost: {execution: 1.1}}")
    assert "but for what the model gives" in said("{kind: checkpoint, interval: 20 ms}")


def test_what_costs_rest_on_is_said_with_every_result(tmp_path):
    model = variant(tmp_path, "protection: {kind: lockstep}")
    manifest = Execution(1, 1).manifest([model], "run", [0])
    texts = [note.text for note in head(manifest["models"], 1)]
    assert any(text.startswith("Costs of lockstep (sut): prices of counted events") for text in texts)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Compare on a variant with one step."""
    path = tmp_path_factory.mktemp("compared") / "short.yaml"
    two = TINY.replace("most: 5", "most: 1").replace("  sut:\n", "  sut:\n    vcpus: 2\n")
    path.write_text(two + "hosts:\n  host: {pcpus: 2}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failover, "AFTER_NS", 3 * S)
        return decide(load_model(path), ["none", "lockstep", "checkpoint"], 2, DecisionRequest(), Execution(1, 1))


def test_figures_of_each_mechanism(compared):
    assert list(compared.protected) == ["none", "checkpoint"]
    held = "domains.sut.protection.at_10.output_held"
    assert compared.estimate("none", held) is None
    assert compared.estimate("checkpoint", held).mean > 100.0
    # INVITE and answer each wait for the rest of an epoch of 200 ms.
    assert compared.difference("checkpoint", "workloads.calls.at_10.setup.p50").mean > 100.0
    assert compared.estimate("checkpoint", "domains.sut.protection.at_10.channel").mean > 1.0
    assert compared.estimate("none", "outage") is None
    assert 1.0 < compared.estimate("checkpoint", "outage").mean < 1.5


def test_what_is_printed(compared, capsys):
    compared.print_tables()
    shown = capsys.readouterr().out
    assert "Left out: lockstep: lockstep handles 1 vCPU" in shown
    assert "checkpoint: pages dirtied" in shown
    assert "never ends" in shown
    assert "nan" not in shown


def test_the_table_has_every_mechanism(compared):
    table = compared.to_pandas()
    assert set(table["mechanism"]) == {"none", "checkpoint"}
    assert compared.for_machines()["refused"] == compared.refused


@pytest.mark.parametrize("kind", ["none", "ha_restart", "lockstep", "checkpoint", "event_sync", "coarse_lockstep"])
@pytest.mark.parametrize("fault", ["nic_loss", "storage_loss", "slow_backup"])
def test_faults_of_devices_keep_every_packet_accounted_for(tmp_path, kind, fault):
    """A whole benchmark ends in an error if a packet is nowhere; a backup that executes nothing cannot be slow."""
    path = tmp_path / "struck.yaml"
    guest_text = f"    protection: {{kind: {kind}}}\n    interfaces:\n"
    text = tiny(steps="{initial: 10 /s, increment: 10 /s, duration: 6 s, transient: 2 s, most: 1}")
    struck = f"faults: [{{kind: {fault}, at: step 1 + 1 s, duration: 2 s}}]\n"
    path.write_text(text.replace("    interfaces:\n", guest_text) + struck)
    if fault == "slow_backup" and kind not in {"lockstep", "coarse_lockstep"}:
        with pytest.raises(ModelFileError, match="needs a"):
            load_model(path)
        return
    record = run_model(load_model(path).spec, 1, 0)
    words = [what for _, what in record.timelines["sut"]]
    assert {"nic_loss": "network card lost", "storage_loss": "storage lost", "slow_backup": "backup slow"}[
        fault
    ] in words
