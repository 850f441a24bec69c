"""Generated models with faults, run with the auditor of the promise and without it.

    python -m tests.composition.audited 300 [first]

draws models until so many of them are protected and have faults, and names the first whose outputs broke the promise
unasked, or whose results differ without the auditor.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.composition import generated
from vftsim.composition import run
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run, run_model
from vftsim.errors import VftsimError
from vftsim.kernel.declare import part_of
from vftsim.platform.protection import audit
from vftsim.platform.protection.outcome import Protection

OWN = ("judged", "breaches", "first_breach")
"""What the auditor alone leaves behind."""
QUIET = (
    audit.take_in,
    audit.owe,
    audit.date_output,
    audit.judge_output,
    audit.begin,
    audit.end,
    audit.mark,
    audit.replace,
    audit.write,
    audit.mark_released,
    audit.claim,
    audit.take_over,
    audit.go_live,
    audit.live_beside,
    audit.send,
    audit.resend_rest,
    audit.learn,
    audit.lose_channel,
    audit.change_channel,
    audit.lose_backup,
)


def silence(made: Run) -> None:
    """Take the auditor out of a run in the engine for reading."""
    namespace = made.engine._namespace  # type: ignore[attr-defined]
    for part in QUIET:
        namespace[part_of(part).name] = lambda *arguments: None
    namespace[part_of(audit.is_breach).name] = lambda *arguments: False


def models(first: int = 0) -> Iterator[tuple[int, ModelSpec]]:
    """Yield the numbers and models that are protected and have faults."""
    number = first
    while True:
        spec = generated.model(number)
        if spec is not None and spec.faults:
            yield number, spec
        number += 1


def results(spec: ModelSpec, is_audited: bool) -> tuple[Any, int, int]:
    """Return what a run leaves behind but for the auditor's own, outputs judged, and breaches nobody asked for."""
    try:
        record = run_model(spec, 1, 0, engine="simpy", prepare=None if is_audited else silence)
    except VftsimError as error:
        return f"{type(error).__name__}: {error}", 0, int("promise is broken" in str(error))
    found = record.whole.outcomes["domains.guest.protection"]
    assert isinstance(found, Protection)
    data = record.to_dict()
    for phase in data["phases"]:
        for outcome in phase["outcomes"].values():
            for name in OWN:
                outcome.pop(name, None)
    is_asked_for = spec.domains["guest"].protection.breaks_promise
    return data, found.judged, 0 if is_asked_for else found.breaches


def audited(count: int, first: int = 0) -> tuple[int, list[str]]:
    """Return how many outputs were judged in so many models, and what was wrong."""
    judged, wrong = 0, []
    for (number, spec), _ in zip(models(first), range(count), strict=False):
        data, seen, breaches = results(spec, True)
        judged += seen
        if breaches:
            wrong.append(f"model {number}: {breaches} breaches under {spec.domains['guest'].protection.kind}: {data}")
        elif data != results(spec, False)[0]:
            wrong.append(f"model {number}: other results without the auditor")
    return judged, wrong


def main() -> None:
    """Run so many models."""
    run.linked_for = lambda spec: generated.everything()  # type: ignore[assignment]
    words = [int(word) for word in sys.argv[1:]]
    judged, wrong = audited(words[0], words[1] if len(words) > 1 else 0)
    print(f"{words[0]} models, {judged} outputs judged")
    if wrong:
        raise SystemExit("\n".join(each[:400] for each in wrong))


if __name__ == "__main__":
    main()
