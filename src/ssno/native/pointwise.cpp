// The two pointwise stages of the network, fused so that intermediate results never leave the cache.
//
//   gate    out = copies * residual + sum_d (a_d + p_d) sigmoid(b_d + q_d),   (a_d; b_d) = W_d gelu(y_d)
//   product out = copies * residual + (a + p) tanh(b + q),            (a; b) = W y: a gate without GELU, one direction
//   product out = copies * residual + sum_d (a_d + p_d) tanh(b_d + q_d),      (a_d; b_d) = W_d y_d
//   head    out = W2 gelu(W1 x + b1) + b2
//
// Positions are independent, so each thread walks over blocks of them: activation, matrix product, activation, all on
// one block. Backward passes keep nothing but their inputs: they compute the activations again, block by block, and sum
// the gradients of weights per thread, threads in order, so that equal runs give equal bits.
//
// Features are (channel, position) with positions contiguous. Matrices are row-major.

#include "blocks.h"

namespace {

constexpr int BLOCK = 512;  // positions per block: a block of 64 channels is 128 KiB

// Add the threads' parts, in order, to `total`.
void add_parts(const std::vector<float>& parts, int threads, std::int64_t size, float* total) {
    for (int thread = 0; thread < threads; ++thread)
        for (std::int64_t i = 0; i < size; ++i) total[i] += parts[thread * size + i];
}

// What a gate multiplies by: a sigmoid, or in a product of two maps a hyperbolic tangent.
template <bool PRODUCT>
inline float opened(float x) {
    return PRODUCT ? 2.0f * sigmoid(2.0f * x) - 1.0f : sigmoid(x);
}

// y: (h, d, p); weight (d, 2h, h); bias (d, 2h); residual and out: (h, p), residual may be null.
template <bool PRODUCT>
void gate_ahead(const float* y, const float* weight, const float* bias, const float* residual, float copies, float* out,
                  int channels, int directions, std::int64_t positions, int threads) {
    const int h = channels;
    over(Blocks(positions, threads, BLOCK), [&](std::int64_t first, int count, int) {
        float* active = scratch(static_cast<std::int64_t>(3) * h * BLOCK);
        float* mixed = active + static_cast<std::int64_t>(h) * BLOCK;
        for (int d = 0; d < directions; ++d) {
            for (int c = 0; c < h; ++c) {
                const float* in = y + (static_cast<std::int64_t>(c) * directions + d) * positions + first;
                float* to = active + c * BLOCK;
#pragma omp simd
                for (int p = 0; p < count; ++p) to[p] = PRODUCT ? in[p] : gelu(in[p]);
            }
            gemm(false, false, 2 * h, count, h, weight + static_cast<std::int64_t>(d) * 2 * h * h, h, active, BLOCK,
                 0.0f, mixed, BLOCK);
            for (int c = 0; c < h; ++c) {
                const float* value = mixed + c * BLOCK;
                const float* gate = mixed + (h + c) * BLOCK;
                const float value_bias = bias[d * 2 * h + c], gate_bias = bias[d * 2 * h + h + c];
                float* to = out + c * positions + first;
                if (d > 0) {
#pragma omp simd
                    for (int p = 0; p < count; ++p) to[p] += (value[p] + value_bias) * opened<PRODUCT>(gate[p] + gate_bias);
                } else if (residual != nullptr) {
                    const float* from = residual + c * positions + first;
#pragma omp simd
                    for (int p = 0; p < count; ++p)
                        to[p] = copies * from[p] + (value[p] + value_bias) * opened<PRODUCT>(gate[p] + gate_bias);
                } else {
#pragma omp simd
                    for (int p = 0; p < count; ++p) to[p] = (value[p] + value_bias) * opened<PRODUCT>(gate[p] + gate_bias);
                }
            }
        }
    });
}

// Writes grad_y; grad_weight and grad_bias are added to.
template <bool PRODUCT>
void gate_back(const float* y, const float* weight, const float* bias, const float* grad_out, float* grad_y,
                   float* grad_weight, float* grad_bias, int channels, int directions, std::int64_t positions,
                   int threads) {
    const int h = channels;
    const Blocks blocks(positions, threads, BLOCK);
    const std::int64_t weights = static_cast<std::int64_t>(directions) * 2 * h * h, biases = directions * 2 * h;
    std::vector<float> weight_parts(blocks.threads * weights), bias_parts(blocks.threads * biases);
    over(blocks, [&](std::int64_t first, int count, int thread) {
        float* active = scratch(static_cast<std::int64_t>(4) * h * BLOCK);
        float* slope = active + static_cast<std::int64_t>(h) * BLOCK;
        float* mixed = slope + static_cast<std::int64_t>(h) * BLOCK;
        for (int d = 0; d < directions; ++d) {
            const float* w = weight + static_cast<std::int64_t>(d) * 2 * h * h;
            float* w_part = weight_parts.data() + thread * weights + static_cast<std::int64_t>(d) * 2 * h * h;
            float* b_part = bias_parts.data() + thread * biases + d * 2 * h;
            for (int c = 0; c < h; ++c) {
                const float* in = y + (static_cast<std::int64_t>(c) * directions + d) * positions + first;
                float* to = active + c * BLOCK;
                float* to_slope = slope + c * BLOCK;
#pragma omp simd
                for (int p = 0; p < count; ++p) {
                    if (PRODUCT)
                        to[p] = in[p], to_slope[p] = 1.0f;
                    else
                        gelu_both(in[p], to[p], to_slope[p]);
                }
            }
            gemm(false, false, 2 * h, count, h, w, h, active, BLOCK, 0.0f, mixed, BLOCK);
            for (int c = 0; c < h; ++c) {  // gradients of value and gate take their places
                float* value = mixed + c * BLOCK;
                float* gate = mixed + (h + c) * BLOCK;
                const float value_bias = bias[d * 2 * h + c], gate_bias = bias[d * 2 * h + h + c];
                const float* from = grad_out + c * positions + first;
                float value_sum = 0.0f, gate_sum = 0.0f;
#pragma omp simd reduction(+ : value_sum, gate_sum)
                for (int p = 0; p < count; ++p) {
                    const float s = opened<PRODUCT>(gate[p] + gate_bias);
                    const float of_value = from[p] * s;
                    const float of_gate = (PRODUCT ? from[p] - of_value * s : of_value * (1.0f - s)) * (value[p] + value_bias);
                    value[p] = of_value;
                    gate[p] = of_gate;
                    value_sum += of_value;
                    gate_sum += of_gate;
                }
                b_part[c] += value_sum;
                b_part[h + c] += gate_sum;
            }
            gemm(false, true, 2 * h, h, count, mixed, BLOCK, active, BLOCK, 1.0f, w_part, h);
            gemm(true, false, h, count, 2 * h, w, h, mixed, BLOCK, 0.0f, active, BLOCK);
            for (int c = 0; c < h; ++c) {
                const float* by = active + c * BLOCK;
                const float* with = slope + c * BLOCK;
                float* to = grad_y + (static_cast<std::int64_t>(c) * directions + d) * positions + first;
#pragma omp simd
                for (int p = 0; p < count; ++p) to[p] = by[p] * with[p];
            }
        }
    });
    add_parts(weight_parts, blocks.threads, weights, grad_weight);
    add_parts(bias_parts, blocks.threads, biases, grad_bias);
}

}  // namespace

extern "C" {

void gate_forward(const float* y, const float* weight, const float* bias, const float* residual, float copies, float* out,
                  int channels, int directions, int product, std::int64_t positions, int threads) {
    (product ? gate_ahead<true> : gate_ahead<false>)(y, weight, bias, residual, copies, out, channels, directions,
                                                     positions, threads);
}

void gate_backward(const float* y, const float* weight, const float* bias, const float* grad_out, float* grad_y,
                   float* grad_weight, float* grad_bias, int channels, int directions, int product,
                   std::int64_t positions, int threads) {
    (product ? gate_back<true> : gate_back<false>)(y, weight, bias, grad_out, grad_y, grad_weight, grad_bias, channels,
                                                   directions, positions, threads);
}

// x: (h, p); W1 (wide, h), b1; W2 (fields, wide), b2; out: (fields, p).
void head_forward(const float* x, const float* w1, const float* b1, const float* w2, const float* b2, float* out,
                  int channels, int wide, int fields, std::int64_t positions, int threads) {
    over(Blocks(positions, threads, BLOCK), [&](std::int64_t first, int count, int) {
        float* hidden = scratch(static_cast<std::int64_t>(wide) * BLOCK);
        gemm(false, false, wide, count, channels, w1, channels, x + first, static_cast<int>(positions), 0.0f, hidden,
             BLOCK);
        for (int c = 0; c < wide; ++c) {
            float* row = hidden + c * BLOCK;
            const float bias = b1[c];
#pragma omp simd
            for (int p = 0; p < count; ++p) row[p] = gelu(row[p] + bias);
        }
        for (int f = 0; f < fields; ++f) std::fill_n(out + f * positions + first, count, b2[f]);
        gemm(false, false, fields, count, wide, w2, wide, hidden, BLOCK, 1.0f, out + first, static_cast<int>(positions));
    });
}

// Writes grad_x; the gradients of weights and biases are added to.
void head_backward(const float* x, const float* w1, const float* b1, const float* w2, const float* grad_out,
                   float* grad_x, float* grad_w1, float* grad_b1, float* grad_w2, float* grad_b2, int channels, int wide,
                   int fields, std::int64_t positions, int threads) {
    const Blocks blocks(positions, threads, BLOCK);
    const std::int64_t size1 = static_cast<std::int64_t>(wide) * channels, size2 = static_cast<std::int64_t>(fields) * wide;
    std::vector<float> parts1(blocks.threads * size1), parts2(blocks.threads * size2);
    std::vector<float> bias1(blocks.threads * wide), bias2(blocks.threads * fields);
    const int stride = static_cast<int>(positions);
    over(blocks, [&](std::int64_t first, int count, int thread) {
        float* active = scratch(static_cast<std::int64_t>(2) * wide * BLOCK);
        float* slope = active + static_cast<std::int64_t>(wide) * BLOCK;
        gemm(false, false, wide, count, channels, w1, channels, x + first, stride, 0.0f, active, BLOCK);
        for (int c = 0; c < wide; ++c) {
            float* row = active + c * BLOCK;
            float* to = slope + c * BLOCK;
            const float bias = b1[c];
#pragma omp simd
            for (int p = 0; p < count; ++p) gelu_both(row[p] + bias, row[p], to[p]);
        }
        for (int f = 0; f < fields; ++f) {
            const float* row = grad_out + f * positions + first;
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int p = 0; p < count; ++p) sum += row[p];
            bias2[thread * fields + f] += sum;
        }
        gemm(false, true, fields, wide, count, grad_out + first, stride, active, BLOCK, 1.0f,
             parts2.data() + thread * size2, wide);
        gemm(true, false, wide, count, fields, w2, wide, grad_out + first, stride, 0.0f, active, BLOCK);
        for (int c = 0; c < wide; ++c) {
            float* row = active + c * BLOCK;
            const float* with = slope + c * BLOCK;
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int p = 0; p < count; ++p) {
                row[p] *= with[p];
                sum += row[p];
            }
            bias1[thread * wide + c] += sum;
        }
        gemm(false, true, wide, channels, count, active, BLOCK, x + first, stride, 1.0f, parts1.data() + thread * size1,
             channels);
        gemm(true, false, channels, count, wide, w1, channels, active, BLOCK, 0.0f, grad_x + first, stride);
    });
    add_parts(parts1, blocks.threads, size1, grad_w1);
    add_parts(parts2, blocks.threads, size2, grad_w2);
    add_parts(bias1, blocks.threads, wide, grad_b1);
    add_parts(bias2, blocks.threads, fields, grad_b2);
}

}  // extern "C"
