"""A result's directory read back, without a change to it: its manifest, its answer, its replications.

A manifest has enough to make a result again, and to know with which results it can be compared.
"""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vftsim._version import __version__
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.without_effect import remarks, without_effect
from vftsim.errors import UsageError, VftsimError
from vftsim.sampling import STREAM_SCHEME
from vftsim.spec.shipped import PACKAGE
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.validity import not_covered
from vftsim.study.runs.model import Model
from vftsim.study.runs.versions import ELSEWHERE, NONE, installed_engine, versions
from vftsim.study.store.database import DATABASE, Ledger, check_directory, damage, reading, unsound
from vftsim.study.store.store import ANSWER, MANIFEST, unpacked

PACKAGES = ("loky", "matplotlib", "numpy", "pandas", "pydantic", "ruamel.yaml", "scipy", "simpy")
BIT_GENERATOR = STREAM_SCHEME.split(":")[1]


def utc_now() -> str:
    """Return the time of day in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def about(model: Model) -> dict[str, Any]:
    return {
        "label": model.label,
        "workloads": list(model.workloads),
        "name": model.name,
        "set": list(model.assignments),
        "notes": list(model.notes),
        "without_effect": without_effect(model.spec),
        "remarks": remarks(model.spec),
        "not_covered": not_covered(model.spec),
        "costs": cost_notes(model.spec),
        "sha256": model.digest(),
        "resolved": model.resolved(),
    }


def environment() -> dict[str, Any]:
    """Return on what a result is made: Python, machine, and packages."""
    return {
        "python": platform.python_version(),
        "os": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "versions": versions(installed_engine()),
    }


def identity(model: Model, seed: int) -> dict[str, Any]:
    """Return what makes replications belong together."""
    return identity_of(model.digest(), seed)


def identity_of(digest: str, seed: int) -> dict[str, Any]:
    """Return what makes replications belong together, of a model with this digest."""
    return {"model": digest, "seed": seed, "stream_scheme": STREAM_SCHEME, "vftsim": __version__}


def git_state() -> dict[str, Any] | None:
    """Return commit and dirtiness of the repository that vftsim runs from; None for an installed one."""
    top, _, commit = (_git("rev-parse", "--show-toplevel", "HEAD") or "").strip().partition("\n")
    if not top or Path(top).resolve() != PACKAGE.parent:
        return None
    status = _git("status", "--porcelain")
    return None if status is None else {"commit": commit, "dirty": bool(status.strip())}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return what a directory says of itself; refuse one that is no result, or not finished."""
    if not (folder / DATABASE).is_file():
        raise UsageError(f"'{folder}' is no result of vftsim: it has no {DATABASE}; name a directory made with -o")
    check_directory(folder, is_locked=False)
    return read_data(folder, MANIFEST)


def read_answer(folder: Path) -> dict[str, Any]:
    """Return what ``--json`` printed when the result was made; refuse a damaged one."""
    return read_data(folder, ANSWER)


def read_data(folder: Path, name: str) -> dict[str, Any]:
    """Return a file of a result that is one JSON object; refuse one that is missing, or not as it was written."""
    try:
        text = (folder / name).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"'{folder}' has no {name}: the command that made it has not finished, and goes on") from None
    except OSError as error:
        raise _unread(folder, name, error.strerror or "damaged") from None
    with reading(folder) as connection:
        is_as_written = Ledger(connection).wrote(name, hashlib.sha256(text).hexdigest())
    if not is_as_written:
        raise _unread(folder, name, "changed or damaged since it was written")
    data: dict[str, Any] = json.loads(text)
    return data


def _unread(folder: Path, name: str, why: str) -> UsageError:
    return UsageError(f"'{folder / name}': {why}; the command that made '{folder}' writes it again")


def model_of(manifest: Mapping[str, Any], number: int = 0) -> Model:
    """Return a model of a result as it was simulated; refuse one that cannot be read here."""
    about = manifest["models"][number]
    spec = spec_of(about["resolved"], manifest)
    return Model(about["label"], spec, tuple(about["set"]), tuple(about["notes"]))


def spec_of(resolved: Mapping[str, Any], manifest: Mapping[str, Any]) -> ModelSpec:
    """Return the spec of a resolved model of a result; refuse one of another version, and one whose parts lack here."""
    try:
        return ModelSpec.model_validate(resolved)
    except (ValueError, VftsimError) as error:
        refuse_lacking(error, manifest)
        first = str(error).partition("\n")[0]
        raise UsageError(
            f"the result is of vftsim {manifest.get('vftsim')}, whose models this version does not read ({first}); "
            "run it again"
        ) from None


def refuse_lacking(error: Exception, manifest: Mapping[str, Any]) -> None:
    """Refuse a result that is not read because parts of its models are not installed, by their kinds."""
    problems = error.errors() if isinstance(error, ValidationError) else []
    unknown = [each for each in problems if each["type"] == "union_tag_invalid"]
    if unknown:
        kinds = ", ".join(f"'{each['ctx']['tag']}' ({'.'.join(map(str, each['loc']))})" for each in unknown)
        made_with = manifest.get("versions", {}).get(ELSEWHERE, NONE)
        made_by = "" if made_with == NONE else f"; {ELSEWHERE} when it was made: {made_with}"
        raise UsageError(f"the result has parts that are not installed here: {kinds}{made_by}") from None


_OF_RUNS = identity_of("", 0).keys()


def records_of(folder: Path, manifest: Mapping[str, Any], number: int = 0) -> list[tuple[int, RunRecord]]:
    """Return the replications that a manifest names, those of one model; refuse damaged or foreign ones, and a gap."""
    records = [(n, _record(data)) for n, data in stored(folder, manifest["models"][number]["sha256"], manifest)]
    if len(records) < (named := len(manifest["replications"])):
        raise UsageError(
            f"'{folder}' has {len(records)} of the {named} replications of its tables; the command that made it "
            "computes the others"
        )
    return records


def stored(folder: Path, model_sha256: str, manifest: Mapping[str, Any]) -> list[tuple[int, Any]]:
    """Return what is in the store of one model, by replication, as far as the manifest names it."""
    return [(number, data) for _, number, data in stored_of(folder, {model_sha256}, manifest)]


def stored_of(folder: Path, models: Collection[str], manifest: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Yield what is in the store of models, as far as the manifest names it: the model's hash, number, data.

    Runs alone: what more than a model determines, as a crash of it, is another study.  The database is read at once,
    for all models; refuses a damaged replication.
    """
    with reading(folder) as connection:
        studies = {study: json.loads(text) for study, text in connection.execute("SELECT id, identity FROM studies")}
        rows = connection.execute(
            "SELECT study, key, replication, data, sha256 FROM replications JOIN studies ON studies.id = study "
            "ORDER BY generation"
        ).fetchall()
    numbers, by_run = set(manifest["replications"]), dict[tuple[str, int], tuple[str, bytes, str]]()
    for study, key, number, data, sha256 in rows:
        model, seed = studies[study].get("model"), studies[study].get("seed")
        is_of_runs = studies[study].keys() <= _OF_RUNS
        if is_of_runs and number in numbers and model in models and seed == manifest["seed"]:
            by_run[model, number] = key, data, sha256
    for (model, number), (key, data, sha256) in sorted(by_run.items()):
        if (whole := unpacked(key, number, data, sha256)) is None:
            raise UsageError(f"replications in '{folder}' are damaged; 'vftsim check {folder}' says which")
        yield model, number, whole


def last_generation(folder: Path) -> list[tuple[dict[str, Any], dict[int, Any]]]:
    """Return the replications of each study that a command would go on from, by number; None for a damaged one."""
    with reading(folder) as connection:
        if wrong := unsound(connection):
            raise damage(folder, wrong)
        rows = connection.execute(
            "SELECT identity, key, replication, data, sha256 FROM replications JOIN studies ON studies.id = study "
            "WHERE generation = (SELECT max(generation) FROM studies WHERE id IN (SELECT study FROM replications)) "
            "ORDER BY study, replication"
        ).fetchall()
    by_identity = dict[str, dict[int, Any]]()
    for identity, key, number, data, sha256 in rows:
        by_identity.setdefault(identity, {})[number] = unpacked(key, number, data, sha256)
    return [(json.loads(identity), replications) for identity, replications in by_identity.items()]


def _record(data: Any) -> RunRecord:
    try:
        return RunRecord.from_dict(data)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError("the result is of another version of vftsim, which had another record; run it again") from None
