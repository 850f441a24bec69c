"""The page in a real browser, by keys alone: no message, nothing from elsewhere, nothing that axe-core objects to."""

import threading

import pytest
import uvicorn

from tests.ui.conftest import ASKED
from vftsim.ui.app import build
from vftsim.ui.serve import bound

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'vftsim[browser]' has it")

pytestmark = pytest.mark.thorough

KNOB = "domains.sut.cpu_inflation"
VARIANT = f"{ASKED}&1.{KNOB}=1.2"
MOST_KEYS = 60


@pytest.fixture
def address(page):
    """The page, served on a free port."""
    listening = bound(0)
    server = uvicorn.Server(uvicorn.Config(build(page.desk), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()


def opened(browser, address, scheme="light", width=1280, **more):
    """Return a window of its own at an address, with its messages and the hosts it asked."""
    window = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more).new_page()
    messages, hosts = [], set()
    window.on("console", lambda message: messages.append(message.text))
    window.on("pageerror", lambda error: messages.append(str(error)))
    window.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    window.goto(address)
    return window, messages, hosts


def tab_to(window, selector):
    """Press Tab until something has the focus."""
    for _ in range(MOST_KEYS):
        window.keyboard.press("Tab")
        if window.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached by {MOST_KEYS} keys")


def test_a_question_is_asked_by_keys_alone_and_another_browser_has_its_answer(page, address, browser):
    window, messages, hosts = opened(browser, f"{address}/?{ASKED}&knob={KNOB}")
    tab_to(window, f'[name="1.{KNOB}"]')
    window.keyboard.type("1.2")
    window.keyboard.press("Enter")
    window.wait_for_url(f"**/?{VARIANT}")
    window.wait_for_selector("h1.a", timeout=60_000)
    window.wait_for_selector("text=What differs", timeout=60_000)
    other, *_ = opened(browser, window.url)
    assert other.locator("#answer").inner_html() == window.locator("#answer").inner_html()
    window.reload()
    button = window.locator("#answer .legend button").first
    tab_to(window, "#answer .legend button")
    window.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert (messages, hosts) == ([], {address.removeprefix("http://")})
    window.context.close()
    other.context.close()


@pytest.mark.slow
def test_without_a_script_it_works_too(page, address, browser):
    window, *_ = opened(browser, address, java_script_enabled=False)
    window.check('[value="run"]')
    window.fill('[name="n"]', "1")
    window.select_option('[name="quick"]', "0")
    window.click("text=Simulate")
    page.until("done")
    window.reload()
    assert window.locator("h1.a").count() == 1
    assert window.url == f"{address}/?{ASKED}"
    window.context.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["/", "/studies", "/?ask=run&n=0", f"/?{VARIANT}", "/?model=lab-virtual&ask=protection"]
)
def test_nobody_objects_to_a_page(page, address, browser, query):
    if VARIANT in query:
        page.post("/begin", VARIANT)
        page.until("done", VARIANT)
    for scheme, width in (("light", 1280), ("dark", 360)):
        window, *_ = opened(browser, f"{address}{query}", scheme, width, bypass_csp=True)
        window.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        assert [each["id"] for each in axe.Axe().run(window).response["violations"]] == []
        window.context.close()
