"""Records what the scripted hosts do on which a rule has changed since the object model, and names them.

``python -m tests.platform.record_changed_hosts``
"""

from functools import cache
from pathlib import Path

from tests.golden.compact import differences, read, write
from tests.golden.host_scripts import HOSTS
from tests.platform.scripted_host import linked, result
from vftsim.kernel import Linked
from vftsim.kernel.simpy_engine import SimpyEngine

CHANGED_HOSTS = Path(__file__).parent / "changed_hosts.json.gz"


@cache
def _kernel(kind: str) -> Linked:
    return linked(kind)


def main() -> None:
    stored = read(HOSTS)
    changed = {}
    for name in sorted(stored):
        found = result(SimpyEngine(_kernel(name.partition("-")[0])), stored[name]["script"])
        if any(differences(stored[name]["result"], found)):
            changed[name] = found
    write(CHANGED_HOSTS, changed)
    print(f"{len(changed)} of {len(stored)} changed:", *changed)


if __name__ == "__main__":
    main()
