"""Judge the SIP farm's figures, with the trivial baseline, closed forms and wrong models beside them.

Rules are those of ``calibration/sip-farm/protocol.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from vftsim.records import farm
from vftsim.records import farm_bounds as form
from vftsim.records.farm import Figures
from vftsim.records.farm_bounds import RUNS, Costs, costs_after, costs_before

Verdict = Literal["input", "holds", "missed", "prediction", "derived", "an estimate, met", "an estimate, missed"]
Results = Mapping[str, Figures]
PROCESSORS_MARGIN, FORM_MARGIN, CLEAR, ESTIMATE_MARGIN = 0.06, 0.01, 1.05, 0.15
RESPONSE_MS = (1.2, 6.0)
EVEN, RANDOM = "R3 held out, even", "R3 held out, random"
"""Processors at exactly the stated rate; response times as many generators beside one another make them."""


@dataclass(frozen=True, slots=True)
class Number:
    """A figure of the record beside what the model says, what limits it, and what a trivial rule says."""

    what: str
    stated: str
    predicted: str
    limit: str
    baseline: str
    verdict: Verdict
    null: Verdict | None = None
    """Whether the baseline holds too; None where there is none."""


def numbers(results: Results) -> list[Number]:
    """Judge every run's rate, and R3's processors and response time."""
    before, after = costs_before(), costs_after()
    return [
        *(_input(run, before) for run in ("R1", "R2", "R4")), *_r3(results, after), _r6(after), _r7(after),
        _r5(after), _nas(after), _derived(after),
    ]  # fmt: skip


def _input(run: str, costs: Costs) -> Number:
    resource, bound = form.limit(form.bounds(costs, RUNS[run]))
    return Number(f"{run}, calls/s", f"{form.rate(run):g}", f"{bound:.1f}", f"{resource} (assumed)", "", "input")


def _r3(results: Results, costs: Costs) -> list[Number]:
    rate, stated = form.rate("R3"), form.processors_stated()
    resource, bound = form.limit(form.bounds(costs, RUNS["R3"]))
    used, response = mean(results[EVEN]["processors_used"]), mean(results[RANDOM]["response_ms"])
    by_form = form.processors_used(costs_before(), "R3", rate)
    off = used / stated - 1.0
    return [
        Number("R3, calls/s, a lower bound", f"{rate:g}", f"at most {bound:.0f}",
               f"none inside: next is {resource}, {bound / rate:.2f} times the rate",
               f"15 x R1 = {15 * form.rate('R1'):.0f}", _if(bound > CLEAR * rate),
               _if(15 * form.rate("R1") > CLEAR * rate)),
        Number("R3, processors of 24", f"{stated:g}", f"{used:.2f} ({off:+.1%}); form {by_form:.2f}", "",
               f"all 24 ({24 / stated - 1.0:+.0%})", _if(abs(off) <= PROCESSORS_MARGIN),
               _if(abs(24 / stated - 1.0) <= PROCESSORS_MARGIN)),
        Number("R3, response, ms", "6", f"{response:.2f}", "", "",
               _if(RESPONSE_MS[0] <= response <= RESPONSE_MS[1])),
    ]  # fmt: skip


def _r6(costs: Costs) -> Number:
    low, high = form.interval(costs, RUNS["R6"])
    stated = form.rate("R6")
    share = back_end_share(costs)
    return Number(
        "R6, calls/s", f"{stated:g}", f"{low:.0f} to {high:.0f} (a factor of {high / low:.1f})",
        f"{form.BACK} (assumed; so in {share:.0%} of all splits)", f"15 x R4 = {15 * form.rate('R4'):.0f}",
        _if(low <= stated <= high), _if(abs(15 * form.rate("R4") / stated - 1.0) <= PROCESSORS_MARGIN),
    )  # fmt: skip


def back_end_share(costs: Costs) -> float:
    """Return the part of all splits of a registered call for which R6's back end is its limit."""
    return 1.0 - form.balanced_split(costs, RUNS["R6"]) / costs.most_back_s


def _r7(costs: Costs) -> Number:
    found = form.bounds(costs, RUNS["R7"])
    others = {name: bound for name, bound in found.items() if name != form.STORAGE}
    stated, least = form.rate("R7"), min(others.values())
    said = ", ".join(f"{name} {bound:.0f}" for name, bound in others.items())
    return Number(
        "R7, calls/s, an inequality", f"{stated:g}", f"at most {least:.0f} ({said})", f"{form.STORAGE} (derived)",
        f"13 x R4 = {13 * form.rate('R4'):.0f}", _if(least > CLEAR * stated),
        _if(13 * form.rate("R4") > CLEAR * stated),
    )  # fmt: skip


def _r5(costs: Costs) -> Number:
    resource, bound = form.limit(form.bounds(costs, RUNS["R5"]))
    low, high = form.interval(costs, RUNS["R5"])
    return Number("R5, calls/s", "not run", f"{bound:.1f} ({low:.0f} to {high:.0f} over all splits)",
                  f"{resource} (with R6's split)", f"R4 = {form.rate('R4'):g}", "prediction")  # fmt: skip


def _nas(costs: Costs) -> Number:
    ratio = form.without_storage(costs) / form.rate("R7")
    verdict: Verdict = "an estimate, met" if abs(ratio / 2.0 - 1.0) <= ESTIMATE_MARGIN else "an estimate, missed"
    return Number("R7 without its NAS over R7", "2 or more", f"{ratio:.2f}", form.ALL_PROCESSORS, "1", verdict)


def _derived(costs: Costs) -> Number:
    said = f"{form.io_a_call():.2f} a call, {form.io_a_disk():.0f} a disk and second"
    return Number("R7, I/O operations", "5800/s, 30 %", said, "", "", "derived")


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong model on the row that it should fail: what is stated, what the model and the wrong one say of it."""

    model: str
    row: str
    stated: str
    right: str
    wrong: str
    verdict: Verdict


def wrong_models() -> list[Wrong]:
    """Return the four wrong models, each on its row."""
    stated, rate = form.processors_stated(), form.rate("R3")
    right = form.processors_used(costs_before(), "R3", rate)
    one = form.processors_used(costs_before(1.0), "R3", rate)
    alike = form.processors_used(costs_before(clustered=False), "R3", rate)
    low, high = form.interval(costs_after(), RUNS["R6"])
    most = form.without_storage(costs_after())

    def processors(used: float) -> tuple[str, Verdict]:
        return f"{used:.2f} ({used / stated - 1.0:+.0%})", _if(abs(used / stated - 1.0) <= PROCESSORS_MARGIN)

    return [
        Wrong("one CPU a server", "R3, processors", f"{stated:g}", processors(right)[0], *processors(one)),
        Wrong("no clustering cost", "R3, processors", f"{stated:g}", processors(right)[0], *processors(alike)),
        Wrong("a NAS in R6", "R7, calls/s", f"{form.rate('R7'):g}", f"at most {most:.0f}",
              f"{form.rate('R6'):.0f} ({form.rate('R6') / form.rate('R7') - 1.0:+.0%})",
              _if(form.rate("R6") >= form.rate("R7"))),
        Wrong("storage limits R4", "R6, calls/s", f"{form.rate('R6'):g}", f"{low:.0f} to {high:.0f}",
              f"at most {form.rate('R4'):g}", _if(form.rate("R4") >= form.rate("R6"))),
    ]  # fmt: skip


def contradictions() -> list[tuple[str, str, str]]:
    """Return what the source says twice and differently: what, one figure, the other."""
    row, costs = form.stated()["R3"], costs_after()
    rate = float(row["total_calls"]) / float(row["total_time_s"])
    needed = form.processors_used(costs, "R3", rate)
    held = form.rate("R3") * float(row["call_duration_s"])
    fronts = RUNS["R3"].fronts
    return [
        ("R3, calls/s", row["calls_per_s"],
         f"{rate:.0f}: {row['total_calls']} calls in {row['total_time_s']} s; needs {needed:.1f} of 24 processors"),
        ("R3, concurrent calls", row["concurrent_calls_mean"],
         f"{held:.0f}: the rate times 60 s; the printed one is the rate times 59 s"),
        ("R3, generators", f"{row['sipp_uac_processes']} and {row['sipp_uas_processes']}", "6 and 6 (4.2.1)"),
        ("R3, length", f"{row['total_time_s']} s", "1 h (4.2.1)"),
        ("scaling", "near linear",
         f"{form.rate('R3') / fronts / form.rate('R2'):.0%} of R2 a front end, where nothing inside was the limit"),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Agreement:
    """A bound of the event model beside its closed form."""

    run: str
    resource: str
    simulated: float
    form: float
    is_limit: bool

    @property
    def off(self) -> float:
        """Relative difference."""
        return self.simulated / self.form - 1.0


def agreements(results: Results) -> list[Agreement]:
    """Return every bound of every run, simulated and in closed form, and what saturated resources do."""
    found = []
    for run, layout in RUNS.items():
        forms = form.bounds(costs_after(), layout)
        limit = form.limit(forms)[0]
        figures = results[f"bounds {run}"]
        found += [Agreement(run, name, mean(figures[name]), value, name == limit) for name, value in forms.items()]
    for run in farm.SATURATED:
        name, value = form.limit(form.bounds(costs_after(), RUNS[run]))
        done = mean(results[f"saturated {run}"]["calls_per_s"])
        found.append(Agreement(run, f"{name}, saturated", done, value, True))
    return found


def mean(values: Sequence[float]) -> float:
    """Return the mean over the replications."""
    return sum(values) / len(values)


def _if(is_so: bool) -> Verdict:
    return "holds" if is_so else "missed"
