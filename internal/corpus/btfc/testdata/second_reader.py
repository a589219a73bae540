# SPDX-License-Identifier: Apache-2.0
"""Reads a .btfc file as docs/corpus-format.md describes it, and knows nothing else.

For each kernel it prints the key, the sum of its BTF and the number of its modules, after comparing the sums; and
the sums of its configuration and of its symbols, if it has either.
"""
import hashlib, json, struct, subprocess, sys

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


def printable(name):
    """The name for people: what a terminal would not print is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


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
    """A decoded chunk."""

    def __init__(self, parent=None):
        p = parent
        self.names = list(p.names) if p else [b""]
        self.contents = list(p.contents) if p else []
        self.entity = list(p.entity) if p else []  # of contents
        self.entities = p.entities if p else 0
        self.front, self.types, self.strings = [], [], []  # contents, contents, names
        self.at_front = []  # of types


class Order:
    """The order of a list, from its two streams, against a list of n items and so many names."""

    def __init__(self, streams, n, names):
        self.runs, self.starts = streams
        self.limits, self.last = {"copied": n, "old": names}, {"copied": 0, "old": 0}
        self.whole = n if not self.runs.data else 0

    def run(self):
        if self.whole:
            n, self.whole = self.whole, 0
            self.starts = Stream(bytes(1))
            return 0, n
        v = self.runs.number()
        return v & 3, (v >> 2) + 1

    def take(self, n, what):
        """The n numbers of a run."""
        first = self.last[what] + unzigzag(self.starts.number())
        self.last[what] = first + n
        assert 0 <= first and first + n <= self.limits[what]
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


def split(top):
    """The streams of a payload."""
    lens = [top.number() for _ in range(20)]
    streams = [Stream(top.bytes(n)) for n in lens]
    assert top.at == len(top.data)
    return streams


class Reader:
    def __init__(self, parent, front, back):
        self.p, self.st = parent, State(parent)
        self.listed, self.guess = [], ({}, {})
        top = Stream(front)
        back_names, back_entities, front = top.number(), top.number(), split(top)
        back = split(Stream(back or bytes(20)))
        first = [len(parent.names)]
        self.new_names(front)
        first.append(len(self.st.names))
        self.new_names(back)
        assert len(self.st.names) == first[1] + back_names
        self.s = front
        self.units()
        entities = self.st.entities
        late = self.front_types(front), self.all_types(back)
        assert self.st.entities == self.front_entities + back_entities >= entities
        self.strings_order = back[5:7]
        self.L, self.last_name = 0, 0
        for n, self.s in enumerate((front, back)):
            self.next_new = first[n]
            self.list = self.st.types if n else self.st.front
            for at, c in enumerate(self.list):
                if c in late[n]:
                    kind, old = late[n][c]
                    if old is not None:
                        self.learn(parent.contents[old])
                    self.st.contents[c] = self.content(at + 1, kind)
        self.strings()
        for s in front + back:
            assert s.at == len(s.data), "bytes left"

    def new_names(self, streams):
        last = b""
        for shared in streams[2].data:
            assert shared <= len(last)
            last = last[:shared] + streams[1].text()
            self.st.names.append(last)
        streams[2].at = len(streams[2].data)

    def units(self):
        s, self.st.units = self.s[0], []
        while s.at < len(s.data):
            name, size, types, front, strings = s.text(), s.number(), s.number(), s.number(), s.number()
            assert front <= types
            self.st.units.append((name, size, types, front, strings, s.bytes(s.number())))

    def new(self, fresh, kind, entity, old=None):
        """A new content."""
        st = self.st
        if not entity:
            st.entities += 1
        fresh[len(st.contents)] = kind, old
        st.contents.append(None)
        st.entity.append(entity or st.entities)
        return len(st.contents) - 1

    def front_types(self, streams):
        p, st, fresh, kinds = self.p, self.st, {}, streams[7]
        order = Order(streams[3:5], len(p.front), 0)
        n = sum(u[3] for u in st.units)
        while len(st.front) < n:
            kind, count = order.run()
            if kind == 0:
                st.front += [p.front[i] for i in order.take(count, "copied")]
            elif kind == 1:
                old = [p.front[i] for i in order.take(count, "copied")]
                st.front += [self.new(fresh, kinds.byte(), p.entity[c], c) for c in old]
            else:
                assert kind == 2
                st.front += [self.new(fresh, kinds.byte(), 0) for _ in range(count)]
        assert len(st.front) == n
        self.front_entities = st.entities
        return fresh

    def all_types(self, streams):
        p, st, fresh, kinds = self.p, self.st, {}, streams[7]
        order, fronts = Order(streams[3:5], len(p.types), 0), iter(st.front)
        n = sum(u[2] for u in st.units)
        while len(st.types) < n:
            kind, count = order.run()
            for i in order.take(count, "copied") if kind < 2 else range(count):
                at_front = kind == 3 or kind < 2 and p.at_front[i]
                if at_front:
                    c = next(fronts)
                elif kind == 0:
                    c = p.types[i]
                elif kind == 1:
                    c = self.new(fresh, kinds.byte(), p.entity[p.types[i]], p.types[i])
                else:
                    c = self.new(fresh, kinds.byte(), 0)
                st.types.append(c)
                st.at_front.append(at_front)
        assert len(st.types) == n and next(fronts, None) is None
        return fresh

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
        if x == 0:
            n = self.next_new
            assert n < len(self.st.names)
            self.next_new = n + 1
        elif x == 1:
            n = names.get(f, 0)
        elif x == 2:
            n = 0
        else:
            n = self.s[15].number() if x == 3 else self.last_name + x - 130
            assert 0 <= n < len(self.st.names)
        self.last_name = n or self.last_name
        names[f] = n
        return n

    def ref(self, stream, at, a, b):
        refs, f = self.guess[1], self.slot(a, b)
        x = self.s[stream].byte()
        if x == 0:
            e = self.at(at + unzigzag(self.s[18].number()))
            self.listed.append(e)
        elif x == 1:
            e = refs.get(f, 0)
        elif x < 49:
            e = self.at(at + x - 25)
        else:
            e = self.listed[x - 49 if x < 255 else self.s[19].number()]
        refs[f] = e
        return e

    def at(self, at):
        if at == 0:
            return 0
        assert at > 0
        return self.st.entity[self.list[at - 1]]

    def content(self, at, b):
        kind = b & 127
        assert 0 < kind <= ENUM64
        count = self.s[8].number() if kind in ELEM or kind == FUNC else 0
        T = 0 if kind in NAMELESS else self.name(13, kind, self.L)
        self.L = T or self.L
        numbers = self.s[12]
        third = 0
        if kind in REF:
            third = self.ref(16, at, kind, self.L)
        elif kind in SIZE:
            third = (self.s[10] if kind in (STRUCT, UNION) else numbers).number()
        w = [T, b << 24 | count, third]
        if kind == ARRAY:
            w += [self.ref(17, at, kind, 0), self.ref(17, at, kind, 1), numbers.number()]
        elif kind in EXTRA:
            w.append(numbers.number())
        if kind not in ELEM:
            return w
        A, B, v, R = T, kind, 0, third if kind == PROTO else 0
        for _ in range(count):
            if kind == DATASEC:
                e = self.ref(17, at, kind, 0)
                v = v + unzigzag(self.s[11].number()) & M
                size = numbers.number()
                w += [e, v, size]
                v = v + size & M
                continue
            N = self.name(14, A, B)
            w.append(N)
            if kind in (ENUM, ENUM64):
                v = v + unzigzag(self.s[11].number()) & M
                w.append(v)
                if kind == ENUM64:
                    w.append(numbers.number())
            else:
                R = self.ref(17, at, N or R, A)
                w.append(R)
            if kind in (STRUCT, UNION):
                o = self.s[9].number()
                v = v + (1, 8, 32, 64)[o & 3] * unzigzag(o >> 2) & M
                w.append(v)
            A, B = N, A
        return w

    def strings(self):
        p, st = self.p, self.st
        order, out, first = Order(self.strings_order, len(p.strings), len(st.names)), st.strings, 0
        if order.whole:
            assert order.whole == sum(u[4] for u in st.units) or not any(u[4] for u in st.units)
            st.strings += p.strings if any(u[4] for u in st.units) else []
            return
        for i, (_, _, types, _, n, _) in enumerate(st.units):
            uses, own = used(st, st.types[first:first + types]), []
            have = set(kernel) if i else set()
            first += types
            while len(own) < n:
                kind, count = order.run()
                if kind == 0:
                    more = [p.strings[i] for i in order.take(count, "copied")]
                elif kind == 2:
                    more = unused(uses, have, count)
                else:
                    assert kind == 1
                    more = order.take(count, "old")
                own += more
                have.update(more)
            assert len(own) == n
            out += own
            if i == 0:
                kernel = own

    def blobs(self):
        """The names and bytes of the units."""
        st, out, first, at = self.st, [], 0, 0
        offsets, ids, length, placed = {}, {0: 0}, 0, 0
        for i, (name, size, types, _, strings, rest) in enumerate(st.units):
            own, mine = st.types[first:first + types], st.strings[at:at + strings]
            first, at = first + types, at + strings
            o, d, text = dict(offsets), dict(ids), b""
            for x in mine:
                if x or i == 0:
                    o[x] = length + len(text)
                text += st.names[x] + b"\0"
            for k, c in enumerate(own):
                assert st.entity[c] not in d
                d[st.entity[c]] = placed + k + 1
            if not types and not rest:
                blob = b"".join(name + st.names[x] + b"\n" for x in mine)
            elif not types and not strings:
                blob = rest
            else:
                blob = self.blob(rest, own, o, text, d)
            assert len(blob) == size
            out.append((name, blob))
            if i == 0:
                offsets, ids, length, placed = o, d, len(text), types
        return out

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
        end = 0
        for at, part in parts:
            assert end <= at <= len(rest), "sections overlap or lie outside"
            rest = rest[:at] + part + rest[at:]
            end = at + len(part)
        return rest


def shape(st, btf):
    """The shape of a kernel's BTF."""
    pointer = 8
    for w in reversed([st.contents[c] for c in st.types]):
        words = sorted(st.names[w[0]].decode("latin-1").split(" "))
        if w[1] >> 24 & 127 == INT and w[2] in (4, 8) and "long" in words and "".join(words) in ("long", "intlong", "longunsigned", "intlongunsigned"):
            pointer = w[2]
    out = {"Types": len(st.types), "Pointer": pointer}
    if btf[:1] == b"\xeb":
        out["BigEndian"] = True
    return out


def main(path):
    data = open(path, "rb").read()
    assert data[:5] == b"btfc\1" and data[-8:] == b"btfc.end"
    n, size = struct.unpack("<2Q", data[-56:-40])
    end = len(data) - 56 - n
    assert hashlib.sha256(data[end:-56]).digest() == data[-40:-8]
    lines = [json.loads(line) for line in unpack(data[end:-56], size).splitlines()]
    kernels = [line["Kernel"] for line in lines if "Kernel" in line]
    at, states = 5, []
    for i, k in enumerate(kernels):
        config, symbols, n_modules = k.get("Config", 0), k.get("Symbols", 0), k.get("Modules", 0)
        sizes = [k["Size"], k["Size"] + k.get("ModulesSize", 0), config + symbols]
        has = [True, n_modules > 0, config + symbols > 0]
        states.append({})
        for part in range(3):
            chunk = k["Chunks"][part]
            if not has[part]:
                assert not chunk
                continue
            parent = chunk.get("Parent", 0)
            assert -1 <= parent < i
            if parent >= 0:
                parent = states[parent][part]
            else:
                parent = states[i][0] if part else State()
            payloads = []
            for frame in chunk, chunk.get("Back"):
                if frame:
                    packed = frame["Packed"]
                    assert hashlib.sha256(data[at:at + packed]).hexdigest() == frame["Check"]
                    payloads.append(unpack(data[at:at + packed], frame["Size"]))
                    at += packed
                else:
                    payloads.append(b"")
            r = Reader(parent, *payloads)
            states[i][part] = r.st
            blobs = r.blobs()
            assert sum(len(b) for _, b in blobs) == sizes[part]
            if part == 0:
                (_, btf), = blobs
                assert hashlib.sha256(btf).hexdigest() == k["Sum"], k
                if "Shape" in k and not k.get("Plain"):
                    assert k["Shape"] == shape(r.st, btf), k
            elif part == 1:
                all = blobs[1:]
                assert blobs[0][1] == btf and len(all) == n_modules
                assert [name for name, _ in all] == sorted(set(name for name, _ in all))
                text = b"".join(name + b"\0" + number(len(b)) for name, b in all) + b"".join(b for _, b in all)
                assert hashlib.sha256(text).hexdigest() == k["ModulesSum"]
            else:
                extras = [blobs[0][1], blobs[1][1] + blobs[2][1]]
                assert len(blobs) == 3
                assert [len(b) for b in extras] == [config, symbols]
        more = [hashlib.sha256(b).hexdigest() for b in extras] if has[2] else []
        key = [k["Key"][name] for name in ("ID", "VersionID", "Arch", "Release")]
        print(printable("/".join(key)), k["Sum"], n_modules, *more)
    assert at == end
    keys = [k["Key"] for k in kernels]
    for line in lines[len(kernels):]:
        p = line["Package"]
        assert p["Series"] and p["Name"] and p["Version"] and ("Reason" in p or p["Kernel"] in keys)


main(sys.argv[1])
