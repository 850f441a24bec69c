"""The words in which a mechanism is written: tables, parts, callbacks, slots.

A mechanism's module declares records and tables, and functions over them:

* :class:`Table`: rows of one record.  ``vcpus(sim)[i]`` is row ``i``; ``row = vcpus.new(sim, domain=d)`` takes a free
  row and ``vcpus.free(sim, i)`` gives it back.  Row 0 is nobody: an index of 0 says "none".
* :class:`Chain`: lists of rows linked through one of their fields, kept in a :class:`Fifo`.
* Loops: ``for vcpu in vcpus.span(sim, first, count)`` walks rows that stand one behind the other, ``for port in
  ports.listed(sim, chain, fifo)`` those of a list, ``for row in chain.rows(sim, fifo)`` the numbers of these.
* :class:`Part`: a function of a kernel.  Any function with its types that a callback, an entry or another part calls
  is one.
* :class:`Family`: functions of one signature that are stored in records as numbers and called later; ``event`` is the
  family of what happens at an instant, and :func:`timer` declares an event that can be called off.
* :class:`Sort`: a sort of part (scheduler, I/O path, ...); its :meth:`Sort.slot` declares an operation, a
  :class:`Kind` of the sort implements it.
* :func:`entry`: what the driver may call.

A callback or an entry that is handed the number of a row may say so by its types: of ``(sim: Sim, vcpu: Vcpu)`` the
second is the row itself, of the one table that has such records; what it is handed beyond that (the token of an event)
it need not name.  Any function but a slot may work on rows that go with those of its arguments: ``(sim: Sim, guard:
Guard, channel: Channel = BESIDE)`` is called without the last, and works on the guard's.

Nothing here runs a model: :mod:`vftsim.kernel.link` puts the functions that a model uses together, for
either engine.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import cache
from typing import Any, Generic, NoReturn, ParamSpec, Protocol, TypeVar

from vftsim.kernel.record import Record, fields

R = TypeVar("R", bound=Record)
P = ParamSpec("P")
T = TypeVar("T")


class Sim(Protocol):
    """The state of one run, as functions of a mechanism see it."""

    now_ns: int
    """Simulated time."""
    wants_input: bool
    """Set to have the driver called before the next event: pre-drawn numbers run low, or a log is nearly full."""
    watching: int
    """Member of the family ``watch`` that is called after each event; 0: none."""


class Fifo(Record):
    """A list of rows of one table, linked through one of their fields."""

    first: int
    last: int
    length: int


BESIDE: Any = object()
"""Default of a parameter that nobody gives: the row beside that of another parameter, or the one that another names.

It names it by a field of the parameter's name (``batch`` is the row ``process.batch``), or, as an application or a flow
does with the record of its kind, by ``state_row``.
"""


def _unlinked(declared: object) -> NoReturn:
    raise TypeError(f"{declared} works in a linked kernel only; see vftsim.kernel.link")


TABLES: dict[type[Record], list[Table[Any]]] = {}
"""Every table that is declared, by its record."""


class Table(Generic[R]):
    """Rows of one record.  That of a :class:`~vftsim.kernel.record.Row` has its number in the field ``row``.

    Parameters
    ----------
    name : str
        Name in the state; must be unique among the tables of a kernel.
    capacity : int
        Most rows at a time.  Rows never used cost no memory.
    remedy : str
        What a user can do when the table is full.
    beside : Table, optional
        The table whose rows these belong to: row ``i`` stands beside row ``i`` of that one, and is never taken or given
        back by itself.  A part's fields of somebody else's record stand so.
    is_fixed : bool
        All rows are there from the start and none is taken or given back: for logs and counters.
    is_log : bool
        Nobody reads more of a row than its field ``written`` says, and nobody writes one that not ``is_on``.
    """

    def __init__(
        self,
        name: str,
        record: type[R],
        capacity: int = 0,
        remedy: str = "make the model smaller",
        beside: Table[Any] | None = None,
        *,
        is_fixed: bool = False,
        is_log: bool = False,
    ) -> None:
        self.name = name
        self.record = record
        self.capacity: int = beside.capacity if beside is not None else capacity
        self.remedy = remedy
        self.beside = beside
        self.is_fixed = is_fixed
        self.is_log = is_log
        TABLES.setdefault(record, []).append(self)

    @property
    def takes_rows(self) -> bool:
        """Whether its rows are taken and given back by themselves."""
        return self.beside is None and not self.is_fixed

    def __call__(self, sim: Sim) -> Sequence[R]:
        """Return the rows; row 0 is nobody."""
        _unlinked(f"table {self.name}")

    def new(self, sim: Sim, **values: Any) -> int:
        """Take a free row, as its last user left it but for these fields; 0 and a failure of the run if there is none.

        With fields it is a statement of its own: ``row = table.new(sim, field=value)``, or ``return`` with it.
        """
        _unlinked(f"{self.name}.new")

    def span(self, sim: Sim, first: int, count: int) -> Iterator[R]:
        """Walk so many rows from ``first`` on, in a ``for`` loop."""
        _unlinked(f"{self.name}.span")

    def listed(self, sim: Sim, chain: Chain[Any], fifo: Fifo) -> Iterator[R]:
        """Walk this table's rows of a list in a ``for`` loop, under the terms of :meth:`Chain.rows`."""
        _unlinked(f"{self.name}.listed")

    def free(self, sim: Sim, row: int) -> None:
        """Give a row back; nothing may refer to it any more."""
        _unlinked(f"{self.name}.free")


class Chain(Generic[R]):
    """Lists of a table's rows, linked through the field ``link``; a row is in one list of a chain at a time."""

    def __init__(self, table: Table[R], link: str) -> None:
        if link not in fields(table.record):
            raise TypeError(f"{table.record.__name__} has no field {link}")
        self.table = table
        self.link = link
        self.name = f"{table.name}_{link}"

    def rows(self, sim: Sim, fifo: Fifo) -> Iterator[int]:
        """Walk a list in a ``for`` loop, whose body may put rows behind its own, and must not take that out."""
        _unlinked(f"{self.name}.rows")

    def push(self, sim: Sim, fifo: Fifo, row: int) -> None:
        """Put a row at the end."""
        _unlinked(f"{self.name}.push")

    def push_front(self, sim: Sim, fifo: Fifo, row: int) -> None:
        _unlinked(f"{self.name}.push_front")

    def insert_after(self, sim: Sim, fifo: Fifo, before: int, row: int) -> None:
        """Put a row behind the row ``before``; 0: at the front."""
        _unlinked(f"{self.name}.insert_after")

    def pop(self, sim: Sim, fifo: Fifo) -> int:
        """Take the first row; 0 if the list is empty."""
        _unlinked(f"{self.name}.pop")

    def remove(self, sim: Sim, fifo: Fifo, row: int) -> bool:
        """Take a row out, wherever it stands; False if it is not in the list.  Walks the list."""
        _unlinked(f"{self.name}.remove")


class Part:
    """A function that a kernel may contain: :func:`part_of` one without a decorator."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        module = function.__module__.removeprefix("vftsim.").replace(".", "_")
        self.name = f"{module}__{function.__qualname__.replace('.', '_').replace('<locals>', 'local')}"
        """Name in a kernel: module and function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function itself; works for functions that touch no table and no time."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.function.__module__}.{self.function.__qualname__}>"


@cache
def part_of(function: Callable[..., Any]) -> Part:
    """Return the part that a function is, decorated or not: the same for all who call it."""
    return function if isinstance(function, Part) else Part(function)


class Callback(Part):
    """A function that is called with numbers, those of rows among them; it may leave out the last of them.

    It may also be made of a function that other parts call with the rows themselves, or of a slot: ``on_due =
    event(send)``.
    """

    def __init__(self, function: Callable[..., Any], suffix: str) -> None:
        self.slot = function if isinstance(function, Slot) else None
        # Not yet there where it is decorated: its name is going to be the callback's.
        is_part_too = vars(sys.modules[function.__module__]).get(function.__name__) is function
        super().__init__(function.function if isinstance(function, Slot) else function)
        self.name += f"__{suffix}" if is_part_too else ""


class Action(Callback):
    """A member of a :class:`Family`: stands for its number wherever it is not called."""

    def __init__(
        self, function: Callable[..., Any], family: Family, kept: tuple[Table[Any], str] | None = None
    ) -> None:
        super().__init__(function, family.name if kept is None else kept[1].replace(".", "_"))
        self.family = family
        self.kept = kept
        self.arguments = family.arguments


class Family:
    """Functions of one signature, stored as numbers and called through :meth:`call`; number 0 does nothing."""

    def __init__(self, name: str, arguments: int) -> None:
        self.name = name
        self.arguments = arguments

    def __call__(self, function: Callable[..., None]) -> int:
        """Declare a member; typed as the number it stands for."""
        return Action(function, self)  # type: ignore[return-value]

    def call(self, sim: Sim, action: int, *arguments: int) -> None:
        """Call the member of that number."""
        _unlinked(f"family {self.name}")


event = Family("event", 2)
"""What happens at an instant: ``(sim, target, token)``."""


def timer(table: Table[Any], field: str) -> Callable[[Callable[..., None]], int]:
    """Declare an event that can be called off; its target is a row of ``table``.

    Whoever plans it keeps the token of :func:`at` in ``field`` of that row, and calls it off by writing 0 or the token
    of another there: one whose token is no longer kept comes to nothing.  The field is 0 again when the event happens.
    """
    if not hasattr(table.record, field.partition(".")[0]):
        raise TypeError(f"{table.record.__name__} has no field {field}")
    return lambda function: Action(function, event, (table, field))  # type: ignore[return-value]


watch = Family("watch", 0)
"""What looks at the state after each event while ``sim.watching`` has its number: ``(sim)``."""


class Entry(Callback):
    """A function that the driver may call: ``(sim, a, b)``; where it returns nothing, 0 comes back."""

    arguments = 2

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function, "entry")


def entry(function: Callable[..., int | None]) -> Entry:
    """Declare a function for the driver."""
    return Entry(function)


class Slot(Part):
    """An operation of a sort of part.  Its body is the default of kinds that do not implement it."""

    def __init__(self, function: Callable[..., Any], sort: Sort) -> None:
        super().__init__(function)
        self.sort = sort
        sort.slots.append(self)


class Sort:
    """A sort of part; which kind acts is read from the field ``by`` of the record that a slot's call names first."""

    def __init__(self, name: str, by: str) -> None:
        self.name = name
        self.by = by
        self.slots: list[Slot] = []
        self.kinds: dict[str, Kind] = {}

    def slot(self, function: Callable[P, T]) -> Callable[P, T]:
        """Declare an operation: ``(sim, record, ...)``, where ``record`` has the field ``by``."""
        return Slot(function, self)

    def kind(self, name: str, base: Kind | None = None) -> Kind:
        """Declare a kind of this sort; what it does not implement it does as ``base``, if it varies another one."""
        where = str(sys._getframe(1).f_globals.get("__name__"))
        if name in self.kinds:
            before = self.kinds[name].declared_in
            again = "; one that is to change needs a new process (a notebook: a new kernel)" if where == before else ""
            raise TypeError(f"there are two kinds of {self.name} named {name}, in {before} and in {where}{again}")
        new_kind = self.kinds[name] = Kind(name, self, base)
        new_kind.declared_in = where
        return new_kind


class Kind:
    """One kind of a sort: the functions that implement the sort's slots."""

    def __init__(self, name: str, sort: Sort, base: Kind | None = None) -> None:
        if base is not None and base.sort is not sort:
            raise TypeError(f"{name}: {base.name} is no {sort.name}")
        self.name: str = name
        self.sort: Sort = sort
        self.declared_in = ""
        """Module, for messages."""
        # What is declared of the base later, in its file, counts too.
        inherited = [] if base is None else [base.implementations]
        self.implementations: MutableMapping[str, Part] = ChainMap({}, *inherited)

    def implements(self, slot: Callable[P, T]) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Declare the function that implements ``slot``; a part may serve several kinds."""
        if not isinstance(slot, Slot) or slot.sort is not self.sort:
            raise TypeError(f"{slot} is no operation of a {self.sort.name}")

        def declare(function: Callable[P, T]) -> Callable[P, T]:
            part = self.implementations[slot.name] = part_of(function)
            return part

        return declare


class Failure:
    """A reason for which a run cannot go on; raised by the driver as :class:`~vftsim.errors.RunFailure`."""

    def __init__(self, message: str) -> None:
        self.message = message


def fail(sim: Sim, failure: Failure) -> None:
    """End the run with a named failure after the present event."""
    _unlinked("fail")


def is_due_before(sim: Sim, kind: int) -> bool:
    """Tell whether an event of a kind below ``kind`` is still planned for this instant, stale ones included."""
    _unlinked("is_due_before")


def at(sim: Sim, time_ns: int, kind: int, entity: int, action: int, target: int) -> int:
    """Plan an event; return its token.

    Events of one instant take place in the order of (``kind``, ``entity``), those equal in both in the order in which
    they were planned.

    Parameters
    ----------
    time_ns : int
        Not before now.
    kind : int
        An :class:`~vftsim.kernel.order.EventKind`.
    entity : int
        Orders events of one kind; below 2**40.
    action : int
        A member of the family ``event``.
    target : int
        Handed to the action, usually a row.
    """
    _unlinked("at")
