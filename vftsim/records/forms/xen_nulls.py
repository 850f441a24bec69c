"""What says nothing about Xen, judged like a model: no loss anywhere, and outcomes dealt to the wrong experiments.

A score means something only above these.  The null model never loses a packet and delays all packets alike.  Shuffled
labels keep a model's outcomes, and so how often it loses how much, and break only what belongs to which experiment
(Fisher 1935; the share of deals that do as well counts the right labels among the deals: Phipson and Smyth 2010).
Two models are told apart by the statements that only one of them holds (McNemar's exact test).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vftsim.records.forms.xen_statements import Judged, Outcome, judge
from vftsim.sampling import Streams

NULL = "never loses a packet"
_DELAY_MS = 0.05
_SHUFFLES = "records.shuffled_labels"
DEALS = 2000
Rows = Sequence[Mapping[str, str]]


def null_outcomes(keys: Sequence[str], replications: int) -> dict[str, Outcome]:
    """Return outcomes of the model that never loses a packet: the same for every experiment."""
    nothing, delay = [0.0] * replications, [_DELAY_MS] * replications
    return {key: Outcome(nothing, delay, delay, delay) for key in keys}


def judged_rows(rows: Rows, outcomes: Mapping[str, Outcome]) -> list[Judged]:
    return [judged for row in rows for judged in judge(row, outcomes)]


def held(judged: Sequence[Judged]) -> int:
    return sum(row.verdict == "holds" for row in judged)


def shuffled(
    rows: Rows, outcomes: Mapping[str, Outcome], deals: int, seed: int, *, within_sets: bool
) -> dict[str, float]:
    """Deal the outcomes to the experiments at random; within a set (``weights.``, ``caps.``, ...) or over all.

    Returns how many statements hold: the ``mean`` over the deals, the ``best`` of them (their 95th percentile), with
    the ``right`` labels; and the ``share`` of ``deals`` in which as many hold, the right one among them.
    """
    keys = list(outcomes)
    groups = _sets(keys) if within_sets else [list(range(len(keys)))]
    generator = Streams(seed, 0).generator(_SHUFFLES, int(within_sets))
    right = held(judged_rows(rows, outcomes))
    counts = []
    for _ in range(deals):
        order = list(range(len(keys)))
        for group in groups:
            for position, drawn in zip(group, generator.permutation(group), strict=True):
                order[position] = int(drawn)
        dealt = {key: outcomes[keys[source]] for key, source in zip(keys, order, strict=True)}
        counts.append(held(judged_rows(rows, dealt)))
    as_many = sum(count >= right for count in counts)
    best = float(np.quantile(counts, 0.95))
    share = (1 + as_many) / (1 + deals)
    return {"mean": float(np.mean(counts)), "best": best, "right": right, "share": share, "deals": deals}


def _sets(keys: Sequence[str]) -> list[list[int]]:
    groups: dict[str, list[int]] = {}
    for position, key in enumerate(keys):
        groups.setdefault(key.split(".", maxsplit=1)[0], []).append(position)
    return list(groups.values())


def contest(first: Sequence[Judged], second: Sequence[Judged]) -> dict[str, float]:
    """Return how many of the same statements only the first of two models holds, and only the second.

    ``p_value``: McNemar's exact test, two-sided: how likely such an imbalance, or a greater one, is between equals.
    """
    pairs = [(a.verdict == "holds", b.verdict == "holds") for a, b in zip(first, second, strict=True)]
    wins, losses = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    n, least = wins + losses, min(wins, losses)
    tail = sum(math.comb(n, k) for k in range(least + 1)) / 2.0**n
    return {"only_first": wins, "only_second": losses, "p_value": min(1.0, 2.0 * tail)}


def chance(rows: Rows, models: Mapping[str, Mapping[str, Outcome]], seed: int, deals: int = DEALS) -> dict[str, Any]:
    """Return what the null model and shuffled labels hold, and how each model does against the first.

    ``models`` are outcomes by model and experiment, the right model first.
    """
    judged = {name: judged_rows(rows, outcomes) for name, outcomes in models.items()}
    right, *_ = models
    replications = len(next(iter(models[right].values())).loss_percent)
    judged[NULL] = judged_rows(rows, null_outcomes(list(models[right]), replications))
    shared = sum(a.verdict == b.verdict == "holds" for a, b in zip(judged[right], judged[NULL], strict=True))
    return {
        "held": {name: held(verdicts) for name, verdicts in judged.items()},
        "statements": len(judged[right]),
        "held_by_null_too": shared,
        "shuffled": {
            "over all experiments": shuffled(rows, models[right], deals, seed, within_sets=False),
            "within each set": shuffled(rows, models[right], deals, seed, within_sets=True),
        },
        "against": {name: contest(judged[right], verdicts) for name, verdicts in judged.items() if name != right},
    }


def in_words(counts: Mapping[str, Any]) -> list[str]:
    """Return :func:`chance` as lines of text."""
    shared, right = counts["held_by_null_too"], next(iter(counts["held"].values()))
    lines = [
        f"Of {counts['statements']} statements {counts['held'][NULL]} hold in a model that never loses a packet; of "
        f"the {right} that hold in the model {shared} hold there too ({shared / max(right, 1):.0%}) and cannot tell."
    ]
    for where, deal in counts["shuffled"].items():
        lines.append(
            f"Labels shuffled {where}: {deal['mean']:.1f} hold on average, {deal['best']:.0f} in the best 5 %; "
            f"{deal['right']} or more in a share of {deal['share']:.2g} of {deal['deals']} deals."
        )
    for name, comparison in counts["against"].items():
        lines.append(
            f"Against '{name}' ({counts['held'][name]} hold): {comparison['only_first']} hold only in the model, "
            f"{comparison['only_second']} only there; McNemar p = {comparison['p_value']:.2g}."
        )
    return lines
