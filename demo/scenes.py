"""Draws table-top scenes: blocks, cups, bowls, bottles, balls and spoons.

A scene is a dict {"seed", "objects", "look", ...}; an object knows its kind, colour, box, the box of
the part a hand would take (`grasp`), a point on this part (`hold`), one on the object (`point`) and the
polygons it was drawn with.
All coordinates are pixels of the 252x252 picture.  The same seed and look give the same picture.

A look is a set of words: "dark" (a dark table), "contrast" (little of it, as through haze) and "turned" (the
camera is held askew, and nearer to the table or higher above it).
"""

import math
import random

from PIL import Image, ImageChops, ImageDraw

SIZE = 252
SCALE = 2                       # drawn larger, then reduced: smooth edges
KINDS = ("block", "cup", "bowl", "bottle", "ball", "spoon")
COLOURS = {
    "red": (208, 38, 40), "green": (46, 150, 62), "blue": (40, 84, 204), "yellow": (236, 206, 44),
    "orange": (240, 130, 30), "purple": (134, 58, 168), "white": (240, 240, 238), "black": (38, 38, 42),
}
TABLES = ((196, 164, 122), (170, 132, 92), (182, 184, 188), (150, 158, 166), (204, 196, 180),
          (160, 178, 160), (164, 176, 196), (140, 112, 86), (214, 206, 198))
DARK_TABLES = ((22, 24, 28), (46, 40, 36), (62, 48, 36), (36, 50, 44), (34, 42, 64), (72, 64, 56), (16, 16, 18),
               (84, 68, 54), (58, 36, 40), (74, 78, 84))
LOOKS = ("dark", "contrast", "turned")
ASKEW = 14                      # degrees, at most, of a turned camera


def ellipse(cx, cy, rx, ry, start=0.0, end=2 * math.pi, n=22):
    step = (end - start) / n
    return [(cx + rx * math.cos(start + i * step), cy + ry * math.sin(start + i * step))
            for i in range(n + 1)]


def bounds(polygons):
    xs = [x for p in polygons for x, _ in p]
    ys = [y for p in polygons for _, y in p]
    return [min(xs), min(ys), max(xs), max(ys)]


# Each shape returns (parts, grasp polygons, point): parts are (polygon, brightness) from back to front,
# about the point (0, 0) where the object stands; k is how much of the ground's depth is seen.

def block(r, k, rng):
    c, yaw = math.sqrt(1 - k * k), rng.uniform(0, math.pi / 2)
    a, height = r * 0.82, r * rng.uniform(1.1, 1.7) * c
    foot = [(a * math.sqrt(2) * math.cos(yaw + i * math.pi / 2 + math.pi / 4),
             a * math.sqrt(2) * math.sin(yaw + i * math.pi / 2 + math.pi / 4) * k) for i in range(4)]
    top = [(x, y - height) for x, y in foot]
    sides = []
    for i in range(4):
        j = (i + 1) % 4
        if foot[i][0] > foot[j][0]:                     # this side faces us
            light = 0.62 + 0.24 * (foot[i][1] < foot[j][1])
            sides.append(([foot[i], foot[j], top[j], top[i]], light))
    parts = sides + [(top, 1.08)]
    return parts, [p for p, _ in parts], (0, -height / 2)


def cup(r, k, rng):
    c, side = math.sqrt(1 - k * k), rng.choice((-1, 1))
    height, low = r * 1.75 * max(c, 0.55), 0.8
    wide = r * rng.uniform(0.6, 0.85)
    my = -height * 0.52
    outer = ellipse(side * r * 0.86, my, wide, height * 0.36, -math.pi / 2, math.pi / 2, 14)
    inner = ellipse(side * r * 0.86, my, wide * 0.55, height * 0.2, -math.pi / 2, math.pi / 2, 14)
    mirror = (lambda x: x) if side > 0 else (lambda x: 2 * side * r * 0.86 - x)
    handle = [(mirror(x), y) for x, y in outer] + [(mirror(x), y) for x, y in reversed(inner)]
    body = [(-r, -height)] + ellipse(0, 0, r * low, r * low * k * 0.9, math.pi, 0, 14) + [(r, -height)]
    rim = ellipse(0, -height, r, r * k * 0.9)
    hole = ellipse(0, -height, r * 0.84, r * k * 0.74)
    parts = [(handle, 0.74), (body, 0.9), (rim, 1.1), (hole, 0.5)]
    return parts, [handle], (0, -height * 0.45)


def bowl(r, k, rng):
    c = math.sqrt(1 - k * k)
    rx, depth = r * 1.3, r * rng.uniform(0.6, 0.85) * max(c, 0.5)
    body = ellipse(0, -depth, rx, depth + rx * k * 0.55, 0, math.pi, 18)
    rim = ellipse(0, -depth, rx, rx * k * 0.8)
    hole = ellipse(0, -depth, rx * 0.88, rx * k * 0.68)
    return [(body, 0.82), (rim, 1.1), (hole, 0.55)], [rim], (0, -depth)


def bottle(r, k, rng):
    c = math.sqrt(1 - k * k)
    w, tall = r * 0.66, r * rng.uniform(1.7, 2.2) * max(c, 0.6)
    nw, neck = r * 0.25, r * 0.85 * max(c, 0.6)
    body = (ellipse(0, 0, w, w * k * 0.8, math.pi, 0, 12) + [(w, -tall), (nw, -tall - r * 0.45),
            (-nw, -tall - r * 0.45), (-w, -tall)])
    y = -tall - r * 0.4
    throat = [(-nw, y), (nw, y), (nw, y - neck), (-nw, y - neck)]
    cap = [(-nw * 1.3, y - neck), (nw * 1.3, y - neck), (nw * 1.3, y - neck - r * 0.3),
           (-nw * 1.3, y - neck - r * 0.3)]
    label = [(-w, -tall * 0.7), (w, -tall * 0.7), (w, -tall * 0.35), (-w, -tall * 0.35)]
    return [(body, 0.9), (label, 1.12), (throat, 0.75), (cap, 0.5)], [throat, cap], (0, -tall * 0.5)


def ball(r, k, rng):
    a = r * 0.88
    disc, lit = ellipse(0, -a, a, a, n=28), ellipse(-a * 0.3, -a * 1.35, a * 0.3, a * 0.24)
    low = ellipse(0, -a, a, a, 0.15 * math.pi, 0.85 * math.pi, 14)
    return [(disc, 0.96), (low, 0.74), (lit, 1.45)], [disc], (0, -a)


def spoon(r, k, rng):
    phi = rng.choice((0, 1, 2, 3)) * math.pi / 2 + rng.uniform(0.35, 1.2)
    flat, half = 0.55 + 0.45 * k, r * 1.5
    ux, uy = math.cos(phi), math.sin(phi)

    def place(along, across):
        return (along * ux - across * uy, (along * uy + across * ux) * flat)

    head = [place(half * 0.62 + x, y) for x, y in ellipse(0, 0, r * 0.58, r * 0.38)]
    dent = [place(half * 0.62 + x, y) for x, y in ellipse(0, 0, r * 0.4, r * 0.24)]
    w = max(2.6, r * 0.13)
    handle = [place(half * 0.3, -w * 0.8), place(-half * 0.95, -w * 1.3), place(-half, 0),
              place(-half * 0.95, w * 1.3), place(half * 0.3, w * 0.8)]
    return [(handle, 0.9), (head, 1.0), (dent, 0.66)], [handle], place(half * 0.3, 0)


SHAPES = {"block": block, "cup": cup, "bowl": bowl, "bottle": bottle, "ball": ball, "spoon": spoon}


def hold_of(kind, held):
    """A point on the part that a hand would take: in the middle of it, of a cup on the arc of its handle."""
    x1, y1, x2, y2 = bounds(held)
    if kind == "cup":
        outer, inner = held[0][7], held[0][22]          # two arcs of 15 points, the second one backwards
        return round((outer[0] + inner[0]) / 2), round((outer[1] + inner[1]) / 2)
    return round((x1 + x2) / 2), round((y1 + y2) / 2)


def make_object(rng, kind, colour, k):
    r = rng.uniform(18, 31) if kind != "bottle" else rng.uniform(19, 29)
    parts, grasp, point = SHAPES[kind](r, k, rng)
    box = bounds([p for p, _ in parts])
    cx = rng.uniform(3 - box[0], SIZE - 3 - box[2])
    cy = rng.uniform(3 - box[1], SIZE - 3 - box[3])
    far = (cx, cy)

    def move(p):
        return [(x + far[0], y + far[1]) for x, y in p]

    parts, held = [(move(p), light) for p, light in parts], [move(p) for p in grasp]
    whole = [p for p, _ in parts]
    return {
        "kind": kind, "colour": colour, "foot": (cx, cy), "radius": r, "parts": parts,
        "box": [round(v) for v in bounds(whole)],
        "grasp": [round(v) for v in bounds(held)], "hold": hold_of(kind, held),
        "point": (round(point[0] + cx), round(point[1] + cy)), "held": held,
    }


def turned(points, degrees):
    """The points as a camera sees them that is held askew."""
    c, s, m = math.cos(math.radians(degrees)), math.sin(math.radians(degrees)), SIZE / 2
    return [(m + (x - m) * c - (y - m) * s, m + (x - m) * s + (y - m) * c) for x, y in points]


def turn_object(obj, degrees):
    """The object as a turned camera sees it; None where a part of it is outside of the picture."""
    parts = [(turned(p, degrees), light) for p, light in obj["parts"]]
    box = bounds([p for p, _ in parts])
    if min(box) < 2 or max(box) > SIZE - 3:
        return None
    (foot, point), grasp = turned([obj["foot"], obj["point"]], degrees), [turned(p, degrees) for p in obj["held"]]
    return dict(obj, parts=parts, foot=foot, held=grasp, box=[round(v) for v in box],
                grasp=[round(v) for v in bounds(grasp)], hold=hold_of(obj["kind"], grasp),
                point=tuple(round(v) for v in point))


def turn_scene(scene, rng):
    """The camera of a scene is turned as far as its objects stay in the picture."""
    for reach in (ASKEW, ASKEW, ASKEW / 2, ASKEW / 4):
        degrees = rng.uniform(0.3, 1) * reach * rng.choice((-1, 1))
        objects = [turn_object(o, degrees) for o in scene["objects"]]
        seen = [o for o in objects if o]
        if seen and len(seen) >= len(objects) - 1:
            return dict(scene, objects=sorted(seen, key=lambda o: o["foot"][1]), degrees=degrees)
    return scene


def clear_of(obj, others, gap=3):
    x1, y1, x2, y2 = obj["box"]
    for o in others:
        a1, b1, a2, b2 = o["box"]
        if x1 < a2 + gap and a1 < x2 + gap and y1 < b2 + gap and b1 < y2 + gap:
            return False
    return True


def partner_of(scene, rng):
    """Kinds and colours for a second scene about which the same questions can be asked."""
    found = []
    for obj in scene["objects"]:
        kind, colour, chance = obj["kind"], obj["colour"], rng.random()
        if 0.55 < chance < 0.75:
            colour = rng.choice(sorted(COLOURS))
        elif 0.75 < chance < 0.85:
            kind = rng.choice(KINDS)
        if chance < 0.93:
            found.append((kind, colour))
    extra = rng.randint(0, 6 - len(found)) if rng.random() < 0.7 else 0
    return found + [(rng.choice(KINDS), rng.choice(sorted(COLOURS))) for _ in range(extra)]


def make_scene(seed, most=6, like=None, look=()):
    """A scene without its picture; `like` lists (kind, colour) that it must hold, room permitting."""
    rng, turn = random.Random(seed), "turned" in look
    k = rng.uniform(0.34, 0.9) if turn else rng.uniform(0.45, 0.8)
    objects = place_all(like, k, rng) if like else place_some(most, k, rng)
    objects.sort(key=lambda o: o["foot"][1])
    scene = {"seed": seed, "objects": objects, "k": k, "look": frozenset(look), "degrees": 0.0}
    return turn_scene(scene, random.Random(seed ^ 0x7042)) if turn else scene


def place_some(most, k, rng):
    objects, wanted = [], rng.randint(1, most)
    few = rng.random() < 0.35               # now and then the kinds or colours repeat
    kinds = rng.sample(KINDS, rng.randint(1, 3)) if few else KINDS
    colours = rng.sample(sorted(COLOURS), rng.randint(2, 4)) if rng.random() < 0.35 else sorted(COLOURS)
    taken = set()
    for _ in range(wanted * 12):
        if len(objects) == wanted:
            break
        kind, colour = rng.choice(kinds), rng.choice(colours)
        if (kind, colour) in taken and rng.random() < 0.8:
            continue
        obj = make_object(rng, kind, colour, k)
        if clear_of(obj, objects):
            objects.append(obj)
            taken.add((kind, colour))
    return objects


def place_all(like, k, rng):
    objects = []
    for kind, colour in like:
        for _ in range(30):
            obj = make_object(rng, kind, colour, k)
            if clear_of(obj, objects):
                objects.append(obj)
                break
    return objects


def shade(colour, light, tint):
    return tuple(max(0, min(255, int(v * light * t))) for v, t in zip(colour, tint))


def scaled(polygon, dx=0.0, dy=0.0):
    return [((x + dx) * SCALE, (y + dy) * SCALE) for x, y in polygon]


def draw_table(draw, rng, dark, span):
    base = rng.choice(DARK_TABLES if dark else TABLES)
    draw.rectangle((0, 0, span, span), fill=base)
    if rng.random() < 0.5:                                  # boards
        step = rng.randint(24, 60)
        for i in range(rng.randint(0, step), span, step):
            tone = tuple(max(0, v + rng.randint(-10, 6)) for v in base)
            draw.rectangle((0, i, span, i + step), fill=tone)
            draw.line((0, i, span, i), fill=tuple(max(0, v - 22) for v in base))
    if rng.random() < 0.35:                                 # a wall behind the table
        tone = rng.randint(120, 225) // (4 if dark else 1)
        draw.rectangle((0, 0, span, rng.randint(10, 60)), fill=(tone, tone, tone - rng.randint(-12, 12)))
    if rng.random() < 0.35:                                 # a mat
        x, y = rng.randint(0, 300), rng.randint(80, 340)
        tone = tuple(max(0, min(255, v + rng.choice((-34, -22, 20, 30)))) for v in base)
        draw.rectangle((x, y, x + rng.randint(90, 260), y + rng.randint(60, 160)), fill=tone)
    for _ in range(rng.choice((0, 0, 2, 5, 9))):            # crumbs and stains
        x, y, s = rng.randint(0, span), rng.randint(0, span), rng.randint(2, 7)
        tone = tuple(max(0, v + rng.randint(-50, 20)) for v in base)
        draw.ellipse((x, y, x + s * 2, y + s), fill=tone)


def draw_object(draw, obj, rng):
    tint = [rng.uniform(0.9, 1.08)] * 3
    tint = [t * rng.uniform(0.96, 1.04) for t in tint]
    colour = COLOURS[obj["colour"]]
    for polygon, light in obj["parts"]:
        draw.polygon(scaled(polygon), fill=shade(colour, light, tint),
                     outline=shade(colour, light * 0.8, tint))


def draw_shadow(draw, obj, shadow, tone, degrees):
    x, y = obj["foot"]
    r = obj["radius"]
    if obj["kind"] == "spoon":
        for polygon, _ in obj["parts"][:2]:
            draw.polygon(scaled(polygon, shadow[0] * 4, 3), fill=tone)
        return
    [(x, y)] = turned([(x, y)], -degrees)
    draw.polygon(scaled(turned(ellipse(x + shadow[0] * r * 0.5, y, r * 1.05, r * 0.5), degrees)), fill=tone)


_noise = []


def noise(rng):
    """A bank of grain pictures: drawing fresh grain for every scene would cost more than the scene."""
    if not _noise:
        source = random.Random(1)
        for i in range(5):
            reach = 3 + 5 * i
            table = [128 + round((v - 127.5) / 127.5 * reach) for v in range(256)]
            _noise.append(Image.frombytes("RGB", (SIZE, SIZE), source.randbytes(SIZE * SIZE * 3))
                          .point(table * 3))
    return ImageChops.offset(rng.choice(_noise), rng.randrange(SIZE), rng.randrange(SIZE))


def draw_ground(rng, dark, degrees):
    """The table without its objects; a turned camera sees more of it, so that there are no empty corners."""
    span = SIZE * SCALE
    wide = span if not degrees else span * 4 // 3
    image = Image.new("RGB", (wide, wide))
    draw_table(ImageDraw.Draw(image), rng, dark, wide)
    if not degrees:
        return image
    edge = (wide - span) // 2
    return image.rotate(-degrees).crop((edge, edge, edge + span, edge + span))


def fade(image, rng):
    """Haze: the rest of the contrast lies about some grey."""
    left, grey = rng.uniform(0.3, 0.6), rng.uniform(60, 190)
    return image.point([int(grey + left * (v - grey)) for v in range(256)] * 3)


def render(scene):
    """The scene's picture, a 252x252 RGB image."""
    rng, look, degrees = random.Random(scene["seed"] ^ 0x5CE7E), scene["look"], scene["degrees"]
    image = draw_ground(rng, "dark" in look, degrees)
    draw = ImageDraw.Draw(image)
    shadow = (rng.uniform(-1, 1), 0)
    ground = image.getpixel((SIZE, SIZE * SCALE - 5))
    tone = tuple(int(v * rng.uniform(0.68, 0.76)) for v in ground)
    for obj in scene["objects"]:
        draw_shadow(draw, obj, shadow, tone, degrees)
    for obj in scene["objects"]:
        draw_object(draw, obj, rng)
    image = image.reduce(SCALE)
    if "contrast" in look:
        image = fade(image, random.Random(scene["seed"] ^ 0xFADE))
    image = ImageChops.add(image, noise(rng), 1.0, -128)
    bright, warm = rng.uniform(0.68, 1.12), rng.uniform(-0.05, 0.05)
    gains = (bright * (1 + warm), bright, bright * (1 - warm))
    return image.point([min(255, int(v * g)) for g in gains for v in range(256)])


if __name__ == "__main__":
    import sys
    import time
    sheet = Image.new("RGB", (SIZE * 6, SIZE * 4))
    start = time.time()
    for i in range(24):
        scene = make_scene(1000 + i, look=sys.argv[2:])
        picture = render(scene)
        sheet.paste(picture, (i % 6 * SIZE, i // 6 * SIZE))
    print("%.1f ms a scene" % ((time.time() - start) / 24 * 1000))
    sheet.save(sys.argv[1])
