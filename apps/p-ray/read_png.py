# SPDX-License-Identifier: BSD-3-Clause
"""read_png.py FILE: prints the size of a PNG that headway-p-ray wrote, and the checksum of its pixels."""
import struct
import sys
import zlib
from pathlib import Path

MASK = (1 << 64) - 1


def chunks(file: bytes) -> dict[bytes, bytes]:
    """The content of each chunk, by type; chunks of one type are joined."""
    if file[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("this is no PNG")
    found: dict[bytes, bytes] = {}
    at = 8
    while at < len(file):
        (length,) = struct.unpack(">I", file[at : at + 4])
        kind, content = file[at + 4 : at + 8], file[at + 8 : at + 8 + length]
        (crc,) = struct.unpack(">I", file[at + 8 + length : at + 12 + length])
        if crc != zlib.crc32(kind + content):
            raise ValueError(f"the checksum of chunk {kind!r} is wrong")
        found[kind] = found.get(kind, b"") + content
        at += 12 + length
    return found


def mixed(seed: int) -> int:
    """The first number of splitmix64."""
    x = (seed + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def main(argv: list[str]) -> int:
    found = chunks(Path(argv[1]).read_bytes())
    width, height, depth, colours, *rest = struct.unpack(">IIBBBBB", found[b"IHDR"])
    rows = zlib.decompress(found[b"IDAT"])
    if (depth, colours, *rest) != (8, 2, 0, 0, 0) or len(rows) != height * (3 * width + 1) or b"IEND" not in found:
        raise ValueError("this is not what the program writes")
    checksum = 0
    for y in range(height):
        row = rows[y * (3 * width + 1) : (y + 1) * (3 * width + 1)]
        if row[0] != 0:
            raise ValueError(f"row {y} is filtered")
        for x in range(width):
            red, green, blue = row[3 * x + 1 : 3 * x + 4]
            checksum += mixed((y * width + x) << 24 | red << 16 | green << 8 | blue)
    print(f"{width} x {height}, {checksum & MASK:016x}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
