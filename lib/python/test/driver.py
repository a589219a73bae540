# SPDX-License-Identifier: Apache-2.0
"""Answers questions about archives, for the tests that compare this reader with the one in Go. lib/c/test/driver.c describes
questions and answers; those about memory and about btfa_find are only for others."""

import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import btfa

STATUSES = {btfa.NotArchive: -1, btfa.UnknownVersion: -2, btfa.Damaged: -3, btfa.NoKernel: -4, btfa.NoHost: -6, btfa.NotCovered: -7}
RULES = ("none", "exact", "release", "neighbour", "derived")


def get_bytes(n=None):
    data = sys.stdin.buffer.read(get_number() if n is None else n)
    if n is not None and len(data) < n:
        sys.exit(0)
    return data


def get_number():
    return struct.unpack("<I", get_bytes(4))[0]


def get_text():
    return get_bytes().decode(errors="surrogateescape")


def get_key():
    return btfa.Key(get_text(), get_text(), get_text(), get_text())


def put(*values):
    for v in values:
        if isinstance(v, tuple):
            put(*v)
        elif isinstance(v, int):
            sys.stdout.buffer.write(struct.pack("<i", v))
        else:
            v = v.encode(errors="surrogateescape") if isinstance(v, str) else v
            sys.stdout.buffer.write(struct.pack("<I", len(v)) + v)


def attempt(function, *args):
    """Puts a status and an error. Returns the result, or None."""
    try:
        result = function(*args)
    except btfa.Error as e:
        put(STATUSES[type(e)], str(e))
        return None
    put(0, "")
    return result


def answer_open():
    archive = attempt(btfa.Archive, get_bytes())
    put(0)
    if archive is None:
        return None
    keys = archive.keys()
    put(0, len(keys))
    for key in keys:
        put(key)
        try:
            btf = archive.btf(key)
        except btfa.Damaged as e:
            put(-3, str(e))
        else:
            put(0, btf)
    put(0)
    return archive


def main():
    archive = None
    while True:
        question = get_number()
        if question == 0:
            archive = answer_open()
        elif question == 1:
            key = get_key()
            like = tuple((get_text(), get_text()) for _ in range(get_number()))
            m = archive.lookup(btfa.System(key, like), get_number())
            keys = [key or btfa.Key() for key in (m.want, m.key, m.below, m.above)]
            put(RULES.index(m.rule), *keys, int(m.same_btf), m.reason)
        elif question == 2:
            root, path, release, arch = get_text(), get_text(), get_text(), get_text()
            system = attempt(btfa.host, root or "/", path or None, release, arch) or btfa.System(btfa.Key())
            put(system.key, len(system.like), system.like)
        elif question == 4:
            put(get_key().canonical())
        elif question == 6:
            attempt(archive.covers, get_bytes(), get_text())
        else:
            sys.exit(f"question {question}")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
