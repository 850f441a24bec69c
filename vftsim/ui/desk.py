"""What stands behind every page: the models that may be asked about, their studies, answers that were drawn."""

import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import vftsim
from vftsim.errors import UsageError, VftsimError
from vftsim.files import sha256_of
from vftsim.report.html import fragment, page
from vftsim.spec import DURATION, Document, read_document
from vftsim.spec.shipped import is_file
from vftsim.study.blocks.printed import whole
from vftsim.study.runs.model import Model, first_look_ns, model_of
from vftsim.study.store.opened import identity
from vftsim.ui.knobs import Knob
from vftsim.ui.question import MOST_PAIRS, Configuration, Question, checked, questions_of, read_question
from vftsim.ui.runs import Runs, State, Study

_MOST_DRAWN = 16


@dataclass(frozen=True)
class Posed:
    """A configuration of a question as it stands: its model, the knobs this has, its study and how far that is."""

    label: str
    model: Model
    knobs: Mapping[str, Knob]
    study: Study
    state: State


class Desk:
    """Models, by the names under which the page shows them, the store where studies are kept, and answers.

    Options are what every command line is given beside.  A request that changes anything has to bring the token along.
    """

    def __init__(self, models: Mapping[str, str], store: Path, options: Sequence[str] = ()) -> None:
        self.models = dict(models)
        self.token = os.urandom(16).hex()
        self._drawn: OrderedDict[tuple[str, ...], str] = OrderedDict()
        self._drawing = threading.Lock()  # matplotlib's settings are of the whole process
        self._documents: dict[str, tuple[Any, Document]] = {}
        self.store = store
        self.runs = Runs(store, options, self._study_now)
        self.runs.start()  # it asks this object, which is whole now

    def read(self, pairs: Sequence[tuple[str, str]] = ()) -> Question:
        """Return the question of an address; refuse one that is none."""
        return read_question(pairs, list(self.models))

    def readable(self, pairs: Sequence[tuple[str, str]]) -> Question:
        """Return the question without what is wrong in it: the page keeps the rest of what somebody typed."""
        readable: list[tuple[str, str]] = []
        for pair in pairs[:MOST_PAIRS]:
            with suppress(VftsimError):
                self.read([pair])
                readable.append(pair)
        return self.read(readable)

    def posed(self, question: Question) -> list[Posed]:
        """Return the configurations of a question; refuse changes that a model cannot have.

        In a first look all are measured for the same time: a command that would measure less is told how long.
        """
        path, posed = self.models[question.model], []
        checked = [(each, *self._checked(each, path)) for each in question.configurations]
        for each, model, _ in checked:
            if question.ask and question.ask not in questions_of(model.spec):
                raise UsageError(f"{each.label}: the model has no load that could be raised; ask what clients see")
        needed_ns = [_first_look_ns(question, model) for _, model, _ in checked]
        least_ns = max([question.least_ns, *needed_ns])
        for (configuration, full, knobs), alone_ns in zip(checked, needed_ns, strict=True):
            longer = _longer(full, alone_ns, least_ns) if question.is_quick else None
            if longer is None:
                played, each = replace(question, least_ns=0), configuration
                model = full.quick() if question.is_quick else full
            elif question.ask == "capacity":  # a first look at a load is more than a shorter time
                played, each, model = replace(question, least_ns=least_ns), configuration, full.quick(least_ns)
            else:
                played = replace(question, is_quick=False)
                each = replace(configuration, changes={**configuration.changes, **longer})
                model, _ = self._checked(each, path)
            words = played.words(each, path, has_ramp=model.spec.ramp is not None)
            alone = played.alone(each)
            name = sha256_of({**identity(model, alone.seed), "words": words})[:20]
            study = Study(self.store / name, tuple(words), alone.address)
            posed.append(Posed(each.label, model, knobs, study, self.runs.state(study)))
        return posed

    def _checked(self, configuration: Configuration, path: str) -> tuple[Model, Mapping[str, Knob]]:
        try:
            return checked(configuration, self._document(path), path)
        except VftsimError as error:
            raise UsageError(f"{configuration.label}: {error}") from None

    def base_model(self, name: str) -> Model:
        return model_of(self._document(self.models[name]), name)

    def _document(self, path: str) -> Document:
        """Return what a model's file and those that it extends say now; read once as long as they are the same."""
        stamps, document = self._documents.get(path, (None, None))
        if document is None or stamps != _stamps(document):
            document = read_document(path)
            self._documents[path] = (_stamps(document), document)
        return document

    def _study_now(self, address: str) -> Study:
        """Return the study that an address of one configuration asks now."""
        return self.posed(self.read(parse_qsl(address)))[0].study

    def drawn(self, posed: Sequence[Posed], *, is_whole: bool = False) -> str:
        """Return the answers that are there beside each other, as a part of the page or as a page to send."""
        done = [each for each in posed if each.state.word == "done"]
        if not done:
            return ""
        key = (str(is_whole), *(part for each in done for part in (each.label, each.study.folder.name)))
        with self._drawing:
            if key not in self._drawn:
                title, blocks = whole([vftsim.open(each.study.result) for each in done], [each.label for each in done])
                self._drawn[key] = page(title, blocks) if is_whole else fragment(title, blocks, has_style=False)
                if len(self._drawn) > _MOST_DRAWN:
                    self._drawn.popitem(last=False)
            self._drawn.move_to_end(key)
            return self._drawn[key]


def _first_look_ns(question: Question, model: Model) -> int:
    """Return what a first look measures at least, where a question of the page has one."""
    if not question.is_quick or question.ask not in ("capacity", "run", "protection"):
        return 0
    if question.ask != "protection":
        return first_look_ns([model])
    from vftsim.study.designs.protections import fitting, kinds_named  # noqa: PLC0415 - as :func:`.question._kinds`

    return first_look_ns(fitting(model, kinds_named(question.protection))[0].values())


def _longer(model: Model, alone_ns: int, least_ns: int) -> dict[str, str] | None:
    """Return what has a model measured as long as others need in a first look; None: it does so by itself."""
    alone, longer = (model.quick(each_ns).spec.measure.duration for each_ns in (alone_ns, least_ns))
    if alone == longer:
        return None
    return {} if longer == model.spec.measure.duration else {"measure.duration": DURATION.format(longer)}


def _stamps(document: Document) -> list[tuple[int, int] | None]:
    """Return what changes when one of a document's files does."""
    return [(file.stat().st_mtime_ns, file.stat().st_size) if is_file(file) else None for file in document.files]
