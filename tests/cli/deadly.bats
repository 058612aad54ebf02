#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Plugins that crash, hang, exit or print: the command says which one it was. Meson sets DEADLY_PLUGIN, the plugin of
# deadly.c.

load common

# Puts the plugin into a directory of its own, as the only one.
install_plugin()
{
    [ -n "${DEADLY_PLUGIN-}" ] || skip "not applicable: the plugin that dies was not built"
    directory=$BATS_TEST_TMPDIR/plugins
    mkdir -p "$directory"
    cp "$DEADLY_PLUGIN" "$directory/hw_deadly.so"
    chmod 755 "$BATS_TEST_TMPDIR" "$directory" "$directory/hw_deadly.so"
    # Without it, what this file is about happens where nobody sees it.
    export HW_PLUGIN_PATH=$directory:! HW_PROBE=inproc
}

@test "a crash while a plugin starts names the plugin and the way out" {
    install_plugin
    for words in status devices explain env "bench copy" verify; do
        for death in segv:139:"segmentation fault" fault:139:"segmentation fault" abort:134:abort; do
            IFS=: read -r kind code name <<<"$death"
            # shellcheck disable=SC2086 # several words, on purpose
            DEADLY=open:$kind hw $words
            fails "$code" \
                "^hw ${words%% *}: $name while starting $directory/hw_deadly.so. HW_DISABLE=deadly leaves it out$"
        done
    done
    DEADLY=open:segv HW_DISABLE=deadly hw env
    [ "$status" -eq 1 ] # no device, but alive
}

@test "tried in a process of its own, a plugin that crashes, hangs or exits is a line" {
    install_plugin
    unset HW_PROBE
    export HW_CACHE_DIR=off # what the variable DEADLY changes is another plugin
    for row in segv:"it crashed while it was loaded and started: segmentation fault" abort:": abort" \
        exit:"it ended the process" hang:"it did not come to an end within 1 second (HW_PROBE_TIMEOUT), while it"; do
        DEADLY=open:${row%%:*} HW_PROBE_TIMEOUT=1 hw status
        [ "$status" -eq 1 ]
        [[ $output == *"✗ DEADLY (deadly)"*"Error: "*"${row#*:}"* ]]
    done
    DEADLY=open:print hw status --json
    json "d['recommended'] == 'deadly'"
}

@test "a crash of the file that is verified names it, without advice to leave it out" {
    install_plugin
    DEADLY=open:segv hw verify "$directory/hw_deadly.so"
    fails 139 "^hw verify: segmentation fault while starting $directory/hw_deadly.so$"
}

@test "a crash in an op names the case" {
    install_plugin
    DEADLY=silu:segv hw verify -o silu -q
    [ "$status" -eq 139 ]
    [[ $stderr =~ "hw verify: segmentation fault while computing silu("[^\ ]+")"\ on\ deadly:0$ ]]
}

@test "Ctrl-C names the case that does not end" {
    install_plugin
    DEADLY=silu:hang interrupted 'deadly: hanging' verify -o silu -q
    [ "$status" -eq 254 ] # by SIGINT
    [[ $stderr =~ "hw verify: interrupted while computing silu("[^\ ]+")"\ on\ deadly:0$ ]]
}

@test "a case that does not end in time is a failure, and the last case" {
    install_plugin
    DEADLY=silu:hang hw verify -o silu -q --timeout 1
    [ "$status" -eq 1 ]
    says 'FAILED deadly:0: it did not end within 1 second \(--timeout\)'
    says " +again: hw verify deadly:0 -c 'silu\(.*\)'"
    says ' +all +[0-9]+ passed +1 failed.*'
    [[ $stderr == *"hw verify: deadly:0: the other cases were not run, because this one does not end" ]]
    DEADLY=silu:hang hw verify -o silu -q --timeout 1 --json
    [ "$status" -eq 1 ]
    json "not d['good'] and d['devices'][0]['counts']['failed'] == 1"
    DEADLY=queue:hang hw verify -o silu -q --timeout 1
    [ "$status" -eq 1 ]
    says 'FAILED deadly:0: opening it did not end within 1 second \(--timeout\)'
    hw verify --timeout -1
    fails 2 '--timeout: must be 0 or more'
}

@test "while a file is tried, the terminal shows the seconds, and Ctrl-C says so" {
    install_plugin
    unset HW_PROBE
    export HW_CACHE_DIR=off HW_PROBE_TIMEOUT=3 DEADLY=open:hang
    run on_terminal "$COMMAND verify $directory/hw_deadly.so"
    [[ $output == *"trying $directory/hw_deadly.so: 1 s"* ]]
    run --separate-stderr timeout -s INT 1 "$COMMAND" verify "$directory/hw_deadly.so"
    [ "$stderr" = "hw verify: interrupted while trying $directory/hw_deadly.so" ]
}

@test "a plugin that prints from an op is told so" {
    install_plugin
    DEADLY=silu:print hw verify "$directory/hw_deadly.so" -o silu -q
    says "Warning: .*/hw_deadly.so prints from silu; a plugin must not print, .*"
    [[ $stderr == *"hello from a driver"* ]]
    DEADLY=silu:print hw verify "$directory/hw_deadly.so" -o silu -q --json
    json "d['files'][0]['prints'] == ['silu'] and d['files'][0]['links'] == []"
}

@test "a plugin that calls exit() is an error" {
    install_plugin
    for words in status "verify $directory/hw_deadly.so" "env HW_LOG"; do
        # shellcheck disable=SC2086 # several words, on purpose
        DEADLY=open:exit hw $words
        fails 1 "exit\(\) was called while starting $directory/hw_deadly.so"
    done
    DEADLY=open:exit hw status --json
    json "d['exit_status'] == 1 and 'exit()' in d['error']"
    DEADLY=silu:exit hw verify -o silu -q
    [ "$status" -eq 1 ]
    [[ $stderr == *"exit() was called while computing silu("* ]]
}

@test "a plugin that hangs is named, and Ctrl-C ends the wait" {
    install_plugin
    DEADLY=open:hang HW_PROBE_TIMEOUT=1 interrupted 'Ctrl-C ends this' status
    [ "$status" -eq 254 ] # by SIGINT
    [[ $stderr == *"hw status: still starting $directory/hw_deadly.so after 1 second; Ctrl-C ends this."*\
" HW_DISABLE=deadly leaves it out"* ]]
    [[ $stderr == *"hw status: interrupted while starting $directory/hw_deadly.so. HW_DISABLE=deadly leaves it out"* ]]
}

@test "Ctrl-C at a terminal ends the wait, the first time" {
    install_plugin
    DEADLY=open:hang HW_PROBE_TIMEOUT=1 python3 - "$COMMAND" <<'END'
import os, pty, re, signal, subprocess, sys
child, terminal = pty.fork()
if child == 0:
    # The first process of the terminal's session. It waits: what is unread when a terminal's last process ends can be
    # lost.
    signal.signal(signal.SIGINT, lambda *_: None)
    print("ended:", subprocess.run([sys.argv[1], "status"]).returncode, flush=True)
    signal.pause()

signal.alarm(600)
shown = b""
def read_until(pattern):
    global shown
    while not re.search(pattern, shown):
        shown += os.read(terminal, 4096)

try:
    read_until(b"Ctrl-C ends this")
    os.write(terminal, b"\x03")
    read_until(rb"ended: -?\d+")
finally:
    print(shown)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
assert b"hw status: interrupted while starting " in shown
assert b"ended: %d" % -signal.SIGINT in shown
END
}

@test "a plugin that is slow is waited for" {
    install_plugin
    DEADLY=open:sleep HW_PROBE_TIMEOUT=1 hw status
    [ "$status" -eq 0 ]
    [[ $stderr == *"still starting"* ]]
}

@test "what a plugin prints does not get into the result" {
    install_plugin
    DEADLY=open:print hw status --json
    json "d['recommended'] == 'deadly'"
    [ "$stderr" = "hello from a driver" ]
    DEADLY=silu:print hw verify -o silu -q --json
    json "not d['good']"
    [[ $stderr == *"hello from a driver"* ]]
}

@test "HW_LOG=debug names each plugin before its code runs" {
    install_plugin
    DEADLY=open:segv HW_LOG=debug hw status
    [[ $stderr == *"hw: debug: starting $directory/hw_deadly.so"* ]]
}
