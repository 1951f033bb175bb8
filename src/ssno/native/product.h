// A matrix product of our own, for a PyTorch that exports none that can be kept on one thread.
//
// Column-major C (m x n) = op(A) op(B) + beta C, with the arguments of BLAS. Four columns of A meet four of C at a time,
// so that a vector is loaded once for four products; A is laid out in order first if it is transposed.

#pragma once

#include <cstdint>
#include <vector>

inline void portable_gemm(const char* op_a, const char* op_b, const int* rows, const int* columns, const int* inner,
                          const float*, const float* a, const int* lda, const float* b, const int* ldb, const float* beta,
                          float* c, const int* ldc) {
    const int m = *rows, n = *columns, k = *inner;
    static thread_local std::vector<float> room;
    std::int64_t step = *lda;
    if (*op_a == 'T') {
        if (room.size() < static_cast<std::size_t>(m) * k) room.resize(static_cast<std::size_t>(m) * k);
        for (int i = 0; i < m; ++i)
            for (int p = 0; p < k; ++p) room[static_cast<std::int64_t>(p) * m + i] = a[static_cast<std::int64_t>(i) * *lda + p];
        a = room.data();
        step = m;
    }
    const auto at_b = [&](int p, int j) {
        return *op_b == 'T' ? b[static_cast<std::int64_t>(p) * *ldb + j] : b[static_cast<std::int64_t>(j) * *ldb + p];
    };
    for (int j = 0; j < n; ++j) {
        float* to = c + static_cast<std::int64_t>(j) * *ldc;
        for (int i = 0; i < m; ++i) to[i] = *beta == 0.0f ? 0.0f : *beta * to[i];
    }
    for (int j = 0; j < n; j += 4) {
        const int width = n - j < 4 ? n - j : 4;
        for (int p = 0; p < k; p += 4) {
            const int depth = k - p < 4 ? k - p : 4;
            float factor[4][4] = {};
            const float* from[4];
            for (int q = 0; q < 4; ++q) {
                from[q] = a + (p + (q < depth ? q : 0)) * step;
                for (int v = 0; v < width; ++v) factor[v][q] = q < depth ? at_b(p + q, j + v) : 0.0f;
            }
            for (int v = 0; v < width; ++v) {
                float* to = c + static_cast<std::int64_t>(j + v) * *ldc;
                const float *f = factor[v], *a0 = from[0], *a1 = from[1], *a2 = from[2], *a3 = from[3];
#pragma omp simd
                for (int i = 0; i < m; ++i) to[i] += (f[0] * a0[i] + f[1] * a1[i]) + (f[2] * a2[i] + f[3] * a3[i]);
            }
        }
    }
}

inline int one_thread(int) { return 1; }
