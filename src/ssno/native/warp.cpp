// Fields read where displacements point to:  out[p] = sum over corners k of weight_k(p) values[corner_k(p)],
// multilinear interpolation of the values at p + displacement(p), in cells of the learned grid.
//
// On an axis whose points belong to `copies` interleaved learned grids, every point stays on its own. Indices wrap
// round a periodic axis, and end at the ends of others.
//
// Layout: values (p, b, head, channel), displacements (p, b, head, axis), p row by row over up to three axes. Forward,
// threads share the points; backward, they share the frames b, which never meet: equal runs give equal bits.

#include <type_traits>

#include "arithmetic.h"

namespace {

constexpr int MOST_AXES = 3;
constexpr float FARTHEST = 1e9f;  // cells; a displacement beyond is none

struct Grid {
    std::int64_t frames;
    int heads, channels;
    std::int64_t points[MOST_AXES], copies[MOST_AXES];
    int periodic[MOST_AXES];
    float cells[MOST_AXES];  // of an axis of one copy, for each unit of displacement

    std::int64_t positions(int axes) const {
        std::int64_t all = 1;
        for (int axis = 0; axis < axes; ++axis) all *= points[axis];
        return all;
    }
};

// The corners around one displaced point, and how far it lies between them along each axis.
template <int AXES>
struct Corners {
    std::int64_t place[1 << AXES];
    float part[AXES];

    // The weight of corner k; without the factor of one axis, and with its sign, the derivative along that axis.
    float weight(int k, int except = -1) const {
        float product = 1.0f;
        for (int axis = 0; axis < AXES; ++axis) {
            const bool far = k >> axis & 1;
            if (axis == except) product *= far ? 1.0f : -1.0f;
            else product *= far ? part[axis] : 1.0f - part[axis];
        }
        return product;
    }
};

// A point of the grid: which cell of which copy of the learned grid, along each axis.
template <int AXES>
struct Point {
    int cell[AXES], copy[AXES];

    Point(const Grid& grid, std::int64_t position) {
        for (int axis = AXES - 1; axis >= 0; --axis) {
            const std::int64_t index = position % grid.points[axis];
            cell[axis] = static_cast<int>(index / grid.copies[axis]);
            copy[axis] = static_cast<int>(index % grid.copies[axis]);
            position /= grid.points[axis];
        }
    }
};

inline int wrapped(int index, int cells) {
    if (index < -cells || index >= 2 * cells) index %= cells;  // seldom
    return index < 0 ? index + cells : index >= cells ? index - cells : index;
}

template <int AXES>
inline Corners<AXES> corners(const Grid& grid, const Point<AXES>& here, const float* displacement) {
    Corners<AXES> found;
    int near[AXES], far[AXES], step = 1;
    for (int axis = AXES - 1; axis >= 0; --axis) {
        const int points = static_cast<int>(grid.points[axis]), copies = static_cast<int>(grid.copies[axis]);
        const int cells = points / copies;
        const float moved = displacement[axis] * grid.cells[axis], whole = __builtin_floorf(moved);
        found.part[axis] = moved - whole;  // NaN for what is not finite, and so is the result
        const int jump = whole > -FARTHEST && whole < FARTHEST ? static_cast<int>(whole) : 0;
        int low = here.cell[axis] + jump, high = low + 1;
        if (grid.periodic[axis]) {
            low = wrapped(low, cells);
            high = low + 1 == cells ? 0 : low + 1;
        } else {
            low = std::min(std::max(low, 0), cells - 1);
            high = std::min(std::max(high, 0), cells - 1);
        }
        near[axis] = (low * copies + here.copy[axis]) * step;
        far[axis] = (high * copies + here.copy[axis]) * step;
        step *= points;
    }
    for (int k = 0; k < 1 << AXES; ++k) {
        found.place[k] = 0;
        for (int axis = 0; axis < AXES; ++axis) found.place[k] += k >> axis & 1 ? far[axis] : near[axis];
    }
    return found;
}

// WIDTH channels of a head, known to the compiler; 0: any number.
template <int AXES, int WIDTH>
void ahead(const Grid& grid, const float* values, const float* displacements, float* out, int threads) {
    const int width = WIDTH ? WIDTH : grid.channels;
    const std::int64_t row = static_cast<std::int64_t>(grid.heads) * width, positions = grid.positions(AXES);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t p = 0; p < positions; ++p) {
        const Point<AXES> here(grid, p);
        for (std::int64_t b = 0; b < grid.frames; ++b)
            for (int head = 0; head < grid.heads; ++head) {
                const std::int64_t one = (p * grid.frames + b) * grid.heads + head;
                const Corners<AXES> found = corners<AXES>(grid, here, displacements + one * AXES);
                float* to = out + one * width;
                for (int c = 0; c < width; ++c) to[c] = 0.0f;
                for (int k = 0; k < 1 << AXES; ++k) {
                    const float* from = values + (found.place[k] * grid.frames + b) * row + head * width;
                    const float weight = found.weight(k);
#pragma omp simd
                    for (int c = 0; c < width; ++c) to[c] += weight * from[c];
                }
            }
    }
}

template <int AXES, int WIDTH>
void back(const Grid& grid, const float* values, const float* displacements, const float* grad_out, float* grad_values,
          float* grad_displacements, int threads) {
    const int width = WIDTH ? WIDTH : grid.channels;
    const std::int64_t row = static_cast<std::int64_t>(grid.heads) * width, positions = grid.positions(AXES);
#pragma omp parallel num_threads(threads)
    {
#ifdef _OPENMP
        const std::int64_t thread = omp_get_thread_num(), all = omp_get_num_threads();
#else
        const std::int64_t thread = 0, all = 1;
#endif
        const std::int64_t first = grid.frames * thread / all, last = grid.frames * (thread + 1) / all;
        // One frame at a time, in memory of its own that fits a cache.
        std::vector<float> frame(positions * row), grad_frame(positions * row);
        for (std::int64_t b = first; b < last; ++b) {
            for (std::int64_t p = 0; p < positions; ++p)
                std::copy_n(values + (p * grid.frames + b) * row, row, frame.data() + p * row);
            std::fill(grad_frame.begin(), grad_frame.end(), 0.0f);
            for (std::int64_t p = 0; p < positions; ++p) {
                const Point<AXES> here(grid, p);
                for (int head = 0; head < grid.heads; ++head) {
                    const std::int64_t one = (p * grid.frames + b) * grid.heads + head;
                    const Corners<AXES> found = corners<AXES>(grid, here, displacements + one * AXES);
                    const float* given = grad_out + one * width;
                    float along[AXES] = {};
                    for (int k = 0; k < 1 << AXES; ++k) {
                        const std::int64_t place = found.place[k] * row + head * width;
                        const float* from = frame.data() + place;
                        float* to = grad_frame.data() + place;
                        const float weight = found.weight(k);
                        float product = 0.0f;
#pragma omp simd reduction(+ : product)
                        for (int c = 0; c < width; ++c) {
                            product += given[c] * from[c];
                            to[c] += weight * given[c];
                        }
                        for (int axis = 0; axis < AXES; ++axis) along[axis] += product * found.weight(k, axis);
                    }
                    for (int axis = 0; axis < AXES; ++axis)
                        grad_displacements[one * AXES + axis] = along[axis] * grid.cells[axis];
                }
            }
            for (std::int64_t p = 0; p < positions; ++p)
                std::copy_n(grad_frame.data() + p * row, row, grad_values + (p * grid.frames + b) * row);
        }
    }
}

Grid grid_of(std::int64_t frames, int axes, int heads, int channels, const std::int64_t* sizes, const float* cells) {
    Grid grid{frames, heads, channels, {}, {}, {}, {}};
    for (int axis = 0; axis < axes; ++axis) {
        grid.points[axis] = sizes[3 * axis];
        grid.copies[axis] = sizes[3 * axis + 1];
        grid.periodic[axis] = static_cast<int>(sizes[3 * axis + 2]);
        grid.cells[axis] = cells[axis];
    }
    return grid;
}

// Call `run` with the number of axes and the channels of a head as constants, where a loop gains by knowing them.
template <typename Run>
void with_constants(int axes, int channels, Run run) {
    using std::integral_constant;
    const auto with_axes = [&](auto known) {
        if (channels == 8) run(known, integral_constant<int, 8>());
        else if (channels == 16) run(known, integral_constant<int, 16>());
        else run(known, integral_constant<int, 0>());
    };
    if (axes == 1) with_axes(integral_constant<int, 1>());
    else if (axes == 2) with_axes(integral_constant<int, 2>());
    else with_axes(integral_constant<int, 3>());
}

}  // namespace

// sizes: points, copies and whether it is periodic, for each axis.
extern "C" void warp_forward(const float* values, const float* displacements, float* out, const std::int64_t* sizes,
                             const float* cells, std::int64_t frames, int axes, int heads, int channels, int threads) {
    const Grid grid = grid_of(frames, axes, heads, channels, sizes, cells);
    with_constants(axes, channels, [&](auto known, auto width) {
        ahead<known(), width()>(grid, values, displacements, out, threads);
    });
}

extern "C" void warp_backward(const float* values, const float* displacements, const float* grad_out,
                              float* grad_values, float* grad_displacements, const std::int64_t* sizes,
                              const float* cells, std::int64_t frames, int axes, int heads, int channels,
                              int threads) {
    const Grid grid = grid_of(frames, axes, heads, channels, sizes, cells);
    with_constants(axes, channels, [&](auto known, auto width) {
        back<known(), width()>(grid, values, displacements, grad_out, grad_values, grad_displacements, threads);
    });
}
