"""The prefork web server and httperf: what a model names, and what comes out.

Rules: :mod:`vftsim.workloads.web.prefork`, :mod:`~vftsim.workloads.web.client`.
"""

from vftsim.workloads.web import processes, records
from vftsim.workloads.web.client import add_httperf, start_httperf
from vftsim.workloads.web.loads import http_loads
from vftsim.workloads.web.parameters import HttperfSpec, PreforkWebServerSpec, SwapSpec, httperf, prefork_web_server
from vftsim.workloads.web.prefork import add_web_server, start_web_server
from vftsim.workloads.web.processes import prefork_servers
from vftsim.workloads.web.result import WebTest, collapse_rate_per_s, httperf_report, web_server_of, web_test_of

ENTRIES = (start_web_server, start_httperf)
ACTIONS = ()
TABLES = (http_loads, prefork_servers, processes.web_processes, *records.TABLES)

__all__ = [
    "ACTIONS",
    "ENTRIES",
    "TABLES",
    "HttperfSpec",
    "PreforkWebServerSpec",
    "SwapSpec",
    "WebTest",
    "add_httperf",
    "add_web_server",
    "collapse_rate_per_s",
    "httperf",
    "httperf_report",
    "prefork_web_server",
    "start_httperf",
    "start_web_server",
    "web_server_of",
    "web_test_of",
]
