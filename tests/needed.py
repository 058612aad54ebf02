#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the files of a build directory that some of its tests need, for Ninja.

Usage: needed.py BUILD OPTION...: the options are those of `meson test`, --suite NAME and --no-suite NAME.
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    return json.loads(subprocess.check_output(["meson", "introspect", "--" + what, build]))


def main(build, *options):
    taken = {name for option, name in zip(options[::2], options[1::2]) if option == "--suite"}
    left = {name for option, name in zip(options[::2], options[1::2]) if option == "--no-suite"}
    needed = set()
    for test in introspect(build, "tests"):
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        if suites & (taken or suites) and not suites & left:
            needed.update(test["depends"])
    build = os.path.abspath(build)
    for target in introspect(build, "targets"):
        if target["id"] in needed:
            print(*(os.path.relpath(file, build) for file in target["filename"]), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
