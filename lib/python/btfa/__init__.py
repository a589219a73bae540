# SPDX-License-Identifier: Apache-2.0
"""Reads .btfa archives, which hold the minimized BTF of many kernels.

    archive = btfa.Archive.open("tracer.btfa")
    found = archive.lookup(btfa.host())
    if found.key is None:
        raise SystemExit(found.reason)
    open("kernel.btf", "wb").write(archive.btf(found.key))

docs/archive-format.md specifies the format, in whose words this file is written. zstd is Python's own (since 3.14), the
package zstandard, or the program zstd.

Every archive gives right data or an Error. A hostile one may take hundreds of megabytes.
"""

import functools
import os
import posixpath
import re
import struct
import subprocess
import sys
from typing import NamedTuple, Optional

__all__ = ["Archive", "Damaged", "Error", "Key", "Match", "NoHost", "NoKernel", "NotArchive", "NotCovered", "System", "UnknownVersion", "host"]

INT, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR = range(1, 15)
DATASEC, FLOAT, DECL_TAG, TYPE_TAG, ENUM64 = range(15, 20)
COMPOSITE, ENUMS = (STRUCT, UNION), (ENUM, ENUM64)
MODIFIERS = (TYPEDEF, VOLATILE, CONST, RESTRICT, TYPE_TAG)
LINKS = (PTR, FUNC, VAR) + MODIFIERS
REFERENCES = {ARRAY: 2, FUNC_PROTO: 1, **{kind: 1 for kind in LINKS}}
KINDS = (INT, ARRAY, FWD, FUNC_PROTO, FLOAT) + COMPOSITE + ENUMS + LINKS

# The limits of docs/limits.md.
MAX_PAYLOAD = 8 << 20
MAX_FILE = MAX_PAYLOAD + (1 << 16)
MAX_KERNELS = 1 << 18
MAX_KEY_BYTES = 16 << 20
MAX_OBJECTS = 1 << 16
MAX_MACHINES = 64
MAX_TYPES = 1 << 16
MAX_ITEMS = 1 << 20
MAX_CONTENT = 8 << 20
MAX_OS_RELEASE = 1 << 20
MAX_HASHED = 16 << 20
MAX_NAME = 4097  # longer names match nothing


class Error(Exception):
    """The reason why an archive, a host or its BTF cannot be used, in one line of printable text."""


class NotArchive(Error):
    """The data does not begin like an archive."""


class UnknownVersion(Error):
    """This reader does not support the version of the format."""


class Damaged(Error):
    """The archive breaks the rules of its format."""


class NoKernel(Error):
    """The archive does not have this kernel."""


class NoHost(Error):
    """The host cannot be identified."""


class NotCovered(Error):
    """The archive was not made for the relocations of an object."""


class _Problem(Exception):
    """What is wrong with a stream, or with an object."""


# Characters that messages escape: controls, those that hide or reorder text, and spaces other than " ".
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f\u2028-\u202f"
    "\u205f-\u2064\u2066-\u206f\u3000\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\udc80-\udcff]"
)


def _escape(match):
    c = ord(match[0])
    if 7 <= c <= 13:
        return "\\" + "abtnvfr"[c - 7]
    if 0xDC80 <= c <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{c - 0xDC00:02x}"
    return f"\\x{c:02x}" if c < 0x80 else f"\\u{c:04x}" if c < 0x10000 else f"\\U{c:08x}"


def printable(text):
    """Returns text as one line, in which characters that are not printable are escaped as in Go."""
    return _UNPRINTABLE.sub(_escape, text)


def _text(data):
    return data.decode(errors="surrogateescape")


# -- keys --

# These tables are those of pkg/kernel/rules.go.

_ARCHES = {
    "amd64": "x86_64", "x86": "x86_64", "x86-64": "x86_64", "aarch64": "arm64", "armv8l": "arm64",
    "armhf": "arm", "armel": "arm", "armhfp": "arm", "armv4tl": "arm", "armv5tel": "arm", "armv5tejl": "arm", "armv6l": "arm",
    "armv7": "arm", "armv7l": "arm", "armv7hl": "arm",
    "i486": "i386", "i586": "i386", "i686": "i386", "386": "i386",
    "ppc64el": "ppc64le", "riscv": "riscv64", "loong64": "loongarch64", "mips64le": "mips64el", "mipseb": "mips", "mips64eb": "mips64",
}  # fmt: skip
_KNOWN_ARCHES = {"ppc64", "s390x", "sparc64", "mips", "mipsel", "mips64"} | set(_ARCHES) | set(_ARCHES.values())
_DISTRIBUTIONS = {"amazon": "amzn", "redhat": "rhel", "oracle": "ol", "suse": "sles", "opensuse": "opensuse-leap"}
# Versions of the distributions that others are derived from.
_CODENAMES = {
    "debian": {"stretch": "9", "buster": "10", "bullseye": "11", "bookworm": "12", "trixie": "13", "forky": "14"},
    "ubuntu": {
        "xenial": "16.04", "bionic": "18.04", "focal": "20.04", "groovy": "20.10", "hirsute": "21.04", "impish": "21.10",
        "jammy": "22.04", "kinetic": "22.10", "lunar": "23.04", "mantic": "23.10", "noble": "24.04", "oracular": "24.10",
        "plucky": "25.04", "questing": "25.10",
    },
}  # fmt: skip
# The variable of os-release in which builds differ that have one VERSION_ID and one release.
_BUILD_NAMES = {"cos": "BUILD_ID", "openwrt": "OPENWRT_BOARD"}
# How many numbers of VERSION_ID stay the same from build to build. All parts of VERSION_ID do under other distributions.
_VERSION_NUMBERS = {
    "alpine": 2, "bottlerocket": 0, "cos": 1, "flatcar": 0, "coreos": 0, "k3os": 0, "opensuse-microos": 0, "opensuse-tumbleweed": 0,
    "rhcos": 0, "talos": 0,
}  # fmt: skip
# Words of releases that many distributions use, without the digits at their ends.
_PLAIN_WORDS = {
    "", "cloud", "custom", "debug", "default", "desktop", "dirty", "generic", "hardened", "kvm", "lts", "mainline", "pae", "preempt",
    "rc", "rt", "server", "smp", "standard", "vanilla", "virt", "yocto", "zen",
}  # fmt: skip
# Words of releases whose number at the end counts builds, as in 6.9.1-arch1-1.
_COUNTED_WORDS = {"alt", "arch", "hardened", "kali", "r", "rpi", "xanmod", "zen"}
# Distributions that build kernels of their own whose releases end like those of others.
_OWN_BUILDS = (
    ("alpine", "-lts"), ("arch", "-lts"), ("artix", "-lts"), ("astra", "-generic"), ("astra", "-hardened"), ("kylin", "-generic"),
)  # fmt: skip
_MAX_LIKE = 8
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class Key(NamedTuple):
    """A kernel: distribution, its version, arch and release. An unknown part is "". Bytes that are not UTF-8 are
    surrogates, as in os.fsdecode."""

    id: str = ""
    version_id: str = ""
    arch: str = ""
    release: str = ""

    def canonical(self):
        """Returns the key in the canonical spelling of distribution and arch."""
        lower = self.id.translate(_LOWER)
        return self._replace(id=_DISTRIBUTIONS.get(lower, lower), arch=_ARCHES.get(self.arch, self.arch))

    def __str__(self):
        return "/".join(printable(part) or "-" for part in self)


class System(NamedTuple):
    """What a host says of itself: the key of its kernel, and the distributions that its own is derived from, the nearest first, each
    a pair of ID and VERSION_ID ("" if unknown)."""

    key: Key
    like: tuple = ()


def _is_commit(word):
    return re.fullmatch("g[0-9a-f]{7,}", word)


def _is_number(word):
    return re.fullmatch("[0-9]+", word)


def _words(release):
    """Cuts a release into its words, and leaves out the commit and build that kernels built from git have, and the number before
    a commit, as in 5.10.43-00005-g740f7fbe5 and 5.10.43-android12-9-00005-g740f7fbe5-ab7943734."""
    words = [w for w in re.split("[-.+_~]", release) if w]
    kept = []
    for w, following in zip(words, words[1:] + [""]):
        if not (_is_commit(w) or _is_number(w) and _is_commit(following) or re.fullmatch("ab[0-9]+", w)):
            kept.append(w)
    return kept


def _cut_digits(word):
    return word.rstrip("0123456789")


def _is_distinctive(release):
    """Reports whether a release can belong to builds of one distribution only: it has four numbers, or a word that is not common."""
    numbers, last = 0, ""
    for w in _words(release):
        if _is_number(w):
            numbers += w not in ("586", "686") and (w, last) != ("64", "x86")
        elif w not in _KNOWN_ARCHES and _cut_digits(w.translate(_LOWER)) not in _PLAIN_WORDS:
            return True
        last = w
    return numbers >= 4


def _is_built_by(id, release):
    """Reports whether a distribution builds kernels of its own with releases like this one, which others have, too."""
    return any(own == id and release.endswith(end) for own, end in _OWN_BUILDS)


def _bytes(text):
    return text.encode(errors="surrogateescape")


def _version_order(text):
    """Returns what to compare a version by: numbers by value, the text between them by bytes, a pre-release before its release."""
    order = []
    for run in re.findall(rb"[0-9]+|[^0-9]+", _bytes(text)):
        if run.isdigit():
            run = run.lstrip(b"0")
            order.append((3, len(run), run))
        else:
            order.append((0 if run.startswith(b"~") or run == b"-rc" else 2, 0, run))
    return order + [(1, 0, b"")], _bytes(text)


def _key_order(key):
    k = key.canonical()
    return (_bytes(k.id), _version_order(k.version_id), _bytes(k.arch)), _version_order(key.release)


def _check_part(part):
    """Returns the problem of a part of a key, which could be a file name."""
    if part in (".", "..", "-"):
        return "is not a name"
    if re.search(r"[\x00-\x1f\x7f/\\]", part):
        return "has a bad character"
    return "is longer than 255 bytes" if len(_bytes(part)) > 255 else None


# -- frame, streams --


class _Stream:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            if self.at == len(self.data):
                raise _Problem("cut short")
            c = self.data[self.at]
            self.at += 1
            if shift == 63 and c > 1:
                raise _Problem("number of more than 64 bits")
            value |= (c & 127) << shift
            shift += 7
            if c < 128:
                return value

    def count(self, limit, problem):
        value = self.number()
        if value > limit:
            raise _Problem(problem)
        return value

    def text(self):
        end = self.data.find(0, self.at)
        if end < 0:
            raise _Problem("cut short")
        text, self.at = self.data[self.at:end], end + 1
        return text

    def bytes(self, n):
        if n > self.left():
            raise _Problem("cut short")
        self.at += n
        return self.data[self.at - n:self.at]

    def left(self):
        return len(self.data) - self.at

    def end(self):
        if self.left():
            raise _Problem("bytes too many")


def _reserved_bits_zero(block):
    """Reports whether the reserved bits of a compressed block are zero. Not all versions of zstd look."""
    kind, form = block[0] & 3, block[0] >> 2 & 3
    n = ((1, 2, 1, 3) if kind < 2 else (3, 3, 4, 5))[form]
    if len(block) < n:
        return False
    head = int.from_bytes(block[:n], "little")
    if kind == 0:
        n += head >> (3, 4, 3, 4)[form]
    elif kind == 1:
        n += 1
    else:
        bits = (10, 10, 14, 18)[form]
        n += head >> (4 + bits) & ((1 << bits) - 1)
    if len(block) <= n:
        return False
    if block[n] == 0:  # no sequences
        return True
    n += 1 if block[n] < 128 else 2 if block[n] < 255 else 3
    return n < len(block) and not block[n] & 3


def _check_frame(data):
    """Checks that the data is exactly one zstd frame with a checksum and without a dictionary's ID, and that it claims nothing
    beyond the limits."""
    want = "want one zstd frame with a checksum and without the ID of a dictionary"
    s = _Stream(data)
    magic, flags = s.bytes(4), s.bytes(1)[0]
    if magic != b"\x28\xb5\x2f\xfd" or not flags & 4:
        raise _Problem(want)
    if flags & 8:
        raise _Problem("reserved bit set")
    single = flags >> 5 & 1
    dictionary, size = (0, 1, 2, 4)[flags & 3], (0, 2, 4, 8)[flags >> 6] or single
    if s.left() < 1 - single + dictionary + size:
        raise _Problem("cut short")
    window = 0
    if not single:
        b = s.bytes(1)[0]
        window = (1 << 10 + (b >> 3)) // 8 * (8 + (b & 7))
    if any(s.bytes(dictionary)):
        raise _Problem(want)
    content = int.from_bytes(s.bytes(size), "little") + (256 if size == 2 else 0)
    if single:
        window = max(content, 1024)
    if content > MAX_PAYLOAD or window > MAX_PAYLOAD:
        raise _Problem("too many bytes decompressed")
    last = False
    while not last:
        block = int.from_bytes(s.bytes(3), "little")
        last, kind, n = block & 1, block >> 1 & 3, block >> 3
        if kind == 3 or n > 128 << 10 or n > window or kind == 2 and n < 2:
            raise _Problem("bad block")
        block = s.bytes(1 if kind == 1 else n)
        if kind == 2 and not _reserved_bits_zero(block):
            raise _Problem("bad block")
    if s.left() != 4:
        raise _Problem("cut short" if s.left() < 4 else "bytes follow the frame")


_DICTIONARY = os.path.join(os.path.dirname(__file__), "dictionary")


def _decompress(frame):
    """Decompresses a frame. Returns None if it is damaged."""
    with open(_DICTIONARY, "rb") as f:
        dictionary = f.read()
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        zstd = None
    if zstd:
        try:
            return zstd.ZstdDecompressor(zstd.ZstdDict(dictionary, is_raw=True)).decompress(frame, MAX_PAYLOAD + 1)
        except zstd.ZstdError:
            return None
    try:
        import zstandard
    except ImportError:
        zstandard = None
    if zstandard:
        raw = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        try:
            return zstandard.ZstdDecompressor(dict_data=raw).decompressobj().decompress(frame)
        except zstandard.ZstdError:
            return None
    try:
        done = subprocess.run(["zstd", "-dcq", "-D", _DICTIONARY], input=frame, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Error("needs Python 3.14, the package zstandard, or the program zstd") from None
    return None if done.returncode else done.stdout


_STREAMS = ("meta", "kernels", "names", "shapes", "parents", "numbers", "layouts", "fingerprints")


def _split(payload):
    """Cuts the payload into its streams. One that is absent is empty."""
    head = _Stream(payload)
    n = head.number()
    if not 7 <= n <= 64:
        raise _Problem("want 7 to 64 streams")
    lengths = [head.number() for _ in range(n)]
    if sum(lengths) != head.left():
        raise _Problem("streams have other lengths")
    return {name: _Stream(head.bytes(n)) for name, n in zip(_STREAMS, lengths + [0])}


# -- definitions and layouts --


def _unzigzag(v):
    return (v >> 1) ^ -(v & 1)


class _Node(NamedTuple):
    kind: int
    flag: int
    fields: list  # name, bits of the bitfield
    refs: list  # None for void, or ("node" or "slot", its number)

    def count_numbers(self):
        if self.kind in COMPOSITE + ENUMS:
            return len(self.fields) + 1
        return {INT: 2, ARRAY: 1, FLOAT: 1, FUNC: 1, VAR: 1}.get(self.kind, 0)

    def check(self, last, x):
        """Returns a number, or None if it is out of range. The last number of a node is its size, if it has one."""
        if self.kind in COMPOSITE and last:
            return x if x % 8 == 0 and x // 8 < 1 << 32 else None
        if self.kind in COMPOSITE and self.flag or self.kind == FUNC:
            return x if x < 1 << 24 else None
        if self.kind == ENUM64 and not last:
            return x
        if self.kind == ENUM and not last:
            return x if (x + (1 << 31)) % (1 << 64) < 1 << 32 else None
        return x if x < 1 << 32 else None


class _Pool:
    """The definitions. slots has for each slot its variants, pairs of nodes and numbers."""

    def __init__(self, streams):
        self.stream = "names"  # the one that a problem is in
        names = streams["names"]
        texts = names.data.split(b"\0")
        if texts.pop():
            raise _Problem("cut short")
        self.stream = "parents"
        parents = streams["parents"]
        n = parents.count(len(texts), "too many slots")
        self.names = []  # of slots
        for t in texts[:n]:
            self.names.append(t or (self.names[-1] if self.names else b""))
        self.fields, self.used = texts[n:], 0
        self.items = n
        self.slots = []
        for _ in range(n):
            variants = []
            for _ in range(parents.count(parents.left(), "too many variants")):
                self.stream = "parents"
                back = parents.count(len(variants), "variant does not exist")
                self.stream = "shapes"
                nodes, base = variants[-back] if back else (self.shape(streams["shapes"]), None)
                self.stream = "numbers"
                variants.append((nodes, self.read_numbers(streams["numbers"], nodes, base)))
                self.stream = "shapes"
                self.add_items(1)
            self.stream = "parents"
            self.slots.append(variants)
        for self.stream in ("parents", "shapes", "numbers"):
            streams[self.stream].end()

    def add_items(self, n):
        self.items += n
        if self.items > MAX_ITEMS:
            raise _Problem("too many slots, variants, types, fields and references")

    def shape(self, s):
        nodes, known = [], 1

        def ref():
            nonlocal known
            v = s.number()
            if v == 0:
                return None
            if v == 1:
                known += 1
                return "node", known - 1
            to, where = (v - 2) // 2, "slot" if v & 1 else "node"
            if to >= (len(self.names) if v & 1 else known):
                raise _Problem(where + " does not exist")
            return where, to

        while len(nodes) < known:
            head = s.number()
            kind, flag, count, refs, fields = head >> 1, head & 1, 0, [], []
            if kind not in KINDS:
                raise _Problem("kind that minimized BTF does not have")
            if kind in COMPOSITE + ENUMS + (FUNC_PROTO,):
                count = s.count(65535, "too many fields")
            for _ in range(REFERENCES.get(kind, 0)):
                refs.append(ref())
            for _ in range(count):
                name = self.field_name(s.number())
                bits = s.count(255, "too many bits") if flag and kind in COMPOSITE else 0
                if kind in COMPOSITE + (FUNC_PROTO,):
                    refs.append(ref())
                fields.append((name, bits))
            nodes.append(_Node(kind, flag, fields, refs))
            self.add_items(1 + len(fields) + len(refs))
        return nodes

    def field_name(self, v):
        if v == 0:
            return b""
        if v == 1:
            self.used += 1
            v = self.used + 1
        if v - 2 >= self.used or self.used > len(self.fields):
            raise _Problem("name does not exist")
        return self.fields[v - 2]

    def read_numbers(self, s, nodes, base):
        out = []
        for node in nodes:
            distance, count = 0, node.count_numbers()
            for i in range(count):
                v = s.number()
                distance += _unzigzag(v >> 2) * (1, 8, 32, 64)[v & 3] if node.kind in COMPOSITE else _unzigzag(v)
                x = node.check(i == count - 1, (distance + (base[len(out)] if base else 0)) % (1 << 64))
                if x is None:
                    raise _Problem("number is out of range")
                out.append(x)
        return out


class _Layout(NamedTuple):
    big_endian: int
    parent: Optional["_Layout"]
    changes: list  # slot, number of the variant or None

    def variants(self):
        current, layout = {}, self
        while layout:
            for slot, variant in layout.changes:
                current.setdefault(slot, variant)  # the first change comes from the youngest layout
            layout = layout.parent
        return {slot: current[slot] for slot in sorted(current) if current[slot] is not None}


def _read_layouts(s, pool):
    layouts, made = [], [0] * len(pool.slots)
    for i in range(s.count(s.left(), "too many layouts")):
        head = s.number()
        if head >> 1 > i:
            raise _Problem("layout does not exist")
        changes, slot = [], 0
        for _ in range(s.count(min(s.left() // 2, len(made)), "too many changes")):
            slot += s.number()
            if slot >= len(made):
                raise _Problem("slot does not exist")
            what = s.number()
            if what == 0:
                made[slot] += 1
                what = made[slot] + 1
            if what - 1 > min(made[slot], len(pool.slots[slot])):
                raise _Problem("variant does not exist")
            changes.append((slot, what - 2 if what > 1 else None))
            slot += 1
        layouts.append(_Layout(head & 1, layouts[i - (head >> 1)] if head >> 1 else None, changes))
    s.end()
    return layouts


def _read_kernels(s, layouts):
    """Returns the kernels in the order of the archive, and their layouts."""
    last, used, total, kernels = b"", 0, 0, {}
    for _ in range(s.count(min(s.left(), MAX_KERNELS), "too many kernels")):
        shared, back = s.count(len(last), "shares more than the last key has"), s.count(used, "layout does not exist")
        now = last[:shared] + s.text()
        layout = used - back
        used += back == 0
        total += len(now)
        if total > MAX_KEY_BYTES:
            raise _Problem("keys are too long")
        if kernels and now <= last or layout >= layouts:
            raise _Problem("not in order")
        parts = _text(now).split("/")
        if len(parts) != 4 or any(map(_check_part, parts)) or not parts[2] or not parts[3]:
            raise _Problem("not a key")
        kernels[Key(*parts)] = layout
        last = now
    s.end()
    if used != layouts:
        raise _Problem("use fewer layouts than there are")
    return kernels


class Object(NamedTuple):
    """An object that an archive was made for."""

    name: str
    sha256: bytes  # the beginning of that of its file
    arches: list  # of its machines; none for any
    fingerprint: bytes  # of its relocations; b"" if the archive has none


def _read_meta(s, fingerprints):
    """Returns the program that wrote the archive, the part of a run, the hashes of relocations and the objects."""

    def arch():
        part = _text(s.text())
        if _check_part(part):
            raise _Problem("not an arch")
        return part

    tool, parts, part = _text(s.text()), s.number(), 0
    if parts:
        part = s.number()
        if not 1 <= part <= parts <= MAX_KERNELS:
            raise _Problem("part of a run")
    size = s.count(32, "too many bytes of a hash")
    relocations = [(arch(), s.bytes(size)) for _ in range(s.count(MAX_MACHINES + 1, "too many hashes of relocations"))]
    if any(_bytes(a) >= _bytes(b) for (a, _), (b, _) in zip(relocations, relocations[1:])):
        raise _Problem("relocations are not in order")
    size, objects = s.count(32, "too many bytes of a hash"), []
    for _ in range(s.count(MAX_OBJECTS, "too many groups of objects")):
        arches = [arch() for _ in range(s.count(MAX_MACHINES, "too many machines"))]
        if "" in arches:
            raise _Problem("not an arch")
        n = s.count(MAX_OBJECTS - len(objects), "too many objects")
        if n == 0:
            raise _Problem("group without objects")
        objects += [(_text(s.text()), arches) for _ in range(n)]
    objects = [Object(name, s.bytes(size), arches, b"") for name, arches in objects]
    s.end()
    return tool, part, parts, relocations, objects


def _read_fingerprints(s, objects):
    if not s.left():
        return objects
    size = s.count(32, "too many bytes of a fingerprint")
    objects = [o._replace(fingerprint=s.bytes(size)) for o in objects]
    s.end()
    return objects


# -- from a layout to BTF --


class _Type(NamedTuple):
    kind: int
    flag: int
    name: bytes  # b"" for anonymous types
    size: int
    fields: list  # name, value
    refs: list  # numbers of types, -1 for void
    in_slot: bool

    def content(self):
        b = b"\1" + self.name + b"\0" if self.name else b"\0"
        b += bytes([self.kind, self.flag]) + struct.pack(">II", self.size, len(self.fields))
        return b + b"".join(name + b"\0" + struct.pack(">Q", value) for name, value in self.fields)


def _check_content(pool, current):
    types = content = 0
    for slot, variant in current.items():
        content += len(pool.names[slot])
        for node in pool.slots[slot][variant][0]:
            types += 1
            if types > MAX_TYPES:
                raise Damaged(f"archive: BTF would have more than {MAX_TYPES} types")
            fields = 1 if node.kind in (INT, ARRAY, FUNC, VAR) else len(node.fields)
            content += 32 + 16 * fields + sum(len(name) for name, _ in node.fields)
            if content > MAX_CONTENT:
                raise Damaged(f"archive: BTF would have more than {MAX_CONTENT} bytes")


def _types_of(pool, current):
    _check_content(pool, current)
    at, n = {}, 0
    for slot, variant in current.items():
        at[slot] = n
        n += len(pool.slots[slot][variant][0])
    types = []
    for slot, variant in current.items():
        nodes, numbers = pool.slots[slot][variant]
        numbers = iter(numbers)
        for i, (kind, flag, fields, refs) in enumerate(nodes):
            try:
                to = [-1 if r is None else at[slot] + r[1] if r[0] == "node" else at[r[1]] for r in refs]
            except KeyError:
                raise Damaged("archive: a type refers to one that the BTF does not have") from None
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
            types.append(_Type(kind, flag, b"" if i else pool.names[slot], size, fields, to, i == 0))
    return types


def _classes_of(types):
    """Returns the class of each type: first types with one content are a class, then classes are split by the classes that their
    types refer to, until none can be split. A class is known by its place in the order of types, where it starts.

    After the first two rounds, a round looks only at types that refer to a class that the round before has split, but not at
    those that refer to its largest part, which stays the same class (Hopcroft's trick)."""
    order = list(range(len(types)))
    place = order[:]
    start, size, of = [], [], [0] * len(types)  # where each class starts, how many types it has; the class of each type
    referrers = [[] for _ in types]
    for i, t in enumerate(types):
        for r in set(t.refs) - {-1}:
            referrers[r].append(i)

    def new_class(members, at):
        for i, t in enumerate(members):
            of[t], place[t], order[at + i] = len(start), at + i, t
        start.append(at)
        size.append(len(members))
        return len(start) - 1

    def key(t):
        return [start[of[r]] if r >= 0 else -1 for r in types[t].refs]

    def groups(members, keys):
        """Sorts types by their keys. Returns those of each key."""
        found = {}
        for t in members:
            found.setdefault(keys[t], []).append(t)
        return sorted(found.items())

    def split(c, parts, rest=None):
        """Splits a class. The part rest, of which only the number is known, stays the class; or else the first part does."""
        at, new = start[c], [c]
        for k, (_, members) in enumerate(parts):
            if members is rest or rest is None and k == 0:
                start[c] = at
                if rest is None:
                    size[c] = len(members)
                    for i, t in enumerate(members):
                        place[t], order[at + i] = at + i, t
                at += size[c]
            else:
                new.append(new_class(members, at))
                at += len(members)
        return new

    at = 0
    for _, members in groups(order[:], [t.content() for t in types]):
        new_class(members, at)
        at += len(members)
    keys = [tuple(key(t)) for t in range(len(types))]
    splits = []
    for c in range(len(start)):
        parts = groups(order[start[c]:start[c] + size[c]], keys)
        if len(parts) > 1:
            splits.append(split(c, parts))
    while splits:
        looked = {}  # by class, the types that refer to a new one
        for new in splits:
            largest = max(new, key=lambda c: size[c])
            for c in new:
                if c == largest:
                    continue
                for t in order[start[c]:start[c] + size[c]]:
                    for r in referrers[t]:
                        if size[of[r]] > 1:
                            looked.setdefault(of[r], set()).add(r)
        work = []
        for c in looked:
            keys = {t: tuple(key(t)) for t in looked[c]}
            others = None  # the key of the other types
            if len(keys) < size[c]:
                others = tuple(key(next(order[at] for at in range(start[c], start[c] + size[c]) if order[at] not in keys)))
            work.append((c, keys, others))
        splits = []
        for c, keys, others in work:
            rest = []
            if others is not None:
                for t in [t for t in keys if keys[t] == others]:
                    del keys[t]
            parts = groups(sorted(keys, key=place.__getitem__), keys)
            if others is None:
                if len(parts) > 1:
                    splits.append(split(c, parts))
                continue
            if not parts:
                continue
            # Move the types of other keys out of the rest: to its front, or to its end.
            before = sum(len(m) for k, m in parts if k < others)
            first, end = start[c], start[c] + size[c]
            for at, t in zip(range(first, first + before), [t for k, m in parts if k < others for t in m]):
                _swap(order, place, t, at)
            after = [t for k, m in parts if k > others for t in m]
            for at, t in zip(range(end - 1, first, -1), reversed(after)):
                _swap(order, place, t, at)
            size[c] -= len(keys)
            splits.append(split(c, sorted(parts + [(others, rest)], key=lambda p: p[0]), rest))
    return [start[c] for c in of]


def _swap(order, place, t, at):
    """Swaps a type with the type at a place."""
    other, was = order[at], place[t]
    order[at], order[was] = t, other
    place[t], place[other] = at, was


def _write_btf(big_endian, types):
    classes = _classes_of(types)
    members = {}
    for i, c in enumerate(classes):
        members.setdefault(c, []).append(i)
    order, first = [], {}
    for c in sorted(members):
        if not types[members[c][0]].name:
            order += [members[c][0]] * max(1, sum(types[i].in_slot for i in members[c]))
    order += sorted((i for i, t in enumerate(types) if t.name), key=lambda i: (types[i].name, i))
    for n, i in enumerate(order):
        first.setdefault(classes[i], n + 1)
    strings, offsets, out = bytearray(1), {b"": 0}, bytearray()
    endian = ">" if big_endian else "<"

    def words(*values):
        out.extend(struct.pack(f"{endian}{len(values)}I", *(v & 0xFFFFFFFF for v in values)))

    def string(s):
        if s not in offsets:
            offsets[s] = len(strings)
            strings.extend(s + b"\0")
        return offsets[s]

    for i in order:
        kind, flag, name, size, fields, refs, _ = types[i]
        ids = [first[classes[r]] if r >= 0 else 0 for r in refs]
        vlen = fields[0][1] if kind == FUNC else 0 if kind in (INT, ARRAY, VAR) else len(fields)
        words(string(name), flag << 31 | kind << 24 | vlen, ids[0] if kind in LINKS + (FUNC_PROTO,) else size)
        if kind == ARRAY:
            words(*ids, fields[0][1])
        elif kind in (INT, VAR):
            words(fields[0][1])
        for j, (name, value) in enumerate(fields):
            if kind in COMPOSITE:
                words(string(name), ids[j], value)
            elif kind == ENUM:
                words(string(name), value)
            elif kind == ENUM64:
                words(string(name), value, value >> 32)
            elif kind == FUNC_PROTO:
                words(string(name), ids[j + 1])
    head = struct.pack(endian + "HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(out), len(out), len(strings))
    return head + bytes(out) + bytes(strings)


# -- archives --


class Match(NamedTuple):
    """The result of a look-up."""

    rule: str  # "exact", "release", "derived", "neighbour" or "none"
    want: Key  # the kernel to find, canonical
    key: Optional[Key]  # the kernel that was found, as the archive spells it
    reason: str  # why this kernel matches, or why none does, in one line of printable text
    # On a miss, the nearest releases of the same distribution and arch, and whether both have the same BTF.
    below: Optional[Key] = None
    above: Optional[Key] = None
    same_btf: bool = False


def _distribution(key):
    return printable(f"{key.canonical().id} {key.version_id}".removesuffix(" ") if key.id else "an unknown distribution")


def _series(key):
    """Returns what the builds of a series have in common: distribution, version, arch, and of the release the version of Linux
    and all words that are not numbers."""
    k, words, numbers = key.canonical(), [], 0
    version = k.version_id
    if k.id in _VERSION_NUMBERS:
        version = re.match("(?:[^0-9]*[0-9]+){0,%d}" % _VERSION_NUMBERS[k.id], version)[0]
    for w in _words(k.release):
        if _is_number(w):
            numbers += 1
            if numbers > 2:
                continue
        words.append(_cut_digits(w) if _cut_digits(w) in _COUNTED_WORDS else w)
    return k.id, version, k.arch, words


class Archive:
    """An open archive, which does not change."""

    def __init__(self, data):
        """Opens and checks an archive in bytes. Raises NotArchive, UnknownVersion or Damaged."""
        if len(data) > MAX_FILE:
            raise Damaged(f"archive: {len(data)} bytes, more than {MAX_FILE}")
        if data[:4] != b"btfa":
            raise NotArchive("archive: not a btfgen archive")
        if len(data) < 5:
            raise Damaged("archive: cut short")
        if data[4] != 1:
            raise UnknownVersion(f"archive: unknown version of the archive format: {data[4]}, want 1")
        part = "frame"
        try:
            frame = bytes(data[5:])
            _check_frame(frame)
            payload = _decompress(frame)
            if payload is None:
                raise _Problem("damaged, or not compressed with this dictionary")
            part = "payload"
            streams = _split(payload)
            part = "meta"
            self.tool, self.part, self.parts, self.relocations, objects = _read_meta(streams[part], streams["fingerprints"])
            part = "fingerprints"
            self.objects = _read_fingerprints(streams[part], objects)
            pool = self._pool = _Pool.__new__(_Pool)
            try:
                pool.__init__(streams)
            except _Problem:
                part = pool.stream
                raise
            part = "layouts"
            self._layouts = _read_layouts(streams[part], pool)
            part = "kernels"
            self._layout_of = _read_kernels(streams[part], len(self._layouts))
            self._canonical = {}
            for k in self._layout_of:
                if self._canonical.setdefault(k.canonical(), k) is not k:
                    raise _Problem("a kernel occurs twice")
        except _Problem as e:
            raise Damaged(f"archive: {part}: {e}") from None

    @classmethod
    def open(cls, path):
        """Opens and checks the archive in a file."""
        with open(path, "rb") as f:
            return cls(f.read(MAX_FILE + 1))

    @functools.cached_property
    def _order(self):
        return sorted((_key_order(k), k) for k in self._layout_of)

    def keys(self):
        """Returns the keys of the kernels, sorted by distribution, version, arch and release."""
        return [k for _, k in self._order]

    def btf(self, key):
        """Returns the BTF of exactly this kernel, in the bytes of "btfgen generate". Raises NoKernel, or Damaged if a broken
        program wrote the archive."""
        k = self._canonical.get(Key(*key).canonical())
        if k is None:
            raise NoKernel("archive: kernel is not in the archive")
        layout = self._layouts[self._layout_of[k]]
        return _write_btf(layout.big_endian, _types_of(self._pool, layout.variants()))

    def lookup(self, want, neighbours=0):
        """Finds the kernel whose BTF serves a host. want is the result of host(), or a Key. Tries, in this order:

        1. "exact": the kernel with this key, in any spelling of distribution and arch;
        2. "release": the kernels of the same release and arch under other versions of the distribution;
        3. "derived": those under the first distribution of want.like that has any, of the version there or else of all;
        4. "release": those under any distribution;
        5. "neighbour", with neighbours above 0: the last build before this kernel in its series, if as many builds before it
           and after it have the same BTF. That may be wrong for the kernel.

        In steps 2 to 4 all kernels must have the same BTF. Steps 3 and 4 need a release that identifies a build: many
        distributions have a 5.10.135, each with its own configuration. Does not raise."""
        want, like = want if isinstance(want, System) else (want, ())
        want = Key(*want).canonical()
        found = self._canonical.get(want)
        if found is not None:
            return Match("exact", want, found, "the archive has this kernel")
        same = [k for k in self._layout_of if want.arch and k.release == want.release and k.canonical().arch == want.arch]
        # A version that names one build of the distribution fits no other one.
        own = [k for k in same if k.canonical().id == want.id and not (want.id in _BUILD_NAMES and "-" in k.version_id)]
        others = [k for k in same if k not in own]
        choices = [("release", own)]
        if _is_distinctive(want.release) and not _is_built_by(want.id, want.release):
            for id, version in like:
                of = [k for k in others if k.canonical().id == id]
                choices.append(("derived", [k for k in of if version and k.version_id == version]))
                choices.append(("derived", of))
            choices.append(("release", [k for k in others if not _is_built_by(k.canonical().id, k.release)]))
        for rule, of in choices:
            if of:
                return self._choose(want, rule, of)
        m = self._miss(want, "")
        if others:
            m = m._replace(reason=f"{m.reason}; {_distribution(others[0])} has this release, which may be another build")
        return self._neighbours(m, neighbours) if neighbours and want.id and want.arch and want.release else m

    def _choose(self, want, rule, of):
        """Takes the first of some kernels, if all of them have the same BTF. Otherwise it is a miss."""
        host, first = _distribution(want), _distribution(of[0])
        for k in of:
            if self._layout_of[k] != self._layout_of[of[0]]:
                return self._miss(want, f"{host}: {first} and {_distribution(k)} have this release and arch, and their BTFs differ")
        if rule == "derived":
            return Match(rule, want, of[0], f"{host} is derived from {first}, which has this release and arch")
        return Match(rule, want, of[0], f"not under {host}, but {first} has this release and arch")

    def _miss(self, want, reason):
        """Explains a miss and finds the nearest releases."""
        series = [k for k in self._layout_of if k.canonical()[::2] == want[::2]]
        order = _version_order(want.release)
        below = max((k for k in series if _version_order(k.release) < order), key=lambda k: _version_order(k.release), default=None)
        above = min((k for k in series if _version_order(k.release) > order), key=lambda k: _version_order(k.release), default=None)
        same = below is not None and above is not None and self._layout_of[below] == self._layout_of[above]
        release, arch = printable(want.release), printable(want.arch)
        if reason:
            pass
        elif not want.release:
            reason = "the release of the kernel is unknown"
        elif not want.arch:
            reason = "the arch of the kernel is unknown"
        elif series:
            reason = f"no kernel {release} for {arch}"
        elif want.arch not in {k.canonical().arch for k in self._layout_of}:
            reason = f"no kernels for {arch}"
        elif want.id not in {k.canonical().id for k in self._layout_of}:
            reason = f"no kernel {release} for {arch}, and none of {_distribution(want)} at all"
        else:
            reason = f"no kernel {release} for {arch}, and none of {printable(want.id)} for that arch"
        return Match("none", want, None, reason, below, above, same)

    def _neighbours(self, m, n):
        """Turns a miss into a match if the n builds before the kernel, and those up to n after it, have one BTF."""
        series, order = _series(m.want), _version_order(m.want.release)
        builds = [(_version_order(k.release), k) for k in self._layout_of if k.canonical().id == m.want.id and _series(k) == series]
        # Sorting keeps the order of equal releases.
        before = [k for o, k in sorted(builds, key=lambda b: b[0], reverse=True) if o < order][:n][::-1]
        after = [k for o, k in sorted(builds, key=lambda b: b[0]) if o > order][:n]
        if len(before) < n:
            return m._replace(reason=f"{m.reason}; builds of its series before it: {len(before)}, want {n}")
        if len({self._layout_of[k] for k in before + after}) > 1:
            return m._replace(reason=f"{m.reason}; the BTFs of the {len(before + after)} builds next to it differ")

        def span(builds, which):
            if not builds:
                return "none " + which
            ends = [printable(k.release) for k in (builds[0], builds[-1])]
            return f"{len(builds)} {which} ({' … '.join(ends[:len(builds)])})"

        reason = f"{m.reason}; the builds next to it have one BTF: {span(before, 'before it')}, {span(after, 'after it')}"
        return Match("neighbour", m.want, before[-1], reason)

    def covers(self, elf, arch=""):
        """Checks that the archive was made for a BPF object, in bytes, with these relocations; code may differ. Unless arch is
        "", the archive's object must be for that machine. Raises NotCovered."""
        try:
            fingerprint = _fingerprint(bytes(elf))
            if fingerprint is None:
                return
            why = "its relocations differ"
            if any(not o.fingerprint for o in self.objects):
                why = "the archive has no fingerprints of relocations"
        except _Problem as e:
            fingerprint, why = None, str(e)
        arch = _ARCHES.get(arch, arch)
        for o in self.objects:
            known = o.fingerprint[:4]
            if known and fingerprint and fingerprint.startswith(known):
                if not arch or not o.arches or arch in o.arches:
                    return
                why = "the archive's object is for other machines"
        made = [f"{printable(o.name)} (sha256 {o.sha256.hex()}…)" for o in self.objects[:4]]
        if len(self.objects) > 4:
            made.append(f"{len(self.objects) - 4} more")
        raise NotCovered(f"archive was made for {', '.join(made) or 'unknown objects'}, not for the object: {why}")


# -- fingerprints --


def _section(elf, endian, name):
    """Returns a section of an ELF file, or None."""
    headers, names = "its section headers are damaged", "its section names are damaged"
    table, = struct.unpack_from(endian + "Q", elf, 40)
    size, count, strings = struct.unpack_from(endian + "HHH", elf, 58)
    if size != 64 or table > len(elf) or count > (len(elf) - table) // 64 or strings >= count:
        raise _Problem(headers)
    sections = [struct.unpack_from(endian + "IIQQQQ", elf, table + 64 * i) for i in range(count)]
    at, n = sections[strings][4:]
    texts = elf[at:at + n]
    if len(texts) != n or not n or texts[-1]:
        raise _Problem(names)
    for at, kind, flags, _, off, n in sections:
        if at >= len(texts) or texts[at:texts.find(0, at)] != name:
            continue
        if kind == 8 or off > len(elf) or n > len(elf) - off:  # SHT_NOBITS
            raise _Problem("a section lies outside the file")
        if flags & 0x800:  # SHF_COMPRESSED
            raise _Problem("a section is compressed")
        return elf[off:off + n]
    return None


class _Btf:
    """The BTF of an object, and the hash of the record that is read."""

    def __init__(self, data, endian):
        if len(data) < 24 or struct.unpack_from(endian + "H", data)[0] != 0xEB9F or data[2] != 1:
            raise _Problem("its .BTF has no header")
        header, type_off, type_len, str_off, str_len = struct.unpack_from(endian + "IIIII", data, 4)
        self.types = data[header + type_off:header + type_off + type_len]
        self.strings = data[header + str_off:header + str_off + str_len]
        if len(self.types) != type_len or len(self.strings) != str_len or not str_len or self.strings[-1]:
            raise _Problem("its .BTF is damaged")
        self.records, at = [(0,) * 3], 0  # the words of each type
        while at < type_len:
            size = None
            if type_len - at >= 12:
                info, = struct.unpack_from(endian + "I", self.types, at + 4)
                kind, vlen = info >> 24 & 0x7F, info & 0xFFFFFF
                if kind in (INT, VAR, DECL_TAG):
                    size = 16
                elif kind == ARRAY:
                    size = 24
                elif kind in COMPOSITE + (DATASEC, ENUM64):
                    size = 12 + 12 * vlen
                elif kind in (ENUM, FUNC_PROTO):
                    size = 12 + 8 * vlen
                elif kind in LINKS + (FWD, FLOAT):
                    size = 12
            if size is None or size > type_len - at:
                raise _Problem("its .BTF has a damaged or unknown type")
            self.records.append(struct.unpack_from(f"{endian}{size // 4}I", self.types, at))
            at += size
        self.out, self.hashed = bytearray(), 0

    def record(self, i):
        """Returns kind, number of fields and the words of a type; those of void if there is none."""
        words = self.records[i if i is not None and i < len(self.records) else 0]
        return words[1] >> 24 & 0x7F, words[1] & 0xFFFFFF, words

    def skip_modifiers(self, i):
        for _ in range(32):
            kind, _, words = self.record(i)
            if kind not in MODIFIERS:
                return i if i < len(self.records) else 0
            i = words[2]
        return None  # an endless chain

    def number(self, *values):
        self.out += struct.pack(f"<{len(values)}I", *values)

    def name(self, off):
        end = self.strings.find(0, off) if off < len(self.strings) else off
        self.out += self.strings[off:end][:MAX_NAME] + b"\0"

    def text(self, off):
        return self.strings[off:self.strings.find(0, off)] if off < len(self.strings) else b""

    def value(self, i):
        """Hashes what loaders compare of the type of a field."""
        i = self.skip_modifiers(i)
        for _ in range(32):
            kind, _, words = self.record(i)
            if i is None or kind != ARRAY:
                break
            self.out.append(ARRAY)
            i = self.skip_modifiers(words[3])
        kind, _, words = self.record(i)
        self.out.append(kind)
        if kind in (INT,) + ENUMS:
            size = words[2]
            used = words[3] & 0xFFFFFF if kind == INT else 8 * size & 0xFFFFFFFF
            if not size or size & (size - 1) or used != 8 * size & 0xFFFFFFFF:
                self.number(size)
        if kind in ENUMS + (FWD,):
            self.name(words[0])

    def path(self, root, access):
        """Hashes the names and elements on an access string. Returns False for a relocation that loaders refuse."""
        i = self.skip_modifiers(root)
        for n, index in enumerate(access.split(b":")):
            if not re.fullmatch(rb"[0-9]+", index) or len(index.lstrip(b"0")) > 10 or int(index) >= 1 << 31 or i is None:
                return False
            index = int(index)
            kind, vlen, words = self.record(i)
            if n == 0 and kind in ENUMS and index < vlen:
                self.name(words[3 + index * (2 if kind == ENUM else 3)])
                return True
            if n == 0 or kind == ARRAY and (not words[5] or index < words[5]):
                to = words[3] if n else i
                self.out += b"["
                self.number(index)
            elif kind in COMPOSITE and index < vlen:
                name, to, offset = words[3 + 3 * index:6 + 3 * index]
                self.out += bytes([ord("."), bool(words[1] >> 31 and offset >> 24)])
                self.name(name)
            else:
                return False
            self.value(to)
            i = self.skip_modifiers(to)
        return i is not None

    def structure(self, root, members):
        """Hashes a type and all types that it leads to."""
        numbers, todo = {}, []

        def add(i):
            i = self.skip_modifiers(i) or 0  # an endless chain is a type of its own, like void
            if i not in numbers:
                numbers[i] = len(numbers)
                todo.append(i)
            self.number(numbers[i])

        add(root)
        for i in todo:
            if self.hashed + len(self.out) > MAX_HASHED:
                break
            kind, vlen, words = self.record(i)
            self.out.append(kind)
            if members:
                self.name(words[0])
            if kind == INT:
                self.number(words[3], words[2])
            elif kind == PTR:
                add(words[2])
            elif kind == ARRAY:
                self.number(words[5])
                add(words[3])
                add(words[4])
            elif kind == FUNC_PROTO:
                self.number(vlen)
                for j in range(vlen):
                    add(words[4 + 2 * j])
                add(words[2])
            elif kind == FWD and words[1] >> 31:
                self.out.append(1)
            elif kind in COMPOSITE and members:
                self.number(vlen)
                for j in range(vlen):
                    self.name(words[3 + 3 * j])
                    add(words[4 + 3 * j])
            elif kind in ENUMS and members:
                self.number(words[2], vlen)
                for j in range(vlen):
                    self.name(words[3 + j * (2 if kind == ENUM else 3)])

    def hash(self, i, access, kind):
        self.out = bytearray()
        self.number(kind)
        local, _, words = self.record(i)
        self.out.append(local)
        self.name(words[0])
        if 7 <= kind <= 9 or kind == 12:
            self.name(access)
            self.structure(i, kind == 12)
        elif not self.path(i, self.text(access)):
            self.out += b"!"
        self.hashed += len(self.out)
        if self.hashed > MAX_HASHED:
            raise _Problem("its relocations lead to too many types")
        return _fnv(self.out)


def _fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def _records(data, endian):
    """Reads the CO-RE records of .BTF.ext: type, access string, kind."""
    bad = "its .BTF.ext is damaged"
    if len(data) < 24 or struct.unpack_from(endian + "H", data)[0] != 0xEB9F or data[2] != 1:
        raise _Problem("its .BTF.ext has no header")
    header, = struct.unpack_from(endian + "I", data, 4)
    if not 24 <= header <= len(data):
        raise _Problem(bad)
    if header < 32:
        return set()
    off, length = struct.unpack_from(endian + "II", data, 24)
    if not length:
        return set()
    at, end = header + off, header + off + length
    if end > len(data) or length < 4:
        raise _Problem(bad)
    size, = struct.unpack_from(endian + "I", data, at)
    if size < 16 or size % 4:
        raise _Problem(bad)
    at += 4
    records = set()
    while at < end:
        if end - at < 8:
            raise _Problem(bad)
        n, = struct.unpack_from(endian + "I", data, at + 4)
        at += 8
        if n > (end - at) // size:
            raise _Problem(bad)
        for _ in range(n):
            record = struct.unpack_from(endian + "III", data, at + 4)
            if record[2] != 6:  # local type ID
                records.add(record)
            at += size
    return records


def _fingerprint(elf):
    """Returns the fingerprint of an object, or None for one without relocations."""
    if len(elf) < 64 or elf[:5] != b"\x7fELF\2" or elf[5] not in (1, 2):
        raise _Problem("it is not a BPF object")
    endian = "<" if elf[5] == 1 else ">"
    types, ext = _section(elf, endian, b".BTF"), _section(elf, endian, b".BTF.ext")
    if not types or not ext:
        return None
    btf, records = _Btf(types, endian), _records(ext, endian)
    if not records:
        return None
    hashes = {btf.hash(*record) for record in sorted(records)}
    h = _fnv((b"L" if endian == "<" else b"B") + b"".join(struct.pack("<Q", h) for h in sorted(hashes)))
    return struct.pack("<I", (h ^ h >> 32) & 0xFFFFFFFF)


# -- host --


def _unquote(text):
    """Returns one shell word, which consists of bare pieces and pieces in quotes."""
    word, quote, i = b"", b"", 0
    while i < len(text):
        c, following = text[i:i + 1], text[i + 1:i + 2]
        i += 1
        if quote and c == quote:
            quote = b""
        elif quote == b"'":
            word += c
        elif c == b"\\" and following and (not quote or following in b"\"\\$`"):
            word += following
            i += 1
        elif not quote and c in b"\"'":
            quote = c
        elif not quote and c in b" \t":
            break
        else:
            word += c
    return word


def _open_under(root, name):
    """Opens a file below root, and follows links as if root were "/"."""
    done, todo, links = "", name.split("/"), 0
    while todo:
        part = todo.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            done = posixpath.dirname(done)
            continue
        at = posixpath.join(done, part)
        try:
            to = os.readlink(os.path.join(root, at))
        except OSError:  # not a link, or missing, so that opening it fails
            done = at
            continue
        links += 1
        if links > 40:
            raise OSError("too many links")
        if to.startswith("/"):
            done = ""
        todo = to.split("/") + todo
    return os.open(os.path.join(root, done), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _read_os_release(root, path):
    if path:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    else:
        os.listdir(root)
        for name in ("etc/os-release", "usr/lib/os-release"):
            try:
                fd = _open_under(root, name)
                break
            except OSError:
                fd = None
        if fd is None:
            return None
    with open(fd, "rb") as f:
        data = f.read(MAX_OS_RELEASE + 1)
    if len(data) > MAX_OS_RELEASE:
        raise OSError("too long for an os-release file")
    return data


def host(root="/", os_release=None, release="", arch=""):
    """Returns the System that is running. Its key has distribution and version from the os-release file below root, or from
    another file; release and arch from uname, unless they are given. A VERSION_ID that cannot be part of a key counts as none.
    Where builds have the same VERSION_ID and release, the version has the build, too. The archs mips and mips64, which uname says
    for both byte orders, are taken for the byte order of this program. Raises NoHost."""
    names = "ID VERSION_ID ID_LIKE VERSION_CODENAME UBUNTU_CODENAME DEBIAN_CODENAME BUILD_ID OPENWRT_BOARD".split()
    values = dict.fromkeys(names, "")
    try:
        data = _read_os_release(root, os_release)
    except OSError as e:
        raise NoHost(printable(f"host: os-release: {e}")) from None
    for line in (data or b"").split(b"\n"):
        name, equals, value = line.strip(b" \t\n\v\f\r").partition(b"=")
        if equals and _text(name) in values:
            values[_text(name)] = _text(_unquote(value))
    for name in _BUILD_NAMES.values():
        values[name] = values[name].replace("/", "_")
    for name in names[1:]:
        if _check_part(values[name]):
            values[name] = ""
    uname = os.uname()
    arch = arch or uname.machine
    if sys.byteorder == "little" and arch in ("mips", "mips64"):
        arch += "el"
    key = Key(values["ID"] or ("linux" if data is not None else ""), values["VERSION_ID"], arch, release or uname.release)
    for part, name in zip(key, ("os-release: ID", "os-release: VERSION_ID", "arch", "release")):
        if problem := _check_part(part):
            raise NoHost(f"host: {name} {problem}")
    key = key.canonical()
    versions = {id: of.get(values[id.upper() + "_CODENAME"], "") for id, of in _CODENAMES.items()}
    like = {}
    for id in ["ubuntu"] * bool(versions["ubuntu"]) + ["debian"] * bool(versions["debian"]) + values["ID_LIKE"].split(" "):
        id = Key(id).canonical().id
        version = key.version_id
        if id in _CODENAMES:
            version = versions[id] or _CODENAMES[id].get(values["VERSION_CODENAME"], "")
        if id and not _check_part(id) and id != key.id and len(like) < _MAX_LIKE:
            like.setdefault(id, version)
    build = values.get(_BUILD_NAMES.get(key.id), "")
    if build and key.version_id and len(_bytes(f"{key.version_id}-{build}")) <= 255:
        key = key._replace(version_id=f"{key.version_id}-{build}")
    return System(key, tuple(like.items()))
