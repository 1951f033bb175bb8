// A scan: y_d = kernel_d * x along one axis, forwards or backwards, for every channel.
//
// It is the product with a triangular Toeplitz matrix, built from the kernel in cache, one channel per thread at a time;
// a few lines are convolved directly. The backward pass keeps x and the kernels only. Every number is summed in the same
// order whatever the number of threads.
//
// Positions are (outer, point, inner): everything before, along and after the axis. Matrices are row-major.

#include "arithmetic.h"
#include "product.h"

Gemm column_major_gemm = nullptr;
SetThreads set_gemm_threads = nullptr;

namespace {

constexpr double WORTH_A_THREAD = 5e5;  // multiplications below which waking a second thread costs more than it brings

struct Lines {
    std::int64_t outer;
    int points, inner;
};

// The matrix of a scan: entry (i, j) is kernel[i - j] forwards, kernel[j - i] backwards, modulo the length if periodic.
// It depends on j - i alone, so every row is a piece of one line of 2 points - 1 numbers, which begins one to the left
// of the row above.
void build_matrix(const float* kernel, int points, bool backward, bool periodic, float* matrix, float* line) {
    for (int shift = 1 - points; shift < points; ++shift) {  // j - i
        const int distance = backward ? shift : -shift;
        line[points - 1 + shift] = distance >= 0 ? kernel[distance] : periodic ? kernel[distance + points] : 0.0f;
    }
    for (int i = 0; i < points; ++i)
        std::copy_n(line + points - 1 - i, points, matrix + static_cast<std::int64_t>(i) * points);
}

// Sum the matrix's gradient along diagonals: what each kernel entry receives.
void sum_diagonals(const float* matrix, int points, bool backward, bool periodic, float* kernel, float* line) {
    std::fill_n(line, 2 * points - 1, 0.0f);
    for (int i = 0; i < points; ++i) {
        const float* row = matrix + static_cast<std::int64_t>(i) * points;
        float* to = line + points - 1 - i;
#pragma omp simd
        for (int j = 0; j < points; ++j) to[j] += row[j];
    }
    for (int shift = 1 - points; shift < points; ++shift) {
        const int distance = backward ? shift : -shift;
        if (distance >= 0)
            kernel[distance] += line[points - 1 + shift];
        else if (periodic)
            kernel[distance + points] += line[points - 1 + shift];
    }
}

// A matrix that is full, or zero above (lower) or below (upper) its diagonal. Triangles are cut into two halves of
// rows, so that a quarter of the work falls away.
enum class Shape { full, lower, upper };

Shape shape_of(bool backward, bool periodic) {
    return periodic ? Shape::full : backward ? Shape::upper : Shape::lower;
}

template <typename Body>  // body(first row, rows, first column, columns)
void over_halves(Shape shape, int points, Body body) {
    const int half = points / 2;
    if (shape == Shape::full || points < 32) {
        body(0, points, 0, points);
    } else if (shape == Shape::lower) {
        body(0, half, 0, half);
        body(half, points - half, 0, points);
    } else {
        body(0, half, 0, points);
        body(half, points - half, half, points - half);
    }
}

// y = T x (or T' x, added) for all lines of one channel.
void apply_matrix(const float* matrix, Shape shape, bool transpose, const Lines& lines, const float* x, float beta,
                  float* y) {
    const int l = lines.points, n = lines.inner;
    const Shape effective = !transpose || shape == Shape::full ? shape
                            : shape == Shape::lower            ? Shape::upper
                                                               : Shape::lower;
    over_halves(effective, l, [&](int row, int rows, int column, int columns) {
        const float* part = matrix + (transpose ? static_cast<std::int64_t>(column) * l + row
                                               : static_cast<std::int64_t>(row) * l + column);
        if (n == 1) {  // lines are rows: y = x T'
            gemm(false, !transpose, static_cast<int>(lines.outer), rows, columns, x + column, l, part, l, beta, y + row,
                 l);
            return;
        }
        for (std::int64_t o = 0; o < lines.outer; ++o)
            gemm(transpose, false, rows, n, columns, part, l, x + (o * l + column) * n, n, beta, y + (o * l + row) * n,
                 n);
    });
}

// dT += dy x' over all lines of one channel; only where T is not zero.
void add_matrix_gradient(Shape shape, const Lines& lines, const float* grad_y, const float* x, float* grad_matrix) {
    const int l = lines.points, n = lines.inner;
    over_halves(shape, l, [&](int row, int rows, int column, int columns) {
        float* part = grad_matrix + static_cast<std::int64_t>(row) * l + column;
        if (n == 1) {
            gemm(true, false, rows, columns, static_cast<int>(lines.outer), grad_y + row, l, x + column, l, 1.0f, part,
                 l);
            return;
        }
        for (std::int64_t o = 0; o < lines.outer; ++o)
            gemm(false, true, rows, columns, n, grad_y + (o * l + row) * n, n, x + (o * l + column) * n, n, 1.0f, part,
                 l);
    });
}

// A middle axis with few numbers after it would mean many narrow products. So a group of what comes before is laid side
// by side first, as (point, group, inner), and back afterwards.
constexpr int NARROW = 64, WIDE = 512;

struct Group {
    std::int64_t first;
    int count, inner, points;

    int columns() const { return count * inner; }

    template <typename Move>  // move(from one run of `inner` numbers of the field, to its place in the group)
    void each(Move move) const {
        for (int o = 0; o < count; ++o)
            for (int i = 0; i < points; ++i)
                move(((first + o) * points + i) * inner, static_cast<std::int64_t>(i) * columns() + o * inner);
    }

    void gather(const float* field, float* group) const {
        each([&](std::int64_t a, std::int64_t b) { std::copy_n(field + a, inner, group + b); });
    }

    void scatter(const float* group, bool add, float* field) const {
        each([&](std::int64_t a, std::int64_t b) {
            for (int n = 0; n < inner; ++n) field[a + n] = add ? field[a + n] + group[b + n] : group[b + n];
        });
    }
};

bool is_narrow(const Lines& lines) { return lines.outer > 1 && lines.inner > 1 && lines.inner < NARROW; }

template <typename Body>  // body(group)
void over_groups(const Lines& lines, Body body) {
    const int most = std::max(1, WIDE / lines.inner);
    for (std::int64_t first = 0; first < lines.outer; first += most)
        body(Group{first, static_cast<int>(std::min<std::int64_t>(most, lines.outer - first)), lines.inner, lines.points});
}

std::int64_t room_for_groups(const Lines& lines) {
    return is_narrow(lines) ? 2 * static_cast<std::int64_t>(WIDE) * lines.points : 0;
}

// As `apply_matrix`, by groups where that is better.
void apply(const float* matrix, Shape shape, bool transpose, const Lines& lines, const float* x, bool add, float* y,
           float* room) {
    if (!is_narrow(lines)) return apply_matrix(matrix, shape, transpose, lines, x, add ? 1.0f : 0.0f, y);
    float* result = room + static_cast<std::int64_t>(WIDE) * lines.points;
    over_groups(lines, [&](const Group& group) {
        group.gather(x, room);
        apply_matrix(matrix, shape, transpose, Lines{1, lines.points, group.columns()}, room, 0.0f, result);
        group.scatter(result, add, y);
    });
}

// As `add_matrix_gradient`, by groups where that is better.
void add_gradient(Shape shape, const Lines& lines, const float* grad_y, const float* x, float* grad_matrix, float* room) {
    if (!is_narrow(lines)) return add_matrix_gradient(shape, lines, grad_y, x, grad_matrix);
    float* other = room + static_cast<std::int64_t>(WIDE) * lines.points;
    over_groups(lines, [&](const Group& group) {
        group.gather(grad_y, room);
        group.gather(x, other);
        add_matrix_gradient(shape, Lines{1, lines.points, group.columns()}, room, other, grad_matrix);
    });
}

// One line after the other, without a matrix: for a few lines that is faster. Eight points of x act at once on a kernel
// with zeros around it, so that a sum is loaded and stored once for eight products.
constexpr int TOGETHER = 8;

std::int64_t room_for_direct(int points) { return 4 * static_cast<std::int64_t>(points + TOGETHER) + 2 * TOGETHER; }

void convolve_directly(const float* kernel, bool backward, bool periodic, const Lines& lines, const float* x, float* y,
                       float* work) {
    const int l = lines.points, n = lines.inner;
    float* padded = work;                       // TOGETHER zeros, the kernel, TOGETHER zeros
    float* line = padded + l + 2 * TOGETHER;    // x, backwards if need be, then TOGETHER zeros
    float* sum = line + l + TOGETHER;           // y, then what runs over the end
    std::fill(padded, padded + l + 2 * TOGETHER, 0.0f);
    std::copy(kernel, kernel + l, padded + TOGETHER);
    std::fill(line + l, line + l + TOGETHER, 0.0f);
    for (std::int64_t o = 0; o < lines.outer; ++o)
        for (int c = 0; c < n; ++c) {
            for (int i = 0; i < l; ++i) line[i] = x[(o * l + (backward ? l - 1 - i : i)) * n + c];
            std::fill(sum, sum + 2 * l + TOGETHER, 0.0f);
            for (int j = 0; j < l; j += TOGETHER) {
                const float *v = line + j, *k = padded + TOGETHER;  // k[i - m] is what x[j + m] adds to sum[j + i]
                float* to = sum + j;
                const int reach = periodic ? l + TOGETHER - 1 : l - j;
#pragma omp simd
                for (int i = 0; i < reach; ++i)
                    to[i] += ((v[0] * k[i] + v[1] * k[i - 1]) + (v[2] * k[i - 2] + v[3] * k[i - 3])) +
                             ((v[4] * k[i - 4] + v[5] * k[i - 5]) + (v[6] * k[i - 6] + v[7] * k[i - 7]));
            }
            for (int i = 0; i < l; ++i)
                y[(o * l + (backward ? l - 1 - i : i)) * n + c] = sum[i] + (periodic ? sum[l + i] : 0.0f);
        }
}

}  // namespace

extern "C" {

void bind(void* gemm_pointer, void* threads_pointer) {
    const bool given = gemm_pointer != nullptr && threads_pointer != nullptr;
    column_major_gemm = given ? reinterpret_cast<Gemm>(gemm_pointer) : portable_gemm;
    set_gemm_threads = given ? reinterpret_cast<SetThreads>(threads_pointer) : one_thread;
}

// Which numbers tiles multiply on this machine: bit 0 float32, bit 1 bfloat16.
int tiled_kinds() {
    int kinds = 0;
#ifdef __AVX512F__
    kinds |= 1;
#endif
#ifdef __AVX512BF16__
    kinds |= 2;
#endif
    return kinds;
}

// x: (h, outer, points, inner); kernels: (d, h, points), bit d of `backward` gives its direction; y: (h, d, *lines).
void scan_forward(const float* x, const float* kernels, float* y, int channels, int directions, std::int64_t outer,
                  int points, int inner, int backward, int periodic, int direct, int threads) {
    const Lines lines{outer, points, inner};
    const std::int64_t size = outer * points * inner;
    const int tasks = channels * directions;
    const bool small = static_cast<double>(tasks) * outer * inner * points * points < WORTH_A_THREAD;
#pragma omp parallel num_threads(small ? 1 : std::min(threads, tasks))
    {
        const int before = set_gemm_threads(1);
        const std::int64_t square = static_cast<std::int64_t>(points) * points;
        float* work = scratch(direct ? room_for_direct(points) : square + 2 * points + room_for_groups(lines));
#pragma omp for schedule(static)
        for (int task = 0; task < tasks; ++task) {
            const int c = task / directions, d = task % directions;
            const bool reversed = backward >> d & 1;
            const float* kernel = kernels + (static_cast<std::int64_t>(d) * channels + c) * points;
            float* to = y + task * size;
            if (direct) {
                convolve_directly(kernel, reversed, periodic, lines, x + c * size, to, work);
            } else {
                build_matrix(kernel, points, reversed, periodic, work, work + square);
                apply(work, shape_of(reversed, periodic), false, lines, x + c * size, false, to, work + square + 2 * points);
            }
        }
        set_gemm_threads(before);
    }
}

// Writes grad_x, adds to grad_kernels (zero before).
void scan_backward(const float* x, const float* kernels, const float* grad_y, float* grad_x, float* grad_kernels,
                   int channels, int directions, std::int64_t outer, int points, int inner, int backward, int periodic,
                   int threads) {
    const Lines lines{outer, points, inner};
    const std::int64_t size = outer * points * inner, square = static_cast<std::int64_t>(points) * points;
#pragma omp parallel num_threads(std::min(threads, channels))
    {
        const int before = set_gemm_threads(1);
        float* matrix = scratch(2 * square + 2 * points + room_for_groups(lines));
        float* grad_matrix = matrix + square;
        float* line = grad_matrix + square;
        float* room = line + 2 * points;
#pragma omp for schedule(static)
        for (int c = 0; c < channels; ++c)
            for (int d = 0; d < directions; ++d) {
                const bool reversed = backward >> d & 1;
                const Shape shape = shape_of(reversed, periodic);
                const std::int64_t row = (static_cast<std::int64_t>(d) * channels + c) * points;
                const float* from = grad_y + (static_cast<std::int64_t>(c) * directions + d) * size;
                build_matrix(kernels + row, points, reversed, periodic, matrix, line);
                apply(matrix, shape, true, lines, from, d > 0, grad_x + c * size, room);
                std::fill(grad_matrix, grad_matrix + square, 0.0f);
                add_gradient(shape, lines, from, x + c * size, grad_matrix, room);
                sum_diagonals(grad_matrix, points, reversed, periodic, grad_kernels + row, line);
            }
        set_gemm_threads(before);
    }
}

}  // extern "C"
