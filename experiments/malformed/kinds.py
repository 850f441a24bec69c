"""Every kind of input, from one generator of random numbers each."""

from __future__ import annotations

import contextlib
import io
import random
import re
import shutil
import sqlite3
import string
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

from inputs import ODD, Input, as_text, changed, document, places, torn
from texts import CHECK, DATASET, EDITS, FAULTS, FIT, GRIDS, LIMITS, MEDIA, PROTECTIONS, ROWS, SETS, TINY

TREE = Path(__file__).parents[2]


def inputs(seed: int) -> Iterator[Input]:
    """Yield inputs without an end, kinds in turn."""
    return (make() for make in makers(seed, KINDS))


def makers(seed: int, kinds: Iterable[str]) -> Iterator[Callable[[], Input]]:
    """Yield what makes each input: those that are not made cost nothing."""
    while True:
        yield from (partial(_made, kind, seed) for kind in kinds)
        seed += 1_000_003


def _made(kind: str, seed: int) -> Input:
    found = KINDS[kind](random.Random(f"{kind} {seed}"))
    found.kind = kind
    return found


@cache
def bases() -> list[str]:
    """Return the models that are changed."""
    shipped = [path.read_text() for path in sorted((TREE / "models").glob("*.yaml"))]
    return [TINY] * 20 + [MEDIA] * 20 + shipped


def _model(choose: random.Random) -> Input:
    text = choose.choice(bases())
    is_torn = choose.random() < 0.35
    data = torn(choose, text.encode()) if is_torn else as_text(changed(choose, document(text))).encode()
    command = choose.choice(
        (["run", "{}/model.yaml", "-n", "1", "--quick", "-o", "{}/out"],) * 4 + (["models", "{}/model.yaml"],)
    )
    return Input("", [*command, *(LIMITS if command[0] == "run" else [])], {"model.yaml": data})


def _word(choose: random.Random) -> str:
    return "".join(choose.choice(string.printable + "é±\u202e") for _ in range(choose.choice((0, 1, 3, 8, 40))))


def _key(choose: random.Random, text: str) -> str:
    keys = [str(key) for key in choose.choice(list(places(document(text))))]
    if choose.random() < 0.3:
        keys[choose.randrange(len(keys))] = choose.choice((_word(choose), "", "0", "-1", "kind", "*", "x" * 500))
    if choose.random() < 0.2:
        keys.append(choose.choice(("kind", "x", "0", "protection", "scheduler", "duration")))
    return ".".join(keys)


def _value(choose: random.Random) -> str:
    value = choose.choice(ODD)
    if choose.random() < 0.2:
        return _word(choose)
    return (
        str(value)
        if isinstance(value, str)
        else as_text({"a": value})[3:].strip()
        if choose.random() < 0.5
        else repr(value)
    )


def _assignment(choose: random.Random, text: str) -> str:
    sign = choose.choice(("=",) * 12 + ("", "==", ":", " = "))
    return f"{_key(choose, text)}{sign}{_value(choose)}".replace("\x00", "")


_RUN_ONE = ["run", "{}/model.yaml", "-n", "1", "--quick", "-o", "{}/out"]


def _set(choose: random.Random) -> Input:
    text = choose.choice((TINY, MEDIA))
    right = choose.choice(SETS[text.splitlines()[0]])
    words = [_assignment(choose, text) for _ in range(choose.choice((1, 1, 2, 4)))] + [right] * choose.choice((0, 1))
    sets = [word for one in words for word in ("--set", one)]
    return Input("", [*_RUN_ONE, *sets, *LIMITS], {"model.yaml": text.encode()})


def _grid(choose: random.Random) -> Input:
    text = choose.choice((TINY, MEDIA))
    words = ["sweep", "{}/model.yaml", "-n", "1", "-o", "{}/out"]
    for _ in range(choose.choice((1, 1, 2, 3))):
        right = choose.choice(GRIDS[text.splitlines()[0]])
        name = choose.choice((right.split("=")[0], right.split("=")[0], _key(choose, text), _word(choose)))
        values = ",".join(_value(choose) for _ in range(choose.choice((0, 1, 1, 2, 4))))
        wrong = f"{name}{choose.choice(('=',) * 8 + ('', ',', ':'))}{values}".replace("\x00", "")
        words += ["--grid", choose.choice((wrong, wrong, right))]
    if choose.random() < 0.3:
        words += [
            "--scheduler",
            choose.choice(("all", "credit", "cfs,credit", ",", "", "cfs,,cfs", _word(choose), "native")),
        ]
    return Input("", [word.replace("\x00", "") for word in [*words, *LIMITS]], {"model.yaml": text.encode()})


def struck(fault: dict[str, Any], protection: dict[str, Any]) -> dict[str, Any]:
    """Return MEDIA with another fault and another protection."""
    data: dict[str, Any] = document(MEDIA)
    data["faults"], data["domains"]["media"]["protection"] = [fault], protection
    return data


def _fault(choose: random.Random) -> Input:
    fault, other = (choose.choice(document(FAULTS)) for _ in range(2))
    data = struck(fault, choose.choice(document(PROTECTIONS)))
    if choose.random() < 0.3:
        data["faults"].append(other)
    if choose.random() < 0.3:
        data["domains"]["media"]["protection"] = changed(choose, data["domains"]["media"]["protection"])
    else:
        data["faults"] = changed(choose, data["faults"])
    for one in data["faults"] if isinstance(data["faults"], list) else []:
        if isinstance(one, dict) and choose.random() < 0.3:
            one["at"] = choose.choice(_MOMENTS)
    try:
        found = as_text(data).encode()
    except Exception:
        found = MEDIA.encode()
    return Input("", [*_RUN_ONE, *LIMITS], {"model.yaml": found})


_MOMENTS = (
    "run 100 ms",
    "run -1 s",
    "3000 d",
    "step 1",
    "step 1 + 1 s",
    "step 99 + 1 s",
    "stepp 1",
    "measure 0 s",
    "1 s",
    "",
    None,
    5,
    [],
    "1e30 s",
    "0 s",
    "pre_registration + 1 s",
    "step 1 + -1 s",
    "step 1 + 1e9 s",
    "299 ms",
    "300 ms",
    "1 ns",
    "-1 s",
    "nan s",
)


@cache
def _result() -> dict[str, bytes]:
    """Return the files of a good result of ``TINY``."""
    from vftsim.cli.main import main

    folder = Path(tempfile.mkdtemp())
    (folder / "model.yaml").write_text(TINY)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["run", str(folder / "model.yaml"), "-n", "2", "-q", "-j", "1", "-o", str(folder / "out")]) == 0
    found = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    shutil.rmtree(folder)
    return found


_RUN = ["run", "{}/model.yaml", "-n", "2", "-o", "{}/out", *LIMITS]
_ON_RESULTS = (
    ["check", "{}/out"],
    ["check", "{}/out", "--json"],
    ["check", "{}/out", "--repair"],
    [*_RUN, "--resume"],
    [*_RUN, "--force"],
    _RUN,
    ["compare", "{}/model.yaml", "{}/model.yaml", "-n", "1", "-o", "{}/out", *LIMITS],
)


def _sealed(connection: sqlite3.Connection, choose: random.Random) -> None:
    """Put foreign data under a right checksum."""
    from vftsim.study.store.store import checksum

    ((key,),) = connection.execute("SELECT key FROM studies")
    data = zlib.compress(
        choose.choice((b"{}", b"[]", b"7", b"{", b"null", b'{"workloads": {}}', b'"' + b"x" * 100 + b'"'))
    )
    data = choose.choice((data, b"no zlib", b""))
    connection.execute(
        "UPDATE replications SET data = ?, sha256 = ? WHERE replication = 0", (data, checksum(key, 0, data))
    )


def _edited(choose: random.Random, data: bytes) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "d"
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as connection:
            for _ in range(choose.choice((1, 1, 2))):
                try:
                    if choose.random() < 0.15:
                        _sealed(connection, choose)
                    else:
                        connection.execute(choose.choice(EDITS))
                    connection.commit()
                except (sqlite3.DatabaseError, ValueError):
                    connection.rollback()
        return path.read_bytes()


def _store(choose: random.Random) -> Input:
    files = dict(_result())
    name = "out/vftsim.sqlite"
    files[name] = _edited(choose, files[name]) if choose.random() < 0.5 else torn(choose, files[name])
    if choose.random() < 0.1:
        files[f"{name}-wal"] = choose.choice(
            (b"", bytes(4000), torn(choose, bytes(5000)), b"\x37\x7f\x06\x82" + bytes(5000))
        )
    if choose.random() < 0.05:
        files[f"{name}-journal"] = choose.choice((b"", bytes(4000), b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600)))
    return Input("", list(choose.choice(_ON_RESULTS)), files)


def _directory(choose: random.Random) -> Input:
    files, others = dict(_result()), {}
    names = (
        "vftsim.sqlite",
        "manifest.json",
        "summary.csv",
        "charts.png",
        ".vftsim.lock",
        ".vftsim.holder",
        ".vftsim-writing",
        "vftsim.sqlite.new",
        "vftsim.sqlite-wal",
        "vftsim.sqlite-shm",
        "model.yaml",
        "NOTES.md",
        "vftsim.sqlite-journal",
    )
    for _ in range(choose.choice((1, 1, 2, 3))):
        name = f"out/{choose.choice(names)}"
        files = {each: data for each, data in files.items() if each != name and not each.startswith(f"{name}/")}
        others.pop(name, None)
        what = choose.choice(
            ("dir", "fifo", "gone", "-> /dev/null", "-> nowhere", f"-> {name.split('/')[1]}", "-> ..", "text", "empty")
        )
        if what in ("text", "empty"):
            files[name] = b"" if what == "empty" else b'{"pid": "x"}'
        elif what != "gone":
            others[name] = what
    if choose.random() < 0.1:
        files = {name: data for name, data in files.items() if not name.startswith("out/")}
        others = {"out": choose.choice(("fifo", "-> out", "-> /dev/null", "-> nowhere", "dir", "-> /proc"))}
    return Input("", list(choose.choice(_ON_RESULTS)), files, others)


_LAB = {"lab/dataset.yaml": DATASET, "lab/shares.csv": ROWS, "fit.yaml": FIT, "check.yaml": CHECK, "model.yaml": TINY}
_CALIBRATE = ["calibrate", "{}/fit.yaml", "-j", "1", "-q", "-o", "{}/fitted.json"]
_VALIDATE = ["validate", "{}/check.yaml", "-j", "1", "-q"]
_SADF = str(TREE / "tests/labs/files/sadf_u.csv")
_IMPORT = ["import", _SADF, "-e", "bare", "--phase", "step_1", "-o", "{}/lab"]


@cache
def _imported() -> dict[str, bytes]:
    """Return the files of a dataset that an import has written."""
    from vftsim.cli.main import main

    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(name)
        assert main(["import", _SADF, "-e", "virtual", "--phase", "step_2", "-o", str(folder / "lab")]) == 0
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def _dataset(choose: random.Random) -> Input:
    if choose.random() < 0.2:
        found = dict(_imported())
        name = choose.choice(sorted(found))
        found[name] = torn(choose, found[name])
        return Input("", list(_IMPORT), found)
    files = _LAB
    found = {name: text.encode() for name, text in files.items()}
    name = choose.choice(
        ("lab/dataset.yaml", "lab/dataset.yaml", "lab/shares.csv", "lab/shares.csv", "fit.yaml", "check.yaml")
    )
    if name.endswith(".yaml") and choose.random() < 0.6:
        found[name] = as_text(changed(choose, document(files[name]))).encode()
    elif choose.random() < 0.3:
        cells = [line.split(",") for line in files["lab/shares.csv"].splitlines()]
        row = choose.choice(cells)
        row[choose.randrange(len(row))] = choose.choice(
            ("", "x", "nan", "inf", "1e999", "-5", "12,5", '"', "\x00", "1e308", " ", "é", "200")
        )
        found["lab/shares.csv"] = "\n".join(",".join(line) for line in cells).encode()
    else:
        found[name] = torn(choose, found[name])
    words = list(choose.choice((_CALIBRATE, _VALIDATE)))
    return Input("", words, found)


def _measured_files() -> list[Path]:
    return sorted(path for path in (TREE / "tests" / "labs" / "files").iterdir() if path.is_file())


def _import_of(path: Path) -> list[str]:
    return ["import", f"{{}}/{path.name}", "-e", "bare", "-o", "{}/lab", "--phase", "step_1"]


def _measured(choose: random.Random) -> Input:
    path = choose.choice(_measured_files())
    data = torn(choose, path.read_bytes())
    if choose.random() < 0.3:
        numbers = list(re.finditer(rb"[0-9.]+", data))
        if numbers:
            one = choose.choice(numbers)
            data = (
                data[: one.start()]
                + choose.choice((b"", b"nan", b"-1", b"1e999", b"9" * 400, b"x", b"inf"))
                + data[one.end() :]
            )
    words = _import_of(path)
    if choose.random() < 0.2:
        words = words[:-2]
    for option, values in (
        ("--from", ("4 s", "-1 s", "x", "1e30 s")),
        ("--until", ("1 s", "0 s", "9 d")),
        ("--rename", ("a=b", "=", "cpu/1=cpu", "x")),
        ("--as", ("sar", "sipp", "", "iperf3")),
    ):
        if choose.random() < 0.1:
            words += [option, choose.choice(values)]
    return Input("", words, {path.name: data})


_ODD_ALONE = ("check {}/model.yaml", "schema", "models {}/model.yaml")
_COMMANDS = {
    "tiny": (
        "run {}/model.yaml -n 1 --quick -q",
        "capacity {}/model.yaml -n 1 -q",
        "failover {}/model.yaml -n 1 -q",
        "compare {}/model.yaml {}/model.yaml -n 1 -q",
        "capacity {}/model.yaml --method search --probability 0.5 --budget 16 -q",
        "availability {}/model.yaml --mtbf 8760h --protection none --after 1s -n 1 -q -j 1",
        "trace {}/model.yaml -o {}/t.json",
        "pilot {}/model.yaml --set workloads.calls.steps.duration=50s --load 0.5 -q -j 1",
    ),
    "media": (
        "run {}/model.yaml -n 1 --quick -q",
        "failover {}/model.yaml -n 1 -q",
        "explain {}/model.yaml --start 100ms --length 100ms",
        "trace {}/model.yaml -o {}/t.json --start 100ms --length 10ms",
    ),
}


_VALUED = (
    "-n --seed -j --scale --precision --figure -o --budget --probability --resolution --loss-limit --ihs-limit "
    "--after-stop --window --mtbf --restart --after --over --load --crashes --domain --protection --start --length "
    "--replication --packet --gantt --method --tables"
)
"""Options that take a value; not every command has each."""
_ODD_VALUES = (
    "0|-1|1|2|1e9|99999999999999999999999|nan|inf|-inf|x||0 s|1 s|-2 s|1e30 s|5 %|all|none|lockstep|search|ramp|sut|"
    f"{{}}/x.png|{{}}/x.json|/proc/x|{{}}/{'y' * 300}|{{}}/a/b/c|1 ns|0.5"
)


def _options(choose: random.Random) -> Input:
    """Return a command line whose options have odd values."""
    name = choose.choice(("tiny", "tiny", "media"))
    words = choose.choice((*_COMMANDS[name] * 2, *_ODD_ALONE)).split()
    command = words[0]
    for _ in range(choose.choice((1, 2, 2, 3))):
        words += [choose.choice(_VALUED.split()), choose.choice(_ODD_VALUES.split("|"))]
    return Input("", [*words, *_limits(command)], {"model.yaml": (MEDIA if name == "media" else TINY).encode()})


def _limits(command: str) -> list[str]:
    return LIMITS if command in ("run", "capacity", "compare", "failover", "sweep") else []


def valid() -> Iterator[Input]:
    """Yield what the generator changes, unchanged: a command that takes none of it would prove nothing."""
    for text in dict.fromkeys(bases()):
        yield Input("model file", ["models", "{}/model.yaml"], {"model.yaml": text.encode()})
    for text, lines in ((TINY, _COMMANDS["tiny"]), (MEDIA, _COMMANDS["media"])):
        model = {"model.yaml": text.encode()}
        yield Input("model file", [*_RUN_ONE, *LIMITS], model)
        for one in SETS[text.splitlines()[0]]:
            yield Input("--set", [*_RUN_ONE, "--set", one, *LIMITS], model)
        for one in GRIDS[text.splitlines()[0]]:
            yield Input("--grid", ["sweep", "{}/model.yaml", "-n", "1", "-o", "{}/out", "--grid", one, *LIMITS], model)
        for line in lines:
            words = line.split()
            yield Input("options", [*words, *_limits(words[0])], model)
    for fault in document(FAULTS):
        yield _struck(fault, document(PROTECTIONS)[0])
    for protection in document(PROTECTIONS):
        yield _struck(document(FAULTS)[0], protection)
    for words in _ON_RESULTS[:5]:
        yield Input("store", list(words), dict(_result()))
    lab = {name: text.encode() for name, text in _LAB.items()}
    yield from (Input("dataset", words, lab) for words in (_CALIBRATE, _VALIDATE))
    yield Input("dataset", _IMPORT, dict(_imported()))
    for path in _measured_files():
        yield Input("measured file", _import_of(path), {path.name: path.read_bytes()})


def _struck(fault: dict[str, Any], protection: dict[str, Any]) -> Input:
    return Input("faults", [*_RUN_ONE, *LIMITS], {"model.yaml": as_text(struck(fault, protection)).encode()})


KINDS: dict[str, Callable[[random.Random], Input]] = {
    "model file": _model,
    "--set": _set,
    "--grid": _grid,
    "faults": _fault,
    "options": _options,
    "store": _store,
    "result directory": _directory,
    "dataset": _dataset,
    "measured file": _measured,
}
