"""Relations between two runs of models drawn from everything a model file can say, which need no oracle.

Two engines of one source agree on the same mistake.  That what is idle, neutral or only written in another way changes
nothing, to the nanosecond, is true of the real system whatever the rules are.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from tests.composition import generated
from tests.composition.composed import checked
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.errors import VftsimError
from vftsim.spec.units import S

Draw = dict[str, Any]
NUMBERS = range(60)
IDLE, HOG = {"kind": "service"}, {"kind": "cpu_bound"}


def drawn() -> list[Draw]:
    specs = [spec for n in NUMBERS if (spec := generated.model(n)) is not None]
    return [spec.model_dump(mode="json") for spec in specs]


def measured(data: Draw) -> Draw | None:
    """Return what a run leaves behind but for the number of its events; None: it was refused."""
    try:
        record = run_model(ModelSpec.model_validate(data), seed=1, replication=0)
    except VftsimError:
        return None
    return {**json.loads(json.dumps(record.to_dict(), default=str)), "events": 0}


def outcomes(record: Draw, left_out: tuple[str, ...]) -> list[Draw]:
    """Return the outcomes of each phase, but of owners that begin so."""
    return [{k: v for k, v in phase["outcomes"].items() if not k.startswith(left_out)} for phase in record["phases"]]


def compared(pairs: Callable[[Draw], tuple[Draw, Draw] | None], *left_out: str, kinds: tuple[str, ...] = ("",)) -> int:
    """Check that both models of each pair do the same; return how many pairs ran."""
    ran = 0
    for data in drawn():
        pair = pairs(deepcopy(data))
        one, other = map(measured, pair) if pair else (None, None)
        if one is not None and other is not None:
            assert outcomes(one, left_out) == outcomes(other, left_out), data
            ran += 1
    return ran


def test_an_idle_program_in_the_driver_domain_changes_nothing():
    """What carries packets there is as quick before programs as without any."""

    def pair(data: Draw) -> tuple[Draw, Draw] | None:
        paths = {i["path"]["kind"] for i in data["domains"]["guest"]["interfaces"].values()}
        other = deepcopy(data)
        if "paravirtual" not in paths or paths & {"emulated"}:
            return None
        other["domains"]["dom0"]["applications"] = {"idle": IDLE}
        return data, other

    assert compared(pair, "domains.dom0.applications") > 5


def test_when_measuring_begins_changes_nothing():
    """A process scheduler that is charged at an instant of its own rounds differently from there on."""
    jobs = {"kind": "batch", "processes": 3, "demand": "1.700001 ms", "demand_cv": 0.5, "think": "3 ms", "think_cv": 1}
    guest = {"vcpus": 2, "guest_scheduler": {"kind": "eevdf"}, "applications": {"jobs": jobs, "hog": HOG}}
    ended = []
    for warm_up_ns in (0, 57_123_457):
        measure = {"warm_up": f"{warm_up_ns} ns", "duration": f"{2 * S - warm_up_ns} ns"}
        data = {"hosts": {"host": {"pcpus": 4}}, "domains": {"a": guest, "b": guest}, "measure": measure}
        record = run_model(checked(data), seed=1, replication=0)
        ended.append([record.of(f"domains.{name}.applications.jobs").ended for name in "ab"])
    assert ended[0] == ended[1]
