#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""calls.py DEF HEADER SOURCE [OPTIONAL]...: the outside of a stand-in, from the list of functions that a plugin calls.

HEADER numbers the functions (CALL_<name>) and declares what the stand-in has to define: fake_<name>() for each, and
standin_enter(). SOURCE exports each function under the vendor's name: it asks standin_enter() whether this call fails,
and if not, calls fake_<name>(). A function that waits or gives something back does so even if the call fails, as
drivers do: their error is one of earlier work.
OPTIONAL functions are left out unless they are named: the plugin has to do without them."""
import re
import sys

ROW = re.compile(r'^(REQUIRED|OPTIONAL)\((.*?), (\w+), \((.*?)\), "(\w+)[|\w]*"\)$')
DONE_ANYWAY = re.compile(r'(^|_)(free|destroy|unload|release|unregister|pop)(_|$)'
                         r'|^finish$|^((stream|event|context)_)?wait$')


def rows(path, optional):
    text = re.sub(r'/\*.*?\*/', '', open(path).read(), flags=re.S)
    statements = re.sub(r'\n +', ' ', text).splitlines()
    found = [ROW.match(line) for line in statements if line.startswith(('REQUIRED(', 'OPTIONAL('))]
    if not found or None in found:
        sys.exit(f'{path}: a row has an unknown form')
    return [match.groups()[1:] for match in found if match[1] == 'REQUIRED' or match[3] in optional]


def names_of(arguments):
    """"int a, void (*fn)(int b)" names a and fn."""
    flat = re.sub(r'\(\*(\w+)\)\([^()]*\)', r'\1', arguments)
    return [] if flat == 'void' else [re.search(r'(\w+)$', part).group(1) for part in flat.split(', ')]


def wrapper(result, name, arguments, exported):
    given = ', '.join(names_of(arguments))
    lines = [f'{result} {exported}({arguments});', f'{result} {exported}({arguments})', '{',
             f'    const int failure = standin_enter(CALL_{name});']
    if result != 'int':
        lines += ['    if (failure) {', '        *error = failure;', '        return NULL;', '    }',
                  f'    return fake_{name}({given});']
    elif DONE_ANYWAY.search(name):
        lines += [f'    const int result = fake_{name}({given});', '    return failure ? failure : result;']
    else:
        lines += [f'    return failure ? failure : fake_{name}({given});']
    return '\n'.join(lines + ['}', ''])


def main(definition, header, source, *optional):
    listed = rows(definition, optional)
    structs = sorted({found for _, _, arguments, _ in listed for found in re.findall(r'struct \w+', arguments)})
    with open(header, 'w') as out:
        print('#include <stddef.h>', '#include <stdint.h>', *(f'{struct};' for struct in structs), sep='\n', file=out)
        print('enum {', *(f'    CALL_{name},' for _, name, _, _ in listed), '    CALL_COUNT', '};', sep='\n', file=out)
        print('int standin_enter(int call);', file=out)
        for result, name, arguments, _ in listed:
            print(f'{result} fake_{name}({arguments});', file=out)
    with open(source, 'w') as out:
        print('#include "fake.h"', file=out)
        print('const char *const faults_names[] = {', *(f'    "{name}",' for _, name, _, _ in listed), '    NULL', '};',
              sep='\n', file=out)
        for row in listed:
            print(wrapper(*row), file=out)


main(*sys.argv[1:])
