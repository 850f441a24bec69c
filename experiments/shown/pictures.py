"""Take the pictures of reports that the documentation shows: each from the page of its command.

    python experiments/shown/pictures.py [NAME...]    # all, or some; with the extras report and browser, and Chromium

Commands are those of ``COMMANDS``, as docs/report.md has them; a picture is the upper part of a page.
"""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "report-run": "run lab-virtual --quick -n 3",
    "report-compare": "compare lab-native lab-virtual --quick -n 3",
    "report-decision": "compare three-tier --protection none,lockstep,checkpoint,ha_restart -n 2 --no-prices",
    "report-capacity": "capacity lab-virtual --quick -n 5",
    "report-sweep": "sweep xen-media --quick -n 3 --grid streams=400,600,800 --grid weight=256,1024",
    "report-failover": "failover lab-virtual --protection lockstep --quick --no-prices",
    "report-availability": "availability lab-virtual --mtbf '90 d' --quick",
}
_WIDTH_PX, _HEIGHT_PX, _SCALE = 1280, 1770, 0.55


def main() -> None:
    """Take the pictures that were named."""
    names = sys.argv[1:] or list(COMMANDS)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names:
            page = Path(folder) / f"{name}.html"
            words = ["-m", "vftsim", *shlex.split(COMMANDS[name]), "--quiet", "--report", page.name]
            subprocess.run([sys.executable, *words, "-o", name], check=True, cwd=folder, stdout=subprocess.DEVNULL)
            _take(browser, page, ROOT / "docs" / "images" / f"{name}.png")
            print(name)


def _take(browser: Browser, page: Path, picture: Path) -> None:
    size = {"width": _WIDTH_PX, "height": _HEIGHT_PX}
    context = browser.new_context(viewport=size, device_scale_factor=_SCALE, color_scheme="light")
    shown = context.new_page()
    shown.goto(page.as_uri())
    # What follows is of the machine that made it.
    end = "[...document.querySelectorAll('h2')].find(each => each.textContent.startsWith('How ')).offsetTop"
    height = min(_HEIGHT_PX, shown.evaluate(end))
    taken = shown.screenshot(clip={"x": 0, "y": 0, "width": _WIDTH_PX, "height": height})
    # All colours would take three times the room.
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(256).save(picture, optimize=True)
    context.close()


if __name__ == "__main__":
    main()
