// A scan (see scan.cpp) by products in tiles, in float32 and in bfloat16. Kernels and their gradients are float32 in both.
//
// The matrix of a scan is never built: every row of it is a piece of one line of 2 points - 1 numbers, from which single
// lanes are broadcast as they are needed, and those left or right of the diagonal that are zero are skipped. A tile takes
// 32 lines at a time. The gradient of a kernel is a correlation, d kernel[m] = sum_i grad_y[i] x[i - m], summed over lines
// lane by lane; eight distances at a time meet four points. Lines that lie one after the other in memory (inner = 1, as
// those of memory over time) are convolved directly.

#include "arithmetic.h"
#include "tiles.h"

#ifdef __AVX512F__

namespace {

using namespace tiles;

constexpr int BEFORE = ROWS;   // zeros before the line of a matrix: rows of a tile below the last point
constexpr int APART = 8, TOGETHER = 4;  // distances and points of a correlation at a time
constexpr int FEW = 12;  // lines
constexpr double WORTH_A_THREAD = 5e5;

struct Scan {
    int channels, directions;
    std::int64_t outer;
    int points, inner, backward;
    bool periodic;

    std::int64_t lines() const { return outer * inner; }
    std::int64_t size() const { return outer * points * inner; }
    bool reversed(int d) const { return backward >> d & 1; }
    int even() const { return round_up(points, 2); }
    std::int64_t line_length() const { return BEFORE + 2 * static_cast<std::int64_t>(points) + 2 + ROWS; }
};

// Entry (i, j) of the matrix is line[points - 1 - i + j]: kernel[i - j] forwards, kernel[j - i] backwards.
template <typename T>
typename T::Number* build_line(const float* kernel, const Scan& scan, bool reversed, typename T::Number* room) {
    const int l = scan.points;
    std::memset(room, 0, scan.line_length() * sizeof *room);
    typename T::Number* line = room + BEFORE;
    for (int shift = 1 - l; shift < l; ++shift) {  // j - i
        const int distance = reversed ? shift : -shift;
        if (distance >= 0 || scan.periodic) line[l - 1 + shift] = T::number(kernel[distance >= 0 ? distance : distance + l]);
    }
    return line;
}

// Where the numbers of up to 32 lines are: line q of a field lies at (q / inner, point, q % inner).
template <typename T>
struct Columns {
    using Number = typename T::Number;
    const Scan& scan;
    std::int64_t first;
    int count;

    // The row of one point, as it lies; zeros after the last line.
    void gather(const Number* field, int point, Number* row) const {
        std::int64_t q = first;
        int done = 0;
        while (done < count) {
            const std::int64_t o = q / scan.inner;
            const int i = static_cast<int>(q % scan.inner), length = std::min(scan.inner - i, count - done);
            std::memcpy(row + done, field + (o * scan.points + point) * scan.inner + i, length * sizeof(Number));
            done += length;
            q += length;
        }
        std::memset(row + count, 0, (WIDTH - count) * sizeof(Number));
    }

    void scatter(const Number* row, int point, Number* field) const {
        std::int64_t q = first;
        int done = 0;
        while (done < count) {
            const std::int64_t o = q / scan.inner;
            const int i = static_cast<int>(q % scan.inner), length = std::min(scan.inner - i, count - done);
            std::memcpy(field + (o * scan.points + point) * scan.inner + i, row + done, length * sizeof(Number));
            done += length;
            q += length;
        }
    }

    // Rows of all points one after the other, (points, 32).
    void gather_all(const Number* field, Number* rows) const {
        if (count == WIDTH && scan.inner % WIDTH == 0) {  // the usual case: one run of numbers per point
            const Number* from = field + first / scan.inner * scan.points * scan.inner + first % scan.inner;
            for (int point = 0; point < scan.points; ++point)
                std::memcpy(rows + point * WIDTH, from + static_cast<std::int64_t>(point) * scan.inner, WIDTH * sizeof(Number));
            return;
        }
        for (int point = 0; point < scan.points; ++point) gather(field, point, rows + point * WIDTH);
    }
};

// (points, 32) numbers packed: K points side by side.
template <typename T>
void pack_rows(const typename T::Number* rows, int points, Lane* packed) {
    for (int i = 0; i < points; i += T::K, packed += WIDTH)
        for (int v = 0; v < VECTORS; ++v)
            _mm512_storeu_si512(packed + v * LANES, T::pack(rows + i * WIDTH + v * LANES, WIDTH, points - i, 0xffff));
}

// Lanes of the second factor that rows [row, row + 8) of a matrix meet: all, or those on one side of its diagonal.
template <typename T>
void lanes_met(const Scan& scan, bool reversed, int row, int& first, int& last) {
    const int all = (scan.points + T::K - 1) / T::K;
    first = scan.periodic || !reversed ? 0 : row / T::K;
    last = scan.periodic || reversed ? all : std::min(all, (row + ROWS + T::K - 1) / T::K);
}

template <typename T>
inline void add_rows(Sums& sums, const typename T::Number* line, const Scan& scan, bool reversed, int row, const Lane* packed) {
    int first, last;
    lanes_met<T>(scan, reversed, row, first, last);
    add_product<T>(sums, line + scan.points - 1 - row + first * T::K, -1, T::K, packed + static_cast<std::int64_t>(first) * WIDTH,
                   WIDTH, last - first);
}

// Sums that begin with `copies` times a residual, or with zero.
template <typename T>
inline void begin_tile(Sums& sums, int row, const Columns<T>& columns, const typename T::Number* residual, float copies) {
    clear(sums);
    if (residual == nullptr) return;
    const Scan& scan = columns.scan;
    for (int r = 0; r < std::min(ROWS, scan.points - row); ++r) {
        alignas(64) typename T::Number numbers[WIDTH];
        columns.gather(residual, row + r, numbers);
        for (int v = 0; v < VECTORS; ++v)
            sums[r][v] = _mm512_mul_ps(_mm512_set1_ps(copies), T::load(numbers + v * LANES, 0xffff));
    }
}

template <typename T>
inline void store_tile(const Sums& sums, int row, const Columns<T>& columns, typename T::Number* field) {
    const Scan& scan = columns.scan;
    const int rows = std::min(ROWS, scan.points - row);
    if (columns.count == WIDTH && scan.inner % WIDTH == 0) {
        typename T::Number* to = field + columns.first / scan.inner * scan.points * scan.inner + columns.first % scan.inner;
        for (int r = 0; r < rows; ++r)
            for (int v = 0; v < VECTORS; ++v)
                T::store(to + static_cast<std::int64_t>(row + r) * scan.inner + v * LANES, 0xffff, sums[r][v]);
        return;
    }
    for (int r = 0; r < rows; ++r) {
        alignas(64) typename T::Number numbers[WIDTH];
        for (int v = 0; v < VECTORS; ++v) T::store(numbers + v * LANES, 0xffff, sums[r][v]);
        columns.scatter(numbers, row + r, field);
    }
}

// to[m] (sixteen lanes each) += sum_i a[i] b[i - m] over 32 lines; b begins `points` rows before its first point: with
// zeros, or with itself on a circle.
template <typename T>
void correlate(const typename T::Number* a, const typename T::Number* b, const Scan& scan, float* to) {
    constexpr int VECTORS_PER_ROW = VECTORS / T::K;
    const int l = scan.points;
    for (int m = 0; m < l; m += APART) {
        __m512 sums[APART];
        for (int n = 0; n < APART; ++n) sums[n] = _mm512_loadu_ps(to + (m + n) * LANES);
        const int first = scan.periodic ? 0 : m;
        for (int v = 0; v < VECTORS_PER_ROW; ++v) {
            const Lane* of_a = reinterpret_cast<const Lane*>(a) + v * LANES;
            const Lane* of_b = reinterpret_cast<const Lane*>(b) + v * LANES;
            constexpr int ROW = WIDTH / T::K;  // lanes
            for (int i = first; i < l; i += TOGETHER) {  // `a` has zeros after its last point
                __m512i own[TOGETHER], other[APART + TOGETHER - 1];
#pragma GCC unroll 4
                for (int j = 0; j < TOGETHER; ++j) own[j] = _mm512_loadu_si512(of_a + (i + j) * ROW);
                const Lane* lowest = of_b + static_cast<std::int64_t>(l + i - m - (APART - 1)) * ROW;
#pragma GCC unroll 11
                for (int j = 0; j < APART + TOGETHER - 1; ++j) other[j] = _mm512_loadu_si512(lowest + j * ROW);
#pragma GCC unroll 4
                for (int j = 0; j < TOGETHER; ++j)
#pragma GCC unroll 8
                    for (int n = 0; n < APART; ++n) sums[n] = T::dot(sums[n], own[j], other[j + APART - 1 - n]);
            }
        }
        for (int n = 0; n < APART; ++n) _mm512_storeu_ps(to + (m + n) * LANES, sums[n]);
    }
}

// Lines whose points lie one after the other, by lanes of points: 64 points of four lines stay in registers, while pieces
// of the kernel meet one point of each line.
constexpr int ABREAST = 4, POINTS = 4 * LANES;

// K(m) for distances -points < m < points, at room[points - 1 + m]; what follows is zero.
inline std::int64_t around_length(int points) { return 2 * static_cast<std::int64_t>(points) + POINTS; }

inline const float* around_zero(const float* kernel, const Scan& scan, bool reversed, float* room) {
    const int l = scan.points;
    std::memset(room, 0, around_length(l) * sizeof *room);
    float* zero = room + l - 1;
    for (int m = 0; m < l; ++m) {
        zero[reversed ? -m : m] = kernel[m];
        if (scan.periodic && m > 0) zero[reversed ? l - m : m - l] = kernel[m];
    }
    return zero;
}

// y[i] = sum over j in [first, last) of K(i - j) x[j] for V vectors of points i that begin at `start`, N lines.
template <int N, int V>
inline void add_points(const float* zero, const float* x, std::int64_t row, int start, int first, int last, __m512 (&sums)[N][V]) {
    const float* at = zero + start - first;
    for (int j = first; j < last; ++j, --at) {
        __m512 taps[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) taps[v] = _mm512_loadu_ps(at + v * LANES);
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
            const __m512 value = _mm512_set1_ps(x[n * row + j]);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) sums[n][v] = _mm512_fmadd_ps(taps[v], value, sums[n][v]);
        }
    }
}

// N lines of `points` numbers, `row` apart, convolved; `reach` is how many taps there are.
template <int N>
void convolve_some(const float* zero, const Scan& scan, bool reversed, int reach, const float* x, float* y, std::int64_t row) {
    const int l = scan.points;
    for (int start = 0; start < l; start += POINTS) {
        const int end = std::min(l, start + POINTS);
        const int first = scan.periodic ? 0 : reversed ? start : std::max(0, start - reach + 1);
        const int last = scan.periodic ? l : reversed ? std::min(l, end + reach - 1) : end;
        const auto store = [&](auto& sums, int vectors) {
            for (int n = 0; n < N; ++n)
                for (int v = 0; v < vectors; ++v)
                    _mm512_mask_storeu_ps(y + n * row + start + v * LANES, first_lanes(l - start - v * LANES), sums[n][v]);
        };
        const int vectors = (end - start + LANES - 1) / LANES;
        if (vectors <= 2) {
            __m512 sums[N][2] = {};
            add_points<N, 2>(zero, x, row, start, first, last, sums);
            store(sums, 2);
        } else {
            __m512 sums[N][4] = {};
            add_points<N, 4>(zero, x, row, start, first, last, sums);
            store(sums, 4);
        }
    }
}

std::int64_t room_for_convolution(const Scan& scan) {
    return around_length(scan.points) + 2 * ABREAST * static_cast<std::int64_t>(round_up(scan.points, LANES));
}

// All lines of a channel, whatever lies between their points; with `add`, added to what is there.
template <typename T>
void convolve_lines(const float* kernel, const Scan& scan, bool reversed, bool add, const typename T::Number* x,
                    typename T::Number* y, float* room) {
    const int l = scan.points;
    const std::int64_t row = round_up(l, LANES);
    int reach = l;
    while (reach > 1 && kernel[reach - 1] == 0.0f) --reach;
    const float* zero = around_zero(kernel, scan, reversed, room);
    float *from = room + around_length(l), *to = from + ABREAST * row;
    for (std::int64_t q = 0; q < scan.lines(); q += ABREAST) {
        const int count = static_cast<int>(std::min<std::int64_t>(ABREAST, scan.lines() - q));
        const auto each = [&](auto move) {  // move(line of the group, its first number in the field)
            for (int n = 0; n < count; ++n) move(n, (q + n) / scan.inner * l * scan.inner + (q + n) % scan.inner);
        };
        each([&](int n, std::int64_t start) {
            if (scan.inner == 1)
                for (int t = 0; t < l; t += LANES)
                    _mm512_storeu_ps(from + n * row + t, T::load(x + start + t, first_lanes(l - t)));
            else
                for (int t = 0; t < l; ++t) from[n * row + t] = T::value(x[start + static_cast<std::int64_t>(t) * scan.inner]);
        });
        if (count == ABREAST)
            convolve_some<ABREAST>(zero, scan, reversed, reach, from, to, row);
        else
            for (int n = 0; n < count; ++n) convolve_some<1>(zero, scan, reversed, reach, from + n * row, to + n * row, row);
        each([&](int n, std::int64_t start) {
            if (scan.inner == 1)
                for (int t = 0; t < l; t += LANES) {
                    const __mmask16 mask = first_lanes(l - t);
                    __m512 values = _mm512_loadu_ps(to + n * row + t);
                    if (add) values = _mm512_add_ps(values, T::load(y + start + t, mask));
                    T::store(y + start + t, mask, values);
                }
            else
                for (int t = 0; t < l; ++t) {
                    typename T::Number& number = y[start + static_cast<std::int64_t>(t) * scan.inner];
                    number = T::number(to[n * row + t] + (add ? T::value(number) : 0.0f));
                }
        });
    }
}

// to[m] (sixteen lanes each) += sum_t a[t] b[t - m], some lines at a time, so that eight distances share their sums.
constexpr int STACKED = 16;

template <typename T>
void correlate_lines(const typename T::Number* a, const typename T::Number* b, const Scan& scan, float* to, float* room) {
    const int l = scan.points, wide = round_up(l, LANES), longer = wide + l + LANES;
    float *own = room, *other = room + STACKED * wide;  // each of `other` begins l numbers before its first point
    std::memset(room, 0, static_cast<std::int64_t>(STACKED) * (wide + longer) * sizeof *room);
    for (std::int64_t first = 0; first < scan.lines(); first += STACKED) {
        const int stacked = static_cast<int>(std::min<std::int64_t>(STACKED, scan.lines() - first));
        for (int n = 0; n < stacked; ++n)
            for (int t = 0; t < l; t += LANES) {
                const __mmask16 mask = first_lanes(l - t);
                const __m512 values = T::load(b + (first + n) * l + t, mask);
                _mm512_mask_storeu_ps(own + n * wide + t, mask, T::load(a + (first + n) * l + t, mask));
                _mm512_mask_storeu_ps(other + n * longer + l + t, mask, values);
                if (scan.periodic) _mm512_mask_storeu_ps(other + n * longer + t, mask, values);
            }
        for (int m = 0; m < l; m += APART) {
            const int apart = std::min(APART, l - m);
            __m512 sums[APART];
            for (int d = 0; d < APART; ++d) sums[d] = _mm512_loadu_ps(to + (m + d) * LANES);
            for (int n = 0; n < stacked; ++n)
                for (int t = scan.periodic ? 0 : m / LANES * LANES; t < l; t += LANES) {
                    const __m512 from = _mm512_loadu_ps(own + n * wide + t);
                    const float* at = other + n * longer + l + t - m;
                    if (apart == APART) {
#pragma GCC unroll 8
                        for (int d = 0; d < APART; ++d) sums[d] = _mm512_fmadd_ps(from, _mm512_loadu_ps(at - d), sums[d]);
                    } else {
                        for (int d = 0; d < apart; ++d) sums[d] = _mm512_fmadd_ps(from, _mm512_loadu_ps(at - d), sums[d]);
                    }
                }
            for (int d = 0; d < APART; ++d) _mm512_storeu_ps(to + (m + d) * LANES, sums[d]);
        }
    }
}

std::int64_t room_for_lines(const Scan& scan) {
    const std::int64_t stacked = STACKED * (3 * static_cast<std::int64_t>(round_up(scan.points, LANES)) + LANES);
    return std::max(stacked, room_for_convolution(scan));
}

// Lines that lie one after the other, or so few that a tile of 32 would be mostly empty.
bool by_points(const Scan& scan) { return scan.inner == 1 || scan.lines() <= FEW; }

template <typename T>
void scan_ahead(const typename T::Number* x, const float* kernels, typename T::Number* y, const Scan& scan, int threads) {
    using Number = typename T::Number;
    const int l = scan.points;
    const bool small = static_cast<double>(scan.channels) * scan.directions * scan.lines() * l * l < WORTH_A_THREAD;
#pragma omp parallel for schedule(static) num_threads(small ? 1 : std::min(threads, scan.channels))
    for (int c = 0; c < scan.channels; ++c) {
        const std::int64_t size = scan.size();
        Room room(scan.directions * (scan.line_length() + 32) * sizeof(Number) + static_cast<std::int64_t>(l + 2) * WIDTH * 2 * sizeof(Lane) +
                  room_for_lines(scan) * sizeof(float));
        if (by_points(scan)) {
            float* work = room.take<float>(room_for_lines(scan));
            for (int d = 0; d < scan.directions; ++d)
                convolve_lines<T>(kernels + (static_cast<std::int64_t>(d) * scan.channels + c) * l, scan, scan.reversed(d), false,
                                  x + c * size, y + (static_cast<std::int64_t>(c) * scan.directions + d) * size, work);
            continue;
        }
        Number* lines = room.take<Number>(scan.directions * scan.line_length());
        Number* rows = room.take<Number>(static_cast<std::int64_t>(l) * WIDTH);
        Lane* packed = room.take<Lane>(static_cast<std::int64_t>(l + 1) * WIDTH);
        for (int d = 0; d < scan.directions; ++d)
            build_line<T>(kernels + (static_cast<std::int64_t>(d) * scan.channels + c) * l, scan, scan.reversed(d),
                          lines + d * scan.line_length());
        for (std::int64_t first = 0; first < scan.lines(); first += WIDTH) {
            const Columns<T> columns{scan, first, static_cast<int>(std::min<std::int64_t>(WIDTH, scan.lines() - first))};
            columns.gather_all(x + c * size, rows);
            pack_rows<T>(rows, l, packed);
            for (int d = 0; d < scan.directions; ++d)
                for (int row = 0; row < l; row += ROWS) {
                    Sums sums;
                    clear(sums);
                    add_rows<T>(sums, lines + d * scan.line_length() + BEFORE, scan, scan.reversed(d), row, packed);
                    store_tile<T>(sums, row, columns, y + (static_cast<std::int64_t>(c) * scan.directions + d) * size);
                }
        }
    }
}

template <typename T>
void scan_back(const typename T::Number* x, const float* kernels, const typename T::Number* grad_y,
               const typename T::Number* residual, float copies, typename T::Number* grad_x, float* grad_kernels, const Scan& scan,
               int threads) {
    using Number = typename T::Number;
    const int l = scan.points, distances = round_up(l, APART);
#pragma omp parallel for schedule(static) num_threads(std::min(threads, scan.channels))
    for (int c = 0; c < scan.channels; ++c) {
        const std::int64_t size = scan.size(), field = static_cast<std::int64_t>(2 * l + TOGETHER + APART) * WIDTH;
        Room room((scan.directions * (scan.line_length() + 32) + (scan.directions + 1) * (field + APART * WIDTH)) * sizeof(Number) +
                  static_cast<std::int64_t>(l + 2) * WIDTH * sizeof(Lane) * scan.directions +
                  (static_cast<std::int64_t>(scan.directions) * distances * LANES + room_for_lines(scan)) * sizeof(float));
        float* found = room.take<float>(static_cast<std::int64_t>(scan.directions) * distances * LANES);
        std::memset(found, 0, static_cast<std::int64_t>(scan.directions) * distances * LANES * sizeof(float));
        const auto kernel_of = [&](int d) { return kernels + (static_cast<std::int64_t>(d) * scan.channels + c) * l; };
        const auto grad_of = [&](int d) { return grad_y + (static_cast<std::int64_t>(c) * scan.directions + d) * size; };
        if (scan.inner == 1) {
            float* work = room.take<float>(room_for_lines(scan));
            for (std::int64_t i = 0; i < size && residual != nullptr; i += LANES) {
                const __mmask16 mask = first_lanes(static_cast<int>(std::min<std::int64_t>(LANES, size - i)));
                T::store(grad_x + c * size + i, mask,
                         _mm512_mul_ps(_mm512_set1_ps(copies), T::load(residual + c * size + i, mask)));
            }
            for (int d = 0; d < scan.directions; ++d) {
                convolve_lines<T>(kernel_of(d), scan, !scan.reversed(d), d > 0 || residual != nullptr, grad_of(d),
                                  grad_x + c * size, work);
                if (scan.reversed(d))
                    correlate_lines<T>(x + c * size, grad_of(d), scan, found + static_cast<std::int64_t>(d) * distances * LANES, work);
                else
                    correlate_lines<T>(grad_of(d), x + c * size, scan, found + static_cast<std::int64_t>(d) * distances * LANES, work);
            }
        } else {
            Number* lines = room.take<Number>(scan.directions * scan.line_length());
            // Fields of 32 lines: `points` rows before the first point, zero or a circle's other end; zeros after the last.
            Number* fields = room.take<Number>((scan.directions + 1) * field + APART * WIDTH) + APART * WIDTH;
            Lane* packed = room.take<Lane>(static_cast<std::int64_t>(scan.directions) * (l + 1) * WIDTH);
            std::memset(fields - APART * WIDTH, 0, ((scan.directions + 1) * field + APART * WIDTH) * sizeof(Number));
            for (int d = 0; d < scan.directions; ++d)
                build_line<T>(kernel_of(d), scan, !scan.reversed(d), lines + d * scan.line_length());
            const std::int64_t lanes = static_cast<std::int64_t>(l + 1) * WIDTH;
            for (std::int64_t first = 0; first < scan.lines(); first += WIDTH) {
                const Columns<T> columns{scan, first, static_cast<int>(std::min<std::int64_t>(WIDTH, scan.lines() - first))};
                Number* own = fields + scan.directions * field;
                columns.gather_all(x + c * size, own + static_cast<std::int64_t>(l) * WIDTH);
                for (int d = 0; d < scan.directions; ++d) {
                    Number* rows = fields + d * field + static_cast<std::int64_t>(l) * WIDTH;
                    columns.gather_all(grad_of(d), rows);
                    pack_rows<T>(rows, l, packed + d * lanes);
                }
                for (int f = 0; f <= scan.directions && scan.periodic; ++f)
                    std::memcpy(fields + f * field, fields + f * field + static_cast<std::int64_t>(l) * WIDTH,
                                static_cast<std::int64_t>(l) * WIDTH * sizeof(Number));
                for (int row = 0; row < l; row += ROWS) {
                    Sums sums;
                    begin_tile<T>(sums, row, columns, residual == nullptr ? nullptr : residual + c * size, copies);
                    for (int d = 0; d < scan.directions; ++d)
                        add_rows<T>(sums, lines + d * scan.line_length() + BEFORE, scan, !scan.reversed(d), row, packed + d * lanes);
                    store_tile<T>(sums, row, columns, grad_x + c * size);
                }
                for (int d = 0; d < scan.directions; ++d) {
                    const Number* a = scan.reversed(d) ? own : fields + d * field;
                    const Number* b = scan.reversed(d) ? fields + d * field : own;
                    correlate<T>(a + static_cast<std::int64_t>(l) * WIDTH, b, scan, found + static_cast<std::int64_t>(d) * distances * LANES);
                }
            }
        }
        for (int d = 0; d < scan.directions; ++d)
            for (int m = 0; m < l; ++m)
                grad_kernels[(static_cast<std::int64_t>(d) * scan.channels + c) * l + m] =
                    _mm512_reduce_add_ps(_mm512_loadu_ps(found + (static_cast<std::int64_t>(d) * distances + m) * LANES));
    }
}

}  // namespace

extern "C" {

#define SCANS(NAME, T)                                                                                                   \
    void scan_forward_##NAME(const T::Number* x, const float* kernels, T::Number* y, int channels, int directions,       \
                             std::int64_t outer, int points, int inner, int backward, int periodic, int, int threads) {  \
        scan_ahead<T>(x, kernels, y, Scan{channels, directions, outer, points, inner, backward, periodic != 0}, threads); \
    }                                                                                                                    \
    void scan_backward_##NAME(const T::Number* x, const float* kernels, const T::Number* grad_y,                         \
                              const T::Number* residual, float copies, T::Number* grad_x, float* grad_kernels, int channels, int directions, std::int64_t outer, int points,         \
                              int inner, int backward, int periodic, int threads) {                                      \
        scan_back<T>(x, kernels, grad_y, residual, copies, grad_x, grad_kernels,                                                           \
                     Scan{channels, directions, outer, points, inner, backward, periodic != 0}, threads);                \
    }

SCANS(float32, Single)
#ifdef __AVX512BF16__
SCANS(bf16, Half)
#endif

}  // extern "C"

#endif  // __AVX512F__
