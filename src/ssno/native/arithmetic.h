// What both native files share: the matrix product, and vectorisable exp, sigmoid and GELU.
//
// The matrix product is the one of the library that PyTorch itself uses, handed over as a pointer by `bind`. There are
// no intrinsics: loops are plain, and the compiler turns them into whatever vectors the machine has.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#else  // one thread
inline int omp_get_thread_num() { return 0; }
#endif

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                      const int*, const float*, const int*, const float*, float*, const int*);
using SetThreads = int (*)(int);

extern Gemm column_major_gemm;
extern SetThreads set_gemm_threads;  // for the calling thread; returns what was set before

// Row-major C (m x n) = op(A) op(B) + beta C, with leading dimensions.
inline void gemm(bool transpose_a, bool transpose_b, int m, int n, int k, const float* a, int lda, const float* b, int ldb,
          float beta, float* c, int ldc) {
    const float one = 1.0f;
    column_major_gemm(transpose_b ? "T" : "N", transpose_a ? "T" : "N", &n, &m, &k, &one, b, &ldb, a, &lda, &beta, c,
                      &ldc);
}

// Room for `size` numbers, the calling thread's own, kept from call to call; what was in it is lost.
inline float* scratch(std::int64_t size) {
    static thread_local std::vector<float> room;
    if (static_cast<std::int64_t>(room.size()) < size) room.resize(size);
    return room.data();
}

// exp(x), relative error below 2e-7: 2^n times a polynomial on |r| <= ln(2) / 2.
inline float fast_exp(float x) {
    x = std::min(std::max(x, -87.0f), 87.0f);
    const float n = __builtin_rintf(x * 1.44269504f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

inline float sigmoid(float x) { return 1.0f / (1.0f + fast_exp(-x)); }

// Normal distribution function and density from one exponential (rational form of erf, absolute error 1.5e-7).
inline void normal(float x, float& below, float& density) {
    const float z = __builtin_fabsf(x) * 0.70710678f;
    const float e = fast_exp(-z * z);
    const float t = 1.0f / (1.0f + 0.3275911f * z);
    const float tail = 0.5f * t * e *
        (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    below = x < 0.0f ? tail : 1.0f - tail;
    density = 0.39894228f * e;
}

inline float gelu(float x) {
    float below, density;
    normal(x, below, density);
    return x * below;
}

// Value and derivative.
inline void gelu_both(float x, float& value, float& slope) {
    float below, density;
    normal(x, below, density);
    value = x * below;
    slope = below + x * density;
}
