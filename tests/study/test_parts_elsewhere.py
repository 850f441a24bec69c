"""Results of models with a part from another distribution: its source belongs to the model that they are of."""

import os
import subprocess
import sys
from pathlib import Path

from tests.composition.test_parts_from_outside import ROOT, blocks, install

PLAYS = """
import os
import numpy, pandas, pydantic, ruamel.yaml, scipy.stats, simpy  # once for all
import vftsim
from pathlib import Path

os.environ["VFTSIM_ENGINE"] = "simpy"
part, point = Path("probe.py"), Path("probe-1.0.dist-info", "entry_points.txt")


def apart(*plays):
    # Of a process of its own, that looks for parts anew.
    if os.fork() == 0:
        for play in plays:
            try:
                print(play(), flush=True)
            except ValueError as error:
                print(error, flush=True)
        os._exit(0)
    os.wait()


def run():
    result = vftsim.run("model.yaml", replications=2, jobs=1, directory="r", resume=True, progress=False)
    return result.records[0][1].whole.outcomes["workloads.probe"].delivered


def killed():
    Path("r", "manifest.json").rename("manifest.json")
    try:
        return run()
    finally:
        Path("manifest.json").rename("r/manifest.json")


def replay():
    from vftsim.study.designs.past import is_reproduced, stored_run

    return is_reproduced(Path("r"), stored_run(Path("r"), 0))


apart(run, replay)
part.write_text(part.read_text().replace("np.arange(interval_ns,", "np.arange(5 * interval_ns,"))
apart(run, replay, killed)
point.write_text("")
apart(replay, lambda: vftsim.open("r"))
"""


def test_what_an_older_part_gave_is_not_taken_for_this_one_s(tmp_path: Path) -> None:
    found = blocks("add-a-workload")
    install(tmp_path, found["toml"][0], found["python"][0])
    model = found["yaml"][0].replace("{warm_up: 95 ms, duration: 1 s}", "{warm_up: 0 ms, duration: 100 ms}")
    (tmp_path / "model.yaml").write_text(model, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", PLAYS], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    first, same, later, read, killed, lacking, opened = ran.stdout.splitlines()
    assert (first, same) == ("9", "True"), "every 10 ms of 100 ms; the last is on its way"
    assert later.startswith("'r' tells of another model or seed (parts from elsewhere: probe 1.0 (")
    assert read.endswith("another one, or the source of probe has changed")
    assert "holds another study (different model: its values, or the source of probe)" in killed
    assert lacking.startswith("the result has parts that are not installed here: 'probe' (workloads.probe); parts")
    assert opened == lacking
