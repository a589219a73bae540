# SPDX-License-Identifier: Apache-2.0
"""Reads a .btfc file as docs/corpus-format.md describes it, and knows nothing else.

For each kernel it prints the key, the sum of its BTF and the number of its modules, after comparing the sums; and
the sums of its configuration and of its symbols, if it has either.
"""
import hashlib, struct, subprocess, sys

M = 0xffffffff
BASE = 1 << 31  # is added to numbers of names and entities of the base of modules
PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, PROTO, VAR, DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(2, 20)
INT = 1
NAMELESS = {PTR, ARRAY, CONST, VOLATILE, RESTRICT, PROTO}
ELEM = {STRUCT: 3, UNION: 3, ENUM: 2, PROTO: 2, DATASEC: 3, ENUM64: 3}
EXTRA = {INT: 1, ARRAY: 3, VAR: 1, DECL_TAG: 1}
REF = {PTR, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, PROTO, VAR, DECL_TAG, TYPE_TAG}
SIZE = {INT, STRUCT, UNION, ENUM, DATASEC, FLOAT, ENUM64}
NAMED_ELEM = {STRUCT, UNION, ENUM, PROTO, ENUM64}


def unzigzag(v):
    return (v >> 1) ^ -(v & 1)


def number(v):
    """v as it is written."""
    return bytes([v]) if v < 128 else bytes([v & 127 | 128]) + number(v >> 7)


class Stream:
    def __init__(self, data):
        self.data, self.at = data, 0

    def bytes(self, n):
        assert self.at + n <= len(self.data), "cut short"
        self.at += n
        return self.data[self.at - n:self.at]

    def byte(self):
        return self.bytes(1)[0]

    def number(self):
        v = shift = 0
        while True:
            b = self.byte()
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def text(self):
        end = self.data.index(0, self.at)
        return self.bytes(end + 1 - self.at)[:-1]


def unpack(frame, size=None):
    out = subprocess.run(["zstd", "-dcq"], input=frame, capture_output=True, check=True).stdout
    assert size is None or len(out) == size
    return out


class State:
    """A decoded kernel, or the modules of one, whose base is the state of the kernel."""

    def __init__(self, parent=None, base=None):
        p = parent
        self.base = base
        self.names = list(p.names) if p else [b""]
        self.contents = list(p.contents) if p else []
        self.entity = list(p.entity) if p else []
        self.entities = p.entities if p else 0
        self.types, self.strings = [], []


class Order:
    """The order of a list, from its two streams, against a list of n items."""

    def __init__(self, streams, n):
        self.runs, self.starts = streams
        self.n, self.taken, self.here, self.old = n, set(), 0, 0

    def run(self):
        v = self.runs.number()
        return v & 3, (v >> 2) + 1

    def skip(self):
        for _ in range(64):
            if self.here in self.taken:
                self.here += 1

    def take(self, n):
        """The n positions of a run."""
        self.skip()
        self.here += unzigzag(self.starts.number())
        out = []
        for _ in range(n):
            self.skip()
            assert 0 <= self.here < self.n and self.here not in self.taken
            out.append(self.here)
            self.taken.add(self.here)
            self.here += 1
        return out

    def consecutive(self, n, limit):
        first = self.old + unzigzag(self.starts.number())
        self.old = first + n
        assert 0 <= first and first + n <= limit
        return range(first, first + n)


def used(st, types):
    """The names that types use, in order."""
    for c in types:
        w = st.contents[c]
        yield w[0]
        kind = w[1] >> 24 & 127
        if kind in NAMED_ELEM:
            for i in range(3, len(w), ELEM[kind]):
                yield w[i]


def unused(uses, have, n):
    """The next n names of uses that are not in have, where they go."""
    out = []
    while len(out) < n:
        x = next(uses)
        if x not in have:
            out.append(x)
            have.add(x)
    return out


class Reader:
    def __init__(self, parent, payload, base=None):
        self.p, self.st, self.n_base = parent, State(parent, base), len(base.types) if base else 0
        self.listed, self.guess = [], ({}, {})
        top = Stream(payload)
        lens = [top.number() for _ in range(21)]
        self.s = [Stream(top.bytes(n)) for n in lens]
        assert top.at == len(payload)
        h = self.s[0]
        self.n_names, text, self.n_contents, words, listed, n_types, n_strings = [h.number() for _ in range(7)]
        self.rest = self.s[1].bytes(len(self.s[1].data))
        self.new_names()
        self.types(n_types)
        self.L, self.last_name, self.next_new = 0, 0, len(parent.names)
        for c, id, old in self.fresh:
            if old is not None:
                self.learn(parent.contents[old])
            self.st.contents[c] = self.content(id)
        assert listed == len(self.listed)
        self.strings(n_strings)
        for s in self.s:
            assert s.at == len(s.data), "bytes left"

    def new_names(self):
        last = b""
        for _ in range(self.n_names):
            last = last[:self.s[3].byte()] + self.s[2].text()
            self.st.names.append(last)

    def types(self, n):
        p, st = self.p, self.st
        order, self.fresh = Order(self.s[4:6], len(p.types)), []

        def new(entity, old=None):
            st.contents.append(None)
            st.entity.append(entity)
            st.types.append(len(st.contents) - 1)
            self.fresh.append((len(st.contents) - 1, self.n_base + len(st.types), old))

        while len(st.types) < n:
            kind, count = order.run()
            if kind == 0:
                st.types += [p.types[i] for i in order.take(count)]
            elif kind == 1:
                for i in order.take(count):
                    new(p.entity[p.types[i]], p.types[i])
            elif kind == 2:
                for _ in range(count):
                    st.entities += 1
                    new(st.entities)
            else:
                st.types += order.consecutive(count, len(p.contents))
        assert len(st.types) == n and len(st.contents) == len(p.contents) + self.n_contents

    @staticmethod
    def slot(a, b):
        return ((a * 0x9e3779b1 + b * 0x85ebca77 + 0x27d4eb2f) * 0xc2b2ae3d & M) >> 16

    def learn(self, w):
        """Makes guesses from the content that an entity has in the parent."""
        names, refs = self.guess
        T, kind = w[0], w[1] >> 24 & 127
        if kind not in NAMELESS:
            names[self.slot(kind, self.L)] = T
        if kind in REF:
            refs[self.slot(kind, T or self.L)] = w[2]
        A, B, R = T, kind, w[2] if kind == PROTO else 0
        for i in range(3, len(w), ELEM[kind]) if kind in NAMED_ELEM else ():
            N = w[i]
            names[self.slot(A, B)] = N
            if kind in (STRUCT, UNION, PROTO):
                refs[self.slot(N or R, A)] = R = w[i + 1]
            A, B = N, A

    def name(self, stream, a, b):
        names, f = self.guess[0], self.slot(a, b)
        x = self.s[stream].byte()
        if x in (0, 3):
            n = self.next_new + (unzigzag(self.s[16].number()) if x == 3 else 0)
            assert 0 <= n < len(self.st.names)
            self.next_new = n + 1
        elif x == 1:
            n = names.get(f, 0)
        elif x == 2:
            n = 0
        else:
            if x == 4:
                n = self.s[16].number()
                if n >= len(self.st.names):
                    n += BASE - len(self.st.names)
            else:
                n = self.last_name + x - 130
            assert 0 <= n < len(self.st.names) or 0 <= n - BASE < len(self.st.base.names)
        self.last_name = n or self.last_name
        names[f] = n
        return n

    def ref(self, stream, id, a, b):
        refs, f = self.guess[1], self.slot(a, b)
        x = self.s[stream].byte()
        if x == 0:
            e = self.at(id + unzigzag(self.s[19].number()))
            self.listed.append(e)
        elif x == 1:
            e = refs.get(f, 0)
        elif x < 49:
            e = self.at(id + x - 25)
        else:
            e = self.listed[x - 49 if x < 255 else self.s[20].number()]
        refs[f] = e
        return e

    def at(self, id):
        if id == 0:
            return 0
        st, bit = self.st, 0
        if id <= self.n_base:
            st, bit = st.base, BASE
        else:
            id -= self.n_base
        assert id > 0
        return st.entity[st.types[id - 1]] + bit

    def content(self, id):
        b = self.s[8].byte()
        kind = b & 127
        assert 0 < kind <= ENUM64
        count = self.s[9].number() if kind in ELEM or kind == FUNC else 0
        T = 0 if kind in NAMELESS else self.name(14, kind, self.L)
        self.L = T or self.L
        numbers = self.s[13]
        third = 0
        if kind in REF:
            third = self.ref(17, id, kind, self.L)
        elif kind in SIZE:
            third = (self.s[11] if kind in (STRUCT, UNION) else numbers).number()
        w = [T, b << 24 | count, third]
        if kind == ARRAY:
            w += [self.ref(18, id, kind, 0), self.ref(18, id, kind, 1), numbers.number()]
        elif kind in EXTRA:
            w.append(numbers.number())
        if kind not in ELEM:
            return w
        A, B, v, R = T, kind, 0, third if kind == PROTO else 0
        for _ in range(count):
            if kind == DATASEC:
                e = self.ref(18, id, kind, 0)
                v = v + unzigzag(self.s[12].number()) & M
                size = numbers.number()
                w += [e, v, size]
                v = v + size & M
                continue
            N = self.name(15, A, B)
            w.append(N)
            if kind in (ENUM, ENUM64):
                v = v + unzigzag(self.s[12].number()) & M
                w.append(v)
                if kind == ENUM64:
                    w.append(numbers.number())
            else:
                R = self.ref(18, id, N or R, A)
                w.append(R)
            if kind in (STRUCT, UNION):
                o = self.s[10].number()
                v = v + (1, 8, 32, 64)[o & 3] * unzigzag(o >> 2) & M
                w.append(v)
            A, B = N, A
        return w

    def strings(self, n):
        p, st = self.p, self.st
        order, new, uses = Order(self.s[6:8], len(p.strings)), len(p.names), used(st, st.types)
        out, have = st.strings, set()
        while len(out) < n:
            kind, count = order.run()
            if kind == 0:
                more = [p.strings[i] for i in order.take(count)]
            elif kind == 1:
                more = unused(uses, have, count)
            elif kind == 2:
                more = range(new, new + count)
                new += count
            else:
                more = order.consecutive(count, len(st.names))
            out += more
            have.update(more)
        assert len(out) == n

    def btf(self, size):
        offsets, text = {}, bytearray()
        for n in self.st.strings:
            offsets[n] = len(text)
            text += self.st.names[n] + b"\0"
        ids = {0: 0}
        for i, c in enumerate(self.st.types):
            assert self.st.entity[c] not in ids
            ids[self.st.entity[c]] = i + 1
        btf = self.blob(self.rest, self.st.types, offsets, text, ids)
        assert len(btf) == size
        return btf

    def blob(self, rest, types, offsets, text, ids):
        st = self.st
        order = "<" if rest[:2] == b"\x9f\xeb" else ">"
        hdr, type_off, type_len, str_off, str_len = struct.unpack(order + "5I", rest[4:24])
        words = []
        for c in types:
            w = list(st.contents[c])
            kind = w[1] >> 24 & 127
            w[0] = offsets[w[0]]
            if kind in REF:
                w[2] = ids[w[2]]
            if kind == ARRAY:
                w[3:5] = ids[w[3]], ids[w[4]]
            for i in range(3 + EXTRA.get(kind, 0), len(w), ELEM.get(kind, 1)):
                if kind == DATASEC:
                    w[i] = ids[w[i]]
                else:
                    w[i] = offsets[w[i]]
                    if kind in (STRUCT, UNION, PROTO):
                        w[i + 1] = ids[w[i + 1]]
            words += w
        types = struct.pack("%s%dI" % (order, len(words)), *words)
        assert len(types) == type_len and len(text) == str_len
        parts = sorted([(hdr + type_off, types), (hdr + str_off, bytes(text))])
        for at, part in parts:
            rest = rest[:at] + part + rest[at:]
        return rest


def modules(st, r, n):
    """The names and BTF of the n modules in a state."""
    s, at, out = Stream(r.rest), 0, []
    base_ids, base_offsets, base_len = {0: 0}, {0: 0}, 0
    for i, c in enumerate(st.base.types):
        base_ids[st.base.entity[c] + BASE] = i + 1
    for name in st.base.strings:
        base_offsets[name + BASE] = base_len
        base_len += len(st.base.names[name]) + 1
    for _ in range(n):
        name, count = s.text(), s.number()
        if count == 0:
            out.append((name, s.bytes(s.number())))
            continue
        own = st.types[at:at + count - 1]
        assert len(own) == count - 1
        at += count - 1
        have, strings, uses = {0}, [], used(st, own)
        have.update(x for x in used(st, own) if x >= BASE)
        left = s.number()
        while left > 0:
            v = s.number()
            run = (v >> 1) + 1
            if v & 1:
                first = s.number()
                more = range(first, first + run)
                have.update(more)
            else:
                more = unused(uses, have, run)
            strings += more
            left -= run
        assert left == 0
        offsets, text, ids = dict(base_offsets), bytearray(), dict(base_ids)
        for x in strings:
            if x:
                offsets[x] = base_len + len(text)
            text += st.names[x] + b"\0"
        for i, c in enumerate(own):
            ids[st.entity[c]] = len(st.base.types) + i + 1
        out.append((name, r.blob(s.bytes(s.number()), own, offsets, text, ids)))
    assert at == len(st.types) and s.at == len(s.data)
    assert [name for name, _ in out] == sorted(set(name for name, _ in out))
    return out


def main(path):
    data = open(path, "rb").read()
    assert data[:5] == b"btfc\1" and data[-8:] == b"btfc.end"
    n, = struct.unpack("<Q", data[-16:-8])
    end = len(data) - 16 - n
    index = Stream(unpack(data[end:-16]))
    key, at = b"", 5
    parents, parts = [], [{}, {}, {}]  # of kernels by number: states of the BTF, the modules and the lines

    def parent(part, i, none):
        """What a part of kernel i is encoded against."""
        while parents[i] is not None:
            i = parents[i]
            if i in parts[part]:
                return parts[part][i]
        return none

    for i in range(index.number()):
        key = key[:index.number()] + index.text()
        how = index.number()
        parents.append(i - (how >> 5) if how >> 5 else None)
        chunks = []
        for there in (True, how & 8, how & 16):
            packed, size = (index.number(), index.number()) if there else (0, 0)
            chunks.append(unpack(data[at:at + packed], size) if there else None)
            at += packed
        size, total, n_modules = index.number(), index.bytes(32), 0
        if how & 4:
            assert index.text() and index.bytes(32)
        if how & 1:
            btf, base = chunks[0], State()
        else:
            r = Reader(parent(0, i, State()), chunks[0])
            btf, base = r.btf(size), r.st
            parts[0][i] = r.st
        assert len(btf) == size and hashlib.sha256(btf).digest() == total, key
        if how & 8:
            n_modules, sum_modules = index.number(), index.bytes(32)
            r = Reader(parent(1, i, State()), chunks[1], base)
            parts[1][i] = r.st
            all = modules(r.st, r, n_modules)
            text = b"".join(name + b"\0" + number(len(b)) for name, b in all) + b"".join(b for _, b in all)
            assert hashlib.sha256(text).digest() == sum_modules
        more = []
        if how & 16:
            config, symbols = index.number(), index.number()
            st = parts[2][i] = Reader(parent(2, i, State()), chunks[2]).st
            assert not st.types
            text = b"".join(st.names[n] + b"\n" for n in st.strings)
            assert len(text) == config + symbols
            more = [hashlib.sha256(part).hexdigest() for part in (text[:config], text[config:])]
        if how & 2:
            index.bytes(256)
        print(key.decode(), total.hex(), n_modules, *more)
    assert at == end
    if index.at < len(index.data):
        packages = index.number()
        assert packages > 0
        for _ in range(packages):
            series, name, version, reason = index.text(), index.text(), index.text(), index.text()
            index.bytes(32)
            assert index.number() <= len(parents)
    assert index.at == len(index.data)


main(sys.argv[1])
