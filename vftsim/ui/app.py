"""The page as an application: an address is a question, answered from the store or by a process of its own.

Only ``POST`` changes anything, and only with the token of this page.  What a request says is checked before anything is
done (:mod:`.question`); files are read by names that are made here alone.
"""

import hmac
from collections.abc import Callable
from dataclasses import asdict
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from vftsim.errors import UsageError, VftsimError
from vftsim.ui.desk import Desk
from vftsim.ui.pages import is_busy, past_page, question_page, script
from vftsim.ui.question import Question
from vftsim.ui.runs import Study

HOSTS = ("127.0.0.1", "localhost")
_LONGEST_ADDRESS, _LONGEST_BODY = 8_000, 32_000
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


async def guarded(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Refuse what is longer than any question, and give every answer the headers that keep it to itself."""
    if len(request.url.query) + len(request.url.path) > _LONGEST_ADDRESS:
        response: Response = PlainTextResponse("this address is too long", 414)
    else:
        response = await call_next(request)
    response.headers.update(_HEADERS)
    return response


def build(desk: Desk) -> Starlette:
    routes = _Routes(desk)
    return Starlette(
        routes=[
            Route("/", routes.index),
            Route("/progress", routes.progress),
            Route("/report", routes.report),
            Route("/studies", routes.past),
            Route("/page.js", routes.script),
            Route("/begin", routes.begin, methods=["POST"]),
            Route("/stop", routes.stop, methods=["POST"]),
        ],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=guarded),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS)),
        ],
    )


class _Routes:
    """What is answered where; all but the reading of a form runs in threads."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def index(self, request: Request) -> Response:
        """A question with its answer, under the one address it has."""
        try:
            question = self._of(request)
        except VftsimError as error:
            return self._shown(self._desk.readable(request.query_params.multi_items()), str(error))
        return _to(question) if request.url.query not in ("", question.address) else self._shown(question)

    def progress(self, request: Request) -> Response:
        """How far the studies of a question are, for the script."""
        try:
            posed = self._desk.posed(self._of(request))
        except VftsimError as error:
            return PlainTextResponse(str(error), 400)
        return JSONResponse({"studies": [asdict(each.state) for each in posed], "is_busy": is_busy(posed)})

    def report(self, request: Request) -> Response:
        """The answer as a page to send to somebody."""
        try:
            text = self._desk.drawn(self._desk.posed(self._of(request)), is_whole=True)
        except VftsimError as error:
            return PlainTextResponse(str(error), 400)
        if not text:
            return PlainTextResponse("nothing of this has been simulated yet", 404)
        return HTMLResponse(text, headers={"content-disposition": 'attachment; filename="vftsim.html"'})

    def past(self, _: Request) -> Response:
        return HTMLResponse(past_page(self._desk))

    def script(self, _: Request) -> Response:
        return Response(script(), media_type="text/javascript")

    async def begin(self, request: Request) -> Response:
        """Have the studies of a question run, or go on."""
        return await run_in_threadpool(self._change, self._desk.runs.begin, await _told(request))

    async def stop(self, request: Request) -> Response:
        """End them; what has finished is kept."""
        return await run_in_threadpool(self._change, self._desk.runs.stop, await _told(request))

    def _change(self, change: Callable[[Study], None], form: list[tuple[str, str]] | None) -> Response:
        if form is None:
            return PlainTextResponse("no form of this page is so long", 413)
        tokens = [value.encode() for name, value in form if name == "token"]
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._desk.token.encode()):
            return PlainTextResponse("the token of this page is missing: open the page again", 403)
        pairs = [pair for pair in form if pair[0] != "token"]
        pairs = parse_qsl(pairs[0][1]) if len(pairs) == 1 and pairs[0][0] == "address" else pairs
        try:
            question = self._desk.read(pairs)
            if not question.ask:
                raise UsageError("choose a question")
            for each in self._desk.posed(question):
                change(each.study)
        except VftsimError as error:
            return self._shown(self._desk.readable(pairs), str(error))
        return _to(question)

    def _of(self, request: Request) -> Question:
        return self._desk.read(request.query_params.multi_items())

    def _shown(self, question: Question, mistake: str = "") -> Response:
        text, status = question_page(self._desk, question, mistake)
        return HTMLResponse(text, status)


async def _told(request: Request) -> list[tuple[str, str]] | None:
    """Return what a form says; None if it is longer than any form of this page."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            return None
    return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)


def _to(question: Question) -> Response:
    return RedirectResponse(f"/?{question.address}", 303)
