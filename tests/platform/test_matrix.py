"""Every two parts of different sorts stand together, something fails, and every packet is accounted for."""

import pytest

from .machine_park import APPLICATIONS, BLOWS, MS, PATHS, PROTECTIONS, SCHEDULERS, Case, Park, every_case, every_pair

CASES = every_pair()


def test_every_pair_of_parts_stands_together():
    sorts = (APPLICATIONS, PATHS, PROTECTIONS, SCHEDULERS, BLOWS)
    found = {(a, one[a], b, one[b]) for one in (case.parts for case in CASES) for a in range(5) for b in range(a)}
    assert len(found) == sum(len(sorts[a]) * len(sorts[b]) for a in range(5) for b in range(a))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_everything_adds_up(case: Case):
    result = Park("simpy", case).run().result()
    assert {"pause", "primary crash"} & {what for _, what in result["timeline"]}
    assert result["links"][1][1] > 20


@pytest.mark.slow
def test_everything_adds_up_in_every_combination():
    for seed, case in enumerate(every_case()):
        Park("simpy", case, seed=seed, ring=4).run(120 * MS)


@pytest.mark.slow
def test_both_engines_agree():
    for case in CASES:
        plain, compiled = (Park(engine, case).run(150 * MS).result() for engine in ("simpy", "compiled"))
        assert plain == compiled, str(case)
