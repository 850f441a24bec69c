"""An ordinary SimPy process takes part in a model, in the engine ``simpy``."""

from tests.kernel import toy
from vftsim.kernel import EventKind
from vftsim.kernel.simpy_engine import SimpyEngine


def test_a_process_waits_among_the_models_events_and_plans_some():
    engine = SimpyEngine(toy.linked())
    times = []

    def process():
        for _ in range(3):
            yield engine.wait(10, EventKind.CONTROL, 0)
            times.append(engine.now_ns)
            engine.at(engine.now_ns + 5, EventKind.CPU, 0, engine.number(toy.on_seen), len(times))

    engine.at(20, EventKind.CPU, 0, engine.number(toy.on_seen), 99)
    engine.process(process())
    engine.run(100)
    assert times == [10, 20, 30]
    rows = engine.rows(toy.seen)
    seen = [(rows[n].time_ns, rows[n].what) for n in range(1, engine.used(toy.seen) + 1)]
    assert seen == [(15, 1), (20, 99), (25, 2), (35, 3)]
