"""
Runs a command with the system calls that a SystemCallFilter= of systemd allows; others fail with
EPERM.  The sets are those of systemd-analyze.

    t/tools/filter.py '@system-service landlock_add_rule' COMMAND...
"""

import ctypes
import os
import subprocess
import sys

ALLOW = 0x7fff0000
ERRNO = 0x00050000


def sets():
    """The lines of each set, which may be sets themselves."""
    found = {}
    said = subprocess.run(['systemd-analyze', 'syscall-filter'], check=True, capture_output=True, text=True).stdout

    for line in said.splitlines():
        name = line.strip()

        if line.startswith('@'):
            members = found.setdefault(name, [])
        elif name and not name.startswith('#') and not line.startswith('#'):
            members.append(name)

    return found


def calls(name, of):
    if not name.startswith('@'):
        return [name]

    return [call for member in of[name] for call in calls(member, of)]


def main():
    of = sets()
    names = [call for word in sys.argv[1].split() for call in calls(word, of)]
    library = ctypes.CDLL('libseccomp.so.2')
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ERRNO | 1))

    for name in names:
        number = library.seccomp_syscall_resolve_name(name.encode())

        # Those of other processors have negative numbers here.
        if number >= 0 and library.seccomp_rule_add(context, ALLOW, number, 0) != 0:
            sys.exit(f'{name}: no rule can be made')

    if library.seccomp_load(context) != 0:
        sys.exit('the filter cannot be loaded')

    os.execvp(sys.argv[2], sys.argv[2:])


main()
