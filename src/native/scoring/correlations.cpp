#include "scoring/correlations.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace isthmus {

Correlations::Correlations(Matrix<double> matrix)
    : columns_{matrix.columns()},
      matrix_{std::move(matrix)},
      rows_{std::make_unique<std::atomic<const double*>[]>(columns_)} {
    if (matrix_.rows() != columns_) throw std::invalid_argument{"the correlation is not square"};
    for (std::size_t i = 0; i < columns_; ++i) rows_[i].store(std::as_const(matrix_).row(i).data());
}

Correlations::Correlations(const double* whole, Matrix<double> removed, std::vector<double> spread)
    : columns_{spread.size()},
      matrix_{std::move(removed)},
      whole_{whole},
      spread_{std::move(spread)},
      rows_{std::make_unique<std::atomic<const double*>[]>(columns_)},
      lazy_{std::make_unique<Lazy>()} {
    if (matrix_.columns() != columns_) {
        throw std::invalid_argument{"removed rows need one value for each variable"};
    }
    const auto is_positive = [](double value) { return value > 0.0; };  // also rules NaN out
    if (!std::ranges::all_of(spread_, is_positive)) {
        throw std::invalid_argument{"the spread must be positive"};
    }
}

const double* Correlations::compute(std::size_t i) const {
    const std::scoped_lock lock{lazy_->mutex};
    if (const double* const known = rows_[i].load(std::memory_order_relaxed)) return known;
    auto row = std::make_unique<double[]>(columns_);
    std::copy_n(whole_ + i * columns_, columns_, row.get());
    // The terms of a pair of columns are the same in both of its rows, and in the same order, so
    // the correlations are exactly symmetric.
    for (std::size_t t = 0; t < matrix_.rows(); ++t) {
        const double* const removed = matrix_.row(t).data();
        const double own = removed[i];
        for (std::size_t j = 0; j < columns_; ++j) row[j] -= own * removed[j];
    }
    for (std::size_t j = 0; j < columns_; ++j) {
        row[j] = std::clamp(row[j] / (spread_[i] * spread_[j]), -1.0, 1.0);
    }
    row[i] = 1.0;
    const double* const known = row.get();
    lazy_->computed.push_back(std::move(row));
    rows_[i].store(known, std::memory_order_release);
    return known;
}

}  // namespace isthmus
