"""PDF files whose text is in scripts of both directions, or has characters that readers trip over."""

import random

import hostile

# Letters, in the order in which they are drawn: from left to right.
SCRIPTS = {
    "hebrew": "אבגדהוזחטיכלמנ", "arabic": "ابتثجحخدذرز", "forms": "ﺍﺏﺕﺙﺝﺡﺥﺩﺫﺭﺯﻻ", "persian": "پچژگکی", "syriac": "ܐܒܓܕܗܘܙ",
    "thaana": "ހށނރބޅކ", "nko": "ߊߋߌߍߎߏ", "adlam": "𞤀𞤁𞤂𞤃𞤄", "digits": "۱۲۳٤٥", "latin": "abcdefg",
}
MARKS = ["\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u200e", "\u200f",
         "\u061c"]

# What one glyph may stand for.  Surrogates without their other half become two bytes of UTF-16 as they are.
UNITS = [*MARKS, "\u05d0", "\u05d0\u05d1", "\u0644\u0627", "\u0644\u0627\u202c", "\u202b\u05d0\u202c", "\u200b", "\u200c", "\ufeff",
         "\u00ad", "\u0301", "\u05b8", "\u064e", "e\u0301", "ffi", "\ufb03", "\U0001e900", "\U0001f600", "\ud83d", "\udc00",
         "\udc00\ud83d", "\0", "a\0b", "\n", "a b", "\t", "\u0085", "\u2028", "\uffff", "\ufffd", "\U0010ffff", "4711", "12",
         "\u0661", "x", "(", "\u05d0 \u05d1", "\u202e4711\u202c", "\U0001e900\u202c\U0001e901"]


class Page:
    """Lines of glyphs that stand for units of text.  A glyph has ink, unless its line is white or invisible."""

    def __init__(self):
        self.content = b""
        self.codes = {}

    def code(self, unit):
        return 0x41 + self.codes.setdefault(unit, len(self.codes))

    def line(self, units, x, y, how=b"0 g 0 Tr", actual=None):
        """With a text in place of all units, if it is given."""
        codes = b"".join(b"%02x" % self.code(unit) for unit in units)
        span = b"/Span<</ActualText<feff%s>>>BDC " % utf16(actual) if actual else b""
        self.content += b"BT %s /U 14 Tf %d %d Td %s<%s>Tj %sET\n" % (how, x, y, span, codes, b"EMC " if span else b"")

    def words(self, text, x, y, how=b"0 g 0 Tr"):
        self.content += b"BT %s /L 14 Tf %d %d Td (%s)Tj ET\n" % (how, x, y, text.encode())

    def objects(self, first):
        """The page, its content, and a font in which each code stands for its unit."""
        assert len(self.codes) < 0xff - 0x41
        map_ = b"".join(b"<%02x><%s>\n" % (0x41 + code, utf16(unit)) for unit, code in self.codes.items())
        to_unicode = (b"/CIDInit/ProcSet findresource begin 12 dict begin begincmap/CMapName/X def/CMapType 2 def "
                      b"1 begincodespacerange<00><ff>endcodespacerange %d beginbfchar\n%sendbfchar endcmap end end"
                      % (len(self.codes), map_))
        widths = b"/FirstChar 65/LastChar 255/Widths[%s]" % (b"600 " * 191)
        encoding = b"/Encoding<</Differences[65 %s]>>" % (b"/A/B/C/D/E/F/G/H/K/M/N/P/R/S/X/Z" * 12)[:-2]
        fonts = b"/L<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>/U %d 0 R" % (first + 2)

        return {first: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources<</Font<<%s>>>>>>"
                       % (first + 1, fonts),
                first + 1: hostile.stream(self.content),
                first + 2: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode %d 0 R%s%s>>"
                           % (first + 3, widths, encoding),
                first + 3: hostile.stream(to_unicode)}


def utf16(text):
    return text.encode("utf-16-be", "surrogatepass").hex().encode()


def document(pages):
    numbers = range(3, 3 + 4 * len(pages), 4)
    objects = {1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[%s]/Count %d>>" % (
        b" ".join(b"%d 0 R" % number for number in numbers), len(pages))}

    for number, page in zip(numbers, pages):
        objects.update(page.objects(number))

    return hostile.pdf(objects)


def injected(units, actual=None):
    """Text that is seen, then a white and an invisible line, beside it and below, then a line that is seen."""
    page = Page()
    page.line(units, 60, 700, actual=actual)
    page.words("WHITE 4711", 400, 700, b"1 g 0 Tr")
    page.words("WHITE 4711", 60, 660, b"1 g 0 Tr")
    page.words("NONE 4712", 60, 620, b"0 g 3 Tr")
    page.words("Visible 388.", 60, 580)
    page.line(units, 60, 540, b"1 g 0 Tr")

    return page


def all_injected():
    rng = random.Random(1)
    texts = [[unit] for unit in UNITS] + [list(script) for script in SCRIPTS.values()]
    texts += [[rng.choice(UNITS) for _ in range(rng.randint(2, 9))] for _ in range(100)]
    texts += [[*rng.choice(list(SCRIPTS.values()))[:4], rng.choice(UNITS), *rng.choice(list(SCRIPTS.values()))[:4]]
              for _ in range(40)]

    return [injected(text) for text in texts] + [injected(list("ABC"), actual="".join(text)) for text in texts]


def in_script(letters, numbers):
    """Words of a script, between numbers and Latin words if they are asked for."""
    page = Page()
    third = max(len(letters) // 3, 1)

    for i, y in enumerate(range(700, 560, -40)):
        x = 60

        for word in (letters[:third], letters[i % third:], letters[third:]):
            page.line(word, x, y)
            x += 20 + 9 * len(word)

            if numbers:
                page.words(("12", "EUR", "3.5", "page")[(i + x) % 4], x, y)
                x += 50

    return page


def all_scripts():
    """But for two that pdftotext takes for neutral signs."""
    return [in_script(letters, numbers) for name, letters in SCRIPTS.items() if name not in ("nko", "adlam")
            for numbers in (False, True)]
