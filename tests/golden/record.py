"""Write ``golden.json.gz``: ``python -m tests.golden.record [names...]``, from the root of the tree.

With names, only these cases are recorded anew and the others kept.  ``golden.json.gz`` holds for each case its
``input`` (the whole model in today's form, as resolved from the shipped file and the assignments, with ``seed`` and
``replication``), its ``values`` (:mod:`.observe`) and ``events``, the number of events for information.
"""

import sys
import time
from pathlib import Path
from typing import Any

from vftsim.errors import UsageError
from vftsim.media.system import MediaSystem
from vftsim.sip.system import SipLabSpec
from vftsim.study.model import load_model

from .cases import CASES, Case
from .compact import read, write
from .observe_media import observe_media
from .observe_sip import observe_sip

GOLDEN = Path(__file__).with_name("golden.json.gz")


def spec_of(case: Case) -> SipLabSpec | MediaSystem:
    """Return the model of a case, as it runs."""
    spec: Any = load_model(case.model, case.assignments).spec
    return spec


def observe(case: Case, engine: str = "simpy") -> dict[str, Any]:
    """Run a case; return what is stored of it.  The media host has one engine of its own."""
    spec = spec_of(case)
    if isinstance(spec, SipLabSpec):
        values, events = observe_sip(spec, case.seed, case.replication, engine)
    else:
        values, events = observe_media(spec, case.seed, case.replication)
    source = {"model": spec.model_dump(mode="json"), "seed": case.seed, "replication": case.replication}
    return {"input": source, "values": values, "events": events}


def main(names: list[str]) -> None:
    """Record cases, and say what each costs."""
    unknown = sorted(set(names) - CASES.keys())
    if unknown:
        raise UsageError(f"no such cases: {', '.join(unknown)}")
    stored = {name: entry for name, entry in read(GOLDEN).items() if name in CASES} if names else {}
    total_s = 0.0
    for name in names or CASES:
        begun_s = time.process_time()
        stored[name] = observe(CASES[name])
        took_s = time.process_time() - begun_s
        total_s += took_s
        print(f"{name:40} {took_s:6.2f} s {stored[name]['events']:9} events", flush=True)
    write(GOLDEN, stored)
    print(f"{len(stored)} cases, {GOLDEN.stat().st_size} bytes, {total_s:.0f} CPU s")


if __name__ == "__main__":
    main(sys.argv[1:])
