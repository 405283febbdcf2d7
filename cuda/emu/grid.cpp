/* The emulated grid: the order in which fibres run, their barriers and meetings, and deadlocks. */

#include "grid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fibre.h"

#define WARP         32
#define STACK_BYTES  (128u << 10)
#define SHIFT        (5 * 64)          /* of a stack against the one before it, in cache lines */
#define SHIFTS       32                /* different ones */
#define MAX_ARRAYS   32                /* shared ones of a kernel */
#define WARPS        (VLM_EMU_THREADS / WARP)
#define PAGE         4096
#define NONE         UINT32_MAX

typedef enum { RUNS, MEETS, AT_BARRIER, HAS_LEFT, STATES } state_t;

typedef struct {
    vlm_fibre_t   fibre;
    vlm_uint3_t   index;
    unsigned      mask;                /* MEETS */
    vlm_place_t   at;                  /* MEETS, AT_BARRIER */
} thread_t;

typedef struct {                       /* of lanes of a warp that wait for others of their mask */
    unsigned      mask, here;          /* here: 0 is no meeting */
    vlm_meet_fn   meet;
    vlm_place_t   at;
    void         *lane[WARP];          /* the value of each that is here */
} meeting_t;

typedef struct {
    const void  *key;
    char        *data;
    size_t       bytes;
} array_t;

vlm_indices_t  vlm_emu;

static thread_t     threads[VLM_EMU_THREADS];
static uint8_t      state_of[VLM_EMU_THREADS]; /* a state_t each */
static unsigned     n_threads, current;
static unsigned     in_state[WARPS][STATES];   /* how many threads of a warp */
static unsigned     in_all[STATES];
static meeting_t    meetings[WARPS][WARP];
static unsigned     n_meetings[WARPS];
static vlm_fibre_t  host;
static unsigned     round_first, round_left;   /* warps whose turn is still to come */
static struct {                                /* of a warp's lanes */
    unsigned  warp, start, stride, lane;       /* lane: how many had their turn */
} turn;
static char        *stacks;
static array_t      arrays[MAX_ARRAYS];
static unsigned     n_arrays;
static char        *dynamic_data;
static size_t       dynamic_size;
static void       (*kernel_call)(void *);
static void        *kernel_arg;
static uint64_t     seed_given = 1, state;
static int          failed;
static char         report[1024];


/* ---- chance ------------------------------------------------------------------------------- */

void
vlm_emu_seed(uint64_t seed)
{
    seed_given = seed;
}


static unsigned
chance(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;

    return static_cast<unsigned>((state >> 33) % n);
}


/* Bytes that are a NaN as floats, and far off as integers; others under another seed. */
static int
poison(void)
{
    return seed_given % 2 == 0 ? 0xff : 0xcb;
}


/* ---- a thread's side ---------------------------------------------------------------------- */

static void
count_state(unsigned warp, state_t before, state_t now, unsigned n)
{
    in_state[warp][before] -= n;
    in_state[warp][now] += n;
    in_all[before] -= n;
    in_all[now] += n;
}


static void
set_state(unsigned thread, state_t now)
{
    count_state(thread / WARP, static_cast<state_t>(state_of[thread]), now, 1);
    state_of[thread] = now;
}


/* The thread that runs next, or NONE: the host decides, since no thread can run. */
static unsigned  next_thread(void);


/* Has that thread run, or the host. */
static vlm_fibre_t *
fibre_of(unsigned thread)
{
    if (thread == NONE) {
        return &host;
    }

    current = thread;
    vlm_emu.thread = threads[thread].index;

    return &threads[thread].fibre;
}


static void
run_kernel(void)
{
    thread_t  *t;

    kernel_call(kernel_arg);

    t = &threads[current];
    set_state(current, HAS_LEFT);
    vlm_fibre_leave(&t->fibre, fibre_of(next_thread()));
}


/* Threads switch to each other: the host is entered when a block has ended or cannot go on. */
static void
wait_here(state_t why, vlm_place_t at)
{
    thread_t     *t = &threads[current];
    vlm_fibre_t  *next;

    set_state(current, why);
    t->at = at;
    next = fibre_of(next_thread());

    if (next != &t->fibre) {
        vlm_fibre_switch(&t->fibre, next);
    }
}


unsigned
vlm_emu_lane(void)
{
    return current % WARP;
}


unsigned
vlm_emu_thread(void)
{
    return current;
}


void
vlm_emu_barrier(vlm_place_t at)
{
    wait_here(AT_BARRIER, at);
}


static int
same_text(const char *a, const char *b)
{
    return a == b || strcmp(a, b) == 0;
}


static int
same_place(vlm_place_t a, vlm_place_t b)
{
    return a.line == b.line && same_text(a.what, b.what) && same_text(a.file, b.file);
}


/* The meeting of a warp that has this mask, purpose and place; a new one if there is none. */
static meeting_t *
find_meeting(unsigned warp, unsigned mask, vlm_meet_fn meet, vlm_place_t at)
{
    unsigned    i;
    meeting_t  *m, *unused;

    for (unused = nullptr, i = 0; i < n_meetings[warp]; i++) {
        m = &meetings[warp][i];

        if (m->here == 0) {
            unused = m;

        } else if (m->mask == mask && m->meet == meet && same_place(m->at, at)) {
            return m;
        }
    }

    m = unused == nullptr ? &meetings[warp][n_meetings[warp]++] : unused;
    m->mask = mask;
    m->here = 0;
    m->meet = meet;
    m->at = at;
    memset(m->lane, 0, sizeof(m->lane));

    return m;
}


/* All lanes of the mask are here: the others, which wait, go on. */
static void
end_meeting(meeting_t *m, unsigned warp, unsigned me)
{
    unsigned  i;

    m->meet(m->lane);
    m->here = 0;

    for (i = 0; i < WARP; i++) {
        if (i != me && (m->mask >> i & 1) != 0) {
            state_of[warp * WARP + i] = RUNS;
        }
    }

    count_state(warp, MEETS, RUNS, static_cast<unsigned>(__builtin_popcount(m->mask)) - 1);
}


void
vlm_emu_meet(unsigned mask, vlm_meet_fn meet, void *mine, vlm_place_t at)
{
    unsigned    warp = current / WARP, me = current % WARP;
    meeting_t  *m;

    if ((mask >> me & 1) == 0) {
        vlm_emu_fault(at, "a lane waits for others, and is not in the mask itself");
    }

    m = find_meeting(warp, mask, meet, at);
    m->lane[me] = mine;
    m->here |= 1u << me;

    if (m->here == mask) {
        end_meeting(m, warp, me);
        return;
    }

    threads[current].mask = mask;
    wait_here(MEETS, at);
}


void
vlm_emu_fault(vlm_place_t at, const char *text)
{
    thread_t  *t = &threads[current];

    (void) snprintf(report, sizeof(report), "%s:%d: %s: %s (thread %u, block %u %u %u)", at.file,
                    at.line, at.what, text, current, vlm_emu.block.x, vlm_emu.block.y,
                    vlm_emu.block.z);
    failed = 1;
    vlm_fibre_leave(&t->fibre, &host);
    __builtin_trap();                  /* a fibre that was left is not entered again */
}


/* ---- shared memory ------------------------------------------------------------------------ */

/* Poisoned.  The size is not rounded up, so that AddressSanitizer knows where it ends. */
static char *
allocate(size_t bytes)
{
    void  *p;

    if (posix_memalign(&p, 128, bytes == 0 ? 1 : bytes) != 0) {
        return nullptr;
    }

    memset(p, poison(), bytes);

    return static_cast<char *>(p);
}


void *
vlm_emu_shared(const void *key, size_t bytes)
{
    unsigned     i;
    vlm_place_t  at = { "kernel", 0, "__shared__" };

    for (i = 0; i < n_arrays; i++) {
        if (arrays[i].key == key) {
            return arrays[i].data;
        }
    }

    if (n_arrays == MAX_ARRAYS) {
        vlm_emu_fault(at, "more shared arrays than the emulator has room for");
    }

    arrays[i].key = key;
    arrays[i].bytes = bytes;
    arrays[i].data = allocate(bytes);

    if (arrays[i].data == nullptr) {
        vlm_emu_fault(at, "the host has no memory for it");
    }

    n_arrays++;

    return arrays[i].data;
}


void *
vlm_emu_dynamic(void)
{
    return dynamic_data;
}


/* Resets shared memory for a block: the content left by the block before is lost. */
static void
poison_arrays(void)
{
    unsigned  i;

    for (i = 0; i < n_arrays; i++) {
        memset(arrays[i].data, poison(), arrays[i].bytes);
    }

    memset(dynamic_data, poison(), dynamic_size);
}


static void
drop_arrays(void)
{
    unsigned  i;

    for (i = 0; i < n_arrays; i++) {
        free(arrays[i].data);
    }

    n_arrays = 0;
    free(dynamic_data);
    dynamic_data = nullptr;
}


uint64_t
vlm_emu_shared_bytes(void)
{
    unsigned         i;
    static uint64_t  last;

    if (dynamic_data == nullptr) {
        return last;
    }

    for (last = dynamic_size, i = 0; i < n_arrays; i++) {
        last += arrays[i].bytes;
    }

    return last;
}


/* ---- one block ---------------------------------------------------------------------------- */

/* Reports which threads wait where: one line for each place, with its first thread. */
static void
report_stuck(void)
{
    size_t     n;
    unsigned   i, j, left, count;
    thread_t  *t;

    for (left = 0, i = 0; i < n_threads; i++) {
        left += state_of[i] == HAS_LEFT;
    }

    n = static_cast<size_t>(snprintf(report, sizeof(report), "block %u %u %u is divergent: %u of "
                                     "%u threads have left", vlm_emu.block.x, vlm_emu.block.y,
                                     vlm_emu.block.z, left, n_threads));

    for (i = 0; i < n_threads && n < sizeof(report) - 1; i++) {
        t = &threads[i];

        if (state_of[i] == HAS_LEFT) {
            continue;
        }

        for (j = 0; j < i; j++) {
            if (state_of[j] != HAS_LEFT && same_place(threads[j].at, t->at)) {
                break;
            }
        }

        if (j < i) {
            continue;                  /* told already */
        }

        for (count = 0, j = i; j < n_threads; j++) {
            count += state_of[j] != HAS_LEFT && same_place(threads[j].at, t->at);
        }

        n += static_cast<size_t>(snprintf(report + n, sizeof(report) - n,
                                          "; %u, thread %u first, wait at %s:%d (%s, mask %08x)",
                                          count, i, t->at.file, t->at.line, t->at.what,
                                          state_of[i] == MEETS ? t->mask : 0xffffffffu));
    }

    failed = 1;
}


/* Begins a warp's turn: its lanes that can run do, in some order. */
static void
begin_turn(unsigned warp)
{
    turn.warp = warp;
    turn.start = chance(WARP);
    turn.stride = 2 * chance(WARP / 2) + 1;
    turn.lane = 0;
}


/* The next lane of the warp whose turn it is, or NONE. */
static unsigned
next_lane(void)
{
    unsigned  i;

    while (turn.lane < WARP) {
        i = turn.warp * WARP + (turn.start + turn.lane++ * turn.stride) % WARP;

        if (i < n_threads && state_of[i] == RUNS) {
            return i;
        }
    }

    return NONE;
}


/* Every thread waits at the same barrier: they go on. */
static int
release_barrier(void)
{
    unsigned  i;

    if (in_all[AT_BARRIER] != n_threads) {
        return 0;
    }

    for (i = 0; i < n_threads; i++) {
        if (!same_place(threads[i].at, threads[0].at)) {
            return 0;
        }
    }

    for (i = 0; i < n_threads; i++) {
        set_state(i, RUNS);
    }

    return 1;
}


/* Warps have their turns in rounds, which begin anywhere and may end early: some are ahead. */
static unsigned
next_thread(void)
{
    unsigned  i, n_warps = (n_threads + WARP - 1) / WARP;

    for ( ;; ) {
        if ((i = next_lane()) != NONE) {
            return i;
        }

        if (round_left > 0 && chance(4) == 0) {
            round_left = 0;
        }

        if (round_left == 0) {
            if (in_all[RUNS] == 0 && !release_barrier()) {
                return NONE;
            }

            round_first = chance(n_warps);
            round_left = n_warps;
        }

        i = (round_first + n_warps - round_left--) % n_warps;

        if (in_state[i][RUNS] > 0) {
            begin_turn(i);
        }
    }
}


/* Stacks end at different places of a page: else their ends would share some lines of the cache. */
static void
make_threads(vlm_uint3_t size)
{
    unsigned  i;

    memset(in_state, 0, sizeof(in_state));
    memset(in_all, 0, sizeof(in_all));
    memset(state_of, RUNS, n_threads);
    in_all[RUNS] = n_threads;

    for (i = 0; i < WARPS; i++) {
        n_meetings[i] = 0;
    }

    for (i = 0; i < n_threads; i++) {
        in_state[i / WARP][RUNS]++;
        threads[i].index.x = i % size.x;
        threads[i].index.y = i / size.x % size.y;
        threads[i].index.z = i / size.x / size.y;
        vlm_fibre_make(&threads[i].fibre, stacks + static_cast<size_t>(i) * STACK_BYTES + PAGE,
                       STACK_BYTES - PAGE - i % SHIFTS * SHIFT, run_kernel);
    }
}


static void
run_block(void)
{
    round_left = 0;
    turn.lane = WARP;
    vlm_fibre_switch(&host, fibre_of(next_thread()));

    if (!failed && in_all[HAS_LEFT] != n_threads) {
        report_stuck();
    }
}


/* ---- a launch ----------------------------------------------------------------------------- */

/* Protects a page below each stack, once. */
static int
make_stacks(void)
{
    void      *p;
    unsigned   i;

    if (stacks != nullptr) {
        return 0;
    }

    p = mmap(nullptr, static_cast<size_t>(VLM_EMU_THREADS) * STACK_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return -1;
    }

    stacks = static_cast<char *>(p);

    for (i = 0; i < VLM_EMU_THREADS; i++) {
        (void) mprotect(stacks + static_cast<size_t>(i) * STACK_BYTES, PAGE, PROT_NONE);
    }

    return 0;
}


/* 0, or -1 and a report. */
static int
check_launch(vlm_uint3_t blocks, vlm_uint3_t size)
{
    uint64_t  n;

    n = static_cast<uint64_t>(size.x) * size.y * size.z;

    if (n == 0 || n > VLM_EMU_THREADS || size.z > 64) {
        (void) snprintf(report, sizeof(report), "a block of %u x %u x %u threads", size.x, size.y,
                        size.z);
        return -1;
    }

    if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || blocks.x > INT32_MAX || blocks.y > 65535
        || blocks.z > 65535)
    {
        (void) snprintf(report, sizeof(report), "a grid of %u x %u x %u blocks", blocks.x,
                        blocks.y, blocks.z);
        return -1;
    }

    if (make_stacks() != 0) {
        (void) snprintf(report, sizeof(report), "no memory for the stacks of fibres");
        return -1;
    }

    return 0;
}


/* i-th of n in an order that visits each once: the stride has no factor in common with n. */
static uint64_t
shuffled(uint64_t i, uint64_t n, uint64_t first, uint64_t stride)
{
    return (first + i * stride) % n;
}


static uint64_t
common_factor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : common_factor(b, a % b);
}


int
vlm_emu_run(vlm_uint3_t blocks, vlm_uint3_t size, size_t dynamic_bytes, void (*call)(void *),
            void *arg)
{
    uint64_t  i, at, n, first, stride;

    report[0] = '\0';
    failed = 0;
    state = seed_given * 2654435761u;

    if (check_launch(blocks, size) != 0) {
        return -1;
    }

    n_threads = size.x * size.y * size.z;
    kernel_call = call;
    kernel_arg = arg;
    vlm_emu.threads = size;
    vlm_emu.blocks = blocks;
    dynamic_size = dynamic_bytes;
    dynamic_data = allocate(dynamic_bytes);

    if (dynamic_data == nullptr) {
        (void) snprintf(report, sizeof(report), "no memory for %zu shared bytes", dynamic_bytes);
        return -1;
    }

    n = static_cast<uint64_t>(blocks.x) * blocks.y * blocks.z;
    first = chance(static_cast<unsigned>(n < UINT32_MAX ? n : UINT32_MAX));

    for (stride = chance(1024) + 1; common_factor(stride, n) != 1; stride++) { /* void */ }

    for (i = 0; i < n && !failed; i++) {
        at = shuffled(i, n, first, stride);
        vlm_emu.block.x = static_cast<unsigned>(at % blocks.x);
        vlm_emu.block.y = static_cast<unsigned>(at / blocks.x % blocks.y);
        vlm_emu.block.z = static_cast<unsigned>(at / blocks.x / blocks.y);

        poison_arrays();
        make_threads(size);
        vlm_emu_copy_forget(n_threads);
        run_block();
    }

    if (failed) {
        vlm_fibre_clean(stacks, static_cast<size_t>(VLM_EMU_THREADS) * STACK_BYTES);
    }

    (void) vlm_emu_shared_bytes();
    drop_arrays();

    return failed ? -1 : 0;
}


const char *
vlm_emu_report(void)
{
    return report;
}
