"""Write ``hosts.json.gz``: ``python -m tests.golden.record_hosts``, from the root of the tree."""

from pathlib import Path

from .compact import write
from .host_results import result
from .host_scripts import all_scripts

HOSTS = Path(__file__).with_name("hosts.json.gz")


def main() -> None:
    """Run every script and store it with its result."""
    stored = {name: {"script": script, "result": result(script)} for name, script in all_scripts().items()}
    write(HOSTS, stored)
    print(f"{len(stored)} hosts, {HOSTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
