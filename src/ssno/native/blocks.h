// How the positions of a pointwise stage are shared out: blocks of a given size, over threads, each block on one.

#pragma once

#include "arithmetic.h"

constexpr int SMALLEST = 64;  // fewer positions are not worth a second thread

struct Blocks {
    std::int64_t positions, count;
    int size, threads;

    Blocks(std::int64_t all, int available, int largest) : positions(all) {
        const std::int64_t share = (all + available - 1) / available;  // a short field is split among the threads too
        size = static_cast<int>(std::min<std::int64_t>(largest, std::max<std::int64_t>(SMALLEST, share)));
        count = (all + size - 1) / size;
        threads = static_cast<int>(std::min<std::int64_t>(available, count));
    }
};

// Run `body(first, count, thread)` over blocks of positions, every matrix product on the thread that asks for it.
template <typename Body>
void over(const Blocks& blocks, Body body) {
#pragma omp parallel num_threads(blocks.threads)
    {
        const int before = set_gemm_threads(1);
        const int thread = omp_get_thread_num();
#pragma omp for schedule(static)
        for (std::int64_t block = 0; block < blocks.count; ++block) {
            const std::int64_t first = block * blocks.size;
            body(first, static_cast<int>(std::min<std::int64_t>(blocks.size, blocks.positions - first)), thread);
        }
        set_gemm_threads(before);
    }
}
