#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns Meson's test log into one line per test: pass, fail or skip, its name, and for a skip the reason.

Usage: tally.py LABEL TESTLOG.json           the lines
       tally.py --failed LABEL TESTLOG.json  the failed ones alone, each with the end of what it printed
       tally.py --times STAGES TESTLOG.json...  where the time went: by stage, by group of tests, the slowest tests

A test that speaks TAP (bats, cmocka) counts once per case, so that a case skipped inside a passing program is seen;
any other test counts once.
"""
import itertools
import json
import re
import sys

LINES, LINE = 20, 400 # of the output of a case that failed
SLOWEST = 20
CASE = re.compile(r"^(ok|not ok)\b\s*\d*\s*(?:-\s*)?(.*?)\s*(?:#\s*(skip|todo)\S*\s*(.*))?$", re.IGNORECASE)


def cases(stdout):
    """The (verdict, name, reason) rows of a TAP stream; none if it is not one."""
    lines = stdout.splitlines()
    if not any(re.match(r"^1\.\.\d+", line) for line in lines):
        return
    for index, line in enumerate(lines):
        match = CASE.match(line)
        if match:
            ok, name, directive, reason = match.groups()
            if directive and directive.lower() == "skip":
                yield "skip", name, reason
            elif ok.lower() == "ok":
                yield "pass", name, ""
            else: # what it printed follows
                yield "fail", name, end(itertools.takewhile(lambda text: not CASE.match(text), lines[index + 1:]))


def end(lines):
    return "\n".join(line[:LINE] for line in list(lines)[-LINES:])


def rows(test):
    """The (verdict, name, reason) of a test's cases; of one that failed, the end of what it printed."""
    result = test["result"]
    found = list(cases(test.get("stdout", "")))
    if result == "SKIP" and not found:
        last = (test.get("stdout", "") + test.get("stderr", "")).strip().splitlines()
        found = [("skip", "", last[-1].strip() if last else "no reason given")]
    elif result in ("OK", "EXPECTEDFAIL", "SKIP"):
        found = found or [("pass", "", "")]
    elif not any(verdict == "fail" for verdict, _, _ in found):
        found.append(("fail", result.lower(), end((test.get("stdout", "") + test.get("stderr", "")).splitlines())))
    return found


def tests(path):
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            yield json.loads(line)


def short(test):
    return test["name"].split(" / ")[-1]


def tally(label, path, failed):
    for test in tests(path):
        for verdict, name, reason in rows(test):
            full = ": ".join(part for part in (label, short(test), name) if part)
            if failed and verdict == "fail":
                print(full, *reason.splitlines(), sep="\n    ")
            elif not failed:
                print(verdict, full, (reason or "no reason given") if verdict == "skip" else "", sep="\t")


def stage_times(path):
    """Of a file with the lines STAGE ELAPSED USER SYSTEM, all in seconds."""
    print(f"  {'stage':12}{'elapsed':>9}{'processors':>12}")
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            stage, elapsed, user, system = line.split()
            print(f"  {stage:12}{float(elapsed):7.0f} s{float(user) + float(system):10.0f} s")


def test_times(paths):
    """Of the tests in Meson's logs; a test belongs to the group that its name begins with, in the build of its log."""
    durations = [(test["duration"], path.split("/")[-3], short(test)) for path in paths for test in tests(path)]
    groups = {}
    for seconds, build, name in durations:
        groups.setdefault((build, name.split()[0]), []).append(seconds)
    print(f"\n  {'tests of':24}{'programs':>10}{'elapsed':>9}")
    for (build, group), each in sorted(groups.items(), key=lambda item: -sum(item[1])):
        print(f"  {build + ': ' + group:24}{len(each):10}{sum(each):7.0f} s")
    print(f"\n  the slowest {min(SLOWEST, len(durations))} of {len(durations)} programs")
    for seconds, build, name in sorted(durations, reverse=True)[:SLOWEST]:
        print(f"{seconds:9.1f} s  {build}: {name}")


def main(arguments):
    if arguments[0] == "--times":
        stage_times(arguments[1])
        test_times(arguments[2:])
    else:
        tally(*arguments[-2:], failed=arguments[0] == "--failed")


if __name__ == "__main__":
    main(sys.argv[1:])
