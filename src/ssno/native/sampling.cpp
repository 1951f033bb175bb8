// Kernels of diagonal state-space systems from their parameters, and back from gradients of kernels to those of parameters.
//
//   kernel[l] = 2 Re sum_n weight_n exp(z_n l),       z = step rate,   rate = -exp(log_damping) - i frequency
//   weight    = B C step phi(z) images,  phi(z) = (exp(z) - 1) / z,   images = 1 / (1 - exp(points z))
//
// that is zero-order hold; images are those of a circle, elsewhere the factor is 1. What belongs to a mode is computed in
// double precision, sums over modes or points in single. With l = 16 a + b, powers are products of sixteen fine ones and
// one coarse one, and a vector of sixteen points is added at a time.
//
// The gradient g(z) of a complex number is d/d Re z + i d/d Im z: through f with derivative f' it is g(f) conj(f').

#include <cmath>

#include "arithmetic.h"

namespace {

constexpr int FINE = 16;
constexpr double NEAR = 0.1;  // where the quotient of phi loses digits and a series takes over
constexpr double WORTH_A_THREAD = 2e4;  // modes times points

struct Complex {
    double re, im;
};

inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Complex operator*(double a, Complex b) { return {a * b.re, a * b.im}; }
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex conj(Complex a) { return {a.re, -a.im}; }
inline Complex inverse(Complex a) {
    const double size = a.re * a.re + a.im * a.im;
    return {a.re / size, -a.im / size};
}

struct Systems {
    const float *log_damping, *frequency, *log_step, *B, *C;  // (rows, modes), log_step (rows), weights (.., 2)
    double spacing;
    std::int64_t rows;
    int modes, points;
    bool circle;
};

struct Mode {
    double damping, step;
    Complex rate, z, decay, B, C, phi, images;

    Mode(const Systems& all, std::int64_t row, int n) {
        const std::int64_t at = row * all.modes + n;
        damping = std::exp(static_cast<double>(all.log_damping[at]));
        step = std::exp(static_cast<double>(all.log_step[row])) * all.spacing;
        rate = {-damping, -static_cast<double>(all.frequency[at])};
        z = step * rate;
        const double modulus = std::exp(z.re);
        decay = {modulus * std::cos(z.im), modulus * std::sin(z.im)};
        B = {all.B[2 * at], all.B[2 * at + 1]};
        C = {all.C[2 * at], all.C[2 * at + 1]};
        phi = near() ? series(0) : (decay - Complex{1.0, 0.0}) * inverse(z);
        images = {1.0, 0.0};
        if (all.circle) {  // 1 - exp(points z) without cancellation
            const double x = all.points * z.re, angle = all.points * z.im, size = std::exp(x), half = std::sin(angle / 2);
            images = inverse({2 * size * half * half - std::expm1(x), -size * std::sin(angle)});
        }
    }

    bool near() const { return z.re * z.re + z.im * z.im < NEAR * NEAR; }

    // phi(z) = sum_k z^k / (k + 1)!, or (order 1) its derivative.
    Complex series(int order) const {
        double factor = 1.0;
        for (int k = 2; k <= LAST + 1; ++k) factor /= k;  // 1 / (k + 1)! for k = LAST
        Complex sum{0.0, 0.0};
        for (int k = LAST; k >= order; --k) {
            sum = z * sum + Complex{order ? k * factor : factor, 0.0};
            factor *= k + 1;
        }
        return sum;
    }

    Complex phi_slope() const { return near() ? series(1) : (decay - phi) * inverse(z); }
    Complex weight() const { return step * (B * C * phi * images); }

private:
    static constexpr int LAST = 12;
};

// decay^b for b < 16; returns decay^16.
Complex fine_powers(Complex decay, Complex* powers) {
    powers[0] = {1.0, 0.0};
    powers[1] = decay;
    for (int b = 2; b < FINE; ++b) powers[b] = powers[b / 2] * powers[b - b / 2];
    return powers[FINE / 2] * powers[FINE / 2];
}

int whole(int points) { return (points + FINE - 1) / FINE * FINE; }

void sample_row(const Systems& all, std::int64_t row, float* kernel, float* sums) {
    const int length = whole(all.points);
    std::fill_n(sums, length, 0.0f);
    for (int n = 0; n < all.modes; ++n) {
        const Mode mode(all, row, n);
        Complex powers[FINE];
        const Complex coarse_step = fine_powers(mode.decay, powers);
        float re[FINE], im[FINE];
        for (int b = 0; b < FINE; ++b) {
            re[b] = static_cast<float>(powers[b].re);
            im[b] = static_cast<float>(powers[b].im);
        }
        Complex coarse = 2.0 * mode.weight();
        for (int first = 0; first < length; first += FINE, coarse = coarse * coarse_step) {
            const float c = static_cast<float>(coarse.re), s = static_cast<float>(coarse.im);
            float* to = sums + first;
#pragma omp simd
            for (int b = 0; b < FINE; ++b) to[b] += c * re[b] - s * im[b];
        }
    }
    std::copy_n(sums, all.points, kernel);
}

struct Gradients {
    float *log_damping, *frequency, *log_step, *B, *C;
};

void differentiate_row(const Systems& all, std::int64_t row, const float* grad, const Gradients& found, float* padded) {
    const int length = whole(all.points);
    std::fill_n(padded, length, 0.0f);
    std::copy_n(grad, all.points, padded);
    double step_sum = 0.0;
    for (int n = 0; n < all.modes; ++n) {
        const Mode mode(all, row, n);
        Complex powers[FINE];
        const Complex coarse_step = fine_powers(mode.decay, powers);
        // Sums over a of decay^(16 a) grad[16 a + b], plain and times a.
        float re[FINE] = {}, im[FINE] = {}, times_re[FINE] = {}, times_im[FINE] = {};
        Complex coarse{1.0, 0.0};
        for (int a = 0; a < length / FINE; ++a, coarse = coarse * coarse_step) {
            const float c = static_cast<float>(coarse.re), s = static_cast<float>(coarse.im);
            const float ac = static_cast<float>(a * coarse.re), as = static_cast<float>(a * coarse.im);
            const float* from = padded + a * FINE;
#pragma omp simd
            for (int b = 0; b < FINE; ++b) {
                re[b] += c * from[b];
                im[b] += s * from[b];
                times_re[b] += ac * from[b];
                times_im[b] += as * from[b];
            }
        }
        Complex plain{0.0, 0.0}, times{0.0, 0.0};  // sums over l of grad decay^l, and of l grad decay^l
        for (int b = 0; b < FINE; ++b) {
            const Complex here{re[b], im[b]}, further{times_re[b], times_im[b]};
            plain = plain + powers[b] * here;
            times = times + powers[b] * (b * here + FINE * further);
        }
        const Complex of_weight = 2.0 * conj(plain);
        const Complex both = mode.B * mode.C, factor = mode.phi * mode.images;
        const Complex of_both = mode.step * (of_weight * conj(factor));
        Complex slope = mode.phi_slope() * mode.images;  // of phi images
        if (all.circle) {
            const Complex growth = mode.images - Complex{1.0, 0.0};  // exp(points z) images
            slope = slope + mode.phi * (all.points * (growth * mode.images));
        }
        const Complex of_z = 2.0 * conj(mode.weight() * times) + mode.step * (of_weight * conj(both * slope));
        const Complex of_rate = mode.step * of_z;
        const double of_step = (of_weight * conj(both * factor)).re + (of_z * conj(mode.rate)).re;
        const std::int64_t at = row * all.modes + n;
        const Complex of_B = of_both * conj(mode.C), of_C = of_both * conj(mode.B);
        found.log_damping[at] = static_cast<float>(-of_rate.re * mode.damping);
        found.frequency[at] = static_cast<float>(-of_rate.im);
        found.B[2 * at] = static_cast<float>(of_B.re);
        found.B[2 * at + 1] = static_cast<float>(of_B.im);
        found.C[2 * at] = static_cast<float>(of_C.re);
        found.C[2 * at + 1] = static_cast<float>(of_C.im);
        step_sum += of_step * mode.step;
    }
    found.log_step[row] = static_cast<float>(step_sum);
}

template <typename Body>  // body(row, room for as many numbers as a kernel has, in whole vectors)
void over_rows(const Systems& all, int threads, Body body) {
    const double work = static_cast<double>(all.rows) * all.modes * whole(all.points);
    const int used = work < WORTH_A_THREAD ? 1 : static_cast<int>(std::min<std::int64_t>(threads, all.rows));
#pragma omp parallel for schedule(static) num_threads(used)
    for (std::int64_t row = 0; row < all.rows; ++row) body(row, scratch(whole(all.points)));
}

}  // namespace

extern "C" {

void sample_forward(const float* log_damping, const float* frequency, const float* log_step, const float* B,
                    const float* C, float* kernels, double spacing, std::int64_t rows, int modes, int points, int circle,
                    int threads) {
    const Systems all{log_damping, frequency, log_step, B, C, spacing, rows, modes, points, circle != 0};
    over_rows(all, threads, [&](std::int64_t row, float* room) { sample_row(all, row, kernels + row * points, room); });
}

void sample_backward(const float* log_damping, const float* frequency, const float* log_step, const float* B,
                     const float* C, const float* grad, float* of_log_damping, float* of_frequency, float* of_log_step,
                     float* of_B, float* of_C, double spacing, std::int64_t rows, int modes, int points, int circle,
                     int threads) {
    const Systems all{log_damping, frequency, log_step, B, C, spacing, rows, modes, points, circle != 0};
    const Gradients found{of_log_damping, of_frequency, of_log_step, of_B, of_C};
    over_rows(all, threads, [&](std::int64_t row, float* room) { differentiate_row(all, row, grad + row * points, found, room); });
}

}  // extern "C"
