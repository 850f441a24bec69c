"""``vftsim rare``: the probability of a rare event."""

from __future__ import annotations

from vftsim.cli.common import ModelStudy


def rare(
    model: str,
    event: str,
    trials: int = 100,
    repetitions: int = 20,
    levels: str | None = None,
    brute_force: bool = False,
    *,
    common: ModelStudy,
) -> None:
    """Say how probable it is that a queue reaches a length, or a packet is lost, in a run: down to 1e-9 and below.

    Parameters
    ----------
    event : --event 'LEVEL >= N'
        What may happen in a run: a queue (server.queue.held >= 20), a link's backlog (lan.to_host.backlog >= 2 ms),
        losses (server.queue.lost >= 1).
    trials : --trials N
        Trials at each level.
    repetitions : --repetitions, -n N
        Independent repetitions; the interval rests on them.
    levels : --levels N,N
        Levels on the way to the limit (default: a pilot finds them).
    brute_force : --brute-force
        No levels: every trial is a run from time 0.
    """
    common.check_force()
    from vftsim.study.rare import rare_study, request_for

    request = request_for(common.model(model), event, levels, trials, repetitions, common.seed, brute_force=brute_force)
    common.show(
        common.answer(
            "rare",
            f"rare event of {request.model.name}",
            request.takes,
            lambda store, progress: rare_study(request, common.jobs, progress=progress, store=store),
        )
    )
