"""Mechanisms side by side: which fit, what is compared, what is said of their costs."""

import pytest
from tiny import TINY

from vftsim.errors import UsageError
from vftsim.platform.protection.mechanism import protections
from vftsim.report.protection_tables import print_protections
from vftsim.study import failover
from vftsim.study.model import load_model
from vftsim.study.protections import UNCALIBRATED, compare_protections, fitting, kinds_named, under

S = 1_000_000_000


def variant(tmp_path, change):
    path = tmp_path / "variant.yaml"
    path.write_text(TINY.replace("  sut:\n", f"  sut:\n    {change}\n"))
    return load_model(path)


def test_all_are_all_with_none_first():
    assert kinds_named("all")[0] == "none"
    assert set(kinds_named("all")) == set(protections())
    assert kinds_named("lockstep, none,lockstep") == ("lockstep", "none")


def test_unknown_mechanisms_are_refused_with_a_suggestion():
    with pytest.raises(UsageError, match=r"no mechanism 'lockstp'; did you mean 'lockstep'\?"):
        kinds_named("none,lockstp")


def test_what_does_not_fit_is_left_out_with_the_reason(tmp_path):
    model = variant(tmp_path, "vcpus: 2")
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


def test_a_domain_that_does_not_exist_is_refused(tiny):
    with pytest.raises(UsageError, match=r"no domain 'sud'; did you mean 'sut'\?"):
        under(tiny, "none", "sud")


def test_every_mechanism_says_what_is_not_calibrated():
    assert set(UNCALIBRATED) == set(protections()) - {"none"}


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Compare on a variant with one step."""
    path = tmp_path_factory.mktemp("compared") / "short.yaml"
    two = TINY.replace("most: 5", "most: 1").replace("  sut:\n", "  sut:\n    vcpus: 2\n")
    path.write_text(two + "hosts:\n  host: {pcpus: 2}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failover, "AFTER_NS", 3 * S)
        return compare_protections(load_model(path), ["none", "lockstep", "checkpoint"], 2, 1, 1)


def test_figures_of_each_mechanism(compared):
    assert compared.kinds == ("none", "checkpoint")
    assert compared.estimate("none", "output_wait_ms").mean == 0.0
    assert compared.estimate("checkpoint", "output_wait_ms").mean > 100.0
    delays = [compared.estimate(kind, "SES1_p50_ms").mean for kind in compared.kinds]
    # INVITE and answer each wait for the rest of an epoch of 200 ms.
    assert delays[1] > delays[0] + 100.0
    assert compared.estimate("none", "channel_mbit_per_s").mean == 0.0
    assert compared.estimate("checkpoint", "channel_mbit_per_s").mean > 1.0
    assert compared.estimate("none", "failover.outage_s") is None
    assert 1.0 < compared.estimate("checkpoint", "failover.outage_s").mean < 1.5


def test_what_is_printed(compared, capsys):
    print_protections(compared)
    shown = capsys.readouterr().out
    assert "Left out: lockstep: lockstep handles 1 vCPU" in shown
    assert "Costs of checkpoint: pages dirtied" in shown
    assert "never" in shown
    assert "nan" not in shown


def test_the_table_has_every_mechanism(compared):
    table = compared.to_pandas()
    assert set(table["mechanism"]) == {"none", "checkpoint"}
    assert compared.for_machines()["refused"] == compared.refused
