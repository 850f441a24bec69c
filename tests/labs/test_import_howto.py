"""The commands of the how-to, run in order on real files."""

import re
import shlex
import shutil
from pathlib import Path

from vftsim.cli.main import main
from vftsim.labs.dataset import read_dataset
from vftsim.labs.importing import importers

FILES = Path(__file__).parent / "files"
PAGE = (Path(__file__).parents[2] / "docs" / "howto-import.md").read_text(encoding="utf-8")
NAMES = {
    "sipp_uac_rtt.csv": "uac_rtt.csv",
    "sipp_uac_stat.csv": "uac_stat.csv",
    "cgroup_v2.txt": "cpu.stat.txt",
    "sadf_u.csv": "sar.csv",
}


def test_the_commands_of_the_page_make_a_dataset(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for source, name in NAMES.items():
        shutil.copy(FILES / source, tmp_path / name)
    (block,) = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    commands = [shlex.split(line)[1:] for line in block.splitlines()]
    assert len(commands) == 3
    for words in commands:
        assert main(words) == 0, capsys.readouterr().err
    dataset = read_dataset(tmp_path / "my-lab")
    assert len(dataset.repeats("bare")["step_1", "rtd1"]) == 2
    assert ("step_1", "cpu") in dataset.observations("guest")


def test_the_page_lists_every_importer():
    assert [name for name in importers() if f"`{name}`" not in PAGE] == []
