"""``vftsim models``: the shipped models, and any model with all its values."""

from typing import Any

from vftsim.errors import ModelFileError, UsageError


def models(model: str | None = None, set_: list[str] | None = None, as_json: bool = False) -> None:
    """List the shipped models, or show one with everything it inherits and every default.

    Parameters
    ----------
    model : [MODEL]
        Show this model, all values written out.
    """
    from vftsim.report.screen import print_json, print_table
    from vftsim.study.runs.model import in_yaml, load_model, shipped_models

    if model is not None:
        chosen = load_model(model, set_ or ())
        if as_json:
            print_json(chosen.resolved())
        else:
            print(in_yaml(chosen.resolved()), end="")
        return
    if set_:
        raise UsageError("--set changes a model: name one, e.g. vftsim models lab-virtual --set ...")
    listed: list[dict[str, Any]] = []
    for name in shipped_models():
        try:
            each = load_model(name)
        except ModelFileError as error:
            raise AssertionError(f"shipped model '{name}' is broken: {error}") from error
        listed.append({"model": name} | {key: getattr(each, key) for key in ("name", "description", "workloads")})
    if as_json:
        print_json(listed)
    else:
        # Those of a workload beside each other: a third column would leave a description no room.
        for kinds in sorted({m["workloads"] for m in listed}, key=lambda kinds: (not kinds, kinds)):
            rows = [(m["model"], " ".join(m["description"].split())) for m in listed if m["workloads"] == kinds]
            print_table(f"Workload: {', '.join(kinds) or 'none'}", ("model", "description"), rows, texts=2)
            print()
