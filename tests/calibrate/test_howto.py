"""The lab of the how-to, played on imported files of SIPp and a control group that used 12 and 24 % of a core."""

import json
import re
import shutil
from pathlib import Path

import pytest

from vftsim.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto-calibrate.md").read_text(encoding="utf-8")


def cpu_samples(percent):
    return "".join(f"{1795290587 + i}.5\nusage_usec {percent * 10_000 * i}\nnr_periods 0\n" for i in range(9))


@pytest.mark.slow
def test_the_files_of_the_page_fit_a_lab_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (home / re.match(r"# (\S+)", text)[1]).write_text(text)
    shutil.copy(ROOT / "tests" / "labs" / "files" / "sipp_uac_stat.csv", home / "stat.csv")
    for step, percent in ((1, 12), (2, 24)):
        (home / "cpu.txt").write_text(cpu_samples(percent))
        words = ["import", str(home / "stat.csv"), str(home / "cpu.txt"), "-o", str(home / "my-lab")]
        assert main([*words, "-e", "bare", "--phase", f"step_{step}"]) == 0
    capsys.readouterr()
    # From another working directory: what the files name lies beside them.
    assert main(["calibrate", str(home / "my-fit.yaml"), "-j", "1", "-q", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    cost, after = (
        record["parameters"][f"domains.sut.applications.proxy.{key}"] for key in ("touch_cost", "work_after_send")
    )
    # 12 % of a second over 19.48 calls of 13 messages, which cost all that the page's server does.
    assert cost["value"] == pytest.approx(0.12e9 / (19.48 * 13), rel=0.04)
    assert (cost["identified"], after["identified"]) == (True, False)
    assert (after["low_95"], after["high_95"]) == pytest.approx((0.0, 0.8))
    server = (home / "my-server.yaml").read_text()
    (home / "my-server.yaml").write_text(server.replace("proxy: {", f"proxy: {{touch_cost: {cost['value']:.0f} ns, "))
    # Both steps were imported with the load of one file, 19.5 /s: what 24 % were used for no model can say.
    assert main(["validate", str(home / "my-check.yaml"), "-j", "1", "-q", "--json"]) == 1
    rows = {row["phase"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["step_1"]["predicted"] == pytest.approx(12.0, abs=0.4)
    assert rows["step_2"]["predicted"] == pytest.approx(rows["step_1"]["predicted"], rel=0.1)
