"""Slices as a viewer makes them from the events of a trace."""

from collections import defaultdict


def slices(events):
    """Return slices by (process, track), each (begin in us, end in us, event of its begin), as a viewer pairs them.

    A viewer sorts by time, in doubles, and leaves events of one time as they stand; an end ends what began last.
    """
    found, under_way = defaultdict(list), defaultdict(list)
    for event in sorted((each for each in events if each["ph"] in "BE"), key=lambda each: each["ts"]):
        track = event["pid"], event["tid"]
        if event["ph"] == "B":
            under_way[track].append(event)
        else:
            begun = under_way[track].pop()
            assert (begun["name"], begun["args"]) == (event["name"], event["args"]), "the end of something else"
            found[track].append((begun["ts"], event["ts"], begun))
    assert not any(under_way.values()), "something never ends"
    return found
