"""SIPp ``-trace_rtt``: every response time, with the name that the scenario gives it (``start_rtd``, ``rtd``)."""

from __future__ import annotations

from vftsim.labs.importing import Figure, Importer, Source, of_values, register
from vftsim.labs.sipp import delay_name, table

_DATE, _TIME, _NAME = "Date_ms", "response_time_ms", "rtd_no"


def _read(source: Source) -> list[Figure]:
    values: dict[str, list[float]] = {}
    for line, row in table(source, (_DATE, _TIME, _NAME)):
        at_s = source.number(row[_DATE], line, _DATE) / 1e3
        if not row[_NAME].strip():
            source.refuse("the cell is empty", line, _NAME)
        delay_ms = source.number(row[_TIME], line, _TIME)
        if delay_ms < 0:
            source.refuse(f"a response time of {delay_ms:g} ms is below 0", line, _TIME)
        if source.window.holds(at_s, at_s):
            values.setdefault(delay_name(row[_NAME].strip()), []).append(delay_ms)
    return [of_values(name, "ms", found) for name, found in sorted(values.items())]


register(Importer("sipp-rtt", "SIPp -trace_rtt", lambda text: text.startswith(f"{_DATE};{_TIME};{_NAME}"), _read))
