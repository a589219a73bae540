# SPDX-License-Identifier: Apache-2.0
"""A second reader of .btfa files, written from docs/archive-format.md alone.

usage: second_reader.py ARCHIVE DIR DICTIONARY

DICTIONARY is internal/btfa/dictionary. It writes the BTF of every kernel to DIR/ID/VERSION_ID/ARCH/RELEASE.btf and prints how the file was made, for a test to compare. It trusts the
file: a reader for other purposes has to check what the page says.
"""
import os
import struct
import subprocess
import sys

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR = range(1, 15)
FLOAT, TYPE_TAG, ENUM64 = 16, 18, 19
COMPOSITE, ENUMS = (STRUCT, UNION), (ENUM, ENUM64)
LINKS = (PTR, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, VAR, TYPE_TAG)
REFERENCES = {ARRAY: 2, FUNC_PROTO: 1} | {kind: 1 for kind in LINKS}


class Stream:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            c = self.data[self.at]
            self.at += 1
            value |= (c & 127) << shift
            shift += 7
            if c < 128:
                return value

    def text(self):
        end = self.data.index(0, self.at)
        text, self.at = self.data[self.at:end], end + 1
        return text

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def left(self):
        return len(self.data) - self.at


def unzigzag(v):
    return (v >> 1) ^ -(v & 1)


def streams(path, dictionary):
    with open(path, "rb") as f:
        data = f.read()
    assert data[:5] == b"btfa\x01"
    payload = subprocess.run(["zstd", "-dc", "-D", dictionary], input=data[5:], stdout=subprocess.PIPE, check=True).stdout
    head = Stream(payload)
    lengths = [head.number() for _ in range(head.number())]
    at, out = head.at, []
    for n in lengths:
        out.append(Stream(payload[at:at + n]))
        at += n
    assert at == len(payload)
    return out


def printable(name):
    """The name for people: what a terminal would not print is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name.decode(errors="backslashreplace"))


def print_meta(s, fingerprints):
    print(printable(s.text()))
    parts = s.number()
    print(f"shard {s.number() if parts else 0}/{parts}")
    size = s.number()
    for _ in range(s.number()):
        arch = printable(s.text())
        print(f'relocations "{arch}" {s.bytes(size).hex()}')
    objects, size = [], s.number()
    for _ in range(s.number()):
        machines = " ".join(printable(s.text()) for _ in range(s.number()))
        objects += [(s.text(), machines) for _ in range(s.number())]
    objects = [(name, s.bytes(size).hex(), machines) for name, machines in objects]
    size = fingerprints.number() if fingerprints.left() else 0
    objects = [o + (fingerprints.bytes(size).hex(),) for o in objects]
    for name, sha256, machines, fingerprint in sorted(objects, key=lambda o: o[0]):
        print(f'object "{printable(name)}" {sha256} "{machines}" {fingerprint}')
    assert not s.left() and not fingerprints.left()


class Pool:
    def __init__(self, names, shapes, parents, numbers):
        texts = []
        while names.left():
            texts.append(names.text())
        n = parents.number()
        self.names = []  # of slots
        for t in texts[:n]:
            self.names.append(t or (self.names[-1] if self.names else b""))
        self.fields, self.used = texts[n:], 0
        self.shapes, self.numbers = shapes, numbers
        self.slots = []
        for _ in range(n):
            variants = []
            for i in range(parents.number()):
                back = parents.number()
                shape, base = variants[i - back] if back else (self.shape(), None)
                variants.append((shape, self.read_numbers(shape, base)))
            self.slots.append(variants)
        assert not shapes.left() and not parents.left() and not numbers.left()

    def shape(self):
        s, nodes, known = self.shapes, [], 1

        def ref():
            nonlocal known
            v = s.number()
            if v == 0:
                return None
            if v == 1:
                known += 1
                return "node", known - 1
            return ("slot" if v & 1 else "node"), (v - 2) // 2

        while len(nodes) < known:
            head = s.number()
            kind, flag, count, refs, fields = head >> 1, head & 1, 0, [], []
            if kind in COMPOSITE + ENUMS + (FUNC_PROTO,):
                count = s.number()
            for _ in range(REFERENCES.get(kind, 0)):
                refs.append(ref())
            for _ in range(count):
                name = self.field_name(s.number())
                bits = s.number() if flag and kind in COMPOSITE else 0
                if kind in COMPOSITE + (FUNC_PROTO,):
                    refs.append(ref())
                fields.append((name, bits))
            nodes.append((kind, flag, fields, refs))
        return nodes

    def field_name(self, v):
        if v == 0:
            return b""
        if v == 1:
            self.used += 1
            return self.fields[self.used - 1]
        assert v - 2 < self.used
        return self.fields[v - 2]

    def read_numbers(self, shape, base):
        out = []
        for kind, _, fields, _ in shape:
            count = {INT: 2, ARRAY: 1, FLOAT: 1, FUNC: 1, VAR: 1}.get(kind, 0)
            if kind in COMPOSITE + ENUMS:
                count = len(fields) + 1
            distance = 0
            for _ in range(count):
                v = self.numbers.number()
                distance += unzigzag(v >> 2) * (1, 8, 32, 64)[v & 3] if kind in COMPOSITE else unzigzag(v)
                out.append((distance + (base[len(out)] if base else 0)) % (1 << 64))
        return out


def read_layouts(s, slots):
    layouts, made = [], [0] * slots
    for i in range(s.number()):
        head = s.number()
        current = dict(layouts[i - (head >> 1)][1]) if head >> 1 else {}
        slot = 0
        for _ in range(s.number()):
            slot += s.number()
            what = s.number()
            if what == 0:
                current[slot] = made[slot]
                made[slot] += 1
            elif what == 1:
                del current[slot]
            else:
                current[slot] = what - 2
            slot += 1
        layouts.append((head & 1, current))
    assert not s.left()
    return layouts


def read_kernels(s):
    last, layouts, out = b"", 0, []
    for _ in range(s.number()):
        shared, back = s.number(), s.number()
        last = last[:shared] + s.text()
        out.append((last.decode(errors="surrogateescape"), layouts - back))
        layouts += back == 0
    assert not s.left()
    return out


def types_of(pool, current):
    """A type is (kind, flag, name, size, fields, refs, in a slot); a field is (name, value)."""
    at, n = {}, 0
    for slot in sorted(current):
        at[slot] = n
        n += len(pool.slots[slot][current[slot]][0])
    types = []
    for slot in sorted(current):
        shape, numbers = pool.slots[slot][current[slot]]
        numbers = iter(numbers)
        for i, (kind, flag, fields, refs) in enumerate(shape):
            to = [-1 if r is None else at[slot] + r[1] if r[0] == "node" else at[r[1]] for r in refs]
            size = 0
            if kind in COMPOSITE:
                fields = [(name, bits << 24 | next(numbers)) for name, bits in fields]
                size = next(numbers) // 8
            elif kind in ENUMS:
                fields = [(name, next(numbers)) for name, _ in fields]
                size = next(numbers)
            elif kind == INT:
                fields, size = [(b"", next(numbers))], next(numbers)
            elif kind in (ARRAY, FUNC, VAR):
                fields = [(b"", next(numbers))]
            elif kind == FLOAT:
                size = next(numbers)
            types.append((kind, flag, b"" if i else pool.names[slot], size, fields, to, i == 0))
    return types


def content(t):
    kind, flag, name, size, fields, _, _ = t
    b = b"\1" + name + b"\0" if name else b"\0"
    b += bytes([kind, flag]) + struct.pack(">II", size, len(fields))
    for name, value in fields:
        b += name + b"\0" + struct.pack(">Q", value)
    return b


def classes_of(types):
    keys, count = [content(t) for t in types], 0
    while True:
        ranks = {k: i for i, k in enumerate(sorted(set(keys)))}
        classes = [ranks[k] for k in keys]
        if len(ranks) == count:
            return classes, count
        count = len(ranks)
        keys = [struct.pack(f">{1 + len(t[5])}I", c, *(classes[r] + 1 if r >= 0 else 0 for r in t[5])) for t, c in zip(types, classes)]


def write_btf(big, types):
    classes, count = classes_of(types)
    order, first = [], {}
    for c in range(count):
        members = [i for i, x in enumerate(classes) if x == c]
        if not types[members[0]][2]:
            order += [members[0]] * max(1, sum(types[i][6] for i in members))
    order += sorted((i for i, t in enumerate(types) if t[2]), key=lambda i: (types[i][2], i))
    for n, i in enumerate(order):
        first.setdefault(classes[i], n + 1)
    strings, offsets, out = b"\0", {b"": 0}, b""
    endian = ">" if big else "<"

    def words(*values):
        return struct.pack(f"{endian}{len(values)}I", *(v & 0xFFFFFFFF for v in values))

    def string(s):
        nonlocal strings
        if s not in offsets:
            offsets[s] = len(strings)
            strings += s + b"\0"
        return offsets[s]

    for i in order:
        kind, flag, name, size, fields, refs, _ = types[i]
        ids = [first[classes[r]] if r >= 0 else 0 for r in refs]
        vlen = fields[0][1] if kind == FUNC else 0 if kind in (INT, ARRAY, VAR) else len(fields)
        out += words(string(name), flag << 31 | kind << 24 | vlen, ids[0] if kind in LINKS + (FUNC_PROTO,) else size)
        if kind == ARRAY:
            out += words(*ids, fields[0][1])
        elif kind in (INT, VAR):
            out += words(fields[0][1])
        for j, (name, value) in enumerate(fields):
            if kind in COMPOSITE:
                out += words(string(name), ids[j], value)
            elif kind == ENUM:
                out += words(string(name), value)
            elif kind == ENUM64:
                out += words(string(name), value, value >> 32)
            elif kind == FUNC_PROTO:
                out += words(string(name), ids[j + 1])
    head = struct.pack(endian + "HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(out), len(out), len(strings))
    return head + out + strings


def main(path, root, dictionary):
    meta, kernels, names, shapes, parents, numbers, layouts, *more = streams(path, dictionary)
    print_meta(meta, more[0] if more else Stream(b""))
    pool = Pool(names, shapes, parents, numbers)
    layouts = read_layouts(layouts, len(pool.slots))
    for key, layout in read_kernels(kernels):
        big, current = layouts[layout]
        name = os.path.normpath(os.path.join(root, key + ".btf"))
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as f:
            f.write(write_btf(big, types_of(pool, current)))


if __name__ == "__main__":
    main(*sys.argv[1:])
