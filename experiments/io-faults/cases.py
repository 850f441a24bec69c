"""The commands that write, each small, with what it must end in."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.study.tiny import tiny

TREE = Path(__file__).parents[2]
MODEL = tiny(steps="{initial: 10 /s, increment: 10 /s, duration: 6 s, transient: 2 s, most: 2}")
LAB = {
    "dataset.yaml": "name: lab\nenvironments: {bare: {description: one}}\nphases: {meaning: a load, repeats: again}\n"
    "tables:\n  shares: {file: shares.csv, keys: {environment: environment, phase: phase, repeat: repeat},\n"
    "    metric_column: metric, columns: {mean_percent: {unit: '%', statistic: mean}}}\n",
    "shares.csv": "environment,phase,repeat,metric,mean_percent\nbare,step_1,1,cpu,12\nbare,step_2,1,cpu,24\n",
    "fit.yaml": "name: fit\nmodel: model.yaml\ndataset: .\nenvironment: bare\nparameters:\n"
    "  - {path: domains.sut.applications.proxy.touch_cost, low: 1 ms, high: 8 ms, start: 4 ms, meaning: cost}\n"
    "in_sample: [step_1]\nmost_evaluations: 2\n",
    "check.yaml": "name: check\ndataset: .\nreplications: 2\nseed: 3\nstep_duration: 6 s\ntransient: 2 s\n"
    "environments:\n"
    "  bare: {model: model.yaml, fitted_steps: 1, stop_step: 3}\n",
}
"""A lab of one's own, two figures in it."""
SAR = TREE / "tests" / "labs" / "files"
STORE = "out"
GOES_ON = ("capacity", "compare", "sweep", "failover", "availability")


def _equal(path: Path) -> Any:
    """Return a file's content less the times of day and the places in it."""
    if path.suffix != ".json":
        return path.read_bytes()
    data = json.loads(path.read_text())
    if path.name == "manifest.json":
        return [data["replications"], data["seed"], data["state"], data["models"]]
    return {name: value for name, value in data.items() if name != "manifest"} if isinstance(data, dict) else data


def _stored(path: Path) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT key, replication, data FROM replications JOIN studies ON studies.id = study")
        return sorted(rows)


@dataclass
class Case:
    """A command that writes.

    Parameters
    ----------
    name : str
    line : str
        The command line; ``{}`` stands for its folder.
    more : str
        What is added when it is started again.
    prepare : callable, optional
        Makes what must be there before, in the folder it is given.
    code : int
        Its exit code when nothing fails.
    may : tuple of int
        Exit codes when something fails: a read that fails is damage that ``check`` is to find.
    files : dict
        Files that must be there before.
    """

    name: str
    line: str
    more: str = ""
    prepare: Callable[[Path], None] | None = None
    code: int = 0
    may: tuple[int, ...] = (2, 3)
    files: dict[str, str] = field(default_factory=dict)
    whole: dict[str, Any] = field(default_factory=dict)
    template: Path | None = None

    def words(self, folder: Path) -> list[str]:
        """Return the command line."""
        return [word.replace("{}", str(folder)) for word in self.line.split()]

    def again(self, folder: Path) -> list[str]:
        """Return the command line that goes on."""
        there = any(
            (folder / name).exists()
            for name in (f"{STORE}/vftsim.sqlite", "t.json", "fit.json", "f.png", "r.md", "lab/dataset.yaml")
        )
        return [*self.words(folder), *(self.more.split() if there else [])]

    def learn(self, place: Path) -> None:
        """Do it once undisturbed: what it ends in, and what it simulates on the way."""
        self.template = place / f"template {self.name}".replace(" ", "-")
        self.template.mkdir()
        for name, text in {"model.yaml": MODEL, **self.files}.items():
            (self.template / name).write_text(text)
        if self.prepare is not None:
            self.prepare(self.template)
        folder = self.begin(place / "work")
        said = quietly(self.words(folder))
        assert said[0] == self.code, said
        self.whole = self.results(folder)
        shutil.rmtree(folder)

    def begin(self, folder: Path) -> Path:
        """Return a folder as it is before the command."""
        assert self.template is not None
        shutil.copytree(self.template, folder)
        return folder

    def results(self, folder: Path) -> dict[str, Any]:
        """Return what must be equal: every file without times of day, every stored replication."""
        found: dict[str, Any] = {}
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            if path.name == "vftsim.sqlite":
                found[name] = _stored(path)
            elif name.endswith("sqlite.damaged-wal"):
                pass  # there where SQLite could not remove its log
            elif "sqlite.damaged" in name:
                found[name] = "kept"
            elif path.is_file():
                found[name] = _equal(path)
        return found

    def kept(self, folder: Path) -> int:
        """Return how many whole replications are kept."""
        from vftsim.study.store.check import check

        store = folder / STORE
        if not (store / "vftsim.sqlite").exists() or self.name == "check --repair":
            raise FileNotFoundError(store)
        report = check(store)
        if report.damage:
            return -1
        return report.whole

    def remarks(self, line: str) -> bool:
        """Whether a line on standard error is no message of a failure."""
        return line.startswith(("note: ", "warning: "))


def quietly(words: list[str]) -> tuple[int, str]:
    """Run a command line here; return its exit code and what it said."""
    from vftsim.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, err.getvalue()


def _another_run(folder: Path) -> None:
    assert (
        quietly(["run", f"{folder}/model.yaml", "-n", "1", "-q", "-j", "1", "--seed", "9", "-o", f"{folder}/out"])[0]
        == 0
    )
    (folder / STORE / "NOTES.md").write_text("mine")


def _a_run(folder: Path) -> None:
    assert quietly(["run", f"{folder}/model.yaml", "-n", "2", "-q", "-j", "1", "-o", f"{folder}/out"])[0] == 0


def _damaged_run(folder: Path) -> None:
    _a_run(folder)
    with closing(sqlite3.connect(folder / STORE / "vftsim.sqlite")) as connection:
        connection.execute("UPDATE replications SET data = x'00' WHERE replication = 1")
        connection.commit()


def _a_dataset(folder: Path) -> None:
    words = ["import", str(SAR / "sipp_uac_stat.csv"), "-o", f"{folder}/lab", "-e", "bare", "--phase", "step_1"]
    assert quietly(words)[0] == 0


def _old_trace(folder: Path) -> None:
    (folder / "t.json").write_text("{}")


_PLAIN = "-q -j 1 --csv"
CASES = (
    Case("run", f"run {{}}/model.yaml -n 2 {_PLAIN} -o {{}}/out", "--resume"),
    Case("run --force", f"run {{}}/model.yaml -n 2 {_PLAIN} -o {{}}/out --force", prepare=_another_run),
    Case("run --resume", f"run {{}}/model.yaml -n 3 {_PLAIN} -o {{}}/out --resume", prepare=_a_run),
    Case(
        "sweep",
        f"sweep {{}}/model.yaml --grid domains.sut.applications.proxy.touch_cost=3ms,4ms -n 2 {_PLAIN} -o {{}}/out",
    ),
    Case(
        "sweep --protection",
        "sweep {}/model.yaml --protection none,lockstep --grid domains.sut.applications.proxy.touch_cost=3ms,4ms "
        f"-n 2 {_PLAIN} -o {{}}/out",
    ),
    Case("capacity", f"capacity {{}}/model.yaml -n 2 {_PLAIN} -o {{}}/out"),
    Case(
        "capacity --method search",
        f"capacity {{}}/model.yaml --method search --probability 0.5 --resolution 8 --budget 24 {_PLAIN} -o {{}}/out",
    ),
    Case("compare", f"compare {{}}/model.yaml {{}}/model.yaml -n 2 {_PLAIN} -o {{}}/out"),
    Case("failover", f"failover {{}}/model.yaml --protection lockstep -n 2 --after 3s {_PLAIN} -o {{}}/out"),
    Case(
        "availability",
        f"availability {{}}/model.yaml --mtbf 8760h -n 2 --after 3s --protection none,lockstep {_PLAIN} -o {{}}/out",
    ),
    Case("calibrate", "calibrate {}/fit.yaml -q -j 1 -o {}/fit.json", "--force", files=LAB),
    Case("validate", "validate {}/check.yaml -q -j 1 --report {}/r.md", "--force", code=1, files=LAB),
    Case("calibrate --keep", "calibrate {}/fit.yaml -q -j 1 -o {}/fit.json --keep {}/out", "--force", files=LAB),
    Case(
        "validate --keep", "validate {}/check.yaml -q -j 1 --report {}/r.md --keep {}/out", "--force", code=1, files=LAB
    ),
    Case("record", "record networks -q -j 1 -o {}/r.md", "--force"),
    Case(
        "trace",
        "trace {}/model.yaml -o {}/t.json --gantt {}/t.png --start 0s --length 100ms --force",
        prepare=_old_trace,
    ),
    Case("import", f"import {SAR}/sipp_uac_stat.csv -o {{}}/lab -e bare --phase step_1", "--force"),
    Case(
        "import again", f"import {SAR}/sadf_u.csv -o {{}}/lab -e virtual --phase step_2", "--force", prepare=_a_dataset
    ),
    Case("check", "check {}/out", prepare=_a_run, may=(1, 2, 3)),
    Case("check --repair", "check {}/out --repair", prepare=_damaged_run),
)
"""Every command that writes, and those that read what was written."""


def remember_simulations() -> None:
    """Let every simulation be done once in this process and its children."""
    from matplotlib.figure import Figure

    from vftsim.calibrate import fit as calibrate_fit
    from vftsim.calibrate import validation
    from vftsim.records import judge, runner
    from vftsim.study import execution
    from vftsim.study.designs import capacity_search, crash, failover
    from vftsim.tracing import trace

    for owner, name in (
        (execution, "_simulate"),
        (capacity_search.JudgedLoad, "__call__"),
        (crash, "simulate_crash"),
        (failover, "simulate_crash"),
        (calibrate_fit, "_residuals"),
        (validation, "_observed"),
        (trace, "run_traced"),
    ):
        _remember(owner, name)
    for owner, name, empty in (
        (runner.Record, "run", {}),
        (judge.Judgement, "report", "A report.\n"),
        (judge.Judgement, "tables", []),
        (judge.Judgement, "scores", []),
    ):
        setattr(owner, name, lambda *_, empty=empty: empty)

    def save(self: Any, path: Any, **_: Any) -> None:
        Path(path).write_bytes(b"\x89PNG as large as a figure " + bytes(20_000))

    Figure.savefig = save  # type: ignore[method-assign]


def _remember(owner: Any, name: str) -> None:
    from vftsim.study.store.store import RunCache, Store

    original, known = getattr(owner, name), {}

    def once(*arguments: Any, **named: Any) -> Any:
        if any(isinstance(a, Store) or (isinstance(a, RunCache) and a.store is not None) for a in arguments):
            return original(*arguments, **named)  # it writes what it has found
        said = [repr(a) for a in (*arguments, *named.values()) if not callable(a) or hasattr(a, "__dataclass_fields__")]
        key = repr([text for text in said if " object at 0x" not in text])  # not what shows how far it is
        if key not in known:
            known[key] = original(*arguments, **named)
        return known[key]

    setattr(owner, name, once)
