#include "continuous/vectors.hpp"

#include <algorithm>
#include <array>

#include "core/simd.hpp"

namespace isthmus {

ISTHMUS_CLONES
void add_scaled(double* __restrict target, const double* __restrict row, double factor,
                std::size_t length) {
    for (std::size_t x = 0; x < length; ++x) target[x] += row[x] * factor;
}

ISTHMUS_CLONES
void add_scaled_rows(double* __restrict target, const double* const* __restrict rows,
                     const double* __restrict factors, std::size_t count, std::size_t length) {
    // Four rows at a time, so that the target passes through memory less often.
    std::size_t m = 0;
    for (; m + 4 <= count; m += 4) {
        const double* const r0 = rows[m];
        const double* const r1 = rows[m + 1];
        const double* const r2 = rows[m + 2];
        const double* const r3 = rows[m + 3];
        const double a0 = factors[m];
        const double a1 = factors[m + 1];
        const double a2 = factors[m + 2];
        const double a3 = factors[m + 3];
        for (std::size_t x = 0; x < length; ++x) {
            target[x] = (((target[x] + r0[x] * a0) + r1[x] * a1) + r2[x] * a2) + r3[x] * a3;
        }
    }
    for (; m < count; ++m) {
        const double* const row = rows[m];
        const double factor = factors[m];
        for (std::size_t x = 0; x < length; ++x) target[x] += row[x] * factor;
    }
}

void add_scaled_rows(double* target, const double* rows, std::size_t stride, const double* factors,
                     std::size_t count, std::size_t length) {
    std::array<const double*, 64> each;
    for (std::size_t done = 0; done < count; done += each.size()) {
        const std::size_t here = std::min(each.size(), count - done);
        for (std::size_t m = 0; m < here; ++m) each[m] = rows + (done + m) * stride;
        add_scaled_rows(target, each.data(), factors + done, here, length);
    }
}

ISTHMUS_CLONES
void add_scaled_where(double* __restrict target, const double* __restrict row, double factor,
                      const std::uint32_t* __restrict since, std::uint32_t now,
                      std::size_t length) {
    for (std::size_t x = 0; x < length; ++x) {
        target[x] += since[x] <= now ? row[x] * factor : 0.0;
    }
}

ISTHMUS_CLONES
void subtract_rows(double* __restrict target, const double* __restrict base, std::size_t stride,
                   std::size_t count, std::size_t length) {
    std::size_t m = 0;
    for (; m + 4 <= count; m += 4) {
        const double* const r0 = base + m * stride;
        const double* const r1 = r0 + stride;
        const double* const r2 = r1 + stride;
        const double* const r3 = r2 + stride;
        const double a0 = *r0;
        const double a1 = *r1;
        const double a2 = *r2;
        const double a3 = *r3;
        for (std::size_t x = 0; x < length; ++x) {
            target[x] = (((target[x] - a0 * r0[x]) - a1 * r1[x]) - a2 * r2[x]) - a3 * r3[x];
        }
    }
    for (; m < count; ++m) {
        const double* const row = base + m * stride;
        const double factor = *row;
        for (std::size_t x = 0; x < length; ++x) target[x] -= factor * row[x];
    }
}

ISTHMUS_CLONES
double dot(const double* a, const double* b, std::size_t length) {
    double part[8] = {};
    std::size_t x = 0;
    for (; x + 8 <= length; x += 8) {
        for (std::size_t l = 0; l < 8; ++l) part[l] += a[x + l] * b[x + l];
    }
    double sum = ((part[0] + part[1]) + (part[2] + part[3])) +
                 ((part[4] + part[5]) + (part[6] + part[7]));
    for (; x < length; ++x) sum += a[x] * b[x];
    return sum;
}

ISTHMUS_CLONES
void rotate_rows(double* __restrict a, double* __restrict b, double cosine, double sine,
                 std::size_t length) {
    for (std::size_t x = 0; x < length; ++x) {
        const double u = a[x];
        const double v = b[x];
        a[x] = cosine * u + sine * v;
        b[x] = cosine * v - sine * u;
    }
}

}  // namespace isthmus
