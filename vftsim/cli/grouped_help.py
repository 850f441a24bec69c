"""The help of a command: its own options first, then in groups what it shares with others."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from vftsim.cli.options import MODEL, RESULT, WORK


class GroupedHelp(TyperCommand):
    """A command whose options stand in the groups that they name (``rich_help_panel``), also without boxes."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the command's own options, and each group."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "Options", MODEL, RESULT, WORK)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            group = "Arguments" if parameter.param_type_name == "argument" else "Options"
            if record is not None:
                groups.setdefault(getattr(parameter, "rich_help_panel", None) or group, []).append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
