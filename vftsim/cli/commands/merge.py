"""``vftsim merge``: several results of one study in one."""

from pathlib import Path

from vftsim.cli import options


def merge(directories: list[Path], output: Path) -> None:
    """Put the finished replications of several shards into one directory; the whole command then writes its tables.

    Parameters
    ----------
    directories : DIR...
        What the shards kept with -o.
    output : --output, -o DIR
        Where all of it goes.
    """
    from vftsim.report.screen import print_text
    from vftsim.spec.suggest import counted
    from vftsim.study.designs.past import merge as put_together

    done = put_together(directories, output)
    options.say_remarks(done.remarks)
    of_all = counted(len(directories), "result")
    print_text(f"{done.new} replications of {of_all} are in '{output}', {done.already} were there.")
    print_text(f"Its tables, and what is still missing: {done.next_command}")
