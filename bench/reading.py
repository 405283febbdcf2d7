#!/usr/bin/env python3
"""Measures how long vlm-pdf takes for a page's text, for OCR, for its picture, and until the first page.

    bench/reading.py [--rounds N]

The file is made here: A4 pages of 45 lines, 540 words each, in Helvetica.  A page's time is the difference between
long and short files, over the pages between them; a picture has 100 dots an inch and is that of a process of its own.  All
times are wall time at one process; the limits are targets on an idle core.
"""

import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "t", "documents"))

import frames  # noqa: E402
import hostile  # noqa: E402

LINES, WORDS = 45, 12
LONG = 60                               # pages
PIXELS = 827 * 1169                     # A4 at 100 dots an inch
NAMES = ("belt", "bearing", "motor", "temperature", "maintenance", "hours", "load", "replace", "check", "the",
         "of", "exceeds", "conveyor", "manual", "drive", "with")


def words(page, line):
    return " ".join(NAMES[(page * 7 + line * 5 + i * 3) % len(NAMES)] if i % 6 else str(page * 1000 + line * 10 + i)
                    for i in range(WORDS))


def write(path, n):
    """Writes a PDF file of n pages."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(n))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {n}>>",
               "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]

    for page in range(n):
        text = "BT /F 9 Tf 16 TL 40 790 Td\n" + "\n".join(f"({words(page, line)}) Tj T*" for line in range(LINES))
        text += "\nET"
        objects.append("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>"
                       f"/Contents {5 + 2 * page} 0 R>>")
        objects.append(f"<</Length {len(text)}>>\nstream\n{text}\nendstream")

    out, places = "%PDF-1.4\n", []

    for i, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{i} 0 obj\n{body}\nendobj\n"

    table = "".join(f"{place:010} 00000 n \n" for place in places)
    out += (f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(places) + 1}/Root 1 0 R>>\n"
            f"startxref\n{len(out)}\n%%EOF\n")

    with open(path, "w", encoding="ascii") as file:
        file.write(out)


def scan(source, path, n):
    """Writes a PDF file of n pages, each the picture of the first page of source at 200 dots an inch."""
    with open(source, "rb") as file:
        width, height, rows = frames.pixels(frames.read(file, "picture=1", f"pixels={4 * PIXELS}").picture[12:])

    grey = zlib.compress(b"".join(row[::3] for row in rows))
    kids = " ".join(f"{5 + i} 0 R" for i in range(n))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {n}>>".encode(),
               f"<</Type/XObject/Subtype/Image/Width {width}/Height {height}/BitsPerComponent 8/ColorSpace/DeviceGray"
               f"/Filter/FlateDecode/Length {len(grey)}>>stream\n".encode() + grey + b"\nendstream",
               b"<</Length 26>>stream\n595 0 0 842 0 0 cm /I Do  \nendstream"]
    objects += [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</I 3 0 R>>>>"
                b"/Contents 4 0 R>>"] * n

    with open(path, "wb") as file:
        file.write(hostile.pdf(dict(enumerate(objects, 1))))


def run(path, *arguments):
    """Returns the milliseconds until the first page's frame and until the end, and the kinds of the frames."""
    with open(path, "rb") as file:
        began = time.perf_counter()
        child = subprocess.Popen([frames.HELPER, *frames.SANDBOX, *arguments], stdin=file, stdout=subprocess.PIPE,
                                 env={})
        first, kinds = None, []

        while head := child.stdout.read(8):
            kind, size = struct.unpack("=II", head)
            child.stdout.read(size)
            kinds.append(kind)

            if first is None and kind == frames.PAGE:
                first = (time.perf_counter() - began) * 1000

        child.wait()

    return first, (time.perf_counter() - began) * 1000, kinds


def figure(name, values, limit):
    value = statistics.median(values)
    print(json.dumps({"name": name, "value": round(value, 2), "unit": "ms", "limit": limit,
                      "share": round(value / limit, 3)}), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=9)
    a = p.parse_args()

    text, first, ocr, pictures, han = [], [], [], [], []

    with tempfile.TemporaryDirectory() as folder:
        short, long = (os.path.join(folder, name) for name in ("short.pdf", "long.pdf"))
        scans = [os.path.join(folder, f"scan{n}.pdf") for n in (1, 3)]
        write(short, 1)
        scan(short, scans[0], 1)
        scan(short, scans[1], 3)
        write(long, LONG)

        for _ in range(a.rounds):
            _, one, kinds = run(short)
            assert kinds == [frames.INFO, frames.PAGE, frames.END], kinds
            to_first, all_pages, kinds = run(long)
            assert kinds.count(frames.PAGE) == LONG, kinds
            first.append(to_first)
            text.append((all_pages - one) / (LONG - 1))

            one, three = (run(path, "ocr=eng", "ocr_time=600", "time=900")[1] for path in scans)
            ocr.append((three - one) / 2)

            for times, path in ((pictures, short), (han, os.path.join(ROOT, "t/documents/files/han.pdf"))):
                _, took, kinds = run(path, "picture=1", f"pixels={PIXELS}")
                assert frames.PICTURE in kinds, kinds
                times.append(took)

    figure("document_page_text", text, 15)
    figure("document_first_page", first, 100)
    figure("document_page_ocr", ocr, 3000)
    figure("document_page_picture", pictures, 60)
    figure("document_page_picture_han", han, 60)


if __name__ == "__main__":
    main()
