"""A lab of two CPU-bound guests on one core, whose shares go by their weights: measured by hand."""

SPIN = """\
format: 2
name: two-guests
hosts: {host: {pcpus: 1, scheduler: {kind: credit2}}}
domains:
  small: {weight: 100, applications: {job: {kind: cpu_bound, duty: 100 %}}}
  large: {weight: 300, applications: {job: {kind: cpu_bound, duty: 100 %}}}
measure: {warm_up: 500 ms, duration: 2 s}
"""
DATASET = """\
name: weights
environments: {bare: {}, capped: {}}
phases: {meaning: a run of a minute, repeats: again}
tables:
  cpu:
    file: cpu.csv
    keys: {environment: where, phase: run, repeat: n}
    columns:
      small: {metric: cpu.small, unit: "%"}
      large: {metric: cpu.large, unit: "%"}
"""
CPU = "where,run,n,small,large\nbare,even,1,50,50\nbare,even,2,52,48\nbare,odd,1,20,80\ncapped,even,1,30,70\n"
RUNS = """\
environments:
  bare: []
  capped: [domains.small.cap=30 %]
phases:
  even: [domains.large.weight=300]
  odd: [domains.large.weight=1200]
"""
FIT = f"""\
name: weights
model: two-guests.yaml
dataset: .
{RUNS}parameters:
  - {{path: domains.small.weight, low: 60, high: 900, start: 100, meaning: weight of the small guest}}
in_sample: [bare/even, bare/odd]
quantities: [cpu.small]
most_evaluations: 8
"""
VALIDATION = f"""\
name: weights
model: two-guests.yaml
dataset: .
overrides: [domains.small.weight=300]
{RUNS}fitted: [bare/even]
predicted: [bare/odd, capped/even]
quantities: ["cpu.*"]
targets:
  - {{quantities: [cpu.small], points: 3}}
replications: 2
"""
