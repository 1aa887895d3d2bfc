#!/usr/bin/env python3
"""Whether figures that gnuplot has drawn, PNGs, have a title: dark pixels above all else, in a twentieth of the height.

    packaging/words_in_figures.py FIGURES...
"""

import struct
import sys
import zlib

FEWEST = 100  # pixels; a letter of a title has more


def rows_of(data):
    """The rows of pixels of a PNG as gnuplot writes it, of 8 bits a channel, three or four of them, and not interlaced."""
    width, height, depth, colour, *ways = struct.unpack(">IIBBBBB", data[16:29])
    if data[:8] != b"\x89PNG\r\n\x1a\n" or depth != 8 or colour not in (2, 6) or ways != [0, 0, 0]:
        raise ValueError("no PNG of gnuplot's")
    channels, packed, place = 3 if colour == 2 else 4, b"", 8
    while place < len(data):
        size = struct.unpack(">I", data[place:place + 4])[0]
        if data[place + 4:place + 8] == b"IDAT":
            packed += data[place + 8:place + 8 + size]
        place += size + 12
    plain, stride, above = zlib.decompress(packed), width * channels, bytes(width * channels)
    for y in range(height // 20):
        kind, *row = plain[y * (stride + 1):(y + 1) * (stride + 1)]
        for x in range(stride):
            left, corner = (row[x - channels], above[x - channels]) if x >= channels else (0, 0)
            row[x] = (row[x] + predicted(kind, left, above[x], corner)) % 256
        yield [row[x:x + 3] for x in range(0, stride, channels)]
        above = row


def predicted(kind, left, up, corner):
    """What a filter of PNG expects of a byte, from three of its neighbours."""
    if kind == 4:
        return min((left, up, corner), key=lambda value: abs(left + up - corner - value))
    return (0, left, up, (left + up) // 2)[kind]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        with open(name, "rb") as file:
            ink = sum(max(pixel) < 96 for row in rows_of(file.read()) for pixel in row)
        if ink < FEWEST:
            sys.exit(f"words_in_figures: {name} has {ink} dark pixels where its title should be")
        print(f"{name}: a title of {ink} dark pixels")


main()
