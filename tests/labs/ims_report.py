"""The report of the SIP lab's virtual environment, put together again from the tables of the record."""

import csv

from vftsim.spec import shipped_dir

DATA = shipped_dir("calibration") / "sip-lab" / "data"
STATISTICS = {
    "mean": "Mean",
    "sd": "Standard Deviation",
    "min": "Minimum",
    "max": "Maximum",
    "p50": "Percentile 50",
    "p90": "Percentile 90",
    "p95": "Percentile 95",
    "p99": "Percentile 99",
}
SUMMARY = {
    "Effective Load": "effective_saps",
    "CPU host": "cpu_percent",
    "Memory host": "memory_mb",
    "global IHS %": "ihs_global_percent",
    **{f"Ratio {s} %": f"ratio_{s}_percent" for s in ("ims_rereg", "ims_reg", "ims_uac", "ims_dereg", "ims_msgc")},
    **{f"IHS {s} %": f"ihs_{s}_percent" for s in ("ims_rereg", "ims_reg", "ims_uac", "ims_dereg", "ims_msgc")},
}


def rows(name, **where):
    with (DATA / f"{name}.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[key] == cell for key, cell in where.items())]


def tables():
    """Yield heading and rows of each table, in the order and with the headings of the report."""
    steps = rows("sip_steps", environment="virtual")
    names = ["Pre-registration", *(f"Step {row['step_index']}" for row in steps[1:])]
    summary = [["", *names], ["Requested load", *(row["requested_saps"] for row in steps)]]
    yield "Summary", summary + [[label, *(row[column] for row in steps)] for label, column in SUMMARY.items()]
    yield "2 SUT CPU %", by_step("CPU host", rows("sip_cpu_virtual"), "percent", ("mean", "sd", "min", "max"))
    for number, (scenario, heading) in enumerate(
        (("all", "all scenarios"), ("ims_uac", "ims\\_uac"), ("ims_reg", "ims\\_reg : Scenario retransmissions"))
    ):
        found = rows("sip_retransmissions_virtual", scenario=scenario)
        yield f"7.{number} {heading}", by_step("RETRANSMIT", found, "per_s", STATISTICS)
    delays = {}
    for row in rows("sip_latency_virtual"):
        delays.setdefault((row["metric"], row["scenario"]), []).append(row)
    for (metric, scenario), found in delays.items():
        heading = (
            f"ims\\_{scenario[4:]} : {metric}"
            if scenario in ("ims_reg", "ims_dereg", "ims_rereg")
            else f"{metric}: a delay"
        )
        yield f"9.1 {heading}", by_step(f"{metric} (msec)", found, "ms", STATISTICS)


def by_step(title, found, unit, statistics):
    head = [["", "", title], ["Step", "Requested Load", *(STATISTICS[s] for s in statistics)]]
    return head + [
        [
            "Pre-reg" if row["step_index"] == "0" else row["step_index"],
            row["requested_saps"],
            *(row[f"{s}_{unit}"] for s in statistics),
        ]
        for row in found
    ]


def as_text():
    parts = ["Test Report made by IMS Bench SIPp", ""]
    for heading, cells in tables():
        parts += [f"## {heading}", "", "This graph represents something.", ""]
        parts += ["\t".join(row) for row in cells] + [""]
    return "\n".join(parts)


def as_html():
    parts = ["<html><body><h1>Test Report made by IMS Bench SIPp</h1>"]
    for heading, cells in tables():
        parts.append(f"<h2>{heading.replace(chr(92), '')}</h2><table border=1>")
        for row in cells:
            kept = [cell for cell in row if cell] if row[0] == "" and len(row) == 3 else row
            parts.append("<tr>" + "".join(f"<td><b>{cell}</b></td>" for cell in kept) + "</tr>")
        parts.append("</table>")
    return "\n".join([*parts, "</body></html>"])
