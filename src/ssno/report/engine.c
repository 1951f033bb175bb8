/* The arithmetic of `ssno play`: one step of an SS-NO, and the solvers beside it. WebAssembly with 128-bit SIMD.

   Built by the command in `ssno.report.play.BUILD`; engine.wasm is what it gives. There is no library below: memory is
   handed out by `room`, tables of sines and exponentials are filled by play.js.

   Model     features are (h, x, y), channel first, y = 1 point in one dimension. A scan of an axis is a circular
             convolution with taps; gates, products and warps work on tiles of 64 points. Blocks are those of
             `ssno.layers.axial` and `ssno.layers.warp`. Sizes of a grid are powers of two.
   Solvers   Kuramoto-Sivashinsky by ETDRK4 in float64, Burgers by finite volumes in float64, vorticity on the torus
             by integrating-factor Runge-Kutta in float32. Equations: `ssno.pde`. */
#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((export_name(name), visibility("default")))
typedef v128_t vec;
extern unsigned char __heap_base;
static unsigned long top = 0;

/* `bytes` of fresh memory, aligned to 16; the memory grows as needed. */
EXPORT("room") void *room(unsigned long bytes) {
  if (!top) top = ((unsigned long)&__heap_base + 15) & ~15ul;
  unsigned long start = top;
  top = (top + bytes + 15) & ~15ul;
  unsigned long have = __builtin_wasm_memory_size(0) << 16;
  if (top > have && __builtin_wasm_memory_grow(0, (top - have + 65535) >> 16) == (unsigned long)-1) __builtin_trap();
  return (void *)start;
}

/* exp of four numbers: Cephes' polynomial, relative error 1e-7. */
static inline vec exp4(vec x) {
  x = wasm_f32x4_max(wasm_f32x4_min(x, wasm_f32x4_const_splat(88.3f)), wasm_f32x4_const_splat(-87.3f));
  vec n = wasm_f32x4_nearest(wasm_f32x4_mul(x, wasm_f32x4_const_splat(1.44269504f)));
  vec r = wasm_f32x4_sub(x, wasm_f32x4_mul(n, wasm_f32x4_const_splat(0.693359375f)));
  r = wasm_f32x4_sub(r, wasm_f32x4_mul(n, wasm_f32x4_const_splat(-2.12194440e-4f)));
  vec p = wasm_f32x4_const_splat(1.9875691500e-4f);
#define NEXT(c) p = wasm_f32x4_add(wasm_f32x4_mul(p, r), wasm_f32x4_const_splat(c))
  NEXT(1.3981999507e-3f); NEXT(8.3334519073e-3f); NEXT(4.1665795894e-2f); NEXT(1.6666665459e-1f); NEXT(0.5f);
#undef NEXT
  p = wasm_f32x4_add(wasm_f32x4_add(wasm_f32x4_mul(wasm_f32x4_mul(p, r), r), r), wasm_f32x4_const_splat(1.0f));
  vec power = wasm_i32x4_shl(wasm_i32x4_add(wasm_i32x4_trunc_sat_f32x4(n), wasm_i32x4_const_splat(127)), 23);
  return wasm_f32x4_mul(p, power);
}

/* GELU(x) = x (1 + erf(x / sqrt 2)) / 2, erf to 1.5e-7 (Abramowitz and Stegun 7.1.26). */
static inline vec gelu4(vec x) {
  vec z = wasm_f32x4_mul(wasm_f32x4_abs(x), wasm_f32x4_const_splat(0.70710678f));
  vec one = wasm_f32x4_const_splat(1.0f);
  vec t = wasm_f32x4_div(one, wasm_f32x4_add(one, wasm_f32x4_mul(z, wasm_f32x4_const_splat(0.3275911f))));
  vec p = wasm_f32x4_const_splat(1.061405429f);
#define NEXT(c) p = wasm_f32x4_add(wasm_f32x4_mul(p, t), wasm_f32x4_const_splat(c))
  NEXT(-1.453152027f); NEXT(1.421413741f); NEXT(-0.284496736f); NEXT(0.254829592f);
#undef NEXT
  vec tail = wasm_f32x4_mul(wasm_f32x4_mul(p, t), exp4(wasm_f32x4_neg(wasm_f32x4_mul(z, z)))); /* erfc(z) */
  vec positive = wasm_f32x4_ge(x, wasm_f32x4_const_splat(0.0f));
  vec sum = wasm_v128_bitselect(wasm_f32x4_sub(wasm_f32x4_const_splat(2.0f), tail), tail, positive);
  return wasm_f32x4_mul(wasm_f32x4_mul(x, wasm_f32x4_const_splat(0.5f)), sum);
}

static inline vec sigmoid4(vec x) {
  vec one = wasm_f32x4_const_splat(1.0f);
  return wasm_f32x4_div(one, wasm_f32x4_add(one, exp4(wasm_f32x4_neg(x))));
}

/* To 1e-7, absolute. */
static inline vec tanh4(vec x) {
  vec s = sigmoid4(wasm_f32x4_add(x, x));
  return wasm_f32x4_sub(wasm_f32x4_add(s, s), wasm_f32x4_const_splat(1.0f));
}

#define LOAD(p) wasm_v128_load(p)
#define MADD(a, x, y) a = wasm_f32x4_add(a, wasm_f32x4_mul(x, y))
#define TILE 64

/* out[0..16) of two rows of a matrix product: sum_k w0[k] x[k] and sum_k w1[k] x[k], where x[k] = x + k * stride. */
static inline void two_rows(const float *x, int stride, const float *w0, const float *w1, int count, int step, vec a[4],
                            vec b[4]) {
  for (int k = 0; k < count; k++) {
    const float *row = x + k * stride;
    vec x0 = LOAD(row), x1 = LOAD(row + 4), x2 = LOAD(row + 8), x3 = LOAD(row + 12);
    vec s = wasm_v128_load32_splat(w0 + k * step), t = wasm_v128_load32_splat(w1 + k * step);
    MADD(a[0], x0, s); MADD(a[1], x1, s); MADD(a[2], x2, s); MADD(a[3], x3, s);
    MADD(b[0], x0, t); MADD(b[1], x1, t); MADD(b[2], x2, t); MADD(b[3], x3, t);
  }
}

/* 64 points of every channel side by side: lines of a large field would push each other out of the cache. */
static void gather(const float *x, int points, int h, float *tile) {
  for (int c = 0; c < h; c++)
    for (int i = 0; i < TILE; i += 4) wasm_v128_store(tile + c * TILE + i, LOAD(x + c * points + i));
}

/* w x + bias on a tile, added to `out` with `add`; rows of `out` are `points` apart. */
static void map(const float *w, const float *bias, const float *tile, float *out, int points, int rows, int h, int add) {
  for (int j = 0; j < rows; j += 2) {
    int next = j + 1 < rows ? j + 1 : j; /* the last of an odd number is computed twice */
    vec first = bias ? wasm_v128_load32_splat(bias + j) : wasm_f32x4_const_splat(0.0f);
    vec second = bias ? wasm_v128_load32_splat(bias + next) : first;
    for (int i = 0; i < TILE; i += 16) {
      vec a[4] = {first, first, first, first}, b[4] = {second, second, second, second};
      two_rows(tile + i, TILE, w + j * h, w + next * h, h, 1, a, b);
      for (int n = 0; n < 4; n++) {
        float *to = out + j * points + i + 4 * n, *then = out + next * points + i + 4 * n;
        vec one = add ? wasm_f32x4_add(LOAD(to), a[n]) : a[n], two = add ? wasm_f32x4_add(LOAD(then), b[n]) : b[n];
        wasm_v128_store(to, one);
        wasm_v128_store(then, two);
      }
    }
  }
}

/* y[l] = sum_s taps[(l - s) mod length] x[s] for `lines` lines side by side; `taps` holds two periods. */
static void scan(const float *x, float *y, const float *taps, int length, int lines) {
  const vec zero = wasm_f32x4_const_splat(0.0f);
  if (lines == 1) {
    for (int l = 0; l < length; l += 16) {
      vec a[4] = {zero, zero, zero, zero};
      for (int s = 0; s < length; s++) {
        const float *t = taps + length + l - s;
        vec v = wasm_v128_load32_splat(x + s);
        MADD(a[0], v, LOAD(t)); MADD(a[1], v, LOAD(t + 4)); MADD(a[2], v, LOAD(t + 8)); MADD(a[3], v, LOAD(t + 12));
      }
      for (int i = 0; i < 4; i++) wasm_v128_store(y + l + 4 * i, a[i]);
    }
    return;
  }
  for (int l = 0; l < length; l += 2)
    for (int q = 0; q < lines; q += 16) {
      vec a[4] = {zero, zero, zero, zero}, b[4] = {zero, zero, zero, zero};
      const float *t = taps + length + l;
      two_rows(x + q, lines, t, t + 1, length, -1, a, b);
      for (int i = 0; i < 4; i++) {
        wasm_v128_store(y + l * lines + q + 4 * i, a[i]);
        wasm_v128_store(y + (l + 1) * lines + q + 4 * i, b[i]);
      }
    }
}

/* out = r x + sum_d GLU(W_d GELU(y_d) + bias_d); y is (d, h, points), out and x are (h, points) and may be the same.
   With `product` instead r x + (L y + l) tanh(R y + r'), where the rows of W are those of L, then those of R. */
static void gate(const float *y, const float *mix, const float *bias, const float *x, float *out, float r,
                 int directions, int product, int h, int points, float *tile) {
  vec weight = wasm_f32x4_splat(r);
  for (int p = 0; p < points; p += TILE)
    for (int d = 0; d < directions; d++) {
      gather(y + d * h * points + p, points, h, tile);
      if (!product)
        for (int i = 0; i < h * TILE; i += 4) wasm_v128_store(tile + i, gelu4(LOAD(tile + i)));
      for (int j = 0; j < h; j++) {
        const float *w = mix + (d * 2 * h + j) * h;
        vec first = wasm_v128_load32_splat(bias + d * 2 * h + j), second = wasm_v128_load32_splat(bias + d * 2 * h + h + j);
        for (int i = 0; i < TILE; i += 16) {
          vec a[4] = {first, first, first, first}, b[4] = {second, second, second, second};
          two_rows(tile + i, TILE, w, w + h * h, h, 1, a, b);
          for (int n = 0; n < 4; n++) {
            float *to = out + j * points + p + i + 4 * n;
            vec before = d ? LOAD(to) : x ? wasm_f32x4_mul(weight, LOAD(x + j * points + p + i + 4 * n)) : wasm_f32x4_const_splat(0.0f);
            wasm_v128_store(to, wasm_f32x4_add(before, wasm_f32x4_mul(a[n], product ? tanh4(b[n]) : sigmoid4(b[n]))));
          }
        }
      }
    }
}

static void transpose(const float *x, float *y, int rows, int columns) {
  for (int i = 0; i < rows; i += 4)
    for (int j = 0; j < columns; j += 4) {
      vec a = LOAD(x + i * columns + j), b = LOAD(x + (i + 1) * columns + j);
      vec c = LOAD(x + (i + 2) * columns + j), d = LOAD(x + (i + 3) * columns + j);
      vec ab = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), AB = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
      vec cd = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), CD = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
      float *to = y + j * rows + i;
      wasm_v128_store(to, wasm_i64x2_shuffle(ab, cd, 0, 2));
      wasm_v128_store(to + rows, wasm_i64x2_shuffle(ab, cd, 1, 3));
      wasm_v128_store(to + 2 * rows, wasm_i64x2_shuffle(AB, CD, 0, 2));
      wasm_v128_store(to + 3 * rows, wasm_i64x2_shuffle(AB, CD, 1, 3));
    }
}

/* A model: sizes, then where its weights and its working memory are. The order is that of play.js. */
typedef struct {
  int h, nx, ny, inputs, before, after, window, head;
  int product, heads; /* whether blocks are products, and the displacements of their warps */
  float residual;
  const float *lift, *lift_bias, *taps, *mix, *bias, *warp, *memory_taps, *memory_mix, *memory_bias;
  const float *wide, *wide_bias, *narrow, *narrow_bias;
  float *features, *turned, *scanned, *tile, *history;
  int frames; /* feature maps in `history` */
} Model;

/* out += C w + c with w_head(p) = values_head(p + D y(p) + d), linear between points; lines are circles. */
static void warp(const Model *m, const float *weights, const float *y, const float *values, float *out) {
  int h = m->h, points = m->nx * m->ny, axes = m->ny > 1 ? 2 : 1, rows = m->heads * axes, width = h / m->heads;
  const float *shift = weights + rows * h, *last = shift + rows, *last_bias = last + h * h;
  float *found = m->tile + h * TILE, *moved = found + h * TILE;
  const vec most = wasm_f32x4_const_splat(1e9f), one = wasm_f32x4_const_splat(1.0f);
  for (int p = 0; p < points; p += TILE) {
    gather(y + p, points, h, m->tile);
    map(weights, shift, m->tile, moved, TILE, rows, h, 0);
    for (int head = 0; head < m->heads; head++)
      for (int i = 0; i < TILE; i += 4) {
        vec place[4] = {wasm_i32x4_const_splat(0)}, weight[4] = {one}; /* of the corners around four points */
        for (int axis = 0, corners = 1; axis < axes; axis++, corners *= 2) {
          int step = axis ? 1 : m->ny, line = (axis ? m->ny : m->nx) - 1;
          vec d = LOAD(moved + (head * axes + axis) * TILE + i), whole = wasm_f32x4_floor(d), part = wasm_f32x4_sub(d, whole);
          vec jump = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_max(wasm_f32x4_min(whole, most), wasm_f32x4_neg(most)));
          vec here = wasm_i32x4_add(wasm_i32x4_splat(p + i), wasm_i32x4_const(0, 1, 2, 3)), by = wasm_i32x4_splat(step);
          vec bits = wasm_i32x4_splat(line * step); /* of a place that belong to this axis: a sum wraps in them */
          vec near = wasm_v128_and(wasm_i32x4_add(here, wasm_i32x4_mul(jump, by)), bits);
          vec far = wasm_v128_and(wasm_i32x4_add(near, by), bits);
          for (int k = 0; k < corners; k++) {
            place[k + corners] = wasm_i32x4_add(place[k], far), place[k] = wasm_i32x4_add(place[k], near);
            weight[k + corners] = wasm_f32x4_mul(weight[k], part);
            weight[k] = wasm_f32x4_mul(weight[k], wasm_f32x4_sub(one, part));
          }
        }
        for (int c = head * width; c < (head + 1) * width; c++) {
          const float *from = values + c * points;
          vec sum = wasm_f32x4_const_splat(0.0f);
          for (int k = 0; k < 2 * axes; k++) {
            vec q = place[k];
            MADD(sum, weight[k], wasm_f32x4_make(from[wasm_i32x4_extract_lane(q, 0)], from[wasm_i32x4_extract_lane(q, 1)],
                                                 from[wasm_i32x4_extract_lane(q, 2)], from[wasm_i32x4_extract_lane(q, 3)]));
          }
          wasm_v128_store(found + c * TILE + i, sum);
        }
      }
    map(last, last_bias, found, out + p, points, h, h, 1);
  }
}

/* Scan all axes, then multiply, then carry. */
static void product_block(const Model *m, int block) {
  int h = m->h, points = m->nx * m->ny, axes = m->ny > 1 ? 2 : 1, length = axes > 1 ? m->nx + m->ny : m->nx;
  const float *taps = m->taps + block * 2 * h * length, *weights = m->warp + block * h * (2 * h + 1);
  float *y = m->scanned, *values = m->scanned + h * points;
  for (int c = 0; c < h; c++) scan(m->features + c * points, y + c * points, taps + c * 2 * m->nx, m->nx, m->ny);
  if (axes > 1) {
    taps += 2 * h * m->nx;
    for (int c = 0; c < h; c++) {
      float *line = m->turned + c * points;
      transpose(y + c * points, line, m->nx, m->ny);
      scan(line, y + c * points, taps + c * 2 * m->ny, m->ny, m->nx);
      transpose(y + c * points, line, m->ny, m->nx);
    }
    y = m->turned;
  }
  if (m->heads) {
    weights += block * m->heads * axes * (h + 1);
    for (int p = 0; p < points; p += TILE) {
      gather(m->features + p, points, h, m->tile);
      map(weights, 0, m->tile, values + p, points, h, h, 0);
    }
  }
  gate(y, m->mix + block * 2 * h * h, m->bias + block * 2 * h, m->features, m->features, m->residual, 1, 1, h, points, m->tile);
  if (m->heads) warp(m, weights + h * h, y, values, m->features);
}

static void spatial_block(const Model *m, int block) {
  if (m->product) return product_block(m, block);
  int h = m->h, points = m->nx * m->ny, axes = m->ny > 1 ? 2 : 1;
  for (int axis = 0; axis < axes; axis++) {
    int length = axis ? m->ny : m->nx, lines = points / length, number = block * axes + axis;
    const float *taps = m->taps + (axis ? 4 * h * (block * (m->nx + m->ny) + m->nx) : 4 * h * block * (axes > 1 ? m->nx + m->ny : m->nx));
    float *x = m->features;
    if (axis) {
      x = m->turned;
      for (int c = 0; c < h; c++) transpose(m->features + c * points, x + c * points, m->nx, m->ny);
    }
    for (int d = 0; d < 2; d++)
      for (int c = 0; c < h; c++)
        scan(x + c * points, m->scanned + (d * h + c) * points, taps + (d * h + c) * 2 * length, length, lines);
    gate(m->scanned, m->mix + number * 4 * h * h, m->bias + number * 4 * h, x, x, m->residual, 2, 0, h, points, m->tile);
    if (axis)
      for (int c = 0; c < h; c++) transpose(x + c * points, m->features + c * points, m->ny, m->nx);
  }
}

/* The features of a normalised frame (inputs, points), put into the history. */
static void take(Model *m, const float *frame) {
  int points = m->nx * m->ny;
  for (int c = 0; c < m->h; c++)
    for (int p = 0; p < points; p += 4) {
      vec sum = wasm_v128_load32_splat(m->lift_bias + c);
      for (int k = 0; k < m->inputs; k++) MADD(sum, wasm_v128_load32_splat(m->lift + c * m->inputs + k), LOAD(frame + k * points + p));
      wasm_v128_store(m->features + c * points + p, sum);
    }
  for (int block = 0; block < m->before; block++) spatial_block(m, block);
  if (!m->window) return;
  int size = m->h * points;
  if (m->frames == m->window) {
    for (int i = 0; i < (m->window - 1) * size; i += 4) wasm_v128_store(m->history + i, LOAD(m->history + i + size));
    m->frames--;
  }
  for (int i = 0; i < size; i += 4) wasm_v128_store(m->history + m->frames * size + i, LOAD(m->features + i));
  m->frames++;
}

EXPORT("model_start") void model_start(Model *m) { m->frames = 0; }
EXPORT("model_take") void model_take(Model *m, const float *frame) { take(m, frame); }

/* The newest normalised frame in, the model's answer (a frame, or an increment) out. */
EXPORT("model_step") void model_step(Model *m, const float *frame, float *answer) {
  int points = m->nx * m->ny, h = m->h;
  take(m, frame);
  if (m->window) {
    for (int c = 0; c < h; c++)
      for (int p = 0; p < points; p += 4) {
        vec sum = wasm_f32x4_const_splat(0.0f);
        for (int k = 0; k < m->frames; k++)
          MADD(sum, wasm_v128_load32_splat(m->memory_taps + c * m->window + m->frames - 1 - k), LOAD(m->history + (k * h + c) * points + p));
        wasm_v128_store(m->scanned + c * points + p, sum);
      }
    /* with products memory adds to the newest features, which it replaces otherwise */
    gate(m->scanned, m->memory_mix, m->memory_bias, m->product ? m->features : 0, m->features, 1.0f, 1, 0, h, points, m->tile);
  }
  for (int block = m->before; block < m->before + m->after; block++) spatial_block(m, block);
  for (int p = 0; p < points; p += TILE) {
    vec out[TILE / 4];
    for (int i = 0; i < TILE / 4; i++) out[i] = wasm_v128_load32_splat(m->narrow_bias);
    gather(m->features + p, points, h, m->tile);
    for (int w = 0; w < m->head; w += 2) {
      vec s = wasm_v128_load32_splat(m->narrow + w), t = wasm_v128_load32_splat(m->narrow + w + 1);
      vec first = wasm_v128_load32_splat(m->wide_bias + w), second = wasm_v128_load32_splat(m->wide_bias + w + 1);
      for (int i = 0; i < TILE; i += 16) {
        vec a[4] = {first, first, first, first}, b[4] = {second, second, second, second};
        two_rows(m->tile + i, TILE, m->wide + w * h, m->wide + (w + 1) * h, h, 1, a, b);
        for (int n = 0; n < 4; n++) { MADD(out[i / 4 + n], s, gelu4(a[n])); MADD(out[i / 4 + n], t, gelu4(b[n])); }
      }
    }
    for (int i = 0; i < TILE; i += 4) wasm_v128_store(answer + p + i, out[i / 4]);
  }
}

/* Complex FFT of `lines` interleaved lines of n points (n a power of two): Stockham, radix 4 and at most one radix 2.
   `table` holds cos and -sin of 2 pi k / n, n each. Swapping re and im gives the inverse, unscaled. */
#define FFT(NAME, REAL)                                                                                              \
  static void NAME(REAL *re, REAL *im, REAL *re2, REAL *im2, const REAL *table, int n, int lines) {                   \
    REAL *xr = re, *xi = im, *yr = re2, *yi = im2, *swap;                                                            \
    const REAL *cosines = table, *sines = table + n;                                                                 \
    int s = lines, left = n, stride = 1;                                                                             \
    for (; left > 2; left /= 4, s *= 4, stride *= 4) {                                                               \
      int quarter = left / 4;                                                                                        \
      for (int p = 0; p < quarter; p++) {                                                                            \
        REAL c1 = cosines[p * stride], s1 = sines[p * stride], c2 = cosines[2 * p * stride];                         \
        REAL s2 = sines[2 * p * stride], c3 = cosines[3 * p * stride], s3 = sines[3 * p * stride];                   \
        const REAL *ar = xr + s * p, *ai = xi + s * p;                                                               \
        REAL *br = yr + 4 * s * p, *bi = yi + 4 * s * p;                                                             \
        int far = s * quarter;                                                                                       \
        _Pragma("clang loop vectorize(assume_safety)") for (int q = 0; q < s; q++) {                                 \
          REAL sr = ar[q] + ar[q + 2 * far], si = ai[q] + ai[q + 2 * far];                                           \
          REAL dr = ar[q] - ar[q + 2 * far], di = ai[q] - ai[q + 2 * far];                                           \
          REAL tr = ar[q + far] + ar[q + 3 * far], ti = ai[q + far] + ai[q + 3 * far];                               \
          REAL er = ai[q + far] - ai[q + 3 * far], ei = ar[q + 3 * far] - ar[q + far];                               \
          br[q] = sr + tr, bi[q] = si + ti;                                                                          \
          REAL ur = dr + er, ui = di + ei, vr = sr - tr, vi = si - ti, wr = dr - er, wi = di - ei;                   \
          br[q + s] = c1 * ur - s1 * ui, bi[q + s] = c1 * ui + s1 * ur;                                              \
          br[q + 2 * s] = c2 * vr - s2 * vi, bi[q + 2 * s] = c2 * vi + s2 * vr;                                      \
          br[q + 3 * s] = c3 * wr - s3 * wi, bi[q + 3 * s] = c3 * wi + s3 * wr;                                      \
        }                                                                                                            \
      }                                                                                                              \
      swap = xr, xr = yr, yr = swap, swap = xi, xi = yi, yi = swap;                                                  \
    }                                                                                                                \
    if (left == 2) {                                                                                                 \
      _Pragma("clang loop vectorize(assume_safety)") for (int q = 0; q < s; q++) {                                   \
        yr[q] = xr[q] + xr[q + s], yi[q] = xi[q] + xi[q + s];                                                        \
        yr[q + s] = xr[q] - xr[q + s], yi[q + s] = xi[q] - xi[q + s];                                                \
      }                                                                                                              \
      swap = xr, xr = yr, yr = swap, swap = xi, xi = yi, yi = swap;                                                  \
    }                                                                                                                \
    if (xr != re)                                                                                                    \
      for (int q = 0; q < n * lines; q++) re[q] = xr[q], im[q] = xi[q];                                              \
  }
FFT(fft64, double)
FFT(fft32, float)

EXPORT("fft") void fft(double *re, double *im, double *re2, double *im2, const double *table, int n, int lines) {
  fft64(re, im, re2, im2, table, n, lines);
}

/* Kuramoto-Sivashinsky, ETDRK4. Arrays of n/2 + 1 numbers; `half` complex transforms of n/2 points do a real one. */
typedef struct {
  int n, kept;
  const double *table, *turn;           /* of n/2 points; cos and -sin of 2 pi k / n */
  const double *e, *e2, *q, *f1, *f2, *f3, *g; /* g = -k / 2 where a mode is kept */
  double *vr, *vi;                      /* the modes, scaled as a plain sum */
  double *work;                         /* 4 n + 12 (n/2 + 1) */
} KS;

/* The real field of modes 0..n/2 and back, by one complex transform of half the length. */
static void to_field(const KS *s, const double *vr, const double *vi, double *u, double *buffer) {
  int m = s->n / 2;
  double *zr = buffer, *zi = buffer + m, *cosines = (double *)s->turn, *sines = cosines + m + 1;
  for (int k = 0; k < m; k++) { /* z_k = (v_k + conj v_{m-k}) + i w^-k (v_k - conj v_{m-k}) */
    double ar = vr[k] + vr[m - k], ai = vi[k] - vi[m - k], br = vr[k] - vr[m - k], bi = vi[k] + vi[m - k];
    double cr = cosines[k] * br + sines[k] * bi, ci = cosines[k] * bi - sines[k] * br;
    zr[k] = ar - ci, zi[k] = ai + cr;
  }
  fft64(zi, zr, buffer + 2 * m, buffer + 3 * m, s->table, m, 1);
  for (int k = 0; k < m; k++) u[2 * k] = zr[k] / s->n, u[2 * k + 1] = zi[k] / s->n;
}

static void to_modes(const KS *s, const double *u, double *vr, double *vi, double *buffer) {
  int m = s->n / 2;
  double *zr = buffer, *zi = buffer + m, *cosines = (double *)s->turn, *sines = cosines + m + 1;
  for (int k = 0; k < m; k++) zr[k] = u[2 * k], zi[k] = u[2 * k + 1];
  fft64(zr, zi, buffer + 2 * m, buffer + 3 * m, s->table, m, 1);
  for (int k = 0; k <= m; k++) {
    int i = k % m, j = (m - k) % m;
    double ar = zr[i] + zr[j], ai = zi[i] - zi[j], br = zi[i] + zi[j], bi = zr[j] - zr[i];
    vr[k] = 0.5 * (ar + cosines[k] * br - sines[k] * bi);
    vi[k] = 0.5 * (ai + cosines[k] * bi + sines[k] * br);
  }
}

static void ks_rate(const KS *s, const double *vr, const double *vi, double *nr, double *ni, double *buffer) {
  double *u = buffer, *rest = buffer + s->n;
  to_field(s, vr, vi, u, rest);
  for (int i = 0; i < s->n; i++) u[i] *= u[i];
  to_modes(s, u, nr, ni, rest);
  for (int k = 0; k <= s->n / 2; k++) {
    double re = nr[k];
    nr[k] = -s->g[k] * ni[k], ni[k] = s->g[k] * re;
  }
}

EXPORT("ks_load") void ks_load(KS *s, const double *u) {
  to_modes(s, u, s->vr, s->vi, s->work);
  for (int k = s->kept + 1; k <= s->n / 2; k++) s->vr[k] = s->vi[k] = 0;
}
EXPORT("ks_field") void ks_field(KS *s, double *u) { to_field(s, s->vr, s->vi, u, s->work); }

EXPORT("ks_steps") void ks_steps(KS *s, int steps) {
  int count = s->n / 2 + 1;
  double *buffer = s->work, *p = s->work + 3 * s->n;
  double *nr = p, *ni = p + count, *ar = p + 2 * count, *ai = p + 3 * count, *mr = p + 4 * count, *mi = p + 5 * count;
  double *br = p + 6 * count, *bi = p + 7 * count, *or = p + 8 * count, *oi = p + 9 * count;
  for (; steps > 0; steps--) {
    ks_rate(s, s->vr, s->vi, nr, ni, buffer);
    for (int k = 0; k < count; k++) ar[k] = s->e2[k] * s->vr[k] + s->q[k] * nr[k], ai[k] = s->e2[k] * s->vi[k] + s->q[k] * ni[k];
    ks_rate(s, ar, ai, mr, mi, buffer);
    for (int k = 0; k < count; k++) br[k] = s->e2[k] * s->vr[k] + s->q[k] * mr[k], bi[k] = s->e2[k] * s->vi[k] + s->q[k] * mi[k];
    ks_rate(s, br, bi, or, oi, buffer);
    for (int k = 0; k < count; k++) {
      br[k] = s->e2[k] * ar[k] + s->q[k] * (2 * or[k] - nr[k]), bi[k] = s->e2[k] * ai[k] + s->q[k] * (2 * oi[k] - ni[k]);
      s->vr[k] = s->e[k] * s->vr[k] + s->f1[k] * nr[k] + 2 * s->f2[k] * (mr[k] + or[k]);
      s->vi[k] = s->e[k] * s->vi[k] + s->f1[k] * ni[k] + 2 * s->f2[k] * (mi[k] + oi[k]);
    }
    ks_rate(s, br, bi, nr, ni, buffer);
    for (int k = 0; k < count; k++) s->vr[k] += s->f3[k] * nr[k], s->vi[k] += s->f3[k] * ni[k];
  }
}

/* Burgers: second-order finite volumes, monotonised-central limiter, midpoint rule; `u` has n cells and 4 of padding. */
static void burgers_rate(const double *u, double *rate, double *half, double *flux, int n, double dx, double diffusivity) {
  double *w = half; /* half slopes of cells -1..n at w[0..n+1] */
  for (int i = 0; i < n + 2; i++) {
    double back = u[i + 1] - u[i], ahead = u[i + 2] - u[i + 1];
    double low = back < ahead ? back : ahead, high = back < ahead ? ahead : back, slope = 0.25 * (back + ahead);
    double ceiling = low > 0 ? low : 0, floor = high < 0 ? high : 0;
    w[i] = slope > ceiling ? ceiling : slope < floor ? floor : slope;
  }
  for (int i = 0; i <= n; i++) { /* the face between cells i - 1 and i */
    double left = u[i + 1] + w[i], right = u[i + 2] - w[i + 1], upwind = left + right > 0 ? left : right;
    flux[i] = 0.5 * upwind * upwind - diffusivity / dx * (u[i + 2] - u[i + 1]);
  }
  for (int i = 0; i < n; i++) rate[i] = -(flux[i + 1] - flux[i]) / dx;
}

static void wrap(double *u, int n) { u[0] = u[n], u[1] = u[n + 1], u[n + 2] = u[2], u[n + 3] = u[3]; }

/* Advance `padded` (cell 0 at index 2) by `time`; `work` has 5 n + 40 numbers. Returns the number of steps. */
EXPORT("burgers") int burgers(double *padded, double *work, int n, double dx, double diffusivity, double cfl, double time) {
  double *rate = work, *half = rate + n, *flux = half + n + 8, *middle = flux + n + 8;
  int steps = 0;
  while (time > 0 && steps < 200000) {
    double fastest = 1e-12;
    for (int i = 2; i < n + 2; i++) {
      double speed = padded[i] < 0 ? -padded[i] : padded[i];
      if (!(speed <= fastest)) fastest = speed;
    }
    if (!(fastest < 1e6)) return -1;
    double dt = dx / fastest, most = 0.5 * dx * dx / diffusivity;
    dt = cfl * (dt < most ? dt : most);
    dt = time / (int)(time / dt + 1);
    if (dt > time) dt = time;
    wrap(padded, n);
    burgers_rate(padded, rate, half, flux, n, dx, diffusivity);
    for (int i = 0; i < n; i++) middle[i + 2] = padded[i + 2] + 0.5 * dt * rate[i];
    wrap(middle, n);
    burgers_rate(middle, rate, half, flux, n, dx, diffusivity);
    for (int i = 0; i < n; i++) padded[i + 2] += dt * rate[i];
    time = steps > 100000 || time - dt < 1e-14 ? 0 : time - dt, steps++;
  }
  return steps;
}

/* Vorticity on the unit torus: integrating-factor Runge-Kutta, modes (m_y, m_x) of n x n points, |m| <= kept. */
typedef struct {
  int n, kept;
  const float *table, *square;            /* 1 / |k|^2 */
  const float *half;                      /* exp(-viscosity |k|^2 dt / 2) */
  const float *force_r, *force_i;
  float *wr, *wi, *work;                  /* work: 12 n n */
  float dt;
} Torus;
#define TAU 6.28318530718f

static void fft2(const Torus *s, float *re, float *im, float *re2, float *im2) {
  int n = s->n;
  fft32(re, im, re2, im2, s->table, n, n);
  transpose(re, re2, n, n), transpose(im, im2, n, n);
  for (int i = 0; i < n * n; i++) re[i] = re2[i], im[i] = im2[i];
  fft32(re, im, re2, im2, s->table, n, n);
}

/* z = u + i v on the grid, from modes w. */
static void velocity(const Torus *s, const float *wr, const float *wi, float *zr, float *zi, float *re2, float *im2) {
  int n = s->n;
  for (int i = 0; i < n * n; i++) zr[i] = zi[i] = 0;
  for (int a = -s->kept; a <= s->kept; a++)
    for (int b = -s->kept; b <= s->kept; b++) { /* a = m_y, b = m_x: z_k = (i k_y + k_x) w / |k|^2 */
      int i = (a < 0 ? a + n : a) * n + (b < 0 ? b + n : b);
      float ky = TAU * a * s->square[i], kx = TAU * b * s->square[i];
      zr[i] = kx * wr[i] - ky * wi[i], zi[i] = kx * wi[i] + ky * wr[i];
    }
  fft2(s, zi, zr, im2, re2);
}

static void torus_rate(const Torus *s, const float *wr, const float *wi, float *nr, float *ni, float *work) {
  int n = s->n, size = n * n;
  float *zr = work, *zi = work + size, *re2 = work + 2 * size, *im2 = work + 3 * size, scale = 1.0f / size;
  velocity(s, wr, wi, zr, zi, re2, im2);
  for (int i = 0; i < size; i++) {
    float u = zr[i], v = zi[i];
    zr[i] = u * v, zi[i] = v * v - u * u;
  }
  fft2(s, zr, zi, re2, im2);
  for (int i = 0; i < size; i++) nr[i] = ni[i] = 0;
  for (int a = -s->kept; a <= s->kept; a++)
    for (int b = -s->kept; b <= s->kept; b++) {
      int i = (a < 0 ? a + n : a) * n + (b < 0 ? b + n : b), j = (a > 0 ? n - a : -a) * n + (b > 0 ? n - b : -b);
      float kx = TAU * b, ky = TAU * a, p = 0.5f * scale * (kx * kx - ky * ky), q = 0.5f * scale * kx * ky;
      nr[i] = p * (zr[i] + zr[j]) + q * (zi[i] + zi[j]) + s->force_r[i];
      ni[i] = p * (zi[i] - zi[j]) - q * (zr[i] - zr[j]) + s->force_i[i];
    }
}

/* A field (x, y) to modes; modes to a field, into `re`. */
EXPORT("torus_load") void torus_load(Torus *s, const float *field) {
  int n = s->n, size = n * n;
  float *re = s->work, *im = re + size;
  for (int i = 0; i < size; i++) re[i] = field[i] / size, im[i] = 0;
  fft2(s, re, im, s->work + 2 * size, s->work + 3 * size);
  for (int i = 0; i < size; i++) s->wr[i] = s->wi[i] = 0;
  for (int a = -s->kept; a <= s->kept; a++)
    for (int b = -s->kept; b <= s->kept; b++) {
      int i = (a < 0 ? a + n : a) * n + (b < 0 ? b + n : b);
      s->wr[i] = re[i], s->wi[i] = im[i];
    }
  s->wr[0] = s->wi[0] = 0;
}
EXPORT("torus_field") void torus_field(Torus *s, float *field) {
  int size = s->n * s->n;
  float *im = s->work;
  for (int i = 0; i < size; i++) field[i] = s->wr[i], im[i] = s->wi[i];
  fft2(s, im, field, s->work + size, s->work + 2 * size);
}
/* The largest |u| + |v|. */
EXPORT("torus_speed") float torus_speed(Torus *s) {
  int size = s->n * s->n;
  float *zr = s->work, *zi = zr + size, most = 0;
  velocity(s, s->wr, s->wi, zr, zi, zr + 2 * size, zr + 3 * size);
  for (int i = 0; i < size; i++) {
    float speed = (zr[i] < 0 ? -zr[i] : zr[i]) + (zi[i] < 0 ? -zi[i] : zi[i]);
    if (!(speed <= most)) most = speed;
  }
  return most;
}

EXPORT("torus_steps") void torus_steps(Torus *s, int steps) {
  int size = s->n * s->n;
  float dt = s->dt, *w = s->work, *work = w + 6 * size;
  float *kr = w, *ki = w + size, *ar = w + 2 * size, *ai = w + 3 * size, *or = w + 4 * size, *oi = w + 5 * size;
  const float *h = s->half;
  for (; steps > 0; steps--) {
    torus_rate(s, s->wr, s->wi, kr, ki, work);
    for (int i = 0; i < size; i++) {
      float whole = h[i] * h[i];
      ar[i] = h[i] * (s->wr[i] + 0.5f * dt * kr[i]), ai[i] = h[i] * (s->wi[i] + 0.5f * dt * ki[i]);
      or[i] = whole * (s->wr[i] + dt / 6 * kr[i]), oi[i] = whole * (s->wi[i] + dt / 6 * ki[i]);
    }
    torus_rate(s, ar, ai, kr, ki, work);
    for (int i = 0; i < size; i++) {
      ar[i] = h[i] * s->wr[i] + 0.5f * dt * kr[i], ai[i] = h[i] * s->wi[i] + 0.5f * dt * ki[i];
      or[i] += dt / 3 * h[i] * kr[i], oi[i] += dt / 3 * h[i] * ki[i];
    }
    torus_rate(s, ar, ai, kr, ki, work);
    for (int i = 0; i < size; i++) {
      ar[i] = h[i] * h[i] * s->wr[i] + dt * h[i] * kr[i], ai[i] = h[i] * h[i] * s->wi[i] + dt * h[i] * ki[i];
      or[i] += dt / 3 * h[i] * kr[i], oi[i] += dt / 3 * h[i] * ki[i];
    }
    torus_rate(s, ar, ai, kr, ki, work);
    for (int i = 0; i < size; i++) s->wr[i] = or[i] + dt / 6 * kr[i], s->wi[i] = oi[i] + dt / 6 * ki[i];
  }
}
