#!/bin/sh
# Play the given rates to the proxy (calls a second), 22 s each: ./play.sh 100 200 300
# Proxy on core 1, callers and callee on core 0. Needs kamailio and sip-tester (Debian); writes a folder for each rate.
# WORKERS=8 gives it so many UDP workers (4), QUOTA=20 at most so many percent of its core (as root, in a control group).
set -e
PATH=$PATH:/usr/sbin # where Debian has kamailio
for program in kamailio sipp taskset pgrep timeout awk; do
    command -v "$program" >/dev/null || { echo "play.sh: there is no $program; nothing was played" >&2; exit 1; }
done
here=$(cd "$(dirname "$0")" && pwd)
group=
if [ -n "${QUOTA:-}" ]; then
    if [ -d /sys/fs/cgroup/cpu ]; then
        group=/sys/fs/cgroup/cpu/own-lab
        mkdir -p "$group"
        echo 100000 >"$group/cpu.cfs_period_us"
        echo "$((QUOTA * 1000))" >"$group/cpu.cfs_quota_us"
    else
        group=/sys/fs/cgroup/own-lab
        mkdir -p "$group"
        echo "$((QUOTA * 1000)) 100000" >"$group/cpu.max"
    fi
fi

(
    [ -z "$group" ] || sh -c 'echo $PPID' >"$group/cgroup.procs"
    exec taskset -c 1 kamailio -f "$here/proxy.cfg" -n "${WORKERS:-4}" -DD -E -P "$PWD/kamailio.pid" >kamailio.log 2>&1
) &
proxy=$!
taskset -c 0 sipp -sn uas -i 127.0.0.1 -p 5062 -nostdin >/dev/null 2>&1 &
callee=$!
trap 'kill $proxy $callee' EXIT
sleep 2
[ -s kamailio.pid ] || { echo "play.sh: kamailio did not begin; kamailio.log says why" >&2; exit 1; }
processes=$(pgrep -P "$(cat kamailio.pid)" | sed 's:.*:/proc/&/stat:')

for rate in "$@"; do
    mkdir -p "r$rate"
    (
        cd "r$rate"
        # CPU time of all processes of the proxy, once a second (fields 14 and 15, in ticks of 10 ms).
        while sleep 1; do
            date +%s.%N
            awk '{ticks += $14 + $15} END {print "usage_usec", ticks * 10000}' $processes
        done >cpu.stat.txt &
        sampler=$!
        # An overloaded proxy leaves calls that SIPp waits for beyond its own time-out.
        timeout 60 taskset -c 0 sipp 127.0.0.1:5062 -rsa 127.0.0.1:5060 -sn uac -i 127.0.0.1 -p 5061 \
            -r "$rate" -m $((rate * 22)) -timeout 35 -d 200 -timer_resol 1 -nostdin -default_behaviors all,-abortunexp \
            -trace_stat -fd 1 -stf stat.csv -trace_rtt -rtt_freq 100 >/dev/null 2>&1 || true
        kill $sampler
        mv uac_*_rtt.csv rtt.csv
    )
done
