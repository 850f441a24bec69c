"""``vftsim compare``: several systems side by side under the same traffic."""

from collections.abc import Mapping
from typing import Any

from vftsim.cli.common import ScaledStudy, entries_of
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.errors import UsageError
from vftsim.interface import studies
from vftsim.interface.arguments import as_variant


@made_from(studies.compare, ScaledStudy, beside=[studies.decide], before={"figures": "replications"}, prices=True)
def compare(call: StudyCall, *, common: ScaledStudy) -> None:
    """Compare systems in any figures under common random numbers, with intervals of the differences.

    Of models with a SIP benchmark the capacities are compared if no figure is asked for. With --protection: one model
    under several mechanisms: its service, what they cost on both hosts, what a crash and a year show, who meets what
    is asked, and the cheapest.

    --set applies to every model.
    """
    arguments = call.arguments
    models = [as_variant(name, common.loaded) for name in arguments["models"]]
    if "protection" in arguments:
        if arguments.get("figures"):
            raise UsageError("--figure: with --protection every figure is shown; --objective says what is asked")
        if len(models) != 1:
            raise UsageError("--protection compares mechanisms on one model; name one")
        plan = call.plan(studies.decide, model=models[0])
    else:
        if named := _of_mechanisms(arguments):
            raise UsageError(f"{named} is about mechanisms: name them with --protection")
        plan = call.plan(models=models)
    common.show_all(plan, common.conduct(plan))


def _of_mechanisms(typed: Mapping[str, Any]) -> str:
    """Return the first option that was given and is about mechanisms; empty for none."""
    entries = entries_of(studies.decide.__doc__ or "")
    # Of prices the command line always says something.
    named = (entry["flags"] for name, entry in entries.items() if name != "prices" and typed.get(name, []) != [])
    return next(named, "")
