"""``vftsim explain``: where the time of one packet, exchange or held output went."""

from typing import Any

from vftsim.cli.from_study import StudyCall, made_from
from vftsim.cli.window import Window
from vftsim.errors import UsageError
from vftsim.interface import models

_HAPPENED = {"packet": "sent and delivered", "exchange": "begun and ended", "output": "held and let go"}


@made_from(models.explain, Window, without=("start_s", "length_s", "replication"))
def explain(call: StudyCall, as_json: bool = False, *, common: Window) -> None:
    """Decompose the time of one packet, exchange or held output in a window into its parts; they sum to the total."""
    from vftsim.report.screen import print_json, print_text
    from vftsim.tracing.explain import WHICH, explained

    model, of, packet = (call.arguments[name] for name in ("model", "of", "which"))
    if packet not in WHICH and not packet.isdecimal():
        raise UsageError(f"--packet: a number from 0, or one of {', '.join(WHICH)}; got '{packet}'")
    explanation = explained(common.recorded(model.spec), of, packet)
    if as_json:
        data: dict[str, Any] = {
            of: explanation.number,
            "of": explanation.of_all,
            "title": explanation.title,
            "flow": explanation.flow,
            "stream": explanation.stream,
            "seed": common.seed,
            "delay_ns": explanation.delay_ns,
            "parts": [{"name": part.name, "length_ns": part.length_ns} for part in explanation.parts],
        }
        print_json(data)
        return
    which = f"{of} {explanation.number} of {explanation.of_all}"
    print_text(f"{model.label}, seed {common.seed}: {which} {_HAPPENED[of]} in the window")
    print_text(str(explanation))
