"""PDF files that attack their reader.  Each function makes one."""

import random
import zlib

MANY = 10 ** 6


def pdf(objects, trailer=b"", prev=None):
    """A file of numbered objects; number 1 is the catalog."""
    out = b"%PDF-1.7\n"
    at = {}

    for number, body in objects.items():
        at[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)

    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (max(objects) + 1)

    for number in range(1, max(objects) + 1):
        out += b"%010d 00000 n \n" % at.get(number, 0)

    if prev is not None:
        trailer += b"/Prev %d" % (start if prev == "itself" else prev)

    return out + b"trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n" % (
        max(objects) + 1, trailer, start)


def stream(data, head=b"", packed=False):
    data = zlib.compress(data, 9) if packed else data
    filters = b"/Filter/FlateDecode" if packed else b""

    return b"<</Length %d%s%s>>stream\n%s\nendstream" % (len(data), filters, head, data)


def one_page(content, resources=b"", more=None, box=b"0 0 612 792", catalog=b""):
    objects = {1: b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog, 2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
               3: b"<</Type/Page/Parent 2 0 R/MediaBox[%s]/Contents 4 0 R/Resources<<%s>>>>" % (box, resources),
               4: content}
    objects.update(more or {})

    return pdf(objects)


def nested_forms():
    """Nine forms, each of which draws the next ten times: a billion of the last."""
    forms = {}

    for i in range(9):
        again = b"/F Do " * 10 if i < 8 else b"0 0 5 5 re f "
        resources = b"/Resources<</XObject<</F %d 0 R>>>>" % (11 + i) if i < 8 else b""
        forms[10 + i] = stream(again, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]" + resources)

    return one_page(stream(b"/F Do " * 10), b"/XObject<</F 10 0 R>>", forms)


def form_in_itself():
    return one_page(stream(b"/F Do"), b"/XObject<</F 10 0 R>>", {
        10: stream(b"/F Do /F Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 10 0 R>>>>")})


def inflating_stream():
    """A quarter of a megabyte becomes 72 MB of operators."""
    text = b"BT /H 9 Tf 1 0 0 1 0 0 Tm " + b"(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj " * (2 * MANY) + b"ET"
    font = b"/Font<</H<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"

    return one_page(stream(text, packed=True), font)


def inflating_twice():
    packed = zlib.compress(zlib.compress(b"\0" * (300 * MANY), 9), 9)

    return one_page(b"<</Length %d/Filter[/FlateDecode/FlateDecode]>>stream\n%s\nendstream" % (len(packed), packed))


def huge_box():
    return one_page(stream(b"0 0 9 9 re f"), box=b"0 0 2000000 2000000")


def page_loop():
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
                3: b"<</Type/Pages/Parent 2 0 R/Kids[2 0 R]/Count 1>>"})


def many_pages():
    """One page 200,000 times."""
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R>>",
                2: b"<</Type/Pages/Kids[%s]/Count 200000>>" % (b"3 0 R " * 200000),
                3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>"})


def long_name():
    name = b"/" + b"N" * 16384

    return one_page(stream(b"%s Do %s gs" % (name, name)), b"/XObject<<%s 4 0 R>>" % name)


def font_bomb():
    """Glyphs of a Type 3 font that draw with their own font."""
    glyph = stream(b"9 0 0 0 9 9 d1 BT /T 1 Tf (aaaaaaaaaaaaaaaa) Tj ET")
    font = (b"<</Type/Font/Subtype/Type3/FontBBox[0 0 9 9]/FontMatrix[1 0 0 1 0 0]/CharProcs<</a 11 0 R>>"
            b"/Encoding<</Differences[97/a]>>/FirstChar 97/LastChar 97/Widths[9]/Resources<</Font<</T 10 0 R>>>>>>")

    return one_page(stream(b"BT /T 9 Tf (aaaaaaaaaaaaaaaa) Tj ET"), b"/Font<</T 10 0 R>>", {10: font, 11: glyph})


def javascript():
    return one_page(stream(b"0 0 9 9 re f"), catalog=b"/OpenAction<</S/JavaScript/JS(while (1) app.alert(1);)>>"
                                                     b"/AA<</WC<</S/Launch/F(/bin/sh)>>>>")


def huge_image():
    """A picture of 60,000 x 60,000 pixels of one colour."""
    data = zlib.compress(b"\0" * 1000, 9)
    picture = (b"<</Type/XObject/Subtype/Image/Width 60000/Height 60000/ColorSpace/DeviceRGB/BitsPerComponent 8"
               b"/Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(data), data))

    return one_page(stream(b"600 0 0 600 0 0 cm /I Do"), b"/XObject<</I 10 0 R>>", {10: picture})


def tiny_tiles():
    tile = stream(b"0 0 0.001 0.001 re f", b"/Type/Pattern/PatternType 1/PaintType 1/TilingType 1"
                                            b"/BBox[0 0 0.001 0.001]/XStep 0.001/YStep 0.001/Resources<<>>")

    return one_page(stream(b"/Pattern cs /P scn 0 0 612 792 re f"), b"/Pattern<</P 10 0 R>>", {10: tile})


def table_loop():
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[]/Count 0>>"}, prev="itself")


def length_loop():
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
                3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
                4: b"<</Length 4 0 R>>stream\n0 0 1 1 re f\nendstream"})


def deep_lists():
    return pdf({1: b"<</Type/Catalog/Pages 2 0 R/X %s%s>>" % (b"[" * 100000, b"]" * 100000),
                2: b"<</Type/Pages/Kids[]/Count 0>>"})


def no_pdf():
    return b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


def nothing():
    return b""


def speckled():
    """A scan of seven million pixels, every fifth black: seconds of work for OCR, and no word."""
    random.seed(1)
    side = 2700
    dots = bytes(0 if random.random() < 0.2 else 255 for _ in range(side * side))
    image = stream(dots, b"/Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8/ColorSpace/DeviceGray"
                   % (side, side), packed=True)

    return one_page(stream(b"1000 0 0 1000 0 0 cm /I Do"), b"/XObject<</I 10 0 R>>", {10: image}, box=b"0 0 1000 1000")


def crowded():
    """Two million letters, each in a place of its own: a sixth of a megabyte becomes more than 128 MB."""
    text = b"BT /H 9 Tf " + b"".join(b"1 0 0 1 %d %d Tm (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa) Tj " % (7 * i % 500, i % 700)
                                     for i in range(60000)) + b"ET"

    return one_page(stream(text, packed=True), b"/Font<</H<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>")


PAGE = "a page"                            # no error
LATE = "reading took longer than {seconds} s"
FULL = "reading needed more than {megabytes} MB of memory"

# The end of each.
ATTACKS = {
    nested_forms: LATE, form_in_itself: PAGE, inflating_stream: PAGE, inflating_twice: PAGE, huge_box: PAGE,
    page_loop: "damaged: none of its pages can be read", many_pages: "damaged: it has no pages", long_name: PAGE,
    font_bomb: LATE, javascript: PAGE, huge_image: PAGE, tiny_tiles: PAGE, table_loop: "damaged: it has no pages",
    length_loop: PAGE, deep_lists: "damaged: it has no pages", no_pdf: "damaged: PDF document is damaged",
    nothing: "damaged: PDF document is damaged", crowded: FULL,
}

# The end of drawing, if it is another one.
UNDRAWN = {page_loop: "the page cannot be read"}

# These take up to five seconds of an idle core, more than some tests give them.
SLOW = (inflating_stream, inflating_twice, crowded)


def answers(function, seconds, megabytes, drawn=False):
    """The only ones that are right: a file that takes long may be ended by either of two clocks."""
    right = [(drawn and UNDRAWN.get(function)) or ATTACKS[function]]

    if right == [FULL] and not megabytes:
        right = [PAGE]

    if function in SLOW and seconds < 60:
        right.append(LATE)

    if LATE in right:
        right.append(LATE + " of processor time")

    return [answer.format(seconds=seconds, megabytes=megabytes) for answer in right]
