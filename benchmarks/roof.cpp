// The roof: how fast this processor multiplies when nothing else has to be done, per thread.
//
//   instruction   sixteen independent sums, the factors in registers
//   tile          128 x 64 times 64 x 128, the gate's own product (`tiles.h`), everything in the first caches

#include <chrono>
#include <vector>

#include "tiles.h"

#ifdef __AVX512F__

namespace {

using namespace tiles;
constexpr int M = 128, INNER = 64, P = 128, REPEATS = 200;

template <typename T>
double instruction() {
    const __m512i a = _mm512_set1_epi32(0x3f803f80), b = _mm512_set1_epi32(0x2f802f80);
    double best = 1e30;
    for (int round = 0; round < 30; ++round) {
        __m512 sums[16];
        for (auto& sum : sums) sum = _mm512_setzero_ps();
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 4000; ++i) {
#pragma GCC unroll 16
            for (auto& sum : sums) {
                sum = T::dot(sum, a, b);
                asm volatile("" : "+v"(sum));  // keep the compiler from leaving it out
            }
        }
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return 4000.0 * 16 * LANES * T::K * 2 / best / 1e9;
}

template <typename T>
double tile() {
    std::vector<typename T::Number> first(M * INNER, T::number(0.01f));
    std::vector<Lane> second(INNER / T::K * P, 0x3c003c00);
    std::vector<float> out(M * P);
    double best = 1e30;
    for (int round = 0; round < 30; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < REPEATS; ++i)
            for (int p = 0; p < P; p += WIDTH)
                for (int r = 0; r < M; r += ROWS) {
                    Sums sums;
                    clear(sums);
                    add_product<T>(sums, first.data() + r * INNER, T::K, ROWS * T::K, second.data() + p, P, INNER / T::K);
                    for (int n = 0; n < ROWS; ++n)
                        for (int v = 0; v < VECTORS; ++v) _mm512_storeu_ps(&out[(r + n) * P + p + v * LANES], sums[n][v]);
                }
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return 2.0 * M * INNER * P * REPEATS / best / 1e9;
}

}  // namespace

extern "C" {

double instruction_float32() { return instruction<Single>(); }
double tile_float32() { return tile<Single>(); }
#ifdef __AVX512BF16__
double instruction_bf16() { return instruction<Half>(); }
double tile_bf16() { return tile<Half>(); }
#endif
}

#endif
