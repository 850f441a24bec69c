"""``vftsim rare``: the probability of a rare event."""

from __future__ import annotations

from typing import Annotated

import typer

from vftsim.cli import options
from vftsim.cli.common import ModelStudy


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rare")(rare)


def rare(
    model: options.ModelName,
    event: Annotated[
        str,
        typer.Option(
            metavar="'LEVEL >= N'",
            help="What may happen in a run: a queue (server.queue.held >= 20), a link's backlog (lan.to_host.backlog "
            ">= 2 ms), losses (server.queue.lost >= 1).",
        ),
    ],
    trials: Annotated[int, typer.Option(metavar="N", help="Trials at each level.")] = 100,
    repetitions: Annotated[
        int,
        typer.Option("--repetitions", "-n", metavar="N", help="Independent repetitions; the interval rests on them."),
    ] = 20,
    levels: Annotated[
        str | None, typer.Option(metavar="N,N", help="Levels on the way to the limit (default: a pilot finds them).")
    ] = None,
    brute_force: Annotated[
        bool, typer.Option("--brute-force", help="No levels: every trial is a run from time 0.")
    ] = False,
    *,
    common: ModelStudy,
) -> None:
    """Say how probable it is that a queue reaches a length, or a packet is lost, in a run: down to 1e-9 and below."""
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
