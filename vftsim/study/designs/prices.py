"""Cost of a configuration by a table of prices: hosts, cores, vCPUs, memory, network, any key of the model."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import Spec, json_schema, load, shipped_dir
from vftsim.spec.registry import TAG
from vftsim.spec.shape import Shape
from vftsim.spec.shipped import is_file
from vftsim.spec.suggest import instead, shown
from vftsim.spec.units import converted, numbers_of
from vftsim.study.designs.axes import number_of, value_at
from vftsim.study.designs.study_spec import ROOM
from vftsim.study.figures.protection_costs import own_rate_bits_per_s

_KEYS = "prices: keys:"
_GIB, _GBIT = 2.0**30, 1e9
FOLDER, DEFAULT = "prices", "example"
Price = Annotated[float, Field(ge=0.0, le=1e12)]


class PriceTable(Spec):
    """Prices; what is left out costs nothing."""

    name: str = Field(min_length=1, max_length=100, description="What the table is, and of when.")
    source: str = Field("", max_length=4000, description="Where the prices come from.")
    unit: str = Field("", max_length=40, description="Such as EUR a month.")
    host: Price = Field(0.0, description="Each host; the second host of a protected domain is one more.")
    core: Price = Field(0.0, description="Each physical CPU of these hosts.")
    vcpu: Price = Field(0.0, description="Each virtual CPU of every domain, and of the copy that protects it.")
    memory: Price = Field(0.0, description="Each GiB of every domain's memory, and of the copy that protects it.")
    network: Price = Field(0.0, description="Each Gbit/s of networks, and of a channel of protection of its own.")
    keys: dict[str, Price] = Field(
        default_factory=dict,
        description="Of each unit of the number at a key, in the unit in which the model states it (10 ms: each ms).",
    )
    parts: dict[str, Price] = Field(
        default_factory=dict, description="Once for a value of a key: domains.sut.protection.kind=lockstep."
    )


def prices_schema() -> dict[str, Any]:
    """Return the JSON Schema of price tables."""
    return json_schema(PriceTable, "vftsim prices")


def read_prices(path: str | None) -> PriceTable:
    """Return a table of prices, the shipped example without a path; refuse a file that is missing or wrong."""
    file = shipped_dir(ROOM) / FOLDER / f"{DEFAULT}.yaml" if path is None else Path(path)
    if not is_file(file):
        raise UsageError(f"--prices: no file {shown(path)}; 'vftsim schema prices' says what one has")
    return load(file, PriceTable, search=lambda _: file)


def quantities_of(spec: ModelSpec) -> dict[str, float]:
    """Return how much of what is priced a model has, second hosts and copies of protected domains included."""
    paired = {name: domain for name, domain in spec.domains.items() if domain.protection.has_backup}
    seconds = {spec.host_of(domain) for domain in paired.values()}
    hosts = [*spec.hosts.values(), *(spec.hosts[name] for name in seconds)]
    domains = [*spec.domains.values(), *paired.values()]
    channels = [own_rate_bits_per_s(domain) * domain.count for domain in paired.values()]
    return {
        "host": float(len(hosts)),
        "core": float(sum(host.pcpus for host in hosts)),
        "vcpu": float(sum(domain.vcpus * domain.count for domain in domains)),
        "memory": sum(domain.memory_available * domain.count for domain in domains) / _GIB,
        "network": (sum(network.rate for network in spec.networks.values()) + sum(channels)) / _GBIT,
    }


def units_of(table: PriceTable, specs: Sequence[ModelSpec]) -> dict[str, str]:
    """Return of which unit each key's price is: that in which the first of the models with a number there states it."""
    found = {key: (_number_at(spec, key) for spec in specs) for key in table.keys}
    return {key: next((unit for number, unit in numbers if number), "") for key, numbers in found.items()}


def _number_at(spec: ModelSpec, key: str) -> tuple[float, str]:
    try:
        return number_of(value_at(spec, key, _KEYS)) or (0.0, "")
    except UsageError:
        return 0.0, ""


def _amount(spec: ModelSpec, key: str, unit: str) -> float:
    """Return the number at a key in a unit; refuse a key without a number."""
    value = value_at(spec, key, _KEYS)
    number, written_unit = number_of(value) or (0.0, "")
    if written_unit == "" and not isinstance(value, int | float):
        raise UsageError(f"{_KEYS} {key}: {shown(value)} is no number")
    in_its_unit = converted(number, written_unit, unit)
    return number if in_its_unit is None else in_its_unit


def cost_of(table: PriceTable, spec: ModelSpec, units: Mapping[str, str]) -> tuple[float, dict[str, float]]:
    """Return what a model costs in all, and the quantities that it pays for; numbers at keys in their ``units``.

    Refuses a price of a key that the model lacks, or of a kind of part that there is not.
    """
    quantities = quantities_of(spec)
    cost = math.fsum(getattr(table, name) * amount for name, amount in quantities.items())
    for key, price in table.keys.items():
        quantities[key] = _amount(spec, key, units[key])
        cost += price * quantities[key]
    data = spec.model_dump(mode="json") if table.parts else {}
    for text, price in table.parts.items():
        quantities[text] = float(_has(data, text))
        cost += price * quantities[text]
    priced = {*table.keys, *table.parts, *(name for name in quantities if getattr(table, name, 0.0))}
    return cost, {name: amount for name, amount in quantities.items() if name in priced}


def _has(data: Mapping[str, Any], text: str) -> bool:
    """Tell whether a value stands at a key; not where only another kind of the part has that key."""
    path, _, value = (word.strip() for word in text.partition("="))
    here: Any = data
    shape: Shape | None = Shape(ModelSpec)
    for key in path.split("."):
        kinds = shape.registry if shape is not None else None
        if key == TAG and kinds is not None and value not in kinds:
            raise UsageError(
                f"prices: parts: '{text}': there is no kind {shown(value)}{instead(value, kinds, 'one of')}"
            )
        if not isinstance(here, Mapping) or key not in here:
            if kinds is not None and any(key in part.model_fields for part in kinds.values()):
                return False
            names = here if isinstance(here, Mapping) else ()
            raise UsageError(f"prices: parts: '{text}': there is no '{key}'{instead(key, names, 'it has')}")
        here, shape = here[key], shape.child(key, here) if shape is not None else None
    if (both := numbers_of([str(here), value])) is None:
        return str(here).replace(" ", "") == value.replace(" ", "")
    return both[0][0] == both[0][1]  # 25ms and 25000 us are 25 ms
