"""Pages: the same bytes for the same result, every figure that of ``--json``, nothing from outside, small."""

import json
import math
import re
import shutil
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from matplotlib.collections import PolyCollection

import vftsim
from tests.report.conftest import COMMANDS
from vftsim.calibrate.accuracy import Row
from vftsim.calibrate.validated import _measured_charts
from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.files import to_json
from vftsim.labs.ramps import shipped_observations
from vftsim.report.blocks import Answer, Bars, Chart, Note, Point, Series, Table
from vftsim.report.charts import ChartWarning, figure_of, svg_of
from vftsim.report.html import fragment, page
from vftsim.report.pictures import write_figure
from vftsim.spec.suggest import together
from vftsim.stats.estimate import span
from vftsim.study.blocks.printed import beside, page_of

pytestmark = pytest.mark.thorough

LARGEST = 300_000


class Read(HTMLParser):
    """What a page holds: its figures, its links and sources, its texts by tag."""

    def __init__(self, text):
        super().__init__()
        self.figures, self.sources, self.texts, self._open = [], [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self._open.append(tag)
        self.sources += [values[name] for name in ("src", "href") if name in values and tag != "use"]
        if tag == "data":
            self.figures += [float(values[name]) for name in ("value", "data-low", "data-high") if name in values]

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts[self._open[-1]] = self.texts.get(self._open[-1], "") + data


def numbers(data):
    """Every number of plain data."""
    if isinstance(data, dict):
        return {x for value in data.values() for x in numbers(value)}
    if isinstance(data, list):
        return {x for value in data for x in numbers(value)}
    return {float(data)} if isinstance(data, int | float) else set()


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_directory_gives_the_object_that_its_command_had(made, kind):
    result = vftsim.open(made(kind).folder)
    assert result.report() == made(kind).page, "what --report wrote when the result was made"
    assert result.report() == result.report()


def test_a_chart_is_drawn_alike_again(made):
    kinds = {type(block): block for kind in ("run", "decision") for block in vftsim.open(made(kind).folder).blocks()}
    drawn = [block for each, block in kinds.items() if issubclass(each, Chart | Bars)]
    assert len(drawn) == 2
    assert all(svg_of(chart, "c0") == svg_of(chart, "c0") for chart in drawn)


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_page_is_small_and_takes_nothing_from_outside(made, kind):
    text = made(kind).page
    assert len(text.encode()) < LARGEST
    assert Read(text).sources == []
    assert set(re.findall(r"\bhttps?://[^\s\"'<)]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_figure_is_that_of_json(made, kind):
    result = vftsim.open(made(kind).folder)
    known = numbers(json.loads(to_json(result.for_machines())))
    shares = {100.0 * x for x in known}
    figures = Read(made(kind).page).figures
    assert len(figures) > (3 if kind == "pilot" else 5)
    assert [x for x in figures if x not in known and x not in shares and not is_place(x, result)] == []


def is_place(value, result):
    """Whether a number is where a chart has its points: a rank or a share of all crashes."""
    charts = [block for block in result.blocks() if isinstance(block, Chart)]
    steps = [series for chart in charts for series in chart.series if series.style == "steps"]
    points = [point for series in steps for point in series.points]
    return value in {x for point in points for x in (point.x, point.y)}


def test_a_page_reads_from_the_question_to_where_it_comes_from(made):
    text = made("ramp").page
    order = [
        "Capacity by the lab",
        "at least 30",
        'class="warn"',
        'class="cards"',
        "Charts",
        "<svg",
        "Ramps by step",
        "How far the model is known",
        "How to get it again",
        "all values written out",
    ]
    places = [text.index(each) for each in order]
    assert places == sorted(places)


def test_measured_figures_are_crosses_and_uncalibrated_loads_shaded(made):
    assert 'data-part="c0-shade-1"' in made("ramp").page
    assert "measured on the real system" in made("ramp").page
    assert "tiny, first step" in Read(made("run").page).texts["dd"]


def test_two_results_stand_beside_each_other(made, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    made("run")
    words = ["run", "tiny.yaml", "-n", "2", "-j", "1", "-q", "-o", "slower", "--set", "domains.sut.cpu_inflation=1.3"]
    assert main(words) == 0
    assert main(["report", "run", "slower", "-o", "beside.html"]) == 0
    assert "written: beside.html" in capsys.readouterr().err
    text = (place / "beside.html").read_text()
    differing = text[text.index("What differs") :]
    differing = differing[: differing.index("</table>")]
    assert re.findall(r'<th scope="row"[^>]*>([^<]+)', differing) == ["domains.sut.cpu_inflation"]
    assert "run: p50" in text
    assert "slower: p50" in text
    assert text.count("(x to y): lowest and highest replication") == 1, "what brackets mean, once for both"


def test_results_in_folders_of_one_name_are_called_by_their_paths(made, place, monkeypatch):
    made("optimize")
    monkeypatch.chdir(made("failover").folder)
    assert "<title>failover beside optimize: " in vftsim.report([".", "../optimize"])
    for each in ("today", "tomorrow"):
        shutil.copytree(made("failover").folder, place / each / "result")
    monkeypatch.chdir(place)
    text = vftsim.report(["today/result", "tomorrow/result"])
    assert "<title>today/result beside tomorrow/result: failover" in text
    assert "tomorrow/result: outage" in text


def test_models_of_one_name_are_told_apart_and_what_holds_for_all_is_said_once(made):
    text = made("decision").page
    written = re.findall(r"<summary>(The model server.yaml, [^<]*)", text)
    hashes = [re.search(r"sha256 (\w+)", title)[1] for title in written]
    assert len(set(hashes)) == len(hashes) == 2
    assert all(text.count(each) == 2 for each in hashes), "beside what was changed, and above its values"
    assert text.count("<dt>server.yaml: fitted to</dt>") == 1


def test_a_chart_of_several_results_has_one_meaning_on_each_axis_and_says_whose_a_mark_is(made):
    seen, manifest = Series("measured", [Point(10.0, 1.0)], "measured"), vftsim.open(made("ramp").folder).origin
    lines = [Series("simulated", [Point(10.0, 2.0), Point(20.0, 3.0)]), seen]
    one = Chart("CPU", "load (/s)", "CPU (%)", lines, [(80.0, "limit")], (10.0, 15.0), at=[(10.0, "tips")])
    other = replace(one, within=(10.0, 20.0), scale="log", at=[(20.0, "tips")])
    weighed, slower = replace(one, x="weight"), replace(one, series=[replace(seen, points=[Point(10.0, 4.0)])])
    parts = [[one], [other], [weighed]]
    both, alone = (each for each in beside(parts, [manifest] * 3, "abc") if isinstance(each, Chart))
    assert (both.x, [each.name for each in both.series]) == ("load (/s)", ["a: simulated", "b: simulated", "measured"])
    assert not [e for e in beside(parts, [manifest] * 3, "abc") if isinstance(e, Table) and not e.rows], "all are alike"
    assert (alone.x, [each.name for each in alone.series]) == ("weight", ["c: simulated", "measured"])
    assert (both.limits, both.at) == ([(80.0, "limit")], [(10.0, "a: tips"), (20.0, "b: tips")])
    assert (both.within, both.scale) == (None, "log"), "a shade, or a scale, of one alone would be taken for all"
    (unlike,) = (each for each in beside([[one], [slower]], [manifest] * 2, "ab") if isinstance(each, Chart))
    assert [each.name for each in unlike.series] == ["a: simulated", "a: measured", "b: measured"]
    assert unlike.within == one.within


def test_a_page_says_that_a_study_ended_early_and_which_kinds_stand_beside_each_other(made):
    part, other = (vftsim.open(made(kind).folder) for kind in ("run", "failover"))
    part.manifest["state"] = "interrupted"
    pages = [part.report(), part._repr_html_(), page_of([part, other], ["part", "other"])]
    for text in pages:
        assert "it ended before all was done" in text[: text.index("<h2>")]
    assert "part beside other: run and failover" in pages[-1]
    assert "ended before" not in other.report()


def test_everything_is_escaped():
    evil = "<script>alert(1)</script>&\"'"
    chart = Chart(evil, evil, evil, [Series(evil, [Point(1.0, 2.0), Point(2.0, 3.0)])])
    blocks = [Answer(evil, evil, evil), Note(evil, True), chart, Table((evil, evil), [[evil, 1.0]], evil, evil)]
    for text in (page(evil, blocks), fragment(evil, blocks)):
        assert "<script>alert" not in text
        assert "&lt;script&gt;" in text


def test_a_key_at_the_begin_of_a_title_keeps_its_small_letter():
    """ "Workloads.pages.latency.p95 depends on ..." names nothing that can be asked for."""
    texts = ("workloads.pages.latency.p95 depends on one factor.", "an outage of 1.5 s")
    text = page("s", [Answer(each) for each in texts])
    assert [f" data-name>{each}" in text for each in texts] == [True, False]


def test_a_fit_and_a_validation_have_pages(calibrated, validated):
    assert "the data identify 8 of 8 parameters" in calibrated.report()
    found = Read(page("lab", validated.blocks()))
    assert "1 of 2 declared targets are met" in found.texts["h1"]


@pytest.mark.parametrize("kind", COMMANDS)
def test_the_picture_of_a_directory_shows_the_charts_of_the_page(made, kind):
    charts = [block for block in vftsim.open(made(kind).folder).blocks() if isinstance(block, Chart | Bars)]
    assert (made(kind).folder / "charts.png").exists() == bool(charts)
    titles = re.findall(r"<figcaption[^>]*>([^<]+)", made(kind).page)
    assert [unescape(title) for title in titles] == [chart.title for chart in charts]
    if charts:
        assert (made(kind).folder / "charts.png").read_bytes().startswith(b"\x89PNG")
        assert [axes.get_title("left") for axes in figure_of(charts).axes] == [chart.title for chart in charts]


def test_a_picture_has_what_was_measured_the_limits_and_what_is_not_calibrated():
    simulated = Series("simulated", [Point(float(x), x + 1.0, x + 0.5, x + 1.5) for x in range(4)])
    sampled = Series("sampled", [Point(0.0, 1.0, 0.0, 2.0), Point(1.0, math.nan), Point(2.0, 3.0, 2.0, 4.0)], "curve")
    measured = Series("measured", [Point(1.0, 2.5)], "measured")
    chart = Chart("of", "x", "y", [simulated, sampled, measured], [(3.0, "limit 3")], (0.0, 2.0), at=[(1.0, "here")])
    (axes,) = figure_of([chart]).axes
    marks = {line.get_label(): (line.get_marker(), list(line.get_xdata())) for line in axes.get_lines()}
    assert marks["measured"] == ("x", [1.0])
    assert marks["simulated"][1] == [0.0, 1.0, 2.0, 3.0]
    assert [text.get_text() for text in axes.texts] == ["limit 3", "here"]
    (shade,) = [patch for patch in axes.patches if patch.get_gid() == "shade-1"]
    assert shade.get_x() == 2.0
    bands = [each for each in axes.collections if isinstance(each, PolyCollection)]
    assert bands[0].get_paths()[0].get_extents().bounds == (0.0, 0.5, 3.0, 4.0)
    assert len(bands[1].get_paths()) == 2, "a curve has a gap where it is not a number"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["simulated", "sampled", "measured"]
    table = Read(page("t", [chart])).texts
    assert "sampled" not in table["th"], "a curve stands in no table"


def test_axes_have_the_units_of_their_figures_and_no_other(made, validated):
    axes = {"optimize": "workloads.load.latency.p95 (ms)", "predict": "cpu (%)"}
    for kind, axis in axes.items():
        assert axis in {chart.y for chart in vftsim.open(made(kind).folder).blocks() if isinstance(chart, Chart)}
    assert "workloads.load.latency.p95 (ms)</th>" in made("optimize").page
    assert "<dt>replications</dt>" not in made("optimize").page, "each configuration has a number of its own"
    validated.rows[:] = [replace(row, quantity=name) for row in validated.rows for name in ("cpu", "pages/own")]
    charts = [block for block in validated.blocks() if isinstance(block, Chart)]
    assert {chart.y for chart in charts} == {"predicted (%)", "predicted"}


def test_a_validation_draws_cpu_failed_calls_and_delays_as_the_lab_names_them():
    seen = shipped_observations("SIP lab, virtual")
    rows = [Row("virtual", phase, name, "out", x, x, x, x, 5, {}) for (phase, name), x in seen.items()]
    axes = [(chart.y, len(chart.series[1].points)) for chart in _measured_charts(rows)]
    steps = len({phase for phase, name in seen if name == "SES1/p50"})
    assert axes == [("cpu (%)", steps), ("ihs/global (%)", steps), ("SES1/p50 (ms)", steps), ("SES1/p95 (ms)", steps)]


def test_what_is_written_beside_an_axis_is_whole():
    points = [Point(0.0, 0.0), Point(1.0, 0.001), Point(2.0, 20.0)]
    chart = Chart("of", "x", "y", [Series("loss", points)], [(0.0025, "limit 0.0025")], scale="symlog")
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", svg_of(chart, "chart"))
    assert {"0.001", "0.01", "limit 0.0025"} <= set(drawn)


def test_points_at_one_place_stand_in_one_table_each():
    chart = Chart("of", "cost", "loss", [Series("misses", [Point(1.0, 7.0), Point(1.0, 8.0)], "dots")])
    assert Read(page("t", [chart])).figures == [7.0, 8.0]


def test_a_notebook_shows_a_result_and_a_plot_is_drawn_on_its_axes(made):
    from matplotlib.figure import Figure

    result = vftsim.open(made("failover").folder)
    assert result._repr_html_().startswith("<style>")
    axes = Figure().subplots()
    assert result.plot(axes) is axes
    assert axes.get_title("left") == "Outages in their parts, a bar a crash"
    assert result.plot(chart="Outages no longer than this").get_xlabel() == "outage as clients see it (s)"
    assert result.plot(chart="OUTAGES no longer than this").get_title("left") == "Outages no longer than this"
    with pytest.raises(UsageError, match="charts: Outages in their parts, a bar a crash; Outages no"):
        result.plot(chart="none such")


def test_a_title_stands_above_the_names_of_its_lines_and_a_figure_has_room_for_them():
    series = [Series(f"a long name of line {n}", [Point(1.0, n), Point(2.0, n)]) for n in range(12)]
    axes = figure_of([Chart("lines", "x", "y", series)]).axes[0]
    axes.figure.canvas.draw()
    seen = axes.figure.canvas.get_renderer()
    names, lines = (each.get_window_extent(seen) for each in (axes.get_legend(), axes.patch))
    title = axes._left_title.get_window_extent(seen)
    assert lines.y1 < names.y0 < names.y1 <= title.y0 < title.y1 < axes.figure.bbox.y1
    assert lines.height > 2.5 * axes.figure.dpi


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "nowhere", "-o", "x.html"], "'nowhere' is no result of vftsim"),
        (["report", "run", "-o", "x.pdf"], "must end in .html"),
        (["run", "tiny.yaml", "--report", "nowhere/x.html"], "there is no such directory"),
    ],
)
def test_mistakes_are_said_before_the_work(made, place, monkeypatch, capsys, words, message):
    made("run")
    monkeypatch.chdir(place)
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_an_existing_page_is_kept(made, place, monkeypatch, capsys):
    made("run")
    monkeypatch.chdir(place)
    (place / "mine.html").write_text("mine")
    assert main(["report", "run", "-o", "mine.html"]) == 2
    assert (place / "mine.html").read_text() == "mine"
    assert main(["report", "run", "-o", "mine.html", "--force"]) == 0
    assert (place / "mine.html").read_text() == made("run").page


def test_without_the_extra_it_is_named(monkeypatch):
    from vftsim.report import html

    html._template.cache_clear()
    for module in ("jinja2", "markupsafe"):  # the second comes with the first
        monkeypatch.setitem(__import__("sys").modules, module, None)
    for make in (html.check_extra, lambda: html.page("", []), lambda: html.fragment("", [])):
        with pytest.raises(UsageError, match=r"pip install 'vftsim\[report\]'"):
            make()
    html._template.cache_clear()


def test_what_the_font_of_a_file_lacks_is_said_once_and_a_page_has_it(tmp_path):
    """DejaVu Sans has Greek, and no Chinese characters; each of them is in two texts of the figure."""
    series = [Series(name, [Point(1.0, 2.0), Point(2.0, 3.0)], "dots") for name in ("λ", "日本", "本")]
    chart = Chart("日", "λ", "ms", series)
    with pytest.warns(ChartWarning) as text:
        write_figure(figure_of([chart]), tmp_path / "charts.png")
    (one,) = text
    assert set(re.findall(r"[^\x00-\x7f]", str(one.message))) == {"日", "本"}
    assert "日本" in svg_of(replace(chart, x="日本"), "chart")


def ticks_of(axis):
    """Return the numbers that are written at an axis, within what it shows."""
    low, high = sorted(axis.get_view_interval())
    return [place for place in axis.get_majorticklocs() if low <= place <= high]


@pytest.mark.parametrize("most", [150.0, 800.0, 2500.0])
def test_an_axis_of_powers_of_ten_has_numbers_also_where_it_is_short(most):
    chart = Chart("c", "x", "y", [Series("s", [Point(1.0, 110.0), Point(2.0, most)])], scale="log")
    found = ticks_of(figure_of([chart]).axes[0].yaxis)
    assert len(found) >= (1 if most < 200.0 else 2)


def test_bars_begin_at_0_also_where_a_part_begins_just_beyond():
    axes = figure_of([Bars("b", "s", ("before", "then"), [("a", [0.0005, 60.0]), ("b", [0.08, 1.0])])]).axes[0]
    assert ticks_of(axes.xaxis)[0] == 0.0


@pytest.mark.parametrize(
    ("title", "begins"),
    [("net-kvm: run", True), ("calls: 40 /s", True), ("workloads.x", True), ("an outage of 2.5 s: all", False)],
)
def test_a_name_that_begins_a_title_is_written_as_it_is(title, begins):
    assert ('<h1 class="a" data-name>' in page("title", [Answer(title)])) == begins


def test_many_names_make_a_short_title():
    assert [together(list("abcdefg"[:count])) for count in (1, 2, 4, 7)] == [
        "a",
        "a and b",
        "a, b, c and d",
        "a, b, c, d and 3 more",
    ]


@pytest.mark.parametrize(
    ("low", "high", "text"), [(50.0, 51.3, "50.00 to 51.30"), (0.007018, 4.855, "0.0 to 4.9"), (3.0, 3.0, "3")]
)
def test_a_range_has_the_digits_of_its_width(low, high, text):
    assert span(low, high) == text
