#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs each fuzz target that build.sh has put beside this file for a time, and prints its result. Its findings are in
# found/, its new inputs in grown/: both are kept, and the next run continues with them.
#
#   run.sh SECONDS [JOBS [TARGET...]]      JOBS at once, 1 by default; exit status 1 if anything was found
set -u

if [ $# -lt 1 ]; then
    sed -n 's/^#   //p' "$0" >&2
    exit 2
fi
seconds=$1 jobs=${2:-1}
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")" || exit 2

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for program in fuzz_*; do
        targets+=("${program#fuzz_}")
    done
fi

fuzz()
{
    local target=$1 log=logs/$1.log verdict=clean count
    mkdir -p "grown/$target" "found/$target"
    "./fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
        -artifact_prefix="found/$target/" "grown/$target" "corpus/$target" >"$log" 2>&1 || verdict="STOPPED, see $log"
    count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf '%-12s %12s executions  %s\n' "$target" "${count:-?}" "$verdict" | tee "logs/$target.result"
}

mkdir -p logs
rm -f logs/*.result
for target in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
        wait -n
    done
    fuzz "$target" &
done
wait
! grep -q STOPPED logs/*.result
