"""What the linker writes itself: access to tables and lists, and the dispatch of slots and callbacks."""

from typing import Any

from vftsim.kernel.declare import Chain, Family, Slot, Table
from vftsim.kernel.link import Linked, implementations
from vftsim.kernel.record import fields

TABLE_FAILURE = 1000
"""A run's failure number of table n (in order of names) being full is this plus n."""

_NEW = """
def {name}__new(sim):
    row = sim.{name}_unused
    if row != 0:
        sim.{name}_unused = sim.{name}_after[row]
        return row
    row = sim.{name}_used + 1
    if row >= {capacity}:
        if sim.failure == 0:
            sim.failure = {failure}
        return 0
    sim.{name}_used = row{grow}{number}
    return row


def {name}__free(sim, row):
    if row != 0:
        sim.{name}_after[row] = sim.{name}_unused
        sim.{name}_unused = row
"""
_GROW = """
    sim.{name}_after.append(0)"""
_GROW_ONE = """
    sim.{name}.append({name}__record())"""
_NUMBER = """
    sim.{name}[row].row = row"""

_CHAIN = """
def {name}__push(sim, fifo, row):
    sim.{table}[row].{link} = 0
    if fifo.length == 0:
        fifo.first = row
    else:
        sim.{table}[fifo.last].{link} = row
    fifo.last = row
    fifo.length += 1


def {name}__push_front(sim, fifo, row):
    sim.{table}[row].{link} = fifo.first
    if fifo.length == 0:
        fifo.last = row
    fifo.first = row
    fifo.length += 1


def {name}__insert_after(sim, fifo, before, row):
    if before == 0:
        {name}__push_front(sim, fifo, row)
    elif before == fifo.last:
        {name}__push(sim, fifo, row)
    else:
        sim.{table}[row].{link} = sim.{table}[before].{link}
        sim.{table}[before].{link} = row
        fifo.length += 1


def {name}__pop(sim, fifo):
    row = fifo.first
    if fifo.length == 0:
        return 0
    fifo.first = sim.{table}[row].{link}
    fifo.length -= 1
    if fifo.length == 0:
        fifo.first = 0
        fifo.last = 0
    sim.{table}[row].{link} = 0
    return row


def {name}__remove(sim, fifo, row):
    before = 0
    here = fifo.first
    while here != row and here != 0:
        before = here
        here = sim.{table}[here].{link}
    if here == 0:
        return False
    after = sim.{table}[row].{link}
    if before == 0:
        fifo.first = after
    else:
        sim.{table}[before].{link} = after
    if after == 0:
        fifo.last = before
    fifo.length -= 1
    sim.{table}[row].{link} = 0
    return True
"""


def table_source(linked: Linked, table: Table[Any], *, grows: bool) -> str:
    """Return the functions that take and give back rows; ``grows``: rows are made when first needed."""
    if not table.takes_rows:
        return ""
    grow = ""
    if grows:
        beside = [other for other in linked.tables.values() if other is table or other.beside is table]
        grow = _GROW.format(name=table.name) + "".join(_GROW_ONE.format(name=other.name) for other in beside)
    failure = failure_of_table(linked, table.name)
    number = _NUMBER.format(name=table.name) if "row" in fields(table.record) else ""
    return _NEW.format(name=table.name, capacity=table.capacity, failure=failure, grow=grow, number=number)


def chain_source(chain: Chain[Any]) -> str:
    """Return the functions on lists of a table's rows."""
    return _CHAIN.format(name=chain.name, table=chain.table.name, link=chain.link)


def slot_source(linked: Linked, slot: Slot) -> str:
    """Return the dispatch of an operation between the kinds that implement it: a direct call where one is all."""
    count = slot.function.__code__.co_argcount
    names = list(slot.function.__code__.co_varnames[:count])
    arguments = ", ".join(names)
    chosen = implementations(linked, slot)
    lines = [f"def {slot.name}({arguments}):"]
    if len(chosen) == 1 and len(linked.kinds[slot.sort.name]) == 1:
        lines.append(f"    return {chosen[0][1].name}({arguments})")
        return "\n".join(lines) + "\n"
    for number, implementation in chosen:
        lines += [
            f"    if {names[1]}.{slot.sort.by} == {number}:",
            f"        return {implementation.name}({arguments})",
        ]
    lines.append(f"    return {slot.name}__default({arguments})")
    return "\n".join(lines) + "\n"


def family_source(linked: Linked, family: Family) -> str:
    """Return the dispatch of a callback by its number."""
    arguments = ", ".join(["sim", *(f"a{n}" for n in range(family.arguments))])
    lines = [f"def call_{family.name}({arguments.replace('sim', 'sim, action', 1)}):"]
    for number, member in enumerate(linked.families.get(family.name, []), 1):
        lines += [f"    {'el' if number > 1 else ''}if action == {number}:", f"        {member.name}({arguments})"]
    if len(lines) == 1:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def failure_of_table(linked: Linked, name: str) -> int:
    """Return the failure number of a full table."""
    return TABLE_FAILURE + sorted(linked.tables).index(name)


def failure_message(linked: Linked, failure: int) -> str:
    """Return what a failed run says."""
    if failure >= TABLE_FAILURE:
        table = linked.tables[sorted(linked.tables)[failure - TABLE_FAILURE]]
        return f"the simulation needs more than {table.capacity - 1} {table.name} at one time; {table.remedy}"
    return linked.failures[failure - 1].message
