"""Run the commands that the documentation shows, and hold what it shows against what they say now.

    python experiments/shown/shown.py --list             # every block and its command
    python experiments/shown/shown.py --check [--quick]  # exit code 1 if a page shows something else
    python experiments/shown/shown.py --write [--quick]  # mend the pages, and list all blocks in docs/shown.md

``docs/shown.yaml`` has the commands, :mod:`pages` says what a mark looks like.  Commands run one after the other, with
all cores; each is kept, and the same call goes on after an interruption.  ``--only`` takes names of commands or pages
(patterns); ``--kept`` runs nothing and looks at what is there.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal import KEPT, ROOT, Command, Kept, run
from pages import Block, Results, ShownError, agree, between, blocks_of, put

LIST = ROOT / "docs" / "shown.yaml"
PAGE = ROOT / "docs" / "shown.md"


@dataclass(frozen=True, slots=True)
class Shown:
    """All commands, whole files that are results, and blocks of pages."""

    commands: dict[str, Command]
    files: dict[Path, tuple[str, str]]
    inputs: frozenset[Path]
    """Those of the files that other commands read."""
    blocks: list[Block]


def pages() -> list[Path]:
    """Return every page that may have marks."""
    rooms = (ROOT / "docs", ROOT / "calibration")
    return [ROOT / "README.md", *sorted(page for room in rooms for page in room.rglob("*.md"))]


def read() -> Shown:
    """Read the list of commands and all pages.

    Raises
    ------
    ShownError
        A mark names a command that there is not.
    """
    said = YAML(typ="safe").load(LIST)
    commands = {name: _command(name, entry) for name, entry in said["commands"].items()}
    files = {
        ROOT / path: (str(entry).split()[0], str(entry).partition(" ")[2]) for path, entry in said["files"].items()
    }
    blocks = [Block(path, 0, name, what, "") for path, (name, what) in files.items()]
    blocks += [Block(ROOT / c.writes.split()[0], 0, c.name, "", "") for c in commands.values() if c.writes]
    blocks += [block for page in pages() if page != PAGE for block in blocks_of(page)]
    for block in blocks:
        if block.name not in commands:
            raise ShownError(f"{_place(block)}: there is no command '{block.name}' in {LIST.name}")
    inputs = frozenset(ROOT / path for path in said["inputs"])
    return Shown(commands, files, inputs, blocks)


def _command(name: str, entry: dict[str, object]) -> Command:
    given = dict(entry)
    given["exact"] = tuple(given.pop("exact", ()))
    given["tolerance"] = float(str(given.pop("tolerance", "0 %")).rstrip(" %")) / 100.0
    exits = given.pop("exit", [0])
    return Command(name=name, exit=tuple(exits), **given)  # type: ignore[arg-type]


def _place(block: Block) -> str:
    return f"{block.page.relative_to(ROOT)}" + (f", {block.number}" if block.number else "")


def now(block: Block, command: Command, kept: Kept) -> tuple[str, str]:
    """Return what a block shows and what it should show."""
    results = Results(kept.printed, kept.folder / "work", command.values)
    if block.number:
        text = results.what(block.what)
        return block.text, f"\n{text}\n" if "\n" in block.text or "\n" in text else text
    page = block.page.read_text(encoding="utf-8")
    if command.writes and not block.what:
        mark = command.writes.split()[1]
        return between(page, mark), between((kept.folder / "work" / block.page.name).read_text(encoding="utf-8"), mark)
    return page, results.what(block.what) + "\n"


def look(block: Block, command: Command, kept: Kept, write: bool) -> tuple[bool, str]:
    """Hold a block against a run, mend it if wanted; return whether it held before, and what is wrong with it."""
    if not kept.is_there:
        return False, "was not run"
    ran = kept.ran
    if ran["exit"] not in command.exit:
        last = (ran["errors"].strip() or kept.printed.strip()).splitlines()[-1:]
        return False, f"{command.run}: exit code {ran['exit']}: {' '.join(last)}"
    try:
        shown, found = now(block, command, kept)
    except (ShownError, IndexError) as error:
        return False, str(error)
    if agree(shown, found, command.tolerance, command.exact):
        return kept.held(f"{_place(block)} {block.what}", True), ""
    held = kept.held(f"{_place(block)} {block.what}", False)
    if not write:
        return held, _difference(shown, found)
    if block.number:
        put(block.page, {block.number: found})
    elif command.writes and not block.what:
        page = block.page.read_text(encoding="utf-8")
        block.page.write_text(page.replace(shown, found), encoding="utf-8")
    else:
        block.page.write_text(found, encoding="utf-8")
    return held, ""


def _difference(shown: str, found: str) -> str:
    """Return the first lines that differ."""
    old, new = (text.strip().splitlines() for text in (shown, found))
    for a, b in zip(old, new, strict=False):
        if not agree(a, b, 0.0):
            return f"shows {a[:160]!r}, is {b[:160]!r}"
    return f"shows {len(old)} lines, is {len(new)}" if len(old) != len(new) else "differs"


def chosen(shown: Shown, only: Sequence[str], quick: bool) -> list[Command]:
    """Return the commands that are wanted, those of the blocks first that are quick."""
    used = {block.name for block in shown.blocks}
    places = {c: {str(b.page.relative_to(ROOT)) for b in shown.blocks if b.name == c} for c in used}
    return [
        command
        for name, command in shown.commands.items()
        if name in used
        and (command.quick or not quick)
        and (not only or any(fnmatch.fnmatch(each, p) for each in (name, *places[name]) for p in only))
    ]


def listed(shown: Shown, commands: Iterable[Command], written: frozenset[Path]) -> str:
    """Return the page that lists every command, where it is shown, its time, and whether it held before."""
    rows, before = [], last_runs()
    for command in commands:
        kept = run_of(command, written)
        blocks = [b for b in shown.blocks if b.name == command.name]
        places = ", ".join(dict.fromkeys(f"`{b.page.relative_to(ROOT)}`" for b in blocks))
        seconds, held = before.get(command.run, ("not run", ""))
        if kept.is_there:
            ran = kept.ran
            seconds = f"{ran['seconds']:.0f}, {ran['day']}"
            good = sum(look(block, command, kept, False)[0] for block in blocks)
            held = "all" if good == len(blocks) else f"{good} of {len(blocks)}"
        room = f"{100 * command.tolerance:g} %" if command.tolerance else ""
        rows.append((f"`{command.run}`", places, str(len(blocks)), "yes" if command.quick else "", room, seconds, held))
    head = ("command", "shown in", "blocks", "quick", "tolerance", "wall s, day", "held before it was written")
    table = "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))
    return f"{HEAD}\n{table}\n"


def last_runs() -> dict[str, tuple[str, str]]:
    """Return what the page says of each command's last run, which may have been of other sources or elsewhere."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    cells = [line.strip("| ").split(" | ") if line.startswith("| `") else [] for line in lines]
    return {row[0].strip("`"): (row[5].strip(), row[6].strip(" |")) for row in cells if len(row) > 6}


HEAD = """# Shown figures

Written by `python experiments/shown/shown.py --write`. A figure of a run stands between marks that name its command, on
every page; this is every command. `--check` runs them and fails where a page shows something else: other words,
or a figure that is off by more than a unit of its last digit after the point (or the tolerance given here). `.ci/run`
checks the quick ones, `.ci/nightly` all of them. *Held*: how many of the blocks showed what the command says before
they were written anew. A command that was not run since its sources changed has day and outcome of its last run.
"""


def run_of(command: Command, written: frozenset[Path]) -> Kept:
    """Return where a command's results are, whether it ran or not."""
    return Kept(KEPT / f"{command.name}-{command.key(written)}")


def main(arguments: Sequence[str]) -> int:
    """List, check or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--list", action="store_true", help="print every block and its command")
    task.add_argument("--check", action="store_true", help="fail where a page shows something else")
    task.add_argument("--write", action="store_true", help="write what the commands say into the pages")
    parser.add_argument("--quick", action="store_true", help="only commands that take seconds")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="commands or pages; repeatable")
    parser.add_argument("--kept", action="store_true", help="run nothing; look at what was run before")
    given = parser.parse_args(arguments)
    shown = read()
    commands = chosen(shown, given.only, given.quick)
    if given.list:
        for block in shown.blocks:
            if shown.commands[block.name] in commands:
                print(f"{_place(block)}: {shown.commands[block.name].run}")
        return 0
    written = frozenset(shown.files) - shown.inputs
    wrong = 0
    for number, command in enumerate(commands, 1):
        print(f"[{number}/{len(commands)}] {command.run}", flush=True)
        kept = run_of(command, written) if given.kept else run(command, command.key(written))
        if given.kept and not kept.is_there:
            print("    was not run", flush=True)
            continue
        for block in (block for block in shown.blocks if block.name == command.name):
            _, what = look(block, command, kept, given.write)
            if what:
                wrong += 1
                print(f"    {_place(block)}: {what}", flush=True)
        print(f"    {kept.ran['seconds']:g} s", flush=True)
    if given.write:
        PAGE.write_text(listed(read(), shown.commands.values(), written), encoding="utf-8")
    print(f"{wrong} blocks show something else" if wrong else "every block shows what its command says")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ShownError as error:
        sys.exit(f"shown: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on")
