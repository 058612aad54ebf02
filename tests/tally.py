#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns Meson's test log into one line per test: pass, fail or skip, its name, and for a skip the reason.

Usage: tally.py LABEL TESTLOG.json          the lines
       tally.py --failed LABEL TESTLOG.json the failed ones alone, each with the end of what it printed

A test that speaks TAP (bats, cmocka) counts once per case, so that a case skipped inside a passing program is seen;
any other test counts once.
"""
import itertools
import json
import re
import sys

LINES, LINE = 20, 400 # of the output of a case that failed
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


def main(label, path, failed):
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            test = json.loads(line)
            for verdict, name, reason in rows(test):
                full = ": ".join(part for part in (label, test["name"].split(" / ")[-1], name) if part)
                if failed and verdict == "fail":
                    print(full, *reason.splitlines(), sep="\n    ")
                elif not failed:
                    print(verdict, full, (reason or "no reason given") if verdict == "skip" else "", sep="\t")


if __name__ == "__main__":
    main(*sys.argv[-2:], failed="--failed" in sys.argv)
