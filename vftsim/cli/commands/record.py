"""``vftsim record``: predicted against stated, for a published study that ships with vftsim."""

from pathlib import Path

from vftsim.cli.common import Work
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.interface import labs


@made_from(labs.record, Work, before={"output": "quick"})
def record(call: StudyCall, output: Path | None = None, *, common: Work) -> None:
    """Run the experiments of a study with the shipped fit; print every statement with its verdict.

    Parameters
    ----------
    output : --output, -o FILE
        Write the report (.md).
    """
    from vftsim.cli.files import check_target, write_whole
    from vftsim.files import write_file
    from vftsim.report.screen import print_text

    plan = call.plan()
    if output is not None:
        check_target(output, common.force, ".md")
    judged = common.conduct(plan)
    if output is not None:
        write_whole(output, lambda path: write_file(path, judged.markdown().encode()))
    common.show(judged)
    if output is not None and not common.as_json:
        print_text(f"Written: {output}")
