#!/usr/bin/env python3
"""Makes t/fidelity/pictures/: small odd sizes, every pixel by an integer rule.

A picture has blocks of random colour and two gradients, so that a shifted, mirrored or differently
resized picture has other values, while the files are small.
"""

import os

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))

# name, width, height, side of a block, mode
PICTURES = [("61x117", 61, 117, 7, "RGB"), ("200x150", 200, 150, 10, "RGB"),
            ("40x30", 40, 30, 3, "RGB"), ("118x62", 118, 62, 5, "RGB"),
            ("113x57-grey", 113, 57, 6, "L"), ("31x290", 31, 290, 9, "RGB"),
            ("168x168", 168, 168, 14, "RGB"), ("427x331", 427, 331, 19, "RGB"),
            ("838x131", 838, 131, 37, "RGB")]

# Frames of two videos: each is another picture of the same size.
FRAMES = [("frame", 5, 70, 50, 8), ("tall", 3, 40, 330, 13)]

# A photograph's form: baseline, a quarter of the colour (4:2:0), blocks that the picture cuts.
JPEGS = [("151x109", 151, 109, 17)]


def pixel(x, y, channel, block, salt):
    h = (x // block * 73856093) ^ (y // block * 19349663) ^ (channel * 83492791) ^ salt
    h = (h * 2654435761) & 0xFFFFFFFF
    h = ((h ^ (h >> 15)) * 2246822519) & 0xFFFFFFFF
    return ((h >> 24) * 3 // 4 + x * (channel + 1) // 4 + y * (3 - channel) // 5) & 255


def pixels(w, h, block, salt):
    return np.array([[[pixel(x, y, c, block, salt * 1000003) for c in range(3)]
                      for x in range(w)] for y in range(h)], np.uint8)


def main():
    for salt, (name, w, h, block, mode) in enumerate(PICTURES):
        a = pixels(w, h, block, salt)
        image = Image.fromarray(a) if mode == "RGB" else Image.fromarray(a[:, :, 0], "L")
        image.save(os.path.join(HERE, "pictures", name + ".png"), optimize=True)
    for name, n, w, h, block in FRAMES:
        for i in range(n):
            image = Image.fromarray(pixels(w, h, block, 200 + w + i))
            image.save(os.path.join(HERE, "pictures", f"{name}-{i + 1}.png"), optimize=True)
    for salt, (name, w, h, block) in enumerate(JPEGS):
        image = Image.fromarray(pixels(w, h, block, 100 + salt))
        image.save(os.path.join(HERE, "pictures", name + ".jpg"), quality=80, subsampling=2,
                   optimize=True)


if __name__ == "__main__":
    main()
