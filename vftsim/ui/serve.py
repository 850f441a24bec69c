"""The page on loopback, until Ctrl-C."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from vftsim.errors import UsageError
from vftsim.study.runs.model import load_model, shipped_models

EXTRA = "ui"
LOOPBACK = "127.0.0.1"


def serve(
    named: Sequence[str], store: Path, port: int, options: Sequence[str], *, notify: Callable[[str], None]
) -> None:
    """Serve the page of the shipped models and of those named, the first of these first, until Ctrl-C.

    Nothing but the store is written.  Port 0 is a free one; ``notify`` is told the address.  Options are what each
    command line is given beside.  Refuses a wrong model, a store or a port in use, and all without the extra.
    """
    try:
        import uvicorn  # noqa: PLC0415 - of the extra

        from vftsim.ui.app import build  # noqa: PLC0415 - of the extra
        from vftsim.ui.desk import Desk  # noqa: PLC0415 - of the extra
    except ImportError:
        raise UsageError(f"the page needs the extra '{EXTRA}': pip install 'vftsim[{EXTRA}]'") from None
    for each in named:
        load_model(each)
    models = {each: each for each in dict.fromkeys((*named, *shipped_models()))}
    with bound(port) as listening:
        desk = Desk(models, store, options)
        try:
            notify(f"http://{LOOPBACK}:{listening.getsockname()[1]}/ - Ctrl-C ends it; studies are in '{store}'")
            config = uvicorn.Config(
                build(desk),
                log_level="warning",
                access_log=False,
                lifespan="off",
                limit_concurrency=64,
                timeout_graceful_shutdown=2,
                server_header=False,
            )
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            where_kept = f"studies are kept in '{store}', and what was under way goes on with the next start"
            raise KeyboardInterrupt(where_kept) from None
        finally:
            desk.runs.close()


def bound(port: int) -> socket.socket:
    """Return a socket that listens on loopback, and nowhere else; refuse a port that is in use."""
    try:
        return socket.create_server((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--port {port}: {why.partition(' (')[0]}") from None
