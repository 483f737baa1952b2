# SPDX-License-Identifier: BSD-3-Clause
"""A PNG image of few levels of one colour, as a data URI."""

from __future__ import annotations

import base64
import struct
import zlib


def data_uri(rows: list[list[int]], levels: int, colour: tuple[int, int, int]) -> str:
    """Level 0 is transparent and `levels` opaque, so that the image suits light and dark pages."""
    width, height = len(rows[0]), len(rows)
    raw = b"".join(b"\0" + bytes(row) for row in rows)
    alphas = bytes(round(255 * level / levels) for level in range(levels + 1))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", bytes(colour) * (levels + 1))
        + chunk(b"tRNS", alphas)
        + chunk(b"IDAT", zlib.compress(raw, 9))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(png).decode()
