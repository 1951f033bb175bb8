// Products in tiles with AVX-512, for two kinds of numbers.
//
//   Single   float32                    a lane of 32 bits holds one number, and one instruction adds sixteen products
//   Half     bfloat16 (AVX512-BF16)     a lane holds two, and one instruction adds sixteen sums of two products
//
// A product takes its first factor as single lanes that are broadcast, and its second *packed*: K rows of a matrix side
// by side (K numbers in a lane), so that a lane holds what one column multiplies. A tile of 8 rows and 32 columns of the
// result stays in registers. Everything is summed in float32, in the same order whatever the number of threads.

#pragma once

#ifdef __AVX512F__

#include <immintrin.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tiles {

using Lane = std::int32_t;

constexpr int LANES = 16, ROWS = 8, VECTORS = 2, WIDTH = VECTORS * LANES;  // a tile: 8 rows, 32 columns

inline int round_up(int count, int to) { return (count + to - 1) / to * to; }
inline std::int64_t round_up(std::int64_t count, int to) { return (count + to - 1) / to * to; }

// Memory for one kind of work, the calling thread's own, kept from call to call and given out piece by piece.
class Room {
public:
    explicit Room(std::size_t bytes) {
        static thread_local Holder holder;
        bytes = round_up(static_cast<std::int64_t>(bytes) + 64 * MOST_PIECES, 64);
        if (holder.size < bytes) {
            std::free(holder.memory);
            holder.memory = std::aligned_alloc(64, bytes);
            holder.size = holder.memory == nullptr ? 0 : bytes;
            if (holder.memory == nullptr) std::abort();
        }
        next = static_cast<char*>(holder.memory);
    }

    template <typename T>
    T* take(std::int64_t count) {
        T* found = reinterpret_cast<T*>(next);
        next += round_up(count * static_cast<std::int64_t>(sizeof(T)), 64);
        return found;
    }

private:
    static constexpr int MOST_PIECES = 16;  // each is rounded up to 64 bytes
    struct Holder {
        void* memory = nullptr;
        std::size_t size = 0;
        ~Holder() { std::free(memory); }
    };
    char* next;
};

inline __mmask16 first_lanes(int count) {
    return count >= LANES ? 0xffff : count <= 0 ? 0 : static_cast<__mmask16>((1u << count) - 1);
}

struct Single {
    using Number = float;
    static constexpr int K = 1;

    static __m512 load(const float* from, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, from); }
    static void store(float* to, __mmask16 mask, __m512 values) { _mm512_mask_storeu_ps(to, mask, values); }
    static void store_both(const __m512 (&values)[1], float* to, std::int64_t, Lane*) { _mm512_storeu_ps(to, values[0]); }
    static float number(float value) { return value; }
    static float value(float number) { return number; }
    // K rows of values side by side; K rows of numbers, `step` apart.
    static __m512i pack(const __m512 (&values)[1]) { return _mm512_castps_si512(values[0]); }
    static __m512i pack(const float* from, std::int64_t, int, __mmask16 mask) {
        return _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, from));
    }
    static __m512 dot(__m512 sum, __m512i a, __m512i b) {
        return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
    }
    static __m512 reciprocal(__m512 x) {  // one step of Newton from 14 bits: as exact as a division, in a third of its time
        const __m512 r = _mm512_rcp14_ps(x);
        return _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, _mm512_set1_ps(2.0f)));
    }
    static __m512 power_of_two(__m512 r) {  // 2^r for |r| <= 1/2, to 1e-7
        __m512 p = _mm512_set1_ps(1.535336188e-4f);
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.339887440e-3f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.618437357e-3f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.550332471e-2f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402264791e-1f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931472028e-1f));
        return _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    }
};

#ifdef __AVX512BF16__
struct Half {
    using Number = std::uint16_t;
    static constexpr int K = 2;

    static __m256i numbers(const Number* from, __mmask16 mask) {
        return mask == 0xffff ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)) : _mm256_maskz_loadu_epi16(mask, from);
    }
    static __m512 load(const Number* from, __mmask16 mask) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers(from, mask)), 16));
    }
    static void store(Number* to, __mmask16 mask, __m512 values) {
        const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(values);
        if (mask == 0xffff)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), rounded);
        else
            _mm256_mask_storeu_epi16(to, mask, rounded);
    }
    // Two rows of sixteen values: as they lie, `row` numbers apart, and side by side.
    static void store_both(const __m512 (&values)[2], Number* to, std::int64_t row, Lane* packed) {
        const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(values[1], values[0]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(both));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + row), _mm512_extracti64x4_epi64(both, 1));
        _mm512_storeu_si512(packed, _mm512_permutexvar_epi16(turns(), both));
    }
    static __m512i turns() {  // 0, 16, 1, 17, ...: lane i takes number i of either row
        return _mm512_set_epi32(0x001f000f, 0x001e000e, 0x001d000d, 0x001c000c, 0x001b000b, 0x001a000a, 0x00190009, 0x00180008,
                                0x00170007, 0x00160006, 0x00150005, 0x00140004, 0x00130003, 0x00120002, 0x00110001, 0x00100000);
    }
    static Number number(float value) {
        return static_cast<Number>(_mm_extract_epi16((__m128i)_mm_cvtneps_pbh(_mm_set_ss(value)), 0));
    }
    static float value(Number number) {
        const std::uint32_t bits = static_cast<std::uint32_t>(number) << 16;
        float found;
        std::memcpy(&found, &bits, sizeof found);
        return found;
    }
    static __m512i side_by_side(__m256i row0, __m256i row1) {
        return _mm512_or_si512(_mm512_cvtepu16_epi32(row0), _mm512_slli_epi32(_mm512_cvtepu16_epi32(row1), 16));
    }
    static __m512i pack(const __m512 (&values)[2]) {
        return _mm512_permutexvar_epi16(turns(), (__m512i)_mm512_cvtne2ps_pbh(values[1], values[0]));
    }
    static __m512i pack(const Number* from, std::int64_t step, int rows, __mmask16 mask) {  // of two rows one may lack
        return side_by_side(numbers(from, mask), rows > 1 ? numbers(from + step, mask) : _mm256_setzero_si256());
    }
    static __m512 dot(__m512 sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
    static __m512 reciprocal(__m512 x) { return _mm512_rcp14_ps(x); }  // to 6e-5; numbers are rounded to 4e-3
    static __m512 power_of_two(__m512 r) {                             // to 8e-5
        __m512 p = _mm512_set1_ps(5.517172615e-2f);
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.426114226e-1f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.932610017e-1f));
        return _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.999280442e-1f));
    }
};
#endif

using Sums = __m512[ROWS][VECTORS];

inline void clear(Sums& sums) {
    for (auto& row : sums) row[0] = row[1] = _mm512_setzero_ps();
}

// A tile of a product, added to `sums`: lane k of row r of the first factor is at first + r * row + k * step (numbers),
// row k of the packed second factor at second + k * stride (lanes), its 32 columns one after the other.
template <typename T>
inline void add_product(Sums& sums, const typename T::Number* first, std::int64_t row, std::int64_t step,
                        const Lane* second, std::int64_t stride, int count) {
    for (int k = 0; k < count; ++k) {
        const __m512i b0 = _mm512_loadu_si512(second), b1 = _mm512_loadu_si512(second + LANES);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
            Lane lane;
            std::memcpy(&lane, first + r * row, sizeof lane);
            const __m512i a = _mm512_set1_epi32(lane);
            sums[r][0] = T::dot(sums[r][0], a, b0);
            sums[r][1] = T::dot(sums[r][1], a, b1);
        }
        first += step;
        second += stride;
    }
}

template <typename T>
inline __m512 exponential(__m512 x) {
    const __m512 t = _mm512_mul_ps(x, _mm512_set1_ps(1.44269504f));
    const __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_scalef_ps(T::power_of_two(_mm512_sub_ps(t, n)), n);
}

template <typename T>
inline __m512 sigmoid(__m512 x) {
    // The exponential stays finite, as the reciprocal needs it; a number that is none stays one.
    const __m512 e = exponential<T>(_mm512_min_ps(_mm512_set1_ps(80.0f), _mm512_sub_ps(_mm512_setzero_ps(), x)));
    return T::reciprocal(_mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

// Normal distribution function and density from one exponential, as in arithmetic.h.
template <typename T>
inline void normal(__m512 x, __m512& below, __m512& density) {
    const __m512 z = _mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(0.70710678f));
    const __m512 e = exponential<T>(_mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(z, z)));
    const __m512 t = T::reciprocal(_mm512_fmadd_ps(_mm512_set1_ps(0.3275911f), z, _mm512_set1_ps(1.0f)));
    __m512 p = _mm512_set1_ps(0.5f * 1.061405429f);
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * -1.453152027f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * 1.421413741f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * -0.284496736f));
    p = _mm512_fmadd_ps(p, t, _mm512_set1_ps(0.5f * 0.254829592f));
    const __m512 tail = _mm512_mul_ps(_mm512_mul_ps(p, t), e);
    const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    below = _mm512_mask_mov_ps(_mm512_sub_ps(_mm512_set1_ps(1.0f), tail), negative, tail);
    density = _mm512_mul_ps(_mm512_set1_ps(0.39894228f), e);
}

template <typename T>
inline __m512 gelu(__m512 x) {
    if constexpr (T::K == 1) {
        __m512 below, density;
        normal<T>(x, below, density);
        return _mm512_mul_ps(x, below);
    }
    // The distribution function as 1/2 + x P(x^2) up to |x| = 4.2, where it is taken for 0 or 1: gelu to 9e-5.
    const __m512 c = _mm512_set1_ps(4.2f);
    const __m512 z = _mm512_max_ps(_mm512_min_ps(x, c), _mm512_sub_ps(_mm512_setzero_ps(), c)), s = _mm512_mul_ps(z, z);
    __m512 p = _mm512_set1_ps(-9.017493999e-10f);
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(7.941314228e-08f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(-3.037925153e-06f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(6.689061915e-05f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(-9.506571270e-04f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(9.298229494e-03f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(-6.552820879e-02f));
    p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(3.984658845e-01f));
    const __m512 below = _mm512_max_ps(_mm512_fmadd_ps(z, p, _mm512_set1_ps(0.5f)), _mm512_setzero_ps());
    return _mm512_mul_ps(x, below);
}

// Value and derivative.
template <typename T>
inline void gelu_both(__m512 x, __m512& value, __m512& slope) {
    __m512 below, density;
    normal<T>(x, below, density);
    value = _mm512_mul_ps(x, below);
    slope = _mm512_fmadd_ps(x, density, below);
}

// Sixteen rows of sixteen 32-bit lanes, turned round the diagonal.
inline void transpose(const Lane* from, std::int64_t from_row, Lane* to, std::int64_t to_row) {
    __m512i a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(from + i * from_row);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        b[2 * i] = _mm512_unpacklo_epi32(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm512_unpackhi_epi32(a[2 * i], a[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        a[4 * i] = _mm512_unpacklo_epi64(b[4 * i], b[4 * i + 2]);
        a[4 * i + 1] = _mm512_unpackhi_epi64(b[4 * i], b[4 * i + 2]);
        a[4 * i + 2] = _mm512_unpacklo_epi64(b[4 * i + 1], b[4 * i + 3]);
        a[4 * i + 3] = _mm512_unpackhi_epi64(b[4 * i + 1], b[4 * i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        _mm512_storeu_si512(to + i * to_row, _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88));
        _mm512_storeu_si512(to + (i + 4) * to_row, _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88));
        _mm512_storeu_si512(to + (i + 8) * to_row, _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd));
        _mm512_storeu_si512(to + (i + 12) * to_row, _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd));
    }
}

}  // namespace tiles

#endif  // __AVX512F__
