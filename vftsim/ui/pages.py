"""The two pages: a question with its knobs, commands and answer, and the list of past studies."""

import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

import jinja2
from markupsafe import Markup

from vftsim.errors import VftsimError
from vftsim.report.html import asset
from vftsim.spec import RATE
from vftsim.study.runs.model import Model
from vftsim.study.store.opened import read_manifest
from vftsim.ui.desk import Desk, Posed
from vftsim.ui.knobs import first_of, knobs_of
from vftsim.ui.question import COLUMNS, QUESTIONS, Question, questions_of
from vftsim.ui.runs import State, Study


def question_page(desk: Desk, question: Question, mistake: str = "") -> tuple[str, int]:
    """Return the page of a question and its status: knobs, commands, how far they are, and what is known."""
    posed: list[Posed] = []
    result = ""
    try:
        posed = desk.posed(question)
        result = desk.drawn(posed) if question.ask else ""
    except VftsimError as error:
        mistake = mistake or str(error)
    today = posed[0].model if posed else _as_its_file_has_it(desk, question)
    knobs = {key: knob for each in reversed(posed) for key, knob in each.knobs.items()}
    knobs = knobs or (knobs_of(today.spec) if today else {})
    changed = [key for settings in question.columns for key in settings]
    shown = dict.fromkeys([*(first_of(today.spec, knobs) if today else ()), *question.knobs, *changed])
    studies = posed if question.ask else []
    text = _template().render(
        _frame(question.model),
        past=None,
        question=question,
        questions=questions_of(today.spec) if today else QUESTIONS,
        models=list(desk.models),
        columns=COLUMNS,
        token=desk.token,
        mistake=mistake,
        **(_about(today) if today else {}),
        shown=[knobs[key] for key in shown if key in knobs],
        others=[knob for key, knob in knobs.items() if key not in shown],
        result=Markup(result),
        asked=[(each, shlex.join(["vftsim", *desk.runs.command(each.study)])) for each in studies],
        is_busy=is_busy(studies),
        is_done=all(each.state.word == "done" for each in studies),
        is_begun=any(each.state.word == "stopped" for each in studies),
    )
    return text, 400 if mistake else 200


def past_page(desk: Desk) -> str:
    return _template().render(_frame("Past studies"), result="", past=[_row(*each) for each in desk.runs.past()])


def script() -> str:
    return f"{asset('page.js')}\n{_asset('ui.js')}"


def is_busy(posed: Sequence[Posed]) -> bool:
    return any(each.state.word in ("waiting", "running") for each in posed)


def _as_its_file_has_it(desk: Desk, question: Question) -> Model | None:
    """Return the model as its file has it; None if that is no model any more."""
    try:
        return desk.base_model(question.model)
    except VftsimError:
        return None


def _about(model: Model) -> dict[str, str]:
    """Return what a model is, what it was fitted to, and which changes that does not cover."""
    description, calibration = " ".join(model.description.split()), model.spec.calibrated
    if calibration is None:
        calibrated = "This model does not say what it was fitted to: no knob is calibrated."
    else:
        low, high = (RATE.format(load) for load in calibration.loads)
        changed = f" Not covered any more: {', '.join(calibration.not_covered)}." if calibration.not_covered else ""
        covered = "with hosts, networks and domains as in the file"
        calibrated = f"Fitted to {calibration.by}, for loads from {low} to {high}, {covered}.{changed}"
    return {"description": description, "calibrated": calibrated}


def _row(study: Study, state: State) -> dict[str, str]:
    """Return a past study as the list shows it."""
    try:
        begun = str(read_manifest(study.result)["started_utc"])
    except VftsimError:
        begun = ""
    question, command = dict(parse_qsl(study.address)).get("ask", ""), shlex.join(["vftsim", *study.words])
    row = {"address": study.address, "title": QUESTIONS.get(question, question), "command": command}
    return {**row, "state": state.word, "begun": begun}


def _frame(title: str) -> dict[str, Any]:
    style = asset("page.css") + _asset("ui.css")
    return {"title": title, "style": Markup(style), "is_busy": False}


def _asset(name: str) -> str:
    return files("vftsim.ui").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    return jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(_asset("page.html.j2"))
