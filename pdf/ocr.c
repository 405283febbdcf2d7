/* Tesseract behind three functions: where its data is, its start, a picture's words. */

#define _GNU_SOURCE

#include "ocr.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <tesseract/capi.h>

#include "base/clock.h"

/*
 * Tesseract's confidence in a word, of 100.  Hardly a word that was read rightly has less than
 * SURE, and what has less than NOISE is a picture's lines and dots.
 */
#define SURE   60.0f
#define NOISE  40.0f

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* Of Debian, of Fedora and Arch, of Tesseract's own make install. */
static const char *const  DIRS[] = {
    "/usr/share/tesseract-ocr/5/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata"
};

static TessBaseAPI  *api;                  /* one a process, which ends with its document */


/* ---- the data ----------------------------------------------------------------------------- */

static int
has_data(const char *dir, const char *language, int bytes)
{
    char  path[PDF_OCR_DIR + PDF_OCR_LANGUAGES + sizeof("/.traineddata")];

    snprintf(path, sizeof(path), "%s/%.*s.traineddata", dir, bytes, language);

    return access(path, R_OK) == 0;
}


/* The first language without data in a directory, and its bytes; NULL: all have some. */
static const char *
missing(const char *dir, const char *languages, int *bytes)
{
    const char  *p;

    for (p = languages; *p; p += *bytes, p += *p == '+') {
        *bytes = (int) strcspn(p, "+");

        if (!has_data(dir, p, *bytes)) {
            return p;
        }
    }

    return NULL;
}


static void
say_missing(char *text, size_t bytes, const char *dir, const char *language, int n)
{
    char  *p, package[PDF_OCR_LANGUAGES];

    snprintf(package, sizeof(package), "%.*s", n, language);

    for (p = package; *p; p++) {
        *p = *p == '_' ? '-' : *p;
    }

    snprintf(text, bytes, VLM_PDF_OCR_ERROR "there is no %.*s.traineddata in %s: install "
             "tesseract-ocr-%s", n, language, dir, package);
}


/* The first directory that there is; without any, the message names Debian's. */
static int
find(const char *languages, char dir[PDF_OCR_DIR], char *text, size_t bytes)
{
    int          n;
    size_t       i = 0;
    const char  *language;

    while (i < COUNT(DIRS) && access(DIRS[i], X_OK) != 0) {
        i++;
    }

    snprintf(dir, PDF_OCR_DIR, "%s", DIRS[i < COUNT(DIRS) ? i : 0]);
    language = missing(dir, languages, &n);

    if (language != NULL) {
        say_missing(text, bytes, dir, language, n);
        return -1;
    }

    return 0;
}


/*
 * Tesseract asks OpenMP for four threads and more, which the walls do not allow.  Without active
 * levels each of its loops runs in one; a Tesseract without OpenMP has no such function.
 */
static void
use_one_thread(void)
{
    void  *function = dlsym(RTLD_DEFAULT, "omp_set_max_active_levels");
    void (*set)(int);

    memcpy(&set, &function, sizeof(set));

    if (set != NULL) {
        set(0);
    }
}


static int
start(const char *dir, const char *languages, char *text, size_t bytes)
{
    use_one_thread();
    api = TessBaseAPICreate();

    if (api == NULL || TessBaseAPIInit2(api, dir, languages, OEM_LSTM_ONLY) != 0) {
        snprintf(text, bytes, VLM_PDF_OCR_ERROR "Tesseract does not take the data of \"%s\" in %s",
                 languages, dir);
        return -1;
    }

    TessBaseAPISetPageSegMode(api, PSM_AUTO);

    return 0;
}


/* ---- words -------------------------------------------------------------------------------- */

typedef struct {
    pdf_ocr_word_t  word;                  /* its text is Tesseract's to free */
    float           sure;
} found_t;

typedef struct {
    found_t  *found;                       /* [n] */
    size_t    n, room;
    size_t    bytes, sure;                 /* of all that was found, of what is sure */
} words_t;


static void
free_words(words_t *words)
{
    size_t  i;

    for (i = 0; i < words->n; i++) {
        TessDeleteText(words->found[i].word.text);
    }

    free(words->found);
    memset(words, 0, sizeof(*words));
}


/* Takes the text over.  Without memory the word is left out. */
static void
add_word(words_t *words, const found_t *found)
{
    size_t    room = words->room ? 2 * words->room : 256;
    found_t  *more;

    if (words->n == words->room) {
        more = realloc(words->found, room * sizeof(*more));

        if (more == NULL) {
            TessDeleteText(found->word.text);
            return;
        }

        words->found = more;
        words->room = room;
    }

    words->found[words->n++] = *found;
    words->bytes += strlen(found->word.text);
    words->sure += found->sure >= SURE ? strlen(found->word.text) : 0;
}


/* The text of the word at a place, to be freed; NULL: it has none. */
static char *
word_text(const TessResultIterator *at)
{
    char  *text = TessResultIteratorGetUTF8Text(at, RIL_WORD);

    if (text != NULL && text[strspn(text, " \t\r\n")] == '\0') {
        TessDeleteText(text);
        return NULL;
    }

    return text;
}


static void
add_words(words_t *words, TessResultIterator *at)
{
    int                      box[4], begins = 0;
    char                    *text;
    const TessPageIterator  *page = TessResultIteratorGetPageIteratorConst(at);

    do {
        begins |= TessPageIteratorIsAtBeginningOf(page, RIL_TEXTLINE);
        text = word_text(at);

        if (text == NULL
            || !TessPageIteratorBoundingBox(page, RIL_WORD, &box[0], &box[1], &box[2], &box[3]))
        {
            TessDeleteText(text);
            continue;
        }

        add_word(words, &(found_t) {
            .sure = TessResultIteratorConfidence(at, RIL_WORD),
            .word = { .text = text, .begins_line = begins, .x0 = (float) box[0],
                      .y0 = (float) box[1], .x1 = (float) box[2], .y1 = (float) box[3] }
        });
        begins = 0;
    } while (TessResultIteratorNext(at, RIL_WORD));
}


/*
 * Gives the words to word(): what is no noise, or where most is unsure, what is sure.  A word that
 * is left out leaves its line's beginning to the next.
 */
static size_t
give_words(const words_t *words, void (*word)(void *data, const pdf_ocr_word_t *word), void *data)
{
    int             begins = 0;
    size_t          i, n = 0;
    const float     least = words->sure < words->bytes / 2 ? SURE : NOISE;
    pdf_ocr_word_t  given;

    for (i = 0; i < words->n; i++) {
        given = words->found[i].word;
        given.begins_line = begins |= given.begins_line;

        if (words->found[i].sure >= least) {
            word(data, &given);
            begins = 0;
            n++;
        }
    }

    return n;
}


static void
recognise(words_t *words, const pdf_ocr_picture_t *p, uint32_t ms)
{
    ETEXT_DESC          *monitor = TessMonitorCreate();
    TessResultIterator  *at;

    TessMonitorSetDeadlineMSecs(monitor, (int) ms);
    TessBaseAPISetImage(api, p->grey, (int) p->width, (int) p->height, 1, (int) p->width);
    TessBaseAPISetSourceResolution(api, (int) p->dpi);

    if (TessBaseAPIRecognize(api, monitor) == 0) {
        at = TessBaseAPIGetIterator(api);

        if (at != NULL) {
            add_words(words, at);
            TessResultIteratorDelete(at);
        }
    }

    TessMonitorDelete(monitor);
    TessBaseAPIClear(api);
}


/* ---- a picture that stands on its head ---------------------------------------------------- */

static void
turn_words(words_t *words, const pdf_ocr_picture_t *p)
{
    size_t           i;
    pdf_ocr_word_t  *w, was;

    for (i = 0; i < words->n; i++) {
        w = &words->found[i].word;
        was = *w;
        w->x0 = (float) p->width - was.x1;
        w->x1 = (float) p->width - was.x0;
        w->y0 = (float) p->height - was.y1;
        w->y1 = (float) p->height - was.y0;
    }
}


/* The picture turned by half a circle is its bytes in reverse. */
static void
recognise_turned(words_t *words, const pdf_ocr_picture_t *p, uint32_t ms)
{
    size_t             i, n = (size_t) p->width * p->height;
    uint8_t           *grey = malloc(n);
    pdf_ocr_picture_t  turned = *p;

    if (grey == NULL) {
        return;
    }

    for (i = 0; i < n; i++) {
        grey[i] = p->grey[n - 1 - i];
    }

    turned.grey = grey;
    recognise(words, &turned, ms);
    turn_words(words, p);
    free(grey);
}


/*
 * Tesseract reads lines that stand upright, too, but none from right to left: where it is sure of
 * less than half of what it found, the picture may stand on its head.
 */
static size_t
read_picture(const pdf_ocr_picture_t *p, uint32_t ms,
    void (*word)(void *data, const pdf_ocr_word_t *word), void *data)
{
    size_t          n;
    words_t         words = { 0 }, turned = { 0 }, *best = &words;
    const uint64_t  deadline = vlm_now_us() + ms * 1000ull;

    recognise(&words, p, ms);

    if (words.sure < words.bytes / 2 && vlm_now_us() < deadline) {
        recognise_turned(&turned, p, (uint32_t) ((deadline - vlm_now_us()) / 1000 + 1));
        best = turned.sure > words.sure ? &turned : &words;
    }

    n = give_words(best, word, data);
    free_words(&words);
    free_words(&turned);

    return n;
}


const pdf_ocr_t  vlm_pdf_ocr = { PDF_OCR_VERSION, find, start, read_picture };
