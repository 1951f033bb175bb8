// Gate and head (see pointwise.cpp) by products in tiles, in float32 and in bfloat16. Weights, biases and their gradients
// are float32 in both, as is the output of the head; features are of the kind T.
//
// Each thread walks over blocks of positions. A tile of the product goes from registers straight into the activation
// that follows it, so that the wide features of a gate are never stored going forward. Gated channels are in the order
// of tiles: four values, then their four gates. Inside a block everything lies tile by tile: 32 positions of all rows, then
// the next 32, so that what one tile multiplies is one run of memory in the first cache.

#include "blocks.h"
#include "tiles.h"

#ifdef __AVX512F__

namespace {

using namespace tiles;

constexpr int AHEAD = 256;  // positions per block going forward
template <typename T>
constexpr int BACK = 128 * T::K;  // and backward, where more has to stay in the cache
constexpr int HALF = ROWS / 2;

// Where the rows of gated tiles come from: row r of tile t is the value (r < 4) or the gate of channel 4 t + r % 4.
struct Gated {
    int channels, tiles, inner, columns;  // inner: channels in whole lanes; columns: channels in whole tiles

    Gated(int h, int k) : channels(h), tiles((h + HALF - 1) / HALF), inner(round_up(h, k) / k), columns(round_up(h, WIDTH)) {}
    int rows() const { return tiles * ROWS; }
    int channel(int tile, int row) const { return tile * HALF + row % HALF; }
    bool exists(int tile, int row) const { return channel(tile, row) < channels; }
    int source(int tile, int row) const { return (row < HALF ? 0 : channels) + channel(tile, row); }
};

// Numbers of the weight (2h, h) in the order in which tiles take them: (tile, lane of channels, row, number in lane).
template <typename T>
void pack_gate(const float* weight, const Gated& g, typename T::Number* to) {
    for (int t = 0; t < g.tiles; ++t)
        for (int k = 0; k < g.inner; ++k)
            for (int r = 0; r < ROWS; ++r)
                for (int n = 0; n < T::K; ++n) {
                    const int c = k * T::K + n;
                    *to++ = T::number(g.exists(t, r) && c < g.channels ? weight[g.source(t, r) * g.channels + c] : 0.0f);
                }
}

// The same for the transposed product: (tile of channels, lane of gated rows, channel in tile, number in lane).
template <typename T>
void pack_gate_back(const float* weight, const Gated& g, typename T::Number* to) {
    for (int first = 0; first < g.channels; first += ROWS)
        for (int k = 0; k < g.rows() / T::K; ++k)
            for (int r = 0; r < ROWS; ++r)
                for (int n = 0; n < T::K; ++n) {
                    const int row = k * T::K + n, t = row / ROWS, c = first + r;
                    const bool there = c < g.channels && g.exists(t, row % ROWS);
                    *to++ = T::number(there ? weight[g.source(t, row % ROWS) * g.channels + c] : 0.0f);
                }
}

// Numbers of a matrix (rows, columns) for products with it, or with its transpose: (tile of rows, lane, row, number).
template <typename T>
void pack_matrix(const float* matrix, int rows, int columns, bool transposed, typename T::Number* to) {
    const int m = transposed ? columns : rows, inner = transposed ? rows : columns;
    for (int first = 0; first < m; first += ROWS)
        for (int k = 0; k < round_up(inner, T::K); k += T::K)
            for (int r = 0; r < ROWS; ++r)
                for (int n = 0; n < T::K; ++n) {
                    const int i = first + r, j = k + n;
                    const bool there = i < m && j < inner;
                    *to++ = T::number(!there ? 0.0f : transposed ? matrix[j * columns + i] : matrix[i * columns + j]);
                }
}

// Where row r of a block begins at position p, in tiles of `rows` rows (numbers of plain rows, lanes of packed ones).
inline std::int64_t place(int rows, int r, int p) { return (static_cast<std::int64_t>(p / WIDTH) * rows + r) * WIDTH + p % WIDTH; }

// Features packed, from `channels` rows that begin `step` numbers apart.
template <typename T>
void pack_features(const typename T::Number* from, std::int64_t step, int channels, int count, int width, Lane* to) {
    const int rows = round_up(channels, T::K) / T::K;
    for (int c = 0; c < channels; c += T::K)
        for (int p = 0; p < width; p += LANES)
            _mm512_storeu_si512(to + place(rows, c / T::K, p),
                                T::pack(from + c * step + p, step, channels - c, first_lanes(count - p)));
}

// Rows of numbers, with zeros after `count` and after the last channel.
template <typename T>
void copy_features(const typename T::Number* from, std::int64_t step, int channels, int rows, int count, int width,
                   typename T::Number* to) {
    for (int c = 0; c < rows; ++c)
        for (int p = 0; p < width; p += WIDTH) {
            const int copied = c < channels ? std::max(0, std::min(WIDTH, count - p)) : 0;
            if (copied) std::memcpy(to + place(rows, c, p), from + c * step + p, copied * sizeof *to);
            std::memset(to + place(rows, c, p) + copied, 0, (WIDTH - copied) * sizeof *to);
        }
}

// Lanes of positions of every channel turned into channels of every lane: (tile of channels, lane, channel in tile).
template <typename T>
void turn(const typename T::Number* from, int columns, int width, Lane* to) {
    constexpr int A_TILE = WIDTH / T::K;  // lanes of positions
    for (int p = 0; p < width; p += WIDTH)
        for (int c = 0; c < columns; c += LANES)
            for (int lane = 0; lane < A_TILE; lane += LANES)
                transpose(reinterpret_cast<const Lane*>(from + place(columns, c, p)) + lane, A_TILE,
                          to + (static_cast<std::int64_t>(c / WIDTH) * (width / T::K) + p / T::K + lane) * WIDTH + c % WIDTH, WIDTH);
}

// Add to (rows, columns) the sum over positions of first(row) second(column), the second turned.
template <typename T>
void add_outer(const typename T::Number* first, int rows, const Lane* second, int columns, int width, float* to) {
    constexpr int A_TILE = WIDTH / T::K;
    for (int c = 0; c < columns; c += WIDTH)
        for (int r = 0; r < rows; r += ROWS) {
            Sums sums;
            float* at = to + static_cast<std::int64_t>(r) * columns + c;
            for (int i = 0; i < ROWS; ++i)
                for (int v = 0; v < VECTORS; ++v) sums[i][v] = _mm512_loadu_ps(at + i * columns + v * LANES);
            const Lane* strip = second + static_cast<std::int64_t>(c / WIDTH) * (width / T::K) * WIDTH;
            for (int p = 0; p < width; p += WIDTH, strip += A_TILE * WIDTH)
                add_product<T>(sums, first + place(rows, r, p), WIDTH, T::K, strip, WIDTH, A_TILE);
            for (int i = 0; i < ROWS; ++i)
                for (int v = 0; v < VECTORS; ++v) _mm512_storeu_ps(at + i * columns + v * LANES, sums[i][v]);
        }
}

// Eight rows of results at 16 positions: plain, and packed unless that is the same.
template <typename T>
inline void store_rows(const __m512 (&rows)[ROWS], typename T::Number* plain, Lane* packed) {
    for (int r = 0; r < ROWS; r += T::K, packed += WIDTH) {
        __m512 together[T::K];
        for (int n = 0; n < T::K; ++n) together[n] = rows[r + n];
        T::store_both(together, plain + r * WIDTH, WIDTH, packed);
    }
}

// Rows of features lie far apart, so the processor does not foresee the next block: it is told, a row per tile.
template <typename Number>
inline void foresee(const Number* row, int count) {
    for (int line = 0; line < count; line += 64 / static_cast<int>(sizeof(Number)))
        _mm_prefetch(reinterpret_cast<const char*>(row + line), _MM_HINT_T1);
}

inline void add_to(float* sums, __m512 values) { _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), values)); }

// What a gate does with numbers: GELU and a sigmoid, or in a product of two maps nothing and a hyperbolic tangent.
template <typename T, bool PRODUCT>
inline __m512 activated(__m512 x) {
    if constexpr (PRODUCT) return x;
    return gelu<T>(x);
}

template <typename T, bool PRODUCT>
inline __m512 opened(__m512 x) {
    if constexpr (!PRODUCT) return sigmoid<T>(x);
    const __m512 s = sigmoid<T>(_mm512_add_ps(x, x));
    return _mm512_sub_ps(_mm512_add_ps(s, s), _mm512_set1_ps(1.0f));
}

template <typename T, bool PRODUCT>
void gate_ahead(const typename T::Number* y, const float* weight, const float* bias, const typename T::Number* residual,
                float copies, typename T::Number* out, int h, int directions, std::int64_t positions, int threads) {
    using Number = typename T::Number;
    const Gated g(h, T::K);
    const std::int64_t packed = static_cast<std::int64_t>(g.rows()) * g.inner * T::K;
    std::vector<Number> weights(directions * packed);
    std::vector<float> shifts(directions * g.rows());
    for (int d = 0; d < directions; ++d) {
        pack_gate<T>(weight + static_cast<std::int64_t>(d) * 2 * h * h, g, weights.data() + d * packed);
        for (int row = 0; row < g.rows(); ++row)
            shifts[d * g.rows() + row] =
                g.exists(row / ROWS, row % ROWS) ? bias[d * 2 * h + g.source(row / ROWS, row % ROWS)] : 0.0f;
    }
    over(Blocks(positions, threads, AHEAD), [&](std::int64_t first, int count, int) {
        const int width = round_up(count, WIDTH);
        const std::int64_t size = static_cast<std::int64_t>(g.inner) * width;
        Room room(directions * size * sizeof(Lane));
        Lane* active = room.take<Lane>(directions * size);
        for (int d = 0; d < directions; ++d)
            for (int k = 0; k < g.inner; ++k)
                for (int p = 0; p < width; p += LANES) {
                    __m512 values[T::K];
                    for (int n = 0; n < T::K; ++n) {
                        const std::int64_t c = k * T::K + n;
                        const __mmask16 mask = c < h ? first_lanes(count - p) : 0;
                        values[n] = activated<T, PRODUCT>(T::load(y + (c * directions + d) * positions + first + p, mask));
                    }
                    _mm512_storeu_si512(active + d * size + place(g.inner, k, p), T::pack(values));
                }
        const int next = static_cast<int>(std::min<std::int64_t>(count, positions - first - count));  // of the next block
        int foreseen = 0;
        const int a_tile = (h * directions * WIDTH + width * g.tiles - 1) / (width * g.tiles);  // rows to foresee
        for (int p = 0; p < width; p += WIDTH)
            for (int t = 0; t < g.tiles; ++t) {
                for (int n = 0; n < a_tile && foreseen < h * directions; ++n, ++foreseen) {
                    foresee(y + foreseen * positions + first + count, next);
                    if (residual != nullptr && foreseen < h) foresee(residual + foreseen * positions + first + count, next);
                }
                const int rows = std::min(HALF, h - t * HALF);
                __m512 total[HALF][VECTORS];
                for (int r = 0; r < HALF; ++r)
                    for (int v = 0; v < VECTORS; ++v) {
                        total[r][v] = _mm512_setzero_ps();
                        if (residual != nullptr && r < rows)
                            total[r][v] = _mm512_mul_ps(
                                _mm512_set1_ps(copies),
                                T::load(residual + (t * HALF + r) * positions + first + p + v * LANES,
                                        first_lanes(count - p - v * LANES)));
                    }
                for (int d = 0; d < directions; ++d) {
                    Sums sums;
                    for (int r = 0; r < ROWS; ++r)
                        sums[r][0] = sums[r][1] = _mm512_set1_ps(shifts[d * g.rows() + t * ROWS + r]);
                    add_product<T>(sums, weights.data() + d * packed + static_cast<std::int64_t>(t) * ROWS * g.inner * T::K,
                                   T::K, ROWS * T::K, active + d * size + place(g.inner, 0, p), WIDTH, g.inner);
                    for (int r = 0; r < HALF; ++r)
                        for (int v = 0; v < VECTORS; ++v)
                            total[r][v] = _mm512_fmadd_ps(sums[r][v], opened<T, PRODUCT>(sums[HALF + r][v]), total[r][v]);
                }
                for (int r = 0; r < rows; ++r)
                    for (int v = 0; v < VECTORS; ++v)
                        T::store(out + (t * HALF + r) * positions + first + p + v * LANES,
                                 first_lanes(count - p - v * LANES), total[r][v]);
            }
    });
}

template <typename T, bool PRODUCT>
void gate_back(const typename T::Number* y, const float* weight, const float* bias, const typename T::Number* grad_out,
               typename T::Number* grad_y, float* grad_weight, float* grad_bias, int h, int directions,
               std::int64_t positions, int threads) {
    using Number = typename T::Number;
    const Gated g(h, T::K);
    const std::int64_t ahead = static_cast<std::int64_t>(g.rows()) * g.inner * T::K;
    const std::int64_t back = static_cast<std::int64_t>(round_up(h, ROWS)) * g.rows();
    std::vector<Number> weights(directions * (ahead + back));
    std::vector<float> shifts(directions * g.rows());
    for (int d = 0; d < directions; ++d) {
        const float* own = weight + static_cast<std::int64_t>(d) * 2 * h * h;
        pack_gate<T>(own, g, weights.data() + d * (ahead + back));
        pack_gate_back<T>(own, g, weights.data() + d * (ahead + back) + ahead);
        for (int row = 0; row < g.rows(); ++row)
            shifts[d * g.rows() + row] =
                g.exists(row / ROWS, row % ROWS) ? bias[d * 2 * h + g.source(row / ROWS, row % ROWS)] : 0.0f;
    }
    const Blocks blocks(positions, threads, BACK<T>);
    const std::int64_t per_direction = static_cast<std::int64_t>(g.rows()) * (g.columns + LANES);  // weights, then biases
    const std::int64_t per_thread = directions * per_direction;
    std::vector<float> parts(blocks.threads * per_thread);
    over(blocks, [&](std::int64_t first, int count, int thread) {
        const int width = round_up(count, WIDTH);
        const std::int64_t plain = static_cast<std::int64_t>(g.columns) * width;
        Room room((2 * plain + 2 * static_cast<std::int64_t>(g.rows()) * width) * sizeof(Number) + 4 * plain * sizeof(Lane));
        Number* active = room.take<Number>(plain);
        Number* slope = room.take<Number>(plain);
        Number* gated = room.take<Number>(static_cast<std::int64_t>(g.rows()) * width);
        Lane* packed = room.take<Lane>(static_cast<std::int64_t>(g.inner) * width);
        Lane* turned = room.take<Lane>(static_cast<std::int64_t>(g.columns) * width / T::K);
        Lane* packed_gated = room.take<Lane>(static_cast<std::int64_t>(g.rows()) / T::K * width);
        if constexpr (T::K == 1) {  // plain is packed
            packed = reinterpret_cast<Lane*>(active);
            packed_gated = reinterpret_cast<Lane*>(gated);
        }
        const int packed_rows = T::K == 1 ? g.columns : g.inner;
        for (int d = 0; d < directions; ++d) {
            const Number* own = weights.data() + d * (ahead + back);
            float* weight_part = parts.data() + thread * per_thread + d * per_direction;
            float* bias_part = weight_part + static_cast<std::int64_t>(g.rows()) * g.columns;
            for (int k = 0; k < g.inner; ++k)
                for (int p = 0; p < width; p += LANES) {
                    __m512 values[T::K];
                    for (int n = 0; n < T::K; ++n) {
                        const std::int64_t c = k * T::K + n;
                        const __mmask16 mask = c < h ? first_lanes(count - p) : 0;
                        values[n] = T::load(y + (c * directions + d) * positions + first + p, mask);
                        if constexpr (PRODUCT) continue;
                        __m512 of_value;
                        gelu_both<T>(values[n], values[n], of_value);
                        T::store(slope + place(g.columns, c, p), 0xffff, of_value);
                    }
                    T::store_both(values, active + place(g.columns, k * T::K, p), WIDTH, packed + place(g.inner, k, p));
                }
            for (int c = g.inner * T::K; c < g.columns; ++c)
                for (int p = 0; p < width; p += WIDTH) std::memset(active + place(g.columns, c, p), 0, WIDTH * sizeof(Number));
            turn<T>(active, g.columns, width, turned);
            const bool last = d + 1 == directions;
            const std::int64_t after = last ? first + count : first;  // next: the next direction, or the next block
            const int next = static_cast<int>(std::min<std::int64_t>(count, positions - after));
            int foreseen = 0;
            const int a_tile = (h * WIDTH + width * g.tiles - 1) / (width * g.tiles);
            for (int p = 0; p < width; p += WIDTH)
                for (int t = 0; t < g.tiles; ++t) {
                    for (int n = 0; n < a_tile && foreseen < h; ++n, ++foreseen) {
                        foresee(y + (static_cast<std::int64_t>(foreseen) * directions + (last ? 0 : d + 1)) * positions + after, next);
                        if (last) foresee(grad_out + foreseen * positions + after, next);
                    }
                    Sums sums;
                    for (int r = 0; r < ROWS; ++r)
                        sums[r][0] = sums[r][1] = _mm512_set1_ps(shifts[d * g.rows() + t * ROWS + r]);
                    add_product<T>(sums, own + static_cast<std::int64_t>(t) * ROWS * g.inner * T::K, T::K, ROWS * T::K,
                                   packed + place(packed_rows, 0, p), WIDTH, g.inner);
                    for (int v = 0; v < VECTORS; ++v) {
                        __m512 found[ROWS];
                        for (int r = 0; r < HALF; ++r) {
                            const int c = t * HALF + r, at = p + v * LANES;
                            const __mmask16 mask = c < h ? first_lanes(count - at) : 0;
                            const __m512 from = T::load(grad_out + c * positions + first + at, mask);
                            const __m512 s = opened<T, PRODUCT>(sums[HALF + r][v]);
                            found[r] = _mm512_mul_ps(from, s);
                            found[HALF + r] =
                                _mm512_mul_ps(_mm512_fnmadd_ps(found[r], s, PRODUCT ? from : found[r]), sums[r][v]);
                        }
                        for (int r = 0; r < ROWS; ++r) add_to(bias_part + (t * ROWS + r) * LANES, found[r]);
                        store_rows<T>(found, gated + place(g.rows(), t * ROWS, p) + v * LANES,
                                      packed_gated + place(g.rows() / T::K, t * ROWS / T::K, p) + v * LANES);
                    }
                }
            add_outer<T>(gated, g.rows(), turned, g.columns, width, weight_part);
            for (int p = 0; p < width; p += WIDTH)
                for (int c = 0; c < h; c += ROWS) {
                    Sums sums;
                    clear(sums);
                    add_product<T>(sums, own + ahead + static_cast<std::int64_t>(c) * g.rows(), T::K, ROWS * T::K,
                                   packed_gated + place(g.rows() / T::K, 0, p), WIDTH, g.rows() / T::K);
                    for (int r = 0; r < std::min(ROWS, h - c); ++r)
                        for (int v = 0; v < VECTORS; ++v) {
                            const int at = p + v * LANES;
                            __m512 found = sums[r][v];
                            if constexpr (!PRODUCT) found = _mm512_mul_ps(found, T::load(slope + place(g.columns, c + r, at), 0xffff));
                            T::store(grad_y + (static_cast<std::int64_t>(c + r) * directions + d) * positions + first + at,
                                     first_lanes(count - at), found);
                        }
                }
        }
    });
    for (int thread = 0; thread < blocks.threads; ++thread)
        for (int d = 0; d < directions; ++d)
            for (int row = 0; row < g.rows(); ++row) {
                if (!g.exists(row / ROWS, row % ROWS)) continue;
                const std::int64_t to = static_cast<std::int64_t>(d) * 2 * h + g.source(row / ROWS, row % ROWS);
                const float* part = parts.data() + thread * per_thread + d * per_direction;
                for (int c = 0; c < h; ++c) grad_weight[to * h + c] += part[static_cast<std::int64_t>(row) * g.columns + c];
                grad_bias[to] += _mm512_reduce_add_ps(
                    _mm512_loadu_ps(part + static_cast<std::int64_t>(g.rows()) * g.columns + row * LANES));
            }
}

template <typename T>
void head_ahead(const typename T::Number* x, const float* w1, const float* b1, const float* w2, const float* b2, float* out,
                int h, int wide, int fields, std::int64_t positions, int threads) {
    const int inner = round_up(h, T::K) / T::K, rows = round_up(wide, ROWS);
    std::vector<typename T::Number> weights(static_cast<std::int64_t>(rows) * inner * T::K);
    pack_matrix<T>(w1, wide, h, false, weights.data());
    over(Blocks(positions, threads, AHEAD), [&](std::int64_t first, int count, int) {
        const int width = round_up(count, WIDTH);
        const std::int64_t size = static_cast<std::int64_t>(inner) * width, sums_size = static_cast<std::int64_t>(fields) * WIDTH;
        Room room(size * sizeof(Lane) + sums_size * sizeof(float) + 128);
        Lane* packed = room.take<Lane>(size);
        float* total = room.take<float>(sums_size);
        pack_features<T>(x + first, positions, h, count, width, packed);
        for (int p = 0; p < width; p += WIDTH) {
            for (int f = 0; f < fields; ++f) std::fill_n(total + f * WIDTH, WIDTH, b2[f]);
            for (int r0 = 0; r0 < wide; r0 += ROWS) {
                const int own = std::min(ROWS, wide - r0);
                Sums sums;
                for (int r = 0; r < ROWS; ++r) sums[r][0] = sums[r][1] = _mm512_set1_ps(r < own ? b1[r0 + r] : 0.0f);
                add_product<T>(sums, weights.data() + static_cast<std::int64_t>(r0) * inner * T::K, T::K, ROWS * T::K,
                               packed + place(inner, 0, p), WIDTH, inner);
                for (auto& row : sums)
                    for (auto& values : row) values = gelu<T>(values);
                for (int f = 0; f < fields; ++f)
                    for (int v = 0; v < VECTORS; ++v) {
                        __m512 sum = _mm512_loadu_ps(total + f * WIDTH + v * LANES);
                        for (int r = 0; r < own; ++r)
                            sum = _mm512_fmadd_ps(_mm512_set1_ps(w2[f * wide + r0 + r]), sums[r][v], sum);
                        _mm512_storeu_ps(total + f * WIDTH + v * LANES, sum);
                    }
            }
            for (int f = 0; f < fields; ++f)
                for (int v = 0; v < VECTORS; ++v)
                    _mm512_mask_storeu_ps(out + f * positions + first + p + v * LANES, first_lanes(count - p - v * LANES),
                                          _mm512_loadu_ps(total + f * WIDTH + v * LANES));
        }
    });
}

template <typename T>
void head_back(const typename T::Number* x, const float* w1, const float* b1, const float* w2, const float* grad_out,
               typename T::Number* grad_x, float* grad_w1, float* grad_b1, float* grad_w2, float* grad_b2, int h, int wide,
               int fields, std::int64_t positions, int threads) {
    using Number = typename T::Number;
    const int inner = round_up(h, T::K) / T::K, rows = round_up(wide, ROWS), columns = round_up(h, WIDTH);
    std::vector<Number> ahead(static_cast<std::int64_t>(rows) * inner * T::K);
    std::vector<Number> back(static_cast<std::int64_t>(round_up(h, ROWS)) * rows);
    pack_matrix<T>(w1, wide, h, false, ahead.data());
    {  // the transposed product takes whole tiles of wide channels: those that lack are zero
        std::vector<float> padded(static_cast<std::int64_t>(rows) * h);
        std::copy_n(w1, static_cast<std::int64_t>(wide) * h, padded.data());
        pack_matrix<T>(padded.data(), rows, h, true, back.data());
    }
    const Blocks blocks(positions, threads, BACK<T>);
    const std::int64_t first_size = static_cast<std::int64_t>(rows) * columns, lanes_size = static_cast<std::int64_t>(rows) * LANES;
    const std::int64_t per_thread = first_size + (1 + fields) * lanes_size + fields * LANES;
    std::vector<float> parts(blocks.threads * per_thread);
    over(blocks, [&](std::int64_t first, int count, int thread) {
        const int width = round_up(count, WIDTH);
        Room room(static_cast<std::int64_t>(columns + rows) * width * sizeof(Number) +
                  (static_cast<std::int64_t>(inner) * width + static_cast<std::int64_t>(columns) * width / T::K +
                   static_cast<std::int64_t>(rows) / T::K * width) * sizeof(Lane) + static_cast<std::int64_t>(fields) * width * 4 + 512);
        Number* plain = room.take<Number>(static_cast<std::int64_t>(columns) * width);
        Number* wider = room.take<Number>(static_cast<std::int64_t>(rows) * width);
        Lane* packed = room.take<Lane>(static_cast<std::int64_t>(inner) * width);
        Lane* turned = room.take<Lane>(static_cast<std::int64_t>(columns) * width / T::K);
        Lane* packed_wider = room.take<Lane>(static_cast<std::int64_t>(rows) / T::K * width);
        const int packed_rows = T::K == 1 ? columns : inner;
        if constexpr (T::K == 1) {  // plain is packed
            packed = reinterpret_cast<Lane*>(plain);
            packed_wider = reinterpret_cast<Lane*>(wider);
        }
        float* given = room.take<float>(static_cast<std::int64_t>(fields) * width);
        float* part = parts.data() + thread * per_thread;
        float *bias_part = part + first_size, *second_part = bias_part + lanes_size, *last_part = second_part + fields * lanes_size;
        if constexpr (T::K > 1) pack_features<T>(x + first, positions, h, count, width, packed);
        copy_features<T>(x + first, positions, h, columns, count, width, plain);
        turn<T>(plain, columns, width, turned);
        for (int f = 0; f < fields; ++f)
            for (int p = 0; p < width; p += LANES) {
                const __m512 values = _mm512_maskz_loadu_ps(first_lanes(count - p), grad_out + f * positions + first + p);
                _mm512_storeu_ps(given + f * width + p, values);
                add_to(last_part + f * LANES, values);
            }
        for (int p = 0; p < width; p += WIDTH)
            for (int r0 = 0; r0 < rows; r0 += ROWS) {
                Sums sums;
                for (int r = 0; r < ROWS; ++r)
                    sums[r][0] = sums[r][1] = _mm512_set1_ps(r0 + r < wide ? b1[r0 + r] : 0.0f);
                add_product<T>(sums, ahead.data() + static_cast<std::int64_t>(r0) * inner * T::K, T::K, ROWS * T::K,
                               packed + place(packed_rows, 0, p), WIDTH, inner);
                for (int v = 0; v < VECTORS; ++v) {
                    __m512 found[ROWS];
                    for (int r = 0; r < ROWS; ++r) {
                        __m512 value, slope, sum = _mm512_setzero_ps();
                        gelu_both<T>(sums[r][v], value, slope);
                        for (int f = 0; f < fields && r0 + r < wide; ++f) {
                            const __m512 from = _mm512_loadu_ps(given + f * width + p + v * LANES);
                            sum = _mm512_fmadd_ps(_mm512_set1_ps(w2[f * wide + r0 + r]), from, sum);
                            add_to(second_part + f * lanes_size + (r0 + r) * LANES, _mm512_mul_ps(from, value));
                        }
                        found[r] = _mm512_mul_ps(sum, slope);
                        add_to(bias_part + (r0 + r) * LANES, found[r]);
                    }
                    store_rows<T>(found, wider + place(rows, r0, p) + v * LANES,
                                  packed_wider + place(rows / T::K, r0 / T::K, p) + v * LANES);
                }
            }
        add_outer<T>(wider, rows, turned, columns, width, part);
        for (int p = 0; p < width; p += WIDTH)
            for (int c = 0; c < h; c += ROWS) {
                Sums sums;
                clear(sums);
                add_product<T>(sums, back.data() + static_cast<std::int64_t>(c) * rows, T::K, ROWS * T::K, packed_wider + place(rows / T::K, 0, p),
                               WIDTH, rows / T::K);
                for (int r = 0; r < std::min(ROWS, h - c); ++r)
                    for (int v = 0; v < VECTORS; ++v)
                        T::store(grad_x + (c + r) * positions + first + p + v * LANES, first_lanes(count - p - v * LANES),
                                 sums[r][v]);
            }
    });
    for (int thread = 0; thread < blocks.threads; ++thread) {
        const float* part = parts.data() + thread * per_thread;
        const float *bias_part = part + first_size, *second_part = bias_part + lanes_size;
        for (int r = 0; r < wide; ++r) {
            for (int c = 0; c < h; ++c) grad_w1[static_cast<std::int64_t>(r) * h + c] += part[static_cast<std::int64_t>(r) * columns + c];
            grad_b1[r] += _mm512_reduce_add_ps(_mm512_loadu_ps(bias_part + r * LANES));
            for (int f = 0; f < fields; ++f)
                grad_w2[f * wide + r] += _mm512_reduce_add_ps(_mm512_loadu_ps(second_part + f * lanes_size + r * LANES));
        }
        for (int f = 0; f < fields; ++f)
            grad_b2[f] += _mm512_reduce_add_ps(_mm512_loadu_ps(second_part + fields * lanes_size + f * LANES));
    }
}

}  // namespace

extern "C" {

#define GATE_AND_HEAD(NAME, T)                                                                                           \
    void gate_forward_##NAME(const T::Number* y, const float* weight, const float* bias, const T::Number* residual,      \
                             float copies, T::Number* out, int channels, int directions, int product,                    \
                             std::int64_t positions, int threads) {                                                      \
        (product ? gate_ahead<T, true> : gate_ahead<T, false>)(y, weight, bias, residual, copies, out, channels,         \
                                                               directions, positions, threads);                          \
    }                                                                                                                    \
    void gate_backward_##NAME(const T::Number* y, const float* weight, const float* bias, const T::Number* grad_out,     \
                              T::Number* grad_y, float* grad_weight, float* grad_bias, int channels, int directions,     \
                              int product, std::int64_t positions, int threads) {                                        \
        (product ? gate_back<T, true> : gate_back<T, false>)(y, weight, bias, grad_out, grad_y, grad_weight, grad_bias,  \
                                                             channels, directions, positions, threads);                  \
    }                                                                                                                    \
    void head_forward_##NAME(const T::Number* x, const float* w1, const float* b1, const float* w2, const float* b2,     \
                             float* out, int channels, int wide, int fields, std::int64_t positions, int threads) {      \
        head_ahead<T>(x, w1, b1, w2, b2, out, channels, wide, fields, positions, threads);                               \
    }                                                                                                                    \
    void head_backward_##NAME(const T::Number* x, const float* w1, const float* b1, const float* w2,                     \
                              const float* grad_out, T::Number* grad_x, float* grad_w1, float* grad_b1, float* grad_w2,  \
                              float* grad_b2, int channels, int wide, int fields, std::int64_t positions, int threads) { \
        head_back<T>(x, w1, b1, w2, grad_out, grad_x, grad_w1, grad_b1, grad_w2, grad_b2, channels, wide, fields,        \
                     positions, threads);                                                                                \
    }

GATE_AND_HEAD(float32, Single)
#ifdef __AVX512BF16__
GATE_AND_HEAD(bf16, Half)
#endif

}  // extern "C"

#endif  // __AVX512F__
