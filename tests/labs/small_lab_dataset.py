"""A dataset of two files that a test may spoil."""

DATASET = """\
name: small
environments: {home: {}, garden: {}}
phases: {meaning: a run of a minute, repeats: the same run again}
tables:
  runs:
    file: runs.csv
    keys: {environment: where, phase: phase, repeat: n}
    columns:
      cpu_percent: {metric: cpu, unit: "%"}
      rate: {metric: load, unit: /min}
      steal: {metric: steal, unit: ratio, optional: true}
  delays:
    file: delays.csv
    format: semicolon
    keys: {phase: phase}
    constant: {environment: home}
    where: {source: wire}
    metric_column: what
    rename: {invite: SES2}
    columns:
      p50_s: {unit: s, statistic: p50}
      sd_s: {unit: s, statistic: sd}
"""
RUNS = """\
where,phase,n,cpu_percent,rate,steal,note
home,step_1,1,20,600,0.01,x
home,step_1,2,22,660,,x
garden,step_1,1,40,600,0,"quoted, with a comma"
"""
DELAYS = """\
phase;source;what;p50_s;sd_s
step_1;wire;invite;0.002;0.0005
step_1;sipp;invite;0.5;0.5
step_1;wire;bye;0.003;0.001
"""


def write(folder, **changed):
    """Write the dataset; ``dataset=(old, new)`` and the like replace text of a file."""
    for name, text in (("dataset", DATASET), ("runs", RUNS), ("delays", DELAYS)):
        old, new = changed.get(name, ("", ""))
        assert old in text
        suffix = "yaml" if name == "dataset" else "csv"
        (folder / f"{name}.{suffix}").write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return folder
