"""Progress with remaining time, on standard error: a live bar on a terminal, plain lines elsewhere."""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

import contextlib
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_BETWEEN_LINES_S = 5.0
_FIRST_SHARE = 0.05
"""Of a unit: what is done of the first by then tells how long the rest takes."""
_TO_BEGIN_S = 20.0
"""What workers take to begin, and pilots of a search, is over by then; the first unit has it in its time."""


class Progress:
    """Tells a waiting user how far a study has come; a context manager.  This one shows nothing."""

    beginning: Sequence[str] = ()
    """Said once, when the work begins: by then no mistake of the user's stands in the way."""
    later: int = 0
    """Units of the stages that follow, as far as they are known: a total has them, too."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop showing."""

    def begin(self) -> None:
        """Say what is to be said when the work begins."""
        texts, self.beginning = dict.fromkeys(self.beginning), ()
        for text in texts:
            self.say(text)

    def total(self, units: int) -> None:
        """State how many more units of work there are; a search states the most it may take."""
        if units:
            self.begin()

    def advance(self, text: str = "") -> None:
        """Count one unit as done; ``text`` says what is known now."""
        self.begin()

    def part(self, share: float) -> None:
        """State how much of the unit under way is done, from 0 to 1."""

    def say(self, text: str) -> None:
        """Say something that is not about how far it is."""
        _print(f"vftsim: {text}")

    def say_how_far(self, text: str) -> None:
        """Say how far it is where no unit of work tells, as what an earlier command has done."""


Silent = Progress


def make_progress(title: str, quiet: bool = False, beginning: Sequence[str] = ()) -> Progress:
    """Return the progress display that fits where standard error goes; ``beginning`` is said when the work begins."""
    shown = Silent() if quiet else Bar(title) if sys.stderr.isatty() else Lines(title)
    shown.beginning = beginning
    return shown


class Lines(Progress):
    """A line now and then, at most one every few seconds, for logs and pipes."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._total = 0
        self._done = 0
        self._start_s = self._last_s = time.monotonic()
        self._counted_from = 0
        """Unit whose end :attr:`_start_s` is; what follows tells the pace."""

    def say_how_far(self, text: str) -> None:
        self.say(text)

    def total(self, units: int) -> None:
        """State how many units of work there are, from here on."""
        super().total(units)
        self._total = self._done + units + self.later
        if self._done == 0:  # what came before, such as compiling, tells nothing of how fast it goes
            self._start_s = self._last_s = time.monotonic()

    def advance(self, text: str = "") -> None:
        """Count one unit as done, and say so if the last line is old or this is the end."""
        super().advance(text)
        self._done += 1
        if self._is_time() or self._done == self._total:
            self._line(self._done, text)
        if self._done == 1 and time.monotonic() - self._start_s < _TO_BEGIN_S:
            self._start_s, self._counted_from = time.monotonic(), 1

    def part(self, share: float) -> None:
        """Say how far the unit under way is, if the last line is old."""
        if share > 0.0 and self._is_time():
            self._line(self._done + share, f"{100.0 * share:.0f} % of number {self._done + 1}")

    def _is_time(self) -> bool:
        return time.monotonic() - self._last_s >= _BETWEEN_LINES_S

    def _line(self, done: float, text: str) -> None:
        self._last_s = time.monotonic()
        of = f"/{self._total}" if self._total else ""
        passed_s, counted = self._last_s - self._start_s, done - self._counted_from
        has_begun = done != 1 or passed_s >= _TO_BEGIN_S
        is_known = has_begun and self._total > done and counted >= _FIRST_SHARE
        left = f", about {_duration(passed_s * (self._total - done) / counted)} left" if is_known else ""
        _print(f"{self._title}: {self._done}{of}{left}{' - ' + text if text else ''}")


class Bar(Progress):
    """A live bar with elapsed and remaining time."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Shown
        from rich.progress import TimeRemainingColumn as Remaining

        share = TextColumn("{task.percentage:>3.0f} %")
        self._bar: RichProgress = Shown(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            share,
            TimeElapsedColumn(),
            TextColumn("left:"),
            Remaining(),
            TextColumn("{task.fields[text]}"),
            console=Console(stderr=True),
            transient=True,
            get_time=time.monotonic,
        )
        self._total = self._done = 0
        self._task = self._bar.add_task(title, total=None, text="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def total(self, units: int) -> None:
        super().total(units)
        self._total = self._done + units + self.later
        self._bar.update(self._task, total=self._total)

    def advance(self, text: str = "") -> None:
        super().advance(text)
        self._done += 1
        self._bar.update(self._task, completed=self._done, text=text)

    def part(self, share: float) -> None:
        """Move the bar within the unit under way."""
        self._bar.update(self._task, completed=self._done + share)

    def say_how_far(self, text: str) -> None:
        self.say(text)

    def say(self, text: str) -> None:
        """Say it above the bar."""
        self._bar.console.print(f"vftsim: {text}", highlight=False, markup=False)


def _print(text: str) -> None:
    with contextlib.suppress(OSError):  # a full log must not end the work
        print(text, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
