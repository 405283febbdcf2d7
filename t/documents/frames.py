"""Runs vlm-pdf and reads its frames, as lib/document/frame.h describes them."""

import ctypes
import os
import struct
import subprocess
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("HTTP_BUILD", "build")
HELPER = os.path.join(ROOT, BUILD, "vlm-pdf")
INFO, PAGE, PICTURE, ERROR, END, KILLED, DENIED = range(1, 8)


def has_landlock():
    """landlock_create_ruleset() with LANDLOCK_CREATE_RULESET_VERSION."""
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0


# vlm-pdf refuses to run without Landlock unless it is told to.
SANDBOX = [] if has_landlock() else ["sandbox=seccomp"]


class Answer:
    """All frames of one run; error is None after an END."""

    def __init__(self):
        self.title = self.error = self.picture = self.denied = None
        self.of = self.read = 0
        self.pages = []


def page(body):
    number, width, height, flags, n, _ = struct.unpack_from("=IffIII", body)
    text = body[24 + 28 * n:]
    words = []

    for i in range(n):
        first, size, *box, hidden = struct.unpack_from("=IIffffI", body, 24 + 28 * i)
        words.append({"text": text[first:first + size].decode(), "box": box, "hidden": bool(hidden)})

    return {"number": number, "width": width, "height": height, "scan": bool(flags & 1), "ocr": bool(flags & 2),
            "text": text.decode(), "words": words}


def read(file, *arguments, helper=HELPER, timeout=120):
    """file: an open file."""
    done = subprocess.run([helper, *SANDBOX, *arguments], stdin=file, stdout=subprocess.PIPE, timeout=timeout,
                          env={}, check=False)
    answer = Answer()
    data = done.stdout
    at = 0
    ended = False

    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        body = data[at + 8:at + 8 + size]
        at += 8 + size
        assert len(body) == size and not ended, "the frames are not whole"

        if kind == INFO:
            answer.of, answer.to_read = struct.unpack_from("=II", body)
            answer.title = body[8:].decode()
        elif kind == PAGE:
            answer.pages.append(page(body))
        elif kind == PICTURE:
            answer.picture = body
        elif kind == DENIED:
            answer.denied = body.decode()
        else:
            ended = True
            answer.error = body.decode() if kind in (ERROR, KILLED) else None

    assert ended, "there is no last frame"
    assert done.returncode in (0, 1), "vlm-pdf ended with %d" % done.returncode

    return answer


def pixels(png):
    """Width, height and rows of bytes of RGB of a PNG file of 8 bits, as cairo writes it."""
    at, data = 8, b""
    width = height = 0

    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        body = png[at + 8:at + 8 + size]
        at += 12 + size

        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", body)
            assert (depth, colour) == (8, 2)
        elif kind == b"IDAT":
            data += body

    return width, height, unfilter(zlib.decompress(data), width * 3)


def unfilter(data, stride):
    rows, before = [], bytearray(stride)

    for at in range(0, len(data), stride + 1):
        kind, row = data[at], bytearray(data[at + 1:at + 1 + stride])

        for i in range(stride):
            left = row[i - 3] if i > 2 else 0
            corner = before[i - 3] if i > 2 else 0
            row[i] = (row[i] + predicted(kind, left, before[i], corner)) & 255

        rows.append(row)
        before = row

    return rows


def predicted(kind, left, up, corner):
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]

    guess = left + up - corner
    return min((left, up, corner), key=lambda v: abs(guess - v))
