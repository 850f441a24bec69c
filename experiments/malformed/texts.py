"""What the generator changes: models, a lab, statements; and how long a command may take."""

from tests.study.tiny import tiny

TINY = tiny(steps="{initial: 10 /s, increment: 10 /s, duration: 4 s, transient: 2 s, most: 1}")
MEDIA = """\
name: media
hosts:
  host: {pcpus: 2, scheduler: {kind: credit}, nics: {eth0: {}}}
networks:
  lan: {latency: 10 us}
domains:
  dom0: {vcpus: 1, driver: {placement: any}}
  media:
    interfaces: {eth0: {path: {kind: paravirtual}}}
    applications: {relay: {kind: media_relay, packet_cost: 18 us}}
    protection: {kind: checkpoint, interval: 25 ms}
workloads:
  media: {kind: rtp, to: media, streams: 5}
faults:
  - {kind: pause, domain: media, at: 100 ms, duration: 10 ms}
measure: {warm_up: 100 ms, duration: 200 ms}
"""
FAULTS = """\
- {kind: pause, at: 100 ms, duration: 10 ms, domain: media}
- {kind: pause, at: 50 ms, duration: 5 ms, repeat: {every: 40 ms, most: 3}}
- {kind: primary_crash, at: 150 ms}
- {kind: backup_crash, at: 100 ms}
- {kind: channel_loss, at: 100 ms, duration: 20 ms}
- {kind: channel_degradation, at: 50 ms, duration: 20 ms, rate: 50 %, delay: 1 ms, repeat: {mean: 60 ms, most: 2}}
- {kind: channel_degradation, at: 120 ms, loss: 1 %}
- {kind: guest_error, at: 120 ms}
"""
PROTECTIONS = """\
- {kind: checkpoint, interval: 25 ms}
- {kind: lockstep}
- {kind: micro_checkpoint}
- {kind: coarse_lockstep}
- {kind: event_sync}
- {kind: hypervisor_epoch}
"""
GRIDS = {
    "name: tiny": (
        "domains.sut.applications.proxy.touch_cost=3 ms,4 ms",
        "workloads.calls.hold_time=1 s,2 s",
        "hosts.host.scheduler.kind=credit,cfs",
    ),
    "name: media": ("streams=3,4", "weight=256,512", "domains.media.protection.interval=20 ms,25 ms"),
}
"""Of TINY and of MEDIA, by their first lines."""
SETS = {
    "name: tiny": (
        "domains.sut.applications.proxy.touch_cost=3 ms",
        "workloads.calls.steps.most=2",
        "workloads.calls.registered=40 %",
    ),
    "name: media": (
        "hosts.host.scheduler.kind=cfs",
        "faults=[]",
        "workloads.media.streams=3",
        "measure.duration=100 ms",
    ),
}
LIMITS = ["-q", "-j", "1", "--max-time", "500 ms", "--max-memory", "300 MB"]
DATASET = """\
name: lab
environments: {bare: {description: one}}
phases: {meaning: a load, repeats: again}
tables:
  shares:
    file: shares.csv
    keys: {environment: environment, phase: phase, repeat: repeat}
    metric_column: metric
    columns: {mean_percent: {unit: '%', statistic: mean}}
"""
ROWS = (
    "environment,phase,repeat,metric,mean_percent\nbare,step_1,1,cpu,12\nbare,step_1,2,cpu,13\nbare,step_2,1,cpu,24\n"
)
FIT = """\
name: fit
model: model.yaml
dataset: lab
environment: bare
parameters:
  - {path: domains.sut.applications.proxy.touch_cost, low: 1 ms, high: 8 ms, start: 4 ms, meaning: cost}
in_sample: [step_1]
held_out: [step_2]
most_evaluations: 2
"""
CHECK = """\
name: check
dataset: lab
replications: 2
seed: 3
step_duration: 6 s
transient: 2 s
environments:
  bare: {model: model.yaml, fitted_steps: 1, stop_step: 3}
"""
EDITS = """\
UPDATE about SET value = 'sweep'
DELETE FROM about
UPDATE about SET value = x'ff'
UPDATE studies SET identity = '{'
UPDATE studies SET identity = '[]'
UPDATE studies SET identity = '7'
UPDATE studies SET key = 'x'
UPDATE studies SET generation = 'x'
UPDATE studies SET generation = 9223372036854775807
UPDATE studies SET generation = -1
UPDATE replications SET data = 'text'
UPDATE replications SET data = x''
UPDATE replications SET data = 7
UPDATE replications SET sha256 = ''
UPDATE replications SET sha256 = 7 WHERE replication = 0
UPDATE replications SET replication = replication + 1000000
UPDATE replications SET replication = -replication - 1
UPDATE replications SET replication = 'x' || replication
UPDATE replications SET study = 99
UPDATE replications SET data = zeroblob(1000000)
DELETE FROM replications
DELETE FROM studies
DROP TABLE studies
DROP TABLE replications
DROP TABLE files
DROP TABLE about
UPDATE files SET name = '../../x'
UPDATE files SET name = '/etc/x'
UPDATE files SET name = ''
UPDATE files SET name = x'ff'
UPDATE files SET sha256 = x'00'
PRAGMA user_version = 7
PRAGMA user_version = -1
PRAGMA application_id = 1
CREATE TABLE more (a)
ALTER TABLE replications ADD COLUMN more
CREATE TRIGGER t BEFORE INSERT ON replications BEGIN SELECT RAISE(ABORT, 'no'); END
CREATE VIEW v AS SELECT 1
ALTER TABLE studies RENAME COLUMN key TO name
PRAGMA encoding
UPDATE about SET value = 'run' || char(0) || 'x'
INSERT INTO studies VALUES (77, 1, 'k', '{}')
INSERT INTO about VALUES ('command2', 'x')
""".splitlines()
"""What somebody may do to a database."""
