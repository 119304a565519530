#include "continuous/upper_factor.hpp"

#include <algorithm>
#include <cmath>

#include "continuous/vectors.hpp"

namespace isthmus {

namespace {

constexpr double dependent = 1e-10;
constexpr double least_pivot = 1e-300;

}  // namespace

void UpperFactor::reserve(std::size_t size) {
    if (size <= stride_) return;
    // Rows as long as needed, not as long as there are variables: they stay close to each other.
    // Not a power of two, or the entries of a column would compete for the same cache lines.
    const std::size_t stride = std::max<std::size_t>(24, (2 * size + 7) / 8 * 8 + 8);
    std::vector<double> values(stride * stride);
    for (std::size_t i = 0; i < size_; ++i) {
        std::copy_n(row(i), size_ - i, values.data() + i * stride + i);
    }
    values_ = std::move(values);
    stride_ = stride;
}

void UpperFactor::resize(std::size_t size) {
    reserve(size);
    size_ = size;
    next_ = 0;
}

bool UpperFactor::factorise(Watch& watch) {
    for (; next_ < size_;) {
        const std::size_t i = next_;
        double* const own = row(i);
        const double floor = dependent * own[0] + least_pivot;
        subtract_rows(own, values_.data() + i, stride_, i, size_ - i);
        if (!(own[0] > floor)) return false;
        const double root = std::sqrt(own[0]);
        own[0] = root;
        for (std::size_t x = 1; x < size_ - i; ++x) own[x] /= root;
        ++next_;
        // A row costs i (k - i): small systems need no look at the clock between rows.
        if (size_ > 64) watch.poll();
    }
    return true;
}

bool UpperFactor::append(std::span<const double> entries) {
    column_.assign(entries.begin(), entries.end() - 1);
    solve_lower(column_);
    return append_solved(column_, entries.back());
}

bool UpperFactor::append_solved(std::span<const double> column, double diagonal) {
    double pivot = diagonal;
    for (const double z : column) pivot -= z * z;
    if (!(pivot > dependent * diagonal + least_pivot)) return false;
    reserve(size_ + 1);
    for (std::size_t i = 0; i < size_; ++i) row(i)[size_ - i] = column[i];
    ++size_;
    row(size_ - 1)[0] = std::sqrt(pivot);
    return true;
}

void UpperFactor::remove(std::size_t position) { remove(position, {}); }

void UpperFactor::remove(std::size_t position, std::span<double> solved) {
    // Without the column the rows below reach one entry to the left of the diagonal; rotations of
    // neighbouring rows bring that entry to zero, one after the other.
    for (std::size_t i = 0; i < position; ++i) {
        double* const own = row(i) + (position - i);
        std::copy(own + 1, own + (size_ - position), own);
    }
    for (std::size_t i = position; i + 1 < size_; ++i) {
        double* const upper = row(i) + 1;
        double* const lower = row(i + 1);
        const double length = std::hypot(upper[0], lower[0]);
        const double cosine = upper[0] / length;
        const double sine = lower[0] / length;
        rotate_rows(upper, lower, cosine, sine, size_ - i - 1);
        upper[0] = length;
        std::copy(upper, upper + (size_ - i - 1), upper - 1);
        if (!solved.empty()) {
            const double a = solved[i];
            const double b = solved[i + 1];
            solved[i] = cosine * a + sine * b;
            solved[i + 1] = cosine * b - sine * a;
        }
    }
    --size_;
}

std::vector<double> UpperFactor::packed() const {
    std::vector<double> values;
    values.reserve(size_ * (size_ + 1) / 2);
    for (std::size_t i = 0; i < size_; ++i) values.insert(values.end(), row(i), row(i) + size_ - i);
    return values;
}

void UpperFactor::load(std::span<const double> packed, std::size_t size) {
    resize(size);
    next_ = size;
    const double* from = packed.data();
    for (std::size_t i = 0; i < size; ++i) {
        std::copy_n(from, size - i, row(i));
        from += size - i;
    }
}

void UpperFactor::solve_lower(std::span<double> x) const {
    for (std::size_t i = 0; i < size_; ++i) {
        const double* const own = row(i);
        x[i] /= own[0];
        add_scaled(x.data() + i + 1, own + 1, -x[i], size_ - i - 1);
    }
}

void UpperFactor::solve_upper(std::span<double> x) const {
    for (std::size_t i = size_; i-- > 0;) {
        const double* const own = row(i);
        x[i] = (x[i] - dot(own + 1, x.data() + i + 1, size_ - i - 1)) / own[0];
    }
}

}  // namespace isthmus
