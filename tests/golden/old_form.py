"""Models of golden cases, written in the first form of model files (``sip_lab``, ``media_host``), in the present."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
Tree = dict[str, Any]

_SIP: tuple[tuple[str, str], ...] = (
    ("host", "hosts.host"),
    ("server.quantum", "domains.sut.quantum"),
    ("server", "domains.sut.applications.proxy"),
    ("virtualization.cpu_inflation", "domains.sut.cpu_inflation"),
    ("virtualization.relay_cost", "domains.sut.applications.proxy.relay_cost"),
    ("virtualization", "domains.sut.interfaces.eth0.path"),
    ("protection", "domains.sut.protection"),
    ("nics.cards", "networks"),
    ("nics.layout.vm", "domains.sut.interfaces.eth0.network"),
    ("nic", "domains.sut.interfaces.eth0.path"),
    ("workload", "workloads.calls"),
    ("measured_doc", "measured.capacity"),
    ("memory_available", "domains.sut.memory_available"),
)
_MEDIA: tuple[tuple[str, str], ...] = (
    ("title", "description"),
    ("host.switch_cost_ns", "hosts.host.switch_cost"),
    ("host", "hosts.host"),
    ("nics", "hosts.host.nics"),
    ("workload.duration", "measure.duration"),
    ("workload.warm_up", "measure.warm_up"),
    ("workload.link_latency_ns", "networks.lan.latency"),
    ("workload.rtp.link_bit_per_s", "networks.lan.rate"),
    ("workload.rtp", "workloads.media"),
    ("workload.signaling", "workloads.signaling"),
)
_NOTHING_AS_NULL = ("background", "io_path", "measured_doc", "rtp", "signaling")
"""Keys whose null in a whole file says that a part is not there; elsewhere null is a value."""

_KINDS = {
    "domains.sut.applications.proxy": "sip_server",
    "domains.sut.interfaces.eth0.path": "moderated",
    "workloads.calls": "ims_bench",
    "workloads.media": "rtp",
    "workloads.signaling": "calls",
}
_DETECTION = {
    "heartbeat_interval": ("detection", "heartbeat_interval"),
    "heartbeat_timeout": ("detection", "timeout"),
    "log_timeout": ("detection", "log_timeout"),
    "secondary_delay": ("detection", "secondary_delay"),
    "placement": ("placement",),
    "boot_time": ("boot_time",),
}
"""Where a failure's parts stand below ``failover``."""
_LOCATION = {"workloads.calls": "sut.proxy"}
_COSTS = (
    "backend",
    "backend_receive",
    "backend_transmit",
    "copy",
    "driver_receive",
    "driver_transmit",
    "emulation",
    "event",
    "exit",
    "frontend_receive",
    "frontend_transmit",
    "interrupt_exit",
    "packet",
    "receive",
    "transmit",
)
_TIMES = ("coalescing_time", "cycle", "hold", "interval", "packet_gap", "playout", "quantum", "sending_grid")
_RENAMED = {f"{work}_ns": f"{work}_cost" for work in _COSTS} | {f"{time}_ns": time for time in _TIMES}
"""Keys of the first form that named a unit, which their values have to say."""


def in_new_form(kind: str, old: Mapping[str, Any], *, is_whole: bool = True) -> Tree:
    """Return what a file of an old kind says, in the new form.

    Parameters
    ----------
    kind : str
        One of :data:`OLD_KINDS`.
    old : mapping
        The file as plain data; what it says about other files (``extends``) is kept.
    is_whole : bool
        It extends nothing: what every file of its kind implied is written out.
    """
    new: Tree = {}
    leaves = dict(_leaves(old, ()))
    leaves.pop(("kind",), None)
    for path, value in leaves.items():
        if value is None and is_whole and path[-1] in _NOTHING_AS_NULL:
            continue
        for place, text in _said_anew(kind, path, value, leaves):
            _put(new, place, text)
    if is_whole:
        _imply(kind, new, leaves)
    for where, part in _KINDS.items():
        entry = _at(new, where)
        if isinstance(entry, dict) and "kind" not in entry and (is_whole or where.startswith("workloads")):
            entry["kind"] = part
            if is_whole and where in _LOCATION:
                entry["to"] = _LOCATION[where]
    return new


def new_assignment(kind: str, assignment: str) -> str:
    """Return a ``--set`` assignment with its path in the new form."""
    old, equals, value = assignment.partition("=")
    path = tuple(old.strip().split("."))
    return ".".join(_moved(kind, path)) + equals + value


def _leaves(tree: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _leaves(value, (*path, str(key)))
    else:
        yield path, tree


def _said_anew(kind: str, path: Path, value: Any, leaves: Mapping[Path, Any]) -> Iterator[tuple[Path, Any]]:
    """Yield places and values of what one leaf said, none if the new form has no need of it."""
    special = (_special_of_lab if kind == "sip_lab" else _special_of_host)(path, value, leaves)
    if special is not None:
        yield from special
        return
    new = _moved(kind, path)
    yield new, value
    if "background" in new[:4] and new[0] == "domains" and value is not None:
        yield (*new[:4], "kind"), "periodic_load"


def _special_of_lab(path: Path, value: Any, leaves: Mapping[Path, Any]) -> list[tuple[Path, Any]] | None:
    """Return what a leaf of a SIP lab says anew where that hangs on other leaves; ``None``: it does not."""
    card = str(leaves.get(("nics", "layout", "vm")) or next(_cards(leaves)))
    is_shared = bool(leaves.get(("protection", "channel", "shared")))
    match path:
        case ("nics", "background", traffic, *rest):
            traffic_card = leaves.get(("nics", "layout", traffic)) or next(_cards(leaves))
            return [(("networks", str(traffic_card), "background", traffic, *rest), value)]
        case ("protection", "channel", "shared") if value:
            return [(("domains", "sut", "protection", "channel", "network"), card)]
        case (
            ("nics", "background" | "layout")
            | ("nics", "layout", "management" | "migration" | "ft_logging" | "storage")
            | ("protection", "channel", "shared")
        ):
            return []
        case ("protection", "channel", "rate") if is_shared:
            return []
        case ("domains", name, "message_cost"):
            calls = ("workloads", "calls")
            return [((*calls, "message_cost"), value), ((*calls, "agents_in"), name)] if name == "uac" else []
    return None


def _special_of_host(path: Path, value: Any, leaves: Mapping[Path, Any]) -> list[tuple[Path, Any]] | None:
    """Return what a leaf of a media host says anew where that hangs on other leaves; ``None``: it does not."""
    match path:
        case ("driver_domain",):
            return [(("domains", str(value), "driver"), {})] if value is not None else []
        case ("driver", *_):
            name = leaves.get(("driver_domain",), "dom0")
            return [] if name is None else [(_renamed(("domains", str(name), *path)), value)]
    return None


def _moved(kind: str, path: Path) -> Path:
    return _renamed(_moved_place(kind, path))


def _renamed(path: Path) -> Path:
    if "protection" in path and path[-1] in _DETECTION:
        place = path.index("protection") + 1
        return (*path[:place], "failover", *_DETECTION[path[-1]])
    return (*path[:-1], _RENAMED.get(path[-1], path[-1]))


def _moved_place(kind: str, path: Path) -> Path:
    if path[0] == "domains" and len(path) > 2:
        return _moved_in_domain(path)
    dotted = ".".join(path)
    for old, new in _SIP if kind == "sip_lab" else _MEDIA:
        if dotted == old or dotted.startswith(old + "."):
            return (*new.split("."), *path[old.count(".") + 1 :])
    return path


def _moved_in_domain(path: Path) -> Path:
    head, key, rest = path[:2], path[2], path[3:]
    if key == "background":
        return (*head, "applications", "background", *rest)
    if key == "io_path":
        return (*head, "interfaces", "eth0", "path", *rest)
    if key == "nic":
        return (*head, "interfaces", "eth0", "nic", *rest)
    return path


def _cards(leaves: Mapping[Path, Any]) -> Iterator[str]:
    yield from (path[2] for path in leaves if path[:2] == ("nics", "cards"))
    yield "vmnic0"


def _imply(kind: str, new: Tree, leaves: Mapping[Path, Any]) -> None:
    """Write out what every file of an old kind implied."""
    for fault in new.get("faults", ()):
        if fault["kind"] == "primary_crash":
            fault["alone"] = True
    if kind == "sip_lab":
        sut = new["domains"]["sut"] = new.setdefault("domains", {}).get("sut") or {}
        new["domains"] = {
            "sut": sut,
            **{name: new["domains"][name] for name in sorted(new["domains"]) if name != "sut"},
        }
        new.setdefault("networks", {}).setdefault(next(_cards(leaves)), {})
        eth0 = sut.setdefault("interfaces", {}).setdefault("eth0", {})
        eth0.setdefault("path", {})
        sut.setdefault("applications", {}).setdefault("proxy", {})
        new.setdefault("workloads", {}).setdefault("calls", {})
        if _at(sut, "protection.kind") == "lockstep":
            sut["protection"].setdefault("log", {}).setdefault("framing", 0)  # it logged all that was on the wire
    else:
        new.setdefault("networks", {}).setdefault("lan", {}).setdefault("latency", "10 us")
        host = new.setdefault("hosts", {}).setdefault("host", {})
        host.setdefault("switch_cost", "3 us")
        host.setdefault("pcpus", 4)
        host.setdefault("nics", {"eth0": {}})
        for domain in new["domains"].values():
            if not (_at(domain, "interfaces.eth0.path") if isinstance(domain, dict) else True):
                domain.pop("interfaces", None)
        driver = leaves.get(("driver_domain",), "dom0")
        if driver is not None:
            new["domains"].setdefault(driver, {}).setdefault("driver", {})
        for name, default in (("media", "media"), ("signaling", "signaling")):
            if name in new.get("workloads", {}):
                new["workloads"][name].setdefault("to", default)


def _put(tree: Tree, path: Path, value: Any) -> None:
    for key in path[:-1]:
        below = tree.setdefault(key, {})
        if not isinstance(below, dict):
            below = tree[key] = {}
        tree = below
    if isinstance(value, dict) and isinstance(tree.get(path[-1]), dict):
        return
    tree[path[-1]] = value


def _at(tree: Any, dotted: str) -> Any:
    for key in dotted.split("."):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
