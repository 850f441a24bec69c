"""Where a result comes from as blocks: enough to make it again, and to know how far to trust it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from vftsim.report.blocks import Block, Facts, Listing, Table
from vftsim.study.model import in_yaml

_DIGITS = 16


def origin_blocks(manifest: Mapping[str, Any]) -> list[Block]:
    """Return how far the models are calibrated, the command, seed, versions, hashes, and the models in full."""
    said = [
        ("command", command_of(manifest)),
        ("vftsim", _version(manifest)),
        ("seed, streams", f"{manifest['seed']}, {manifest['stream_scheme']}"),
        ("replications", f"{len(manifest['replications'])} of {manifest['replications_wanted']}"),
        *(_model(model) for model in manifest["models"]),
        ("state", f"{manifest['state']}, {manifest['started_utc']} to {manifest['ended_utc']}"),
        ("Python", f"{manifest['python']} on {manifest['os']}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in manifest["packages"].items() if version)),
    ]
    trust = [fact for model in manifest["models"] for fact in _trust(model, len(manifest["models"]) > 1)]
    return [
        *([Facts("How far the model is known", trust)] if trust else []),
        Facts("How to get it again", said),
        *(
            Listing(f"The model {model['label']}, all values written out", in_yaml(model["resolved"]))
            for model in manifest["models"]
        ),
    ]


def command_of(manifest: Mapping[str, Any]) -> str:
    """Return the command line of a result, or what kind of study it was where it was called from Python."""
    words = manifest.get("command_line") or []
    if not words or words[0] not in {"vftsim", "__main__.py"}:
        return f"vftsim.{manifest['command']} from Python"
    return shlex.join(["vftsim", *words[1:]])


def differences(manifests: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> Table:
    """Return the keys in which the first models of results differ, a column a result, and nothing else."""
    flat = [dict(_flat(_own(manifest["models"][0]["resolved"]))) for manifest in manifests]
    keys = dict.fromkeys(key for each in flat for key in each)
    rows = [
        [key, *(each.get(key, "-") for each in flat)] for key in keys if len({each.get(key, "-") for each in flat}) > 1
    ]
    seeds = [str(manifest["seed"]) for manifest in manifests]
    if len(set(seeds)) > 1:
        rows.append(["seed", *seeds])
    title = "What differs" if rows else "What differs: nothing but how they were asked"
    return Table(("key", *labels), rows, title, texts=1 + len(labels))


def _own(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is, without what its file says that was measured on it, or fitted to."""
    return {key: value for key, value in resolved.items() if key not in {"measured", "calibrated"}}


def _flat(data: Any, path: str = "") -> list[tuple[str, str]]:
    if not isinstance(data, Mapping) or not data:
        return [(path, "none" if data is None else str(data))]
    return [found for key, value in data.items() for found in _flat(value, f"{path}.{key}" if path else str(key))]


def _version(manifest: Mapping[str, Any]) -> str:
    git = manifest.get("git")
    if not git:
        return str(manifest["vftsim"])
    return f"{manifest['vftsim']}, commit {git['commit'][:12]}{', changed since' if git['dirty'] else ''}"


def _model(model: Mapping[str, Any]) -> tuple[str, str]:
    changed = ", ".join([*model["set"], *model["notes"]]) or "nothing changed"
    return "model", f"{model['label']}, sha256 {model['sha256'][:_DIGITS]}, {changed}"


def _trust(model: Mapping[str, Any], is_one_of_several: bool) -> list[tuple[str, str]]:
    """Return what a model was fitted to, what is not covered by that, and what its costs rest on."""
    of = f"{model['label']}: " if is_one_of_several else ""
    found = []
    if calibrated := model["resolved"].get("calibrated"):
        low, high = calibrated["loads"]
        found.append((f"{of}fitted to", f"{calibrated['by']}, loads from {low} to {high}"))
    else:
        found.append((f"{of}fitted to", "the model does not say"))
    if keys := model.get("not_covered"):
        found.append((f"{of}not covered by that", ", ".join(keys)))
    if (measured := model["resolved"].get("measured") or {}).get("capacity") is not None:
        found.append((f"{of}measured capacity", str(measured["capacity"])))
    found += [(f"{of}costs", text) for text in model.get("costs", ())]
    return found
