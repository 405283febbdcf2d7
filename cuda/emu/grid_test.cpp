/* Tests of the emulator itself: order, barriers and meetings, and the mistakes that it finds. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include <cmocka.h>
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.cuh"
#include "launch.h"

#define SEEDS  8


static void
check_report(const char *words)
{
    if (strstr(vlm_emu_report(), words) == nullptr) {
        fail_msg("\"%s\" is not in \"%s\"", words, vlm_emu_report());
    }
}


static void
every_thread_of_every_block_runs_once_and_knows_its_place(void **)
{
    static unsigned  seen[3 * 2 * 2][5 * 4 * 3];

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(seen, 0, sizeof(seen));
        vlm_emu_seed(seed);

        assert_int_equal(vlm_emu_launch(dim3(3, 2, 2), dim3(5, 4, 3), 0, [] {
            unsigned  b, t;

            b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
            t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
            seen[b][t]++;
        }), 0);

        for (auto &block : seen) {
            for (unsigned n : block) {
                assert_int_equal(n, 1);
            }
        }
    }
}


/* A block's sum through shared memory; with the barriers that it needs, or without one. */
static float
sum_of_block(uint64_t seed, unsigned n, bool barrier)
{
    static float  result;

    vlm_emu_seed(seed);

    assert_int_equal(vlm_emu_launch(1, n, 0, [=] {
        VLM_SHARED(float, part, VLM_EMU_THREADS);

        part[threadIdx.x] = 1.0f / static_cast<float>(threadIdx.x + 1);

        if (barrier) {
            __syncthreads();
        }

        if (threadIdx.x == n / 2) {
            result = 0;

            for (unsigned i = 0; i < n; i++) {
                result += part[i];
            }
        }
    }), 0);

    return result;
}


static void
a_kernel_with_its_barriers_gives_the_same_bits_under_every_seed(void **)
{
    float           first, other;
    const unsigned  sizes[] = { 1, 31, 32, 33, 127, 1024 };

    for (unsigned n : sizes) {
        first = sum_of_block(1, n, true);

        for (uint64_t seed = 2; seed <= SEEDS; seed++) {
            other = sum_of_block(seed, n, true);
            assert_memory_equal(&first, &other, sizeof(first));
        }
    }
}


static void
a_missing_barrier_gives_other_bits_under_some_seed(void **)
{
    int    differ;
    float  right, got;

    right = sum_of_block(1, 128, true);
    differ = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        got = sum_of_block(seed, 128, false);
        differ += memcmp(&right, &got, sizeof(got)) != 0;
    }

    assert_true(differ > SEEDS / 2);
}


static void
unwritten_shared_memory_differs_between_seeds_and_is_no_number(void **)
{
    static float  value[2][3];

    for (int i = 0; i < 2; i++) {
        vlm_emu_seed(static_cast<uint64_t>(i) + 1);

        assert_int_equal(vlm_emu_launch(3, 1, 64, [=] {
            VLM_SHARED(float, left, 4);
            VLM_SHARED_DYNAMIC(more);

            value[i][blockIdx.x] = left[1];
            assert_memory_equal(&left[1], more + 4, 4);
            left[1] = 1;               /* the next block does not find it */
            more[4] = 0;
        }), 0);
    }

    for (int b = 0; b < 3; b++) {
        assert_memory_not_equal(&value[0][b], &value[1][b], sizeof(float));
        assert_true(value[0][b] < -1e6f && isnan(value[1][b]));
    }
}


static void
a_barrier_that_some_threads_miss_is_reported_with_its_line(void **)
{
    int   line;
    char  place[32];

    line = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        vlm_emu_seed(seed);

        assert_int_equal(vlm_emu_launch(2, 64, 0, [&] {
            if (threadIdx.x != 17) {
                line = __LINE__; __syncthreads();
            }
        }), -1);

        (void) snprintf(place, sizeof(place), "grid_test.cpp:%d", line);
        check_report(place);
        check_report("1 of 64 threads have left; 63, ");
    }
}


static void
two_barriers_are_not_one(void **)
{
    assert_int_equal(vlm_emu_launch(1, 64, 0, [] {
        if (threadIdx.x < 32) {
            __syncthreads();
        } else {
            __syncthreads();
        }
    }), -1);

    check_report("32, thread 0 first");
    check_report("32, thread 32 first");
}


static void
a_shuffle_that_a_lane_of_its_mask_misses_is_reported(void **)
{
    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        if (threadIdx.x != 5) {
            (void) __shfl_xor_sync(VLM_ALL, 1, 1);
        }
    }), -1);

    check_report("31, thread 0 first");
    check_report("__shfl_xor_sync");
}


static void
a_block_that_ends_within_a_warp_cannot_shuffle_as_a_whole_one(void **)
{
    assert_int_equal(vlm_emu_launch(1, 40, 0, [] { (void) vlm_warp_sum(1); }), -1);
    check_report("8, thread 32 first");
}


static void
lanes_outside_of_a_mask_are_neither_read_nor_waited_for(void **)
{
    static int  got[32];

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        unsigned  lane = threadIdx.x;

        got[lane] = -1;

        if (lane < 8) {
            got[lane] = __shfl_sync(0xffu, static_cast<int>(lane * 10), (lane + 1) % 8);
        }
    }), 0);

    for (int i = 0; i < 32; i++) {
        assert_int_equal(got[i], i < 8 ? (i + 1) % 8 * 10 : -1);
    }

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        if (threadIdx.x < 8) {
            (void) __shfl_sync(0xffu, 1, 9);
        }
    }), -1);

    check_report("not in the mask");

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        (void) __ballot_sync(1u << (threadIdx.x + 1) % 32, 1);
    }), -1);

    check_report("not in the mask itself");
}


static void
shuffles_and_votes_are_those_of_cuda(void **)
{
    static int       up[32], down[32], part[32], swapped[32];
    static unsigned  odd, any, all;

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        int  lane = static_cast<int>(threadIdx.x);

        up[lane] = __shfl_up_sync(VLM_ALL, lane, 3);
        down[lane] = __shfl_down_sync(VLM_ALL, lane, 3);
        part[lane] = __shfl_sync(VLM_ALL, lane, 5, 8);
        swapped[lane] = static_cast<int>(__shfl_xor_sync(VLM_ALL, static_cast<double>(lane), 9));
        odd = __ballot_sync(VLM_ALL, lane % 2);
        any = __any_sync(VLM_ALL, lane == 7);
        all = __all_sync(VLM_ALL, lane != 7);
    }), 0);

    for (int i = 0; i < 32; i++) {
        assert_int_equal(up[i], i < 3 ? i : i - 3);
        assert_int_equal(down[i], i > 28 ? i : i + 3);
        assert_int_equal(part[i], i / 8 * 8 + 5);
        assert_int_equal(swapped[i], i ^ 9);
    }

    assert_int_equal(odd, 0xaaaaaaaa);
    assert_int_equal(any, 1);
    assert_int_equal(all, 0);
}


/* Lanes do not run in step: one lane's write is visible to another only after __syncwarp(). */
static int
neighbours_seen(uint64_t seed, bool together)
{
    static int  seen;

    vlm_emu_seed(seed);
    seen = 0;

    assert_int_equal(vlm_emu_launch(1, 32, 0, [=] {
        VLM_SHARED(int, box, 32);

        box[threadIdx.x] = 1;

        if (together) {
            __syncwarp();
        }

        seen += box[(threadIdx.x + 7) % 32] == 1;
    }), 0);

    return seen;
}


static void
lanes_run_in_step_only_where_the_code_says_so(void **)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        assert_int_equal(neighbours_seen(seed, true), 32);
        assert_true(neighbours_seen(seed, false) < 32);
    }
}


static void
a_ticket_finds_the_last_block(void **)
{
    static unsigned  ticket, last;
    static float     sum;

    ticket = last = 0;
    sum = 0;

    assert_int_equal(vlm_emu_launch(37, 32, 0, [] {
        (void) atomicAdd(&sum, 0.5f);
        __syncwarp();

        if (threadIdx.x == 0 && atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1) {
            last++;
            assert_true(sum == 37 * 16);
        }
    }), 0);

    assert_int_equal(last, 1);
    assert_int_equal(ticket, 0);
}


static void
a_copy_is_not_there_before_it_was_waited_for(void **)
{
    static int  early[32], late[32], zeros[32];
    static __attribute__((aligned(16))) int  from[32 * 4];

    for (int i = 0; i < 128; i++) {
        from[i] = i;
    }

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        unsigned  i = threadIdx.x;

        VLM_SHARED(int4, to, 64);

        vlm_copy(&to[i], from + 4 * i, 16);
        vlm_copy_commit();
        vlm_copy(&to[32 + i], from + 4 * i, 4);
        vlm_copy_commit();
        early[i] = to[i].z;
        vlm_copy_wait<1>();
        late[i] = to[i].z;
        vlm_copy_wait<0>();
        zeros[i] = to[32 + i].x == from[4 * i] && to[32 + i].y == 0 && to[32 + i].w == 0;
    }), 0);

    for (int i = 0; i < 32; i++) {
        assert_int_not_equal(early[i], from[4 * i + 2]);
        assert_int_equal(late[i], from[4 * i + 2]);
        assert_int_equal(zeros[i], 1);
    }

    assert_int_equal(vlm_emu_launch(1, 1, 0, [] {
        VLM_SHARED(int4, to, 2);
        vlm_copy(reinterpret_cast<char *>(to) + 4, from, 16);
    }), -1);

    check_report("no multiple of 16");
}


/* Fragments filled by the map that common.cuh writes down, against the product itself. */
static void
a_tensor_cores_product_of_bytes_is_exact(void **)
{
    static int8_t  a[16][32], b[8][32];
    static int     c[16][8];
    int            want;

    for (int i = 0; i < 16 * 32; i++) {
        a[i / 32][i % 32] = static_cast<int8_t>(i * 37 % 255 - 127);
        b[i / 32 % 8][i % 32] = static_cast<int8_t>(i * 101 % 255 - 127);
    }

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        int       sum[4] = { 1, 2, 3, 4 };
        unsigned  x[4], y[2], g = threadIdx.x / 4, t = threadIdx.x % 4;

        memcpy(&x[0], &a[g][4 * t], 4);
        memcpy(&x[1], &a[g + 8][4 * t], 4);
        memcpy(&x[2], &a[g][4 * t + 16], 4);
        memcpy(&x[3], &a[g + 8][4 * t + 16], 4);
        memcpy(&y[0], &b[g][4 * t], 4);
        memcpy(&y[1], &b[g][4 * t + 16], 4);
        vlm_mma_s8(sum, x, y);

        c[g][2 * t] = sum[0] - 1;
        c[g][2 * t + 1] = sum[1] - 2;
        c[g + 8][2 * t] = sum[2] - 3;
        c[g + 8][2 * t + 1] = sum[3] - 4;
    }), 0);

    for (int i = 0; i < 16 * 8; i++) {
        want = 0;

        for (int k = 0; k < 32; k++) {
            want += a[i / 8][k] * b[i % 8][k];
        }

        assert_int_equal(c[i / 8][i % 8], want);
    }
}


static void
a_tensor_cores_product_of_bf16_adds_in_f32(void **)
{
    static vlm_bf16_t  a[16][16], b[8][16];
    static float       c[16][8];
    float              want;

    for (int i = 0; i < 16 * 16; i++) {
        a[i / 16][i % 16] = vlm_to_bf16(static_cast<float>(i * 37 % 255 - 127) / 64);
        b[i / 16 % 8][i % 16] = vlm_to_bf16(static_cast<float>(i * 101 % 255 - 127));
    }

    assert_int_equal(vlm_emu_launch(1, 32, 0, [] {
        float     sum[4] = { 0, 0, 0, 0 };
        unsigned  x[4], y[2], g = threadIdx.x / 4, t = threadIdx.x % 4;

        memcpy(&x[0], &a[g][2 * t], 4);
        memcpy(&x[1], &a[g + 8][2 * t], 4);
        memcpy(&x[2], &a[g][2 * t + 8], 4);
        memcpy(&x[3], &a[g + 8][2 * t + 8], 4);
        memcpy(&y[0], &b[g][2 * t], 4);
        memcpy(&y[1], &b[g][2 * t + 8], 4);
        vlm_mma_bf16(sum, x, y);

        c[g][2 * t] = sum[0];
        c[g][2 * t + 1] = sum[1];
        c[g + 8][2 * t] = sum[2];
        c[g + 8][2 * t + 1] = sum[3];
    }), 0);

    for (int i = 0; i < 16 * 8; i++) {
        want = 0;

        for (int k = 0; k < 16; k++) {
            want += vlm_from_bf16(a[i / 8][k]) * vlm_from_bf16(b[i % 8][k]);
        }

        assert_true(fabsf(c[i / 8][i % 8] - want) <= 1e-4f * fabsf(want) + 1e-3f);
    }
}


static void
dot_products_of_bytes_are_those_of_cuda(void **)
{
    assert_int_equal(__dp4a(static_cast<int>(0x817f0102u), static_cast<int>(0x7f7f0380u), -5),
                     -127 * 127 + 127 * 127 + 3 - 256 - 5);
    assert_int_equal(__byte_perm(0x33221100, 0x77665544, 0x7140), 0x77114400);
}


static void
a_launch_that_no_card_takes_is_refused(void **)
{
    assert_int_equal(vlm_emu_launch(0, 32, 0, [] { }), -1);
    check_report("a grid of 0 x 1 x 1");
    assert_int_equal(vlm_emu_launch(1, 1025, 0, [] { }), -1);
    check_report("a block of 1025");
    assert_int_equal(vlm_emu_launch(dim3(1, 65536), 32, 0, [] { }), -1);
    check_report("65536");
}


static void
after_a_report_the_next_launch_is_as_new(void **)
{
    float  before, after;

    before = sum_of_block(3, 96, true);

    assert_int_equal(vlm_emu_launch(4, 96, 0, [] {
        VLM_SHARED(int, x, 8);

        x[0] = 1;

        if (threadIdx.x > 40) {
            __syncthreads();
        }
    }), -1);

    after = sum_of_block(3, 96, true);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_string_equal(vlm_emu_report(), "");
}


#if defined(__SANITIZE_ADDRESS__)

/* In a process of its own: AddressSanitizer ends it. */
static int
ends_badly(void (*f)(void))
{
    int    status;
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        (void) close(2);
        f();
        _exit(0);
    }

    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);

    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}


static void
beyond_shared_memory_is_an_error(void **)
{
    assert_true(ends_badly([] {
        (void) vlm_emu_launch(1, 32, 0, [] {
            VLM_SHARED(int, x, 31);
            static_cast<volatile int *>(x)[threadIdx.x] = 1;
        });
    }));

    assert_true(ends_badly([] {
        (void) vlm_emu_launch(1, 32, 31, [] {
            VLM_SHARED_DYNAMIC(x);
            static_cast<volatile unsigned char *>(x)[threadIdx.x] = 1;
        });
    }));

    assert_false(ends_badly([] {
        (void) vlm_emu_launch(1, 32, 0, [] {
            VLM_SHARED(int, x, 32);
            static_cast<volatile int *>(x)[threadIdx.x] = 1;
        });
    }));
}

#endif


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_thread_of_every_block_runs_once_and_knows_its_place),
        cmocka_unit_test(a_kernel_with_its_barriers_gives_the_same_bits_under_every_seed),
        cmocka_unit_test(a_missing_barrier_gives_other_bits_under_some_seed),
        cmocka_unit_test(unwritten_shared_memory_differs_between_seeds_and_is_no_number),
        cmocka_unit_test(a_barrier_that_some_threads_miss_is_reported_with_its_line),
        cmocka_unit_test(two_barriers_are_not_one),
        cmocka_unit_test(a_shuffle_that_a_lane_of_its_mask_misses_is_reported),
        cmocka_unit_test(a_block_that_ends_within_a_warp_cannot_shuffle_as_a_whole_one),
        cmocka_unit_test(lanes_outside_of_a_mask_are_neither_read_nor_waited_for),
        cmocka_unit_test(shuffles_and_votes_are_those_of_cuda),
        cmocka_unit_test(lanes_run_in_step_only_where_the_code_says_so),
        cmocka_unit_test(a_ticket_finds_the_last_block),
        cmocka_unit_test(a_copy_is_not_there_before_it_was_waited_for),
        cmocka_unit_test(a_tensor_cores_product_of_bytes_is_exact),
        cmocka_unit_test(a_tensor_cores_product_of_bf16_adds_in_f32),
        cmocka_unit_test(dot_products_of_bytes_are_those_of_cuda),
        cmocka_unit_test(a_launch_that_no_card_takes_is_refused),
        cmocka_unit_test(after_a_report_the_next_launch_is_as_new),
#if defined(__SANITIZE_ADDRESS__)
        cmocka_unit_test(beyond_shared_memory_is_an_error),
#endif
    };

    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
