"""The pause of a checkpoint by two published points: the rule gives back what it was fitted to, simulated."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from vftsim.composition.run import run_model
from vftsim.platform.protection.checkpoint import PauseSpec
from vftsim.platform.protection.prices import prices_of
from vftsim.study.runs.model import load_model

DERIVE = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "remus-prices" / "derive.py"))
JOB = """\
hosts: {host: {pcpus: 1}}
domains: {vm: {applications: {compile: {kind: batch, demand: 15 ms, pages: 200}}}}
measure: {warm_up: 1 s, duration: 10 s}
"""


@pytest.mark.parametrize(("period_s", "overhead"), DERIVE["POINTS"])
def test_a_compile_is_slowed_as_published(tmp_path: Any, period_s: float, overhead: float) -> None:
    path = tmp_path / "compile.yaml"
    path.write_text(JOB)
    fixed_s, page_s = DERIVE["derived"]()
    pause = f"{{fixed: {round(fixed_s * 1e9)} ns, page: {round(page_s * 1e9)} ns}}"
    protection = f"{{kind: checkpoint, interval: {period_s * 1e3:g} ms, pause: {pause}}}"
    rates = [
        run_model(load_model(path, [f"domains.vm.protection={each}"]).spec, 1, 0)
        .whole.outcomes["domains.vm.applications.compile"]
        .rate
        for each in ("{kind: none}", protection)
    ]
    assert rates[0] / rates[1] - 1 == pytest.approx(overhead, abs=0.02)
    assert DERIVE["fits"](period_s, overhead)


def test_the_ranges_reach_up_to_the_published_points() -> None:
    high = {each.key: each.price.high / 1e9 for each in prices_of(PauseSpec())}
    for factor in (0.5, 1.0, 2.0):
        fixed_s, page_s = DERIVE["derived"](factor * DERIVE["PAGES_PER_S"])
        assert fixed_s <= high["fixed"]
        assert page_s <= high["page"]
