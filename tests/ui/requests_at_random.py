"""Requests that nobody would send: near to right ones and far from them.  By hand: COUNT of them, and what came back.

``python -m tests.ui.requests_at_random COUNT``
"""

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from starlette.testclient import TestClient

from vftsim.study.runs.model import load_model, shipped_models
from vftsim.ui.app import build
from vftsim.ui.desk import Desk
from vftsim.ui.knobs import knobs_of

SECRETS = ("secret-of-mine", "root:x:0")
_PATHS = ["/"] * 6 + [
    "/progress",
    "/report",
    "/studies",
    "/page.js",
    "/begin",
    "/stop",
    "/../secret.yaml",
    "//etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/page.html.j2",
    "/store",
    "/page.js/..",
    "/\u0663",
]
_NAMES = ["model", "ask", "n", "seed", "quick", "protection", "objective", "knob", "token", "address", "4.a", "x", ""]
_VALUES = [
    "",
    "0",
    "1",
    "3",
    "50",
    "51",
    "-1",
    "1e9",
    "999999999",
    "9" * 30,
    "٣",
    "run",
    "capacity",
    "failover",
    "protection",
    "lab-virtual",
    "secret.yaml",
    "../secret.yaml",
    "/etc/passwd",
    "none,lockstep",
    "all",
    "null",
    "[0, 1]",
    "{a: 1}",
    "&a",
    "*a",
    "!!python/object:os.system",
    "$(id)",
    "; id",
    "--help",
    "-o /tmp/x",
    "4 us",
    "true",
    "outage <= 3 s",
    "<script>",
    "'\"",
    "\x00",
    "\r\nx: y",
    "\ud7ff",
    "ü" * 40,
    "x" * 120,
    "nan",
    "inf",
    "native",
    "checkpoint",
    "credit",
    "10 %",
    ".5",
    "1_000",
    "0x10",
    "1:30",
]


def request(client, draw, keys):
    """Send one request at random; return status and body."""
    path, method = draw.choice(_PATHS), draw.choice(["GET"] * 6 + ["POST"] * 3 + ["PUT", "HEAD"])
    pairs = [
        (f"{draw.randint(0, 4)}.{draw.choice(keys)}" if draw.random() < 0.5 else draw.choice(_NAMES), value(draw))
        for _ in range(draw.choice([0, 1, 1, 2, 3, 5, 8]))
    ]
    text = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)
    if draw.random() < 0.1:
        text = "".join(chr(draw.choice([*range(33, 127), 37, 38, 61])) for _ in range(draw.randint(0, 300)))
    if draw.random() < 0.03:
        text = text + "&" + "y" * 9000
    headers = {"host": draw.choice(["evil.example", ""])} if draw.random() < 0.02 else {}
    body = text.encode() if method in ("POST", "PUT") else None
    query = "" if body else f"?{text.replace('#', '%23')}"
    answer = client.request(method, f"{path}{query}", content=body, headers=headers, follow_redirects=False)
    return answer.status_code, answer.text


def value(draw):
    """Return something that a user might say, or might not."""
    if draw.random() < 0.8:
        return draw.choice(_VALUES)
    return "".join(
        chr(draw.choice([draw.randint(1, 127), draw.randint(1, 0xD7FF)])) for _ in range(draw.randint(1, 20))
    )


def run(client, count, draw):
    """Send many; return how often each status came back."""
    keys, seen = list(knobs_of(load_model("lab-virtual").spec)), Counter()
    for _ in range(count):
        status, text = request(client, draw, keys)
        assert not any(secret in text for secret in SECRETS)
        seen[status] += 1
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "store"
        Path(place, "secret.yaml").write_text("name: secret-of-mine\n", encoding="utf-8")
        desk = Desk({name: name for name in shipped_models()}, store)
        begin = time.process_time()
        found = run(TestClient(build(desk), base_url="http://127.0.0.1"), int(sys.argv[1]), random.Random(2))
        desk.runs.close()
        print(dict(sorted(found.items())), f"{time.process_time() - begin:.0f} CPU s")
        print("begun:", [path.name for path in store.iterdir()])
