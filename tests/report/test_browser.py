"""Pages in a real browser: no message, no request, nothing wider than the window, nothing that axe-core objects to."""

import pytest

import vftsim
from tests.report.conftest import COMMANDS
from vftsim.report.blocks import Bars, Chart, Point, Series
from vftsim.report.html import page as page_with

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'vftsim[browser]' has it")

pytestmark = pytest.mark.thorough

LONGEST_MS = 300.0
CUT_OFF = """[...document.querySelectorAll('svg text')].filter(text => {
    const [inner, outer] = [text, text.closest('svg')].map(each => each.getBoundingClientRect());
    return inner.left < outer.left - 1 || inner.right > outer.right + 1;
}).map(text => text.textContent)"""
SCROLLED = """[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth)
    .map(each => each.textContent)"""
OTHERS = [kind for kind in COMMANDS if kind != "run"]


def seen(browser, file, scheme, width):
    """Open a page with everything unfolded; return it with its messages and requests."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page, messages, requests = context.new_page(), [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    return page, messages, requests


@pytest.mark.parametrize(
    "kind", ["run", *(pytest.param(kind, marks=pytest.mark.slow) for kind in (*OTHERS, "calibrate"))]
)
def test_nobody_objects_to_a_page(browser, made, calibrated, tmp_path, kind):
    file = tmp_path / "page.html"
    file.write_text(calibrated.report() if kind == "calibrate" else vftsim.open(made(kind).folder).report())
    for scheme, width in (("light", 1280), ("dark", 360)):
        page, messages, requests = seen(browser, file, scheme, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT_OFF) == []
        assert width > 360 or page.evaluate(SCROLLED) == []
        found = [each["id"] for each in axe.Axe().run(page).response["violations"]]
        assert (messages, requests[1:], found) == ([], [], [])
        page.context.close()


def test_lines_switch_off_and_points_say_what_they_are(browser, made, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(made("run").page)
    page, _, _ = seen(browser, file, "light", 1280)
    button = page.locator("figure:has-text('call set-up') button").first
    part = page.locator(f"[data-part='{button.get_attribute('data-switch')}']").first
    button.click()
    assert "off" in part.get_attribute("class")
    button.click()
    assert "off" not in part.get_attribute("class")
    page.evaluate("""() => document.querySelector('[data-part$="-series-0"] use + use')
        .dispatchEvent(new MouseEvent('mousemove', {clientX: 200, clientY: 200}))""")
    assert page.locator("#tip").inner_text().startswith("attempts begun, 20: ")
    page.context.close()


def test_paper_has_whole_tables_dark_ink_and_a_mark_to_each_name(browser, made, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(made("run").page)
    page, _, _ = seen(browser, file, "dark", 700)  # A4 between the margins
    page.emulate_media(media="print", color_scheme="dark")
    cut = "[...document.querySelectorAll('.scroll, pre')].filter(e => getComputedStyle(e).overflowY !== 'visible')"
    assert page.evaluate(f"{cut}.map(e => e.tagName)") == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    ink = page.evaluate("getComputedStyle(document.querySelector('td')).color")
    assert sum(map(int, ink[4:-1].split(","))) < 3 * 64, "a browser prints no dark ground, so light ink is not seen"
    marks = page.locator("figure:has-text('delays, p95') .legend i")
    keys = [(each.get_attribute("data-mark"), each.get_attribute("style")) for each in marks.all()]
    assert len(set(keys)) == len(keys) > 8, "there are eight colours"
    assert all(mark for mark, _ in keys), "a ground is not printed, a character is"
    page.context.close()


def test_a_page_is_there_at_once(browser, made, tmp_path):
    """The quickest of three: others use the machine too."""
    file = tmp_path / "page.html"
    file.write_text(made("run").page)
    times = []
    for _ in range(3):
        page, _, _ = seen(browser, file, "light", 1280)
        times.append(page.evaluate("performance.timing.loadEventEnd - performance.timing.navigationStart"))
        page.context.close()
    assert min(times) < LONGEST_MS


def test_a_long_name_is_not_wider_than_a_telephone(browser, tmp_path):
    name = "a_name_" * 12
    model, file = tmp_path / "long.yaml", tmp_path / "page.html"
    model.write_text(f"""
format: 2
name: long
hosts: {{front: {{}}}}
networks: {{lan: {{}}}}
domains:
  {name}: {{interfaces: {{eth0: {{path: {{kind: native}}}}}}, applications: {{pages: {{kind: service, demand: 1 ms}}}}}}
workloads: {{{name}: {{kind: open_requests, to: {name}, rate: 100 /s}}}}
measure: {{warm_up: 0 s, duration: 1 s}}
""")
    file.write_text(vftsim.run(model, replications=2).report())
    page, _, _ = seen(browser, file, "light", 360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.context.close()


def test_a_long_name_of_an_axis_is_whole(browser, tmp_path):
    """Below the rows it has the width of their names, too."""
    rows = [Point(0.0, 4.0), Point(1.0, 5.0)]
    names = ["domains.server.applications.pages", "domains.database.applications.rows"]
    figures = [
        Chart("of", "", "request to answer, at the service mean (ms)", [Series("", rows, "dots")], names=names),
        Bars("of", "what clients wait for in an outage, mean (s)", ["part"], [(name, [1.0]) for name in names]),
    ]
    file = tmp_path / "page.html"
    file.write_text(page_with("names", figures))
    window, _, _ = seen(browser, file, "light", 768)
    assert window.locator("svg text").count() > 6
    assert window.evaluate(CUT_OFF) == []
    window.context.close()
