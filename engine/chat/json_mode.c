/* The automaton: a place in the grammar, a stack of bits, and the rest of a literal. */

#include "chat/json_mode.h"

#include <string.h>

enum {                                 /* places */
    BEGIN,
    FIRST_KEY,                         /* behind "{" */
    KEY,                               /* behind "," in an object */
    COLON,                             /* behind a name */
    VALUE,                             /* behind ":", and behind "," in an array */
    FIRST_VALUE,                       /* behind "[" */
    AFTER,                             /* behind a value that is not the whole */
    DONE,

    TEXT,                              /* in a string */
    ESCAPE,                            /* behind "\" */
    HEX_FIRST,                         /* behind "\u" */
    HEX_D,                             /* behind "\ud": above 7 begins a surrogate */
    HEX,
    CHARACTER,                         /* any continuation byte; below, its first is bounded */
    CHARACTER_E0, CHARACTER_ED, CHARACTER_F0, CHARACTER_F4,

    LITERAL,

    MINUS,                             /* from here on: a number */
    POINT, E, E_SIGN,                  /* a digit must follow */
    ZERO, INTEGER, FRACTION,           /* from here on: it may end here */
    EXPONENT, EXPONENT_END,

    NOWHERE
};

#define FIRST_OF_NUMBER  MINUS
#define FIRST_WHOLE      ZERO

/* The bytes after the first letter; rest is an index. */
static const char  literals[] = "rue\0alse\0ull";

enum { TRUE_AT = 0, FALSE_AT = 4, NULL_AT = 9 };


static int
is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}


static int
go(vlm_json_mode_t *m, uint8_t at)
{
    m->at = at;
    m->run = 0;

    return 1;
}


static int
go_rest(vlm_json_mode_t *m, uint8_t at, uint8_t rest)
{
    m->rest = rest;

    return go(m, at);
}


static int
open_bracket(vlm_json_mode_t *m, uint8_t c)
{
    if (m->depth == VLM_JSON_DEPTH) {
        return 0;
    }

    m->nest = m->nest << 1 | (c == '{');
    m->depth++;

    return go(m, c == '{' ? FIRST_KEY : FIRST_VALUE);
}


static int
close_bracket(vlm_json_mode_t *m)
{
    m->nest >>= 1;
    m->depth--;

    return go(m, m->depth == 0 ? DONE : AFTER);
}


static int
open_string(vlm_json_mode_t *m, uint8_t key)
{
    m->key = key;

    return go(m, TEXT);
}


static int
begin_value(vlm_json_mode_t *m, uint8_t c)
{
    switch (c) {
    case '{':
    case '[':
        return open_bracket(m, c);
    case '"':
        return open_string(m, 0);
    case 't':
        return go_rest(m, LITERAL, TRUE_AT);
    case 'f':
        return go_rest(m, LITERAL, FALSE_AT);
    case 'n':
        return go_rest(m, LITERAL, NULL_AT);
    }

    if (c != '-' && !is_digit(c)) {
        return 0;
    }

    m->at = c == '-' ? MINUS : c == '0' ? ZERO : INTEGER;
    m->run = 1;

    return 1;
}


static int
after_value(vlm_json_mode_t *m, uint8_t c)
{
    int  object = (int) (m->nest & 1);

    if (c == ',') {
        return go(m, object ? KEY : VALUE);
    }

    return c == (object ? '}' : ']') ? close_bracket(m) : 0;
}


/* Between values: brackets, commas, colons, and the first bytes of values. */
static int
in_structure(vlm_json_mode_t *m, uint8_t c)
{
    if (is_blank(c) && m->at != BEGIN && m->at != DONE) {
        if (m->run == VLM_JSON_BLANKS) {
            return 0;
        }

        m->run++;
        return 1;
    }

    switch (m->at) {
    case BEGIN:
        return c == '{' ? open_bracket(m, c) : 0;
    case FIRST_KEY:
        return c == '}' ? close_bracket(m) : c == '"' ? open_string(m, 1) : 0;
    case KEY:
        return c == '"' ? open_string(m, 1) : 0;
    case COLON:
        return c == ':' ? go(m, VALUE) : 0;
    case FIRST_VALUE:
        return c == ']' ? close_bracket(m) : begin_value(m, c);
    case VALUE:
        return begin_value(m, c);
    case AFTER:
        return after_value(m, c);
    }

    return 0;
}


/* A character of a string: all of it, the quote, or the first byte of a longer one. */
static int
in_text(vlm_json_mode_t *m, uint8_t c)
{
    if (c == '"') {
        return go(m, m->key ? COLON : AFTER);
    }

    if (c == '\\') {
        return go_rest(m, ESCAPE, 1);
    }

    if (c < 0x80) {
        return c >= 0x20;
    }

    if (c < 0xe0) {
        return c >= 0xc2 ? go_rest(m, CHARACTER, 1) : 0;
    }

    if (c < 0xf0) {
        return go_rest(m, c == 0xe0 ? CHARACTER_E0 : c == 0xed ? CHARACTER_ED : CHARACTER, 2);
    }

    return c > 0xf4 ? 0 : go_rest(m, c == 0xf0 ? CHARACTER_F0
                                               : c == 0xf4 ? CHARACTER_F4 : CHARACTER, 3);
}


/* Continuation bytes: no overlong form, no surrogate, nothing above U+10FFFF. */
static int
in_character(vlm_json_mode_t *m, uint8_t c)
{
    uint8_t  low, high;

    low = m->at == CHARACTER_E0 ? 0xa0 : m->at == CHARACTER_F0 ? 0x90 : 0x80;
    high = m->at == CHARACTER_ED ? 0x9f : m->at == CHARACTER_F4 ? 0x8f : 0xbf;

    if (c < low || c > high) {
        return 0;
    }

    m->rest--;

    return go(m, m->rest == 0 ? TEXT : CHARACTER);
}


static int
in_escape(vlm_json_mode_t *m, uint8_t c)
{
    if (m->at == ESCAPE) {
        if (c == 'u') {
            return go_rest(m, HEX_FIRST, 4);
        }

        return c != '\0' && strchr("\"\\/bfnrt", c) != NULL ? go(m, TEXT) : 0;
    }

    if (!is_digit(c) && !((c | 0x20) >= 'a' && (c | 0x20) <= 'f')) {
        return 0;
    }

    if (m->at == HEX_D && !(c >= '0' && c <= '7')) {
        return 0;
    }

    m->rest--;

    if (m->at == HEX_FIRST && (c | 0x20) == 'd') {
        return go(m, HEX_D);
    }

    return go(m, m->rest == 0 ? TEXT : HEX);
}


static int
in_literal(vlm_json_mode_t *m, uint8_t c)
{
    if (c != (uint8_t) literals[m->rest]) {
        return 0;
    }

    m->rest++;

    return literals[m->rest] == '\0' ? go(m, AFTER) : 1;
}


static uint8_t
number_place(uint8_t at, uint8_t c)
{
    int  e = (c | 0x20) == 'e';

    if (is_digit(c)) {
        switch (at) {
        case MINUS:
            return c == '0' ? ZERO : INTEGER;
        case INTEGER:
            return INTEGER;
        case POINT:
        case FRACTION:
            return FRACTION;
        case E:
        case E_SIGN:
            return EXPONENT;
        case EXPONENT:
            return EXPONENT_END;
        }

        return NOWHERE;
    }

    switch (at) {
    case ZERO:
    case INTEGER:
        return c == '.' ? POINT : e ? E : NOWHERE;
    case FRACTION:
        return e ? E : NOWHERE;
    case E:
        return c == '+' || c == '-' ? E_SIGN : NOWHERE;
    }

    return NOWHERE;
}


/* A number may go on as long as there is room for its end; any other byte ends it. */
static int
in_number(vlm_json_mode_t *m, uint8_t c)
{
    uint8_t          at;
    vlm_json_mode_t  ended;

    at = number_place(m->at, c);

    if (at != NOWHERE) {
        if (m->run + (at < FIRST_WHOLE) >= VLM_JSON_NUMBER) {
            return 0;
        }

        m->at = at;
        m->run++;

        return 1;
    }

    if (m->at < FIRST_WHOLE) {
        return 0;
    }

    ended = *m;
    (void) go(&ended, AFTER);

    if (!in_structure(&ended, c)) {
        return 0;
    }

    *m = ended;

    return 1;
}


int
vlm_json_mode_next(vlm_json_mode_t *m, uint8_t c)
{
    if (m->at == TEXT) {
        return in_text(m, c);
    }

    if (m->at < TEXT) {
        return in_structure(m, c);
    }

    if (m->at < CHARACTER) {
        return in_escape(m, c);
    }

    if (m->at < LITERAL) {
        return in_character(m, c);
    }

    return m->at == LITERAL ? in_literal(m, c) : in_number(m, c);
}


uint32_t
vlm_json_mode_left(const vlm_json_mode_t *m)
{
    uint32_t  string;

    string = 1 + (m->key ? 2 : 0);     /* the quote; then :0 */

    switch (m->at) {
    case BEGIN:
        return 2;
    case KEY:
        return m->depth + 4;           /* "":0 */
    case COLON:
        return m->depth + 2;
    case VALUE:
    case MINUS:
    case POINT:
    case E:
    case E_SIGN:
        return m->depth + 1;
    case TEXT:
        return m->depth + string;
    case LITERAL:
        return m->depth + (uint32_t) strlen(literals + m->rest);
    }

    return m->at >= ESCAPE && m->at < LITERAL ? m->depth + string + m->rest : m->depth;
}


int
vlm_json_mode_done(const vlm_json_mode_t *m)
{
    return m->at == DONE;
}


int
vlm_json_mode_in_text(const vlm_json_mode_t *m)
{
    return m->at == TEXT;
}
