# SPDX-License-Identifier: Apache-2.0
"""usage: python3 -m btfa ARCHIVE [DIR]

Prints how the archive was made and the kernels in it. With DIR, writes the BTF of every kernel to
DIR/ID/VERSION_ID/ARCH/RELEASE.btf.
"""

import os
import sys

from . import Archive, Error, printable


def main(path, directory=None):
    archive = Archive.open(path)
    print(printable(archive.tool))
    print(f"shard {archive.part}/{archive.parts}")
    for arch, sha256 in archive.relocations:
        print(f'relocations "{printable(arch)}" {sha256.hex()}')
    for o in sorted(archive.objects, key=lambda o: o.name.encode(errors="surrogateescape")):
        print(f'object "{printable(o.name)}" {o.sha256.hex()} "{printable(" ".join(o.arches))}" {o.fingerprint.hex()}')
    for key in archive.keys():
        print(f"kernel {key}")
        if directory is not None:
            name = os.path.join(directory, *key[:3], key.release + ".btf")
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "wb") as f:
                f.write(archive.btf(key))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (Error, OSError) as e:
        sys.exit(f"btfa: {printable(str(e))}")
