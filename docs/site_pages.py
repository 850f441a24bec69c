"""What the site has beyond the pages: toctrees, parts from the registries, a gallery, and the files that pages link to.

A Sphinx extension; ``conf.py`` says how the site is built.
"""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[1]
ROOMS = {
    "": "Guides and reference",
    "protection": "Protection",
    "schedulers": "Schedulers",
    "io-paths": "I/O paths",
    "workloads": "Workloads",
    "sip": "SIP",
    "media": "Media",
    "records": "Records",
    "extend": "Extend it",
}
"""Folders of ``docs``, in the order of the side bar."""

COMMENT = re.compile(r"<!-- .*?-->", re.DOTALL)
PAGE_LINK = re.compile(r"\]\(([\w./-]+)\.md[)#]")
WORKED = re.compile(r"^```sh slow\nvftsim (?P<words>[^`]*?--report (?P<report>\S+)\.html[^`]*?)\n```$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what is done when."""
    app.connect("source-read", read_source)
    app.connect("doctree-read", link_files, priority=100)  # before files to download are gathered
    app.connect("html-collect-pages", file_pages)
    app.connect("build-finished", begin_at_the_index)
    return {"parallel_read_safe": False}


def read_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Add what is made for a page; marks for other programs are taken out."""
    text = COMMENT.sub("", source[0])
    if name == "docs/index":
        text += toctrees(text)
    elif name == "docs/parts":
        text += "".join(parts())
    elif name == "docs/gallery":
        text, count = WORKED.subn(lambda found: found[0] + worked(app, found), text)
        if count != text.count("```sh"):
            raise ExtensionError("gallery: a command asks for no report")
    source[0] = text


def toctrees(index: str) -> str:
    """Return a toctree for each folder: its pages in the order in which the index names them."""
    listed = dict.fromkeys(PAGE_LINK.findall(index))
    found = {caption: [page for page in listed if os.path.dirname(page) == room] for room, caption in ROOMS.items()}
    rooms = [ROOT / "calibration", ROOT / "experiments"]
    others = sorted(page for room in rooms for page in room.rglob("*.md"))
    found["Data and experiments"] = ["/" + str(page.relative_to(ROOT).with_suffix("")) for page in others]
    found["Take part"] = ["/CONTRIBUTING", "/CHANGELOG"]
    return "".join(
        f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{chr(10).join(pages)}\n```\n"
        for caption, pages in found.items()
    )


def parts() -> Iterator[str]:
    """Yield a section for each family of parts, with the parameters of each part."""
    from parameter_tables import table  # noqa: PLC0415 - beside the test that holds the pages' tables against it

    from vftsim.composition.model import ModelSpec  # noqa: F401, PLC0415 - knows every family
    from vftsim.spec.registry import REGISTRIES  # noqa: PLC0415

    told = re.findall(
        r"<!-- parts: .*?<!-- /parts -->", (ROOT / "docs" / "model-files.md").read_text("utf-8"), re.DOTALL
    )
    families = [dict(re.findall(r"\[(\w+)\]\(([\w./-]+\.md)\)", text)) for text in told]
    for registry in REGISTRIES:
        pages = max(families, key=lambda each: len(each.keys() & registry.choices().keys()))
        yield f"\n\n## {registry.family[0].upper()}{registry.family[1:]}s\n"
        for kind, spec in registry.choices().items():
            said = (spec.__doc__ or "").strip().split("\n\n")[0]
            link = f" ([page]({pages[kind]}))" if kind in pages else ""
            yield f"\n### {kind}\n\n{' '.join(said.split())}{link}\n\n{table(spec)}"


def worked(app: Sphinx, found: re.Match[str]) -> str:
    """Run a command of the gallery; return what it prints, and its report."""
    from vftsim.cli.main import main  # noqa: PLC0415 - where there is no gallery, nothing is simulated

    report = f"gallery/{found['report']}.html"
    target = Path(app.outdir) / "docs" / report
    target.parent.mkdir(parents=True, exist_ok=True)
    printed, words = io.StringIO(), shlex.split(found["words"].replace("\\\n", " "))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as errors:
            code = main([*words, "--quiet", "--jobs", "1"])
        if code:
            raise ExtensionError(f"gallery: vftsim {found['words']}: {errors.getvalue()}")
        shutil.copyfile(target.name, target)
    return (
        f'\n\n<p><a href="{report}">The report by itself</a></p>\n'
        f'<iframe src="{report}" title="{found["report"]}" loading="lazy" style="width:100%;height:40em"></iframe>\n'
        f"<details><summary>What the command prints</summary>\n\n```text\n{printed.getvalue().rstrip()}\n```\n\n"
        "</details>\n"
    )


def link_files(app: Sphinx, tree: nodes.document) -> None:
    """Let links to files of the repository that are no pages lead to pages that show them."""
    for node in list(tree.findall(addnodes.download_reference)):
        path = (ROOT / Path(app.env.docname).parent / node["reftarget"]).resolve()
        if node["reftarget"].startswith("/"):
            path = ROOT / node["reftarget"][1:]
        page = f"repository/{path.relative_to(ROOT)}"
        shown_files(app).add(page)
        link = nodes.reference("", "", *node.children, refuri=app.builder.get_relative_uri(app.env.docname, page))
        node.replace_self(link)


def shown_files(app: Sphinx) -> set[str]:
    """Return the files that have a page, of earlier builds too."""
    if not hasattr(app.env, "vftsim_files"):
        app.env.vftsim_files = set()  # type: ignore[attr-defined]
    found: set[str] = app.env.vftsim_files  # type: ignore[attr-defined]
    return found


def file_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that another page links to."""
    for page in sorted(shown_files(app)):
        path = ROOT / page.partition("/")[2]
        text = path.read_text(encoding="utf-8")
        try:
            lexer = get_lexer_for_filename(path.name)
        except ClassNotFound:
            lexer = TextLexer()
        title = str(path.relative_to(ROOT))
        body = f"<h1>{html.escape(title)}</h1>{highlight(text, lexer, HtmlFormatter())}"
        yield page, {"title": title, "body": body}, "page.html"


def begin_at_the_index(app: Sphinx, failure: Exception | None) -> None:
    """Put a page at the top of the site that leads to the index."""
    if failure is None and app.builder.format == "html":
        to = "docs/index.html"
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={to}"><a href="{to}">vftsim</a>\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")
