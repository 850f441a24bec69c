"""A report of IMS Bench SIPp, as page and as text, gives the observations of the record."""

import pytest
from ims_report import as_html, as_text

from vftsim.calibrate.figures import measured
from vftsim.cli.main import main
from vftsim.errors import ModelFileError
from vftsim.labs.importing import Source, figures_of, importer_for
from vftsim.spec import shipped_dir


@pytest.mark.parametrize("report", [as_text, as_html])
def test_the_imported_report_is_the_record(tmp_path, report, capsys):
    """All 300 observations of the virtual environment, equal to the last digit."""
    (tmp_path / "report").write_text(report(), encoding="utf-8")
    assert main(["import", str(tmp_path / "report"), "-e", "mine", "-o", str(tmp_path / "lab")]) == 0
    capsys.readouterr()
    found = measured(tmp_path / "lab", "mine")
    record = measured(shipped_dir("calibration") / "sip-lab" / "data", "virtual")
    assert {key: found.get(key) for key in record} == record
    assert found["step_7", "REG1/ims_reg/p90"] == 3720.0
    assert found["step_6", "retransmissions/ims_uac"] == 55.24


def test_a_row_with_too_few_numbers_is_told(tmp_path):
    text = as_text().replace("7.54\t12.28\t", "7.54\t")
    line = next(n for n, row in enumerate(text.splitlines(), start=1) if "\t7.54\t" in row)
    with pytest.raises(ModelFileError, match=rf"report:{line}: PX_TRT-REL1 \(msec\): a row of this table needs a step"):
        figures_of(Source(text, "report"), importer_for(text, "report"))


def test_machines_of_a_kind_are_told_apart():
    """Of two servers neither is the ``cpu`` of a model by itself; the one memory is."""
    text = as_text().replace("Memory host", "Memory sut")
    lines = text.splitlines()
    at = next(n for n, row in enumerate(lines) if row.startswith("CPU host"))
    second = ["CPU sut2", *("1.5" for _ in lines[at].split("\t")[1:])]
    both = "\n".join([*lines[: at + 1], "\t".join(second), *lines[at + 1 :]])
    found = {
        (each.phase, each.metric): each.statistics for each in figures_of(Source(both, "r"), importer_for(both, "r"))
    }
    alone = {
        (each.phase, each.metric): each.statistics for each in figures_of(Source(text, "r"), importer_for(text, "r"))
    }
    assert found["step_3", "cpu/sut2"] == {"mean": 1.5}
    assert found["step_3", "cpu/host"] == alone["step_3", "cpu"]
    assert ("step_3", "cpu") not in found
    assert found["step_3", "memory"] == alone["step_3", "memory"]


def test_a_page_that_was_cut_within_a_table_is_not_read_up_to_there():
    text = as_html()
    with pytest.raises(ModelFileError, match="report: ends within a table; was the file cut"):
        figures_of(Source(text[: len(text) // 2], "report"), importer_for(text, "report"))


def test_a_report_without_tables_is_told():
    text = "Requested by IMS Bench\n"
    with pytest.raises(ModelFileError, match="report: has no table by step"):
        figures_of(Source(text, "report"), importer_for(text, "report"))
