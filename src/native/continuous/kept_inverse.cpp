#include "continuous/kept_inverse.hpp"

#include <algorithm>
#include <array>

#include "continuous/vectors.hpp"

namespace isthmus {

KeptInverse::KeptInverse(std::size_t size)
    : columns_{size, size}, left_{most_pending, size}, right_{most_pending, size}, applied_(size) {
    for (std::size_t i = 0; i < size; ++i) columns_.row(i)[i] = 1.0;
}

void KeptInverse::set(const Matrix<double>& inverse) {
    for (std::size_t i = 0; i < applied_.size(); ++i) {
        for (std::size_t m = 0; m < applied_.size(); ++m) columns_.row(m)[i] = inverse.row(i)[m];
    }
    pending_ = 0;
    std::ranges::fill(applied_, 0U);
}

void KeptInverse::row(std::size_t index, std::span<double> target) const {
    for (std::size_t m = 0; m < target.size(); ++m) target[m] = columns_.row(m)[index];
    for (std::uint32_t k = 0; k < pending_; ++k) {
        add_scaled_where(target.data(), right_.row(k).data(), left_.row(k)[index], applied_.data(),
                         k, target.size());
    }
}

void KeptInverse::bring_up_to_date(std::size_t column) {
    const std::uint32_t first = applied_[column];
    std::array<double, most_pending> factors;
    for (std::uint32_t k = first; k < pending_; ++k) factors[k - first] = right_.row(k)[column];
    add_scaled_rows(columns_.row(column).data(), left_.row(first).data(), left_.columns(),
                    factors.data(), pending_ - first, columns_.columns());
    applied_[column] = pending_;
}

void KeptInverse::update(std::span<const std::size_t> rows, std::span<const double> changes,
                         std::span<const double> row, double shrink) {
    const std::size_t d = applied_.size();
    for (const std::size_t column : rows) bring_up_to_date(column);
    const auto left = left_.row(pending_);
    std::ranges::fill(left, 0.0);
    sources_.clear();
    for (const std::size_t column : rows) sources_.push_back(columns_.row(column).data());
    add_scaled_rows(left.data(), sources_.data(), changes.data(), sources_.size(), d);
    for (double& value : left) value *= shrink;
    std::ranges::copy(row, right_.row(pending_).begin());
    ++pending_;
    tidied_ = 0;
}

void KeptInverse::tidy(Watch& watch) {
    if (pending_ < most_pending) return;
    while (tidied_ < applied_.size()) {
        const std::size_t stop = std::min(tidied_ + 64, applied_.size());
        for (; tidied_ < stop; ++tidied_) bring_up_to_date(tidied_);
        watch.poll();
    }
    pending_ = 0;
    std::ranges::fill(applied_, 0U);
}

void KeptInverse::flush() {
    for (std::size_t column = 0; column < applied_.size(); ++column) bring_up_to_date(column);
    pending_ = 0;
    std::ranges::fill(applied_, 0U);
}

}  // namespace isthmus
