# SPDX-License-Identifier: Apache-2.0
"""Reads a .btfc file as docs/corpus-format.md describes it, and knows nothing else.

For each kernel it prints the key, the sum of its BTF and the number of its modules, after comparing the sums; and
the sums of its configuration and of its symbols, if it has either.
"""
import hashlib, struct, subprocess, sys

M = 0xffffffff
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
    """What is known behind a kernel."""

    def __init__(self, parent=None):
        p = parent
        self.names = list(p.names) if p else [b""]
        self.contents = list(p.contents) if p else []
        self.entity = list(p.entity) if p else []
        self.entities = p.entities if p else 0
        self.types, self.strings = [], []


class Place:
    def __init__(self, n):
        self.next = list(range(n + 1))
        self.n, self.here, self.back = n, 0, 0

    def free(self, p):
        while self.next[p] != p:
            self.next[p] = self.next[self.next[p]]
            p = self.next[p]
        return p

    def start(self, starts, far):
        s, e = starts.byte(), self.free(self.here)
        if s == 0:
            self.here = e
        elif s == 1:
            self.here, self.back = self.free(self.back), self.here
        elif s == 2:
            self.here, self.back = self.free(e + unzigzag(far.number())), self.here
        else:
            for _ in range(s - 2):
                if e < self.n:
                    e = self.free(e + 1)
            self.here = e

    def take(self):
        p = self.free(self.here)
        assert p < self.n
        self.next[p] = self.here = p + 1
        return p


def used(st, types):
    """The names that types use, in order."""
    for c in types:
        w = st.contents[c]
        yield w[0]
        kind = w[1] >> 24 & 127
        if kind in NAMED_ELEM:
            for i in range(3, len(w), ELEM[kind]):
                yield w[i]


class Reader:
    def __init__(self, parent, payload):
        self.p, self.st = parent, State(parent)
        self.told, self.tables = [[], []], [{} for _ in range(5)]
        top = Stream(payload)
        lens = [top.number() for _ in range(46)]
        self.s = [Stream(top.bytes(n)) for n in lens]
        assert top.at == len(payload)
        h = self.s[0]
        self.n_names, text, self.n_contents, words, names_told, ents_told, n_types, n_strings = [h.number() for _ in range(8)]
        self.rest = self.s[1].bytes(len(self.s[1].data))
        self.new_names()
        self.types(n_types)
        self.L, self.next_new = 0, len(parent.names)
        for c, id in self.fresh:
            self.st.contents[c] = self.content(id)
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
        runs, starts, far = self.s[4:7]
        source = p.types
        place, old, self.fresh = Place(len(source)), 0, []

        def new(entity):
            st.contents.append(None)
            st.entity.append(entity)
            st.types.append(len(st.contents) - 1)
            self.fresh.append((len(st.contents) - 1, len(st.types)))

        while len(st.types) < n:
            v = runs.number()
            kind, count = v & 3, (v >> 2) + 1
            if kind < 2:
                place.start(starts, far)
            if kind == 3:
                first = old + unzigzag(far.number())
                assert 0 <= first and first + count <= len(p.contents)
                st.types += range(first, first + count)
                old = first + count
                continue
            for _ in range(count):
                if kind == 0:
                    st.types.append(source[place.take()])
                elif kind == 1:
                    new(p.entity[source[place.take()]])
                else:
                    st.entities += 1
                    new(st.entities)
        assert len(st.types) == n and len(st.contents) == len(p.contents) + self.n_contents

    def far(self, first):
        return self.s[first].byte() | self.s[first + 1].byte() << 8 | self.s[first + 2].number() << 16

    @staticmethod
    def slot(a, b):
        return ((a * 0x9e3779b1 + b * 0x85ebca77 + 0x27d4eb2f) * 0xc2b2ae3d & M) >> 16

    def ranked(self, x, told, k, low, far):
        n = len(told)
        if x < k[1]:
            r = x - k[0]
        elif x < k[2]:
            r = n - 1 - (x - k[1])
        elif x < k[3]:
            r = k[1] - k[0] + 256 * (x - k[2]) + low.byte()
        elif x < 255:
            r = n - 1 - (k[2] - k[1] + 256 * (x - k[3]) + low.byte())
        else:
            r = self.far(far)
        assert 0 <= r < n
        return told[r]

    def name(self, c, a, b):
        far, near = self.tables[0], self.tables[1]
        f, g = self.slot(a, b), self.slot(a, c)
        x = self.s[19 + c].byte()
        if x in (0, 4):
            n = self.next_new + (unzigzag(self.far(16)) if x == 4 else 0)
            assert 0 <= n < len(self.st.names)
            self.next_new = n + 1
        elif x == 1:
            n = far.get(f, 0)
        elif x == 2:
            n = near.get(g, 0)
        elif x == 3:
            n = 0
        elif x == 5:
            n = self.far(16)
            self.told[0].append(n)
        else:
            n = self.ranked(x, self.told[0], (6, 96, 156, 206), self.s[25 + c], 16)
        far[f] = near[g] = n
        return n

    def ref(self, c, id, a, b):
        far, near, distance = self.tables[2:]
        f, g = self.slot(a, b), self.slot(a, c)
        x, d = self.s[34 + c].byte(), None
        if x == 1:
            e = far.get(f, 0)
        elif x == 2:
            e = near.get(g, 0)
        elif x == 0 or x < 50:
            d = unzigzag(self.far(31)) if x == 0 else x - 26
            e = self.at(id + d)
            distance[f] = d
            if x == 0:
                self.told[1].append(e)
        elif x == 50:
            e = self.at(id + distance.get(f, 0))
        else:
            e = self.ranked(x, self.told[1], (51, 115, 160, 208), self.s[40 + c], 31)
        far[f] = near[g] = e
        return e

    def at(self, id):
        return self.st.entity[self.st.types[id - 1]] if id else 0

    def content(self, id):
        b = self.s[10].byte()
        kind = b & 127
        assert 0 < kind <= ENUM64
        count = self.s[11].number() if kind in ELEM or kind == FUNC else 0
        T = 0 if kind in NAMELESS else self.name(0, kind, self.L)
        self.L = T or self.L
        numbers = self.s[15]
        third = 0
        if kind in REF:
            third = self.ref(4 if kind == FUNC else 0, id, kind, self.L)
        elif kind in SIZE:
            third = (self.s[13] if kind in (STRUCT, UNION) else numbers).number()
        w = [T, b << 24 | count, third]
        if kind == ARRAY:
            w += [self.ref(5, id, kind, 0), self.ref(5, id, kind, 1), numbers.number()]
        elif kind in EXTRA:
            w.append(numbers.number())
        if kind not in ELEM:
            return w
        A, B, v, R = T, kind, 0, third if kind == PROTO else 0
        for _ in range(count):
            if kind == DATASEC:
                e = self.ref(5, id, kind, 0)
                v = v + unzigzag(self.s[14].number()) & M
                size = numbers.number()
                w += [e, v, size]
                v = v + size & M
                continue
            c = {STRUCT: 1, UNION: 1, PROTO: 2}.get(kind, 3)
            N = self.name(c, A, B)
            w.append(N)
            if c < 3:
                R = self.ref(c, id, N or R, A)
                w.append(R)
            if c == 1:
                o = self.s[12].number()
                v = v + (1, 8, 32, 64)[o & 3] * unzigzag(o >> 2) & M
                w.append(v)
            if c == 3:
                v = v + unzigzag(self.s[14].number()) & M
                w.append(v)
                if kind == ENUM64:
                    w.append(numbers.number())
            A, B = N, A
        return w

    def strings(self, n):
        p, st = self.p, self.st
        runs, starts, far = self.s[7:10]
        place, old, new, uses = Place(len(p.strings)), 0, len(p.names), used(st, st.types)
        out, have = st.strings, set()
        while len(out) < n:
            v = runs.number()
            kind, count = v & 3, (v >> 2) + 1
            if kind == 0:
                place.start(starts, far)
                more = [p.strings[place.take()] for _ in range(count)]
            elif kind == 1:
                more = []
                while len(more) < count:
                    name = next(uses)
                    if name not in have:
                        more.append(name)
                        have.add(name)
            elif kind == 2:
                more = range(new, new + count)
                new += count
            else:
                first = old + unzigzag(far.number())
                more = range(first, first + count)
                old = first + count
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


def joined(st, ancestor, all):
    """What the modules of a kernel with state st are encoded against: all is the state of an ancestor and its modules."""
    v = State(st)
    v.types = list(st.types)
    after = lambda n, known, own: n if n < known else n - known + own
    name = lambda n: after(n, len(ancestor.names), len(st.names))
    entity = lambda e: after(e, ancestor.entities + 1, st.entities + 1)
    v.names += all.names[len(ancestor.names):]
    v.entities += all.entities - ancestor.entities
    for c in range(len(ancestor.contents), len(all.contents)):
        w = list(all.contents[c])
        kind = w[1] >> 24 & 127
        w[0] = name(w[0])
        if kind in REF:
            w[2] = entity(w[2])
        if kind == ARRAY:
            w[3:5] = entity(w[3]), entity(w[4])
        if kind in ELEM:
            for i in range(3, len(w), ELEM[kind]):
                w[i] = entity(w[i]) if kind == DATASEC else name(w[i])
                if kind in (STRUCT, UNION, PROTO):
                    w[i + 1] = entity(w[i + 1])
        v.contents.append(w)
        v.entity.append(entity(all.entity[c]))
    there = set(st.entity[c] for c in st.types)
    for c in all.types[len(ancestor.types):]:
        c = after(c, len(ancestor.contents), len(st.contents))
        if v.entity[c] not in there:
            there.add(v.entity[c])
            v.types.append(c)
    return v


def modules(st, base, payload, n):
    """The names and BTF of the modules of a kernel with state st, encoded against base; and the state of all."""
    s = Stream(payload)
    table = []
    for _ in range(n):
        name, types = s.text(), s.number() - 1
        table.append((name, types, s.number() if types >= 0 else 0, s.number()))
    runs, far = s.number(), s.number()
    runs, far = Stream(s.bytes(runs)), Stream(s.bytes(far))
    rests = [s.bytes(size) for _, _, _, size in table]
    assert [t[0] for t in table] == sorted(set(t[0] for t in table))
    if all(types < 0 for _, types, _, _ in table):
        assert s.at == len(payload)
        return [(t[0], rest) for t, rest in zip(table, rests)], st
    r = Reader(base, s.bytes(len(payload) - s.at))
    both, at, old, out = r.st, len(st.types), 0, []
    assert both.types[:at] == st.types
    base = {0: 0}
    for i, c in enumerate(st.types):
        base[st.entity[c]] = i + 1
    base_offsets, base_len = {}, 0
    for name in st.strings:
        base_offsets[name] = base_len
        base_len += len(st.names[name]) + 1
    for (name, n_types, n_strings, _), rest in zip(table, rests):
        if n_types < 0:
            out.append((name, rest))
            continue
        own = both.types[at:at + n_types]
        assert len(own) == n_types
        at += n_types
        uses, have, strings = used(both, own), set(base_offsets), []
        while len(strings) < n_strings:
            v = runs.number()
            kind, count = v & 3, (v >> 2) + 1
            if kind == 1:
                while count > 0:
                    x = next(uses)
                    if x not in have:
                        strings.append(x)
                        have.add(x)
                        count -= 1
            else:
                assert kind == 3
                first = old + unzigzag(far.number())
                strings += range(first, first + count)
                have.update(range(first, first + count))
                old = first + count
        assert len(strings) == n_strings
        offsets, text, ids = dict(base_offsets), bytearray(), dict(base)
        for x in strings:
            if x:
                offsets[x] = base_len + len(text)
            text += both.names[x] + b"\0"
        for i, c in enumerate(own):
            ids[both.entity[c]] = len(st.types) + i + 1
        out.append((name, r.blob(rest, own, offsets, text, ids)))
    assert at == len(both.types) and runs.at == len(runs.data) and far.at == len(far.data)
    return out, both


def lines(parent, payload, config, symbols):
    """The lines of a kernel's configuration and symbols, encoded against those of another kernel."""
    s, out = Stream(payload), []
    n = s.number()
    lens = [s.number() for _ in range(3)]
    runs, starts, far = [Stream(s.bytes(size)) for size in lens]
    place = Place(len(parent))
    while len(out) < n:
        v = runs.number()
        kind, count = v & 3, (v >> 2) + 1
        assert kind in (0, 2)
        if kind == 0:
            place.start(starts, far)
        for _ in range(count):
            if kind == 0:
                out.append(parent[place.take()])
            else:
                out.append(s.bytes(s.data.index(b"\n", s.at) + 1 - s.at))
    assert len(out) == n and len(b"".join(out)) == config + symbols
    for x in (s, runs, starts, far):
        assert x.at == len(x.data), "bytes left"
    return out


def main(path):
    data = open(path, "rb").read()
    assert data[:5] == b"btfc\1" and data[-8:] == b"btfc.end"
    n, = struct.unpack("<Q", data[-16:-8])
    end = len(data) - 16 - n
    index = Stream(unpack(data[end:-16]))
    key, at, states, kernels = b"", 5, [], []
    for i in range(index.number()):
        key = key[:index.number()] + index.text()
        how, packed, payload, size, n_modules = [index.number() for _ in range(5)]
        total = index.bytes(32)
        if how & 4:
            assert index.text() and index.bytes(32)
        if n_modules:
            packed_modules, size_modules, back, sum_modules = index.number(), index.number(), index.number(), index.bytes(32)
            told_modules = packed_modules, size_modules, i - back if back else None, sum_modules
        if how & 2:
            index.bytes(256)
        kernels.append((key, how, packed, payload, size, total, n_modules, told_modules if n_modules else None))
    extras, last = {}, 0
    if index.at < len(index.data):
        for _ in range(index.number()):
            last += index.number()
            back = index.number()
            assert last not in extras and (back == 0 or last - back in extras)
            extras[last] = [last - back if back else None] + [index.number() for _ in range(3)]
    both = {}  # states of kernels with their modules
    for i, (key, how, packed, payload, size, total, n_modules, told) in enumerate(kernels):
        chunk = unpack(data[at:at + packed], payload)
        at += packed
        if how & 1:
            btf = chunk
            states.append(None)
        else:
            r = Reader(states[i - (how >> 3)] if how >> 3 else State(), chunk)
            states.append(r.st)
            btf = r.btf(size)
        assert len(btf) == size and hashlib.sha256(btf).digest() == total, key
        if n_modules:
            packed_modules, size_modules, told_from, sum_modules = told
            chunk = unpack(data[at:at + packed_modules], size_modules)
            at += packed_modules
            base = states[i]
            if told_from is not None and both[told_from] is not states[told_from]:
                base = joined(states[i], states[told_from], both[told_from])
            all, both[i] = modules(states[i], base, chunk, n_modules)
            assert len(set(name for name, _ in all)) == n_modules
            text = b"".join(name + b"\0" + number(len(b)) for name, b in all) + b"".join(b for _, b in all)
            assert hashlib.sha256(text).digest() == sum_modules
        more = []
        if i in extras:
            told_from, packed, config, symbols = extras[i]
            parent = extras[told_from][-1] if told_from is not None else []
            extras[i].append(lines(parent, unpack(data[at:at + packed]), config, symbols))
            at += packed
            text = b"".join(extras[i][-1])
            more = [hashlib.sha256(part).hexdigest() for part in (text[:config], text[config:])]
        print(key.decode(), total.hex(), n_modules, *more)
    assert at == end and index.at == len(index.data)


main(sys.argv[1])
