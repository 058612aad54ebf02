#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# How many threads the CPU plugin uses on this machine, under the system's real limits. $CHECKOPS is the program.

setup()
{
    unset HW_THREADS OMP_NUM_THREADS
    export HW_LOG=info HW_CACHE_DIR=off
    [ "$(nproc)" -gt 1 ] || skip "not applicable: one processor"
}

# Makes a control group below this process's own and sets $group; fails if that is not possible here.
make_group()
{
    local path
    path=$(sed -n 's/^[0-9]*:\(.*,\)\?cpu\(,.*\)\?:\(.*\)/\/cpu\3/p; s/^0::\(.*\)/\1/p' /proc/self/cgroup)
    for path in $path; do
        path=/sys/fs/cgroup$path/hw-test-$$
        mkdir "$path" || continue
        if [ -e "$path/cpu.max" ] || [ -e "$path/cpu.cfs_quota_us" ]; then
            group=$path
            return 0
        fi
        rmdir "$path"
    done 2>/dev/null
    return 1
}

# within MICROSECONDS COMMAND...: runs it in the group, limited to this much CPU time in each 100 ms.
within()
{
    if [ -e "$group/cpu.max" ]; then
        echo "$1 100000" >"$group/cpu.max"
    else
        echo 100000 >"$group/cpu.cfs_period_us"
        echo "$1" >"$group/cpu.cfs_quota_us"
    fi
    shift
    (echo "$BASHPID" >"$group/cgroup.procs" && "$@")
}

teardown()
{
    [ -z "${group-}" ] || rmdir "$group" || true
}

@test "as many as the affinity allows" {
    first=$(sed -n 's/^Cpus_allowed_list:\s*\([0-9]*\).*/\1/p' /proc/self/status)
    run taskset -c "$first" "$CHECKOPS" -d cpu -p 'silu(shape=3x5)'
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" = *"1 processors, up to 1 threads"* ]]
}

@test "as many as the quota of the control group is worth" {
    make_group || skip "not applicable: no control group can be made here"
    run within 90000 "$CHECKOPS" -d cpu -p 'silu(shape=512x512)'
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" = *"up to 1 threads (by the cgroup's quota)"* ]]
}
