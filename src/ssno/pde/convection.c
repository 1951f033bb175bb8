/* ETDRK4 for u_t = L u - (u^2 / 2)_x on a periodic line, many trajectories at once: one SIMD lane is one trajectory.

   A real transform of N points is a complex one of n = N/2 (even points are real parts, odd ones imaginary), untangled
   afterwards. The inverse transform leaves its points in digit-reversed order and the forward one takes them so: between
   the two there is only a square, point by point, and nobody sorts. Lanes never meet, so a trajectory has the same bits
   in any company.

   Vectors are those of the compiler, for whatever instruction set it compiles to. */

#include <stddef.h>

#define LANES 8 /* as in spectral.py */
typedef double lanes __attribute__((vector_size(8 * LANES)));
typedef struct { lanes re, im; } complex_lanes;
typedef struct { double re, im; } complex_number;
typedef complex_lanes cl;

static inline cl add(cl a, cl b) { return (cl){a.re + b.re, a.im + b.im}; }
static inline cl sub(cl a, cl b) { return (cl){a.re - b.re, a.im - b.im}; }
static inline cl times(cl a, complex_number w) { return (cl){a.re * w.re - a.im * w.im, a.im * w.re + a.re * w.im}; }
static inline cl times_conjugate(cl a, complex_number w) { return (cl){a.re * w.re + a.im * w.im, a.im * w.re - a.re * w.im}; }
static inline cl times_i(cl a) { return (cl){-a.im, a.re}; }
static inline cl conjugate(cl a) { return (cl){a.re, -a.im}; }

/* Four-point transforms with exp(+ 2 pi i / 4) and exp(- 2 pi i / 4). */
static inline void four_up(cl *a, cl *b, cl *c, cl *d) {
    cl s = add(*a, *c), t = sub(*a, *c), u = add(*b, *d), v = times_i(sub(*b, *d));
    *a = add(s, u), *b = add(t, v), *c = sub(s, u), *d = sub(t, v);
}
static inline void four_down(cl *a, cl *b, cl *c, cl *d) {
    cl s = add(*a, *c), t = sub(*a, *c), u = add(*b, *d), v = times_i(sub(*b, *d));
    *a = add(s, u), *b = sub(t, v), *c = sub(s, u), *d = add(t, v);
}

/* One radix-4 stage on blocks of m points; w[k] = exp(2 pi i k / N). */
static void stage_up(cl *restrict z, size_t n, size_t m, const complex_number *restrict w) {
    size_t q = m / 4, hop = 2 * n / m;
    for (size_t j = 0; j < n; j += m)
        for (size_t k = 0; k < q; k++) {
            cl *p = z + j + k, a = p[0], b = p[q], c = p[2 * q], d = p[3 * q];
            four_up(&a, &b, &c, &d);
            p[0] = a, p[q] = times(b, w[k * hop]), p[2 * q] = times(c, w[2 * k * hop]), p[3 * q] = times(d, w[3 * k * hop]);
        }
}
static void stage_down(cl *restrict z, size_t n, size_t m, const complex_number *restrict w) {
    size_t q = m / 4, hop = 2 * n / m;
    for (size_t j = 0; j < n; j += m)
        for (size_t k = 0; k < q; k++) {
            cl *p = z + j + k, a = p[0];
            cl b = times_conjugate(p[q], w[k * hop]), c = times_conjugate(p[2 * q], w[2 * k * hop]);
            cl d = times_conjugate(p[3 * q], w[3 * k * hop]);
            four_down(&a, &b, &c, &d);
            p[0] = a, p[q] = b, p[2 * q] = c, p[3 * q] = d;
        }
}

static inline cl square_both(cl a) { return (cl){a.re * a.re, a.im * a.im}; }

/* The last stage up, the square of every point, the first stage down: in registers. */
static void square_points(cl *restrict z, size_t n, size_t m) {
    for (size_t j = 0; j < n; j += m) {
        if (m == 4) {
            cl a = z[j], b = z[j + 1], c = z[j + 2], d = z[j + 3];
            four_up(&a, &b, &c, &d);
            a = square_both(a), b = square_both(b), c = square_both(c), d = square_both(d);
            four_down(&a, &b, &c, &d);
            z[j] = a, z[j + 1] = b, z[j + 2] = c, z[j + 3] = d;
        } else {
            cl s = square_both(add(z[j], z[j + 1])), t = square_both(sub(z[j], z[j + 1]));
            z[j] = add(s, t), z[j + 1] = sub(s, t);
        }
    }
}

/* y_k = 2 sum_x u(x)^2 exp(-i k x) for k < M, where u has the modes s: the transform of the square, times 2. */
static void squared(const cl *restrict s, cl *restrict y, cl *restrict z, size_t n, size_t M, const complex_number *restrict w) {
    cl zero = {{0}, {0}};
    z[0] = (cl){s[0].re, s[0].re};
    for (size_t k = 1; k <= n / 2; k++) { /* tangle: modes of the real field -> modes of even + i odd points */
        cl a = k < M ? s[k] : zero, b = n - k < M ? conjugate(s[n - k]) : zero;
        cl sum = add(a, b), turned = times(sub(a, b), w[k]);
        z[k] = add(sum, times_i(turned));
        z[n - k] = add(conjugate(sum), times_i(conjugate(turned)));
    }
    size_t m = n;
    for (; m > 4; m /= 4) stage_up(z, n, m, w);
    square_points(z, n, m);
    for (m *= 4; m <= n; m *= 4) stage_down(z, n, m, w);
    y[0] = (cl){2 * (z[0].re + z[0].im), zero.im};
    for (size_t k = 1; k <= n / 2; k++) { /* untangle */
        cl a = z[k], b = conjugate(z[n - k]), even = add(a, b), d = sub(a, b);
        cl odd = times_conjugate((cl){d.im, -d.re}, w[k]);
        if (k < M) y[k] = add(even, odd);
        if (n - k < M) y[n - k] = conjugate(sub(even, odd));
    }
}

/* a + i g b, g real: the derivative turns the transform of the square by i. */
static inline cl add_turned(cl a, double g, cl b) { return (cl){a.re - g * b.im, a.im + g * b.re}; }

/* One step of `count` trajectories: `modes` and `result` are (count, M) complex. `tables` are 8 rows of M numbers: e^z,
   e^{z/2}, and the weights q, q (e^{z/2} - 1), 2 q, first, middle, last, each times the factor g with N = i g y.
   `space` has room for 5 M + N/2 complex_lanes, aligned. */
void etdrk4_step(const double *modes, double *result, size_t count, size_t points, size_t M, const double *tables,
                 const complex_number *w, void *space) {
    size_t n = points / 2;
    const double *whole = tables, *half = whole + M, *q = half + M, *early = q + M, *late = early + M;
    const double *first = late + M, *middle = first + M, *last = middle + M;
    cl *z = space, *u = z + n, *s = u + M, *y_u = s + M, *y_a = y_u + M, *y_b = y_a + M;
    for (size_t start = 0; start < count; start += LANES) {
        for (size_t lane = 0; lane < LANES; lane++) { /* the last group is filled up with copies */
            size_t row = start + lane < count ? start + lane : count - 1;
            for (size_t k = 0; k < M; k++) {
                u[k].re[lane] = modes[2 * (row * M + k)];
                u[k].im[lane] = modes[2 * (row * M + k) + 1];
            }
        }
        squared(u, y_u, z, n, M, w);
        for (size_t k = 0; k < M; k++) s[k] = add_turned((cl){half[k] * u[k].re, half[k] * u[k].im}, q[k], y_u[k]);
        squared(s, y_a, z, n, M, w);
        for (size_t k = 0; k < M; k++) s[k] = add_turned((cl){half[k] * u[k].re, half[k] * u[k].im}, q[k], y_a[k]);
        squared(s, y_b, z, n, M, w);
        for (size_t k = 0; k < M; k++) {
            u[k] = (cl){whole[k] * u[k].re, whole[k] * u[k].im};
            s[k] = add_turned(add_turned(u[k], early[k], y_u[k]), late[k], y_b[k]);
            u[k] = add_turned(add_turned(u[k], first[k], y_u[k]), middle[k], add(y_a[k], y_b[k]));
        }
        squared(s, y_a, z, n, M, w);
        for (size_t k = 0; k < M; k++) {
            cl end = add_turned(u[k], last[k], y_a[k]);
            for (size_t lane = 0; lane < LANES && start + lane < count; lane++) {
                result[2 * ((start + lane) * M + k)] = end.re[lane];
                result[2 * ((start + lane) * M + k) + 1] = end.im[lane];
            }
        }
    }
}
