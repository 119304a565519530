#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace isthmus {

/// Correlations of columns, by rows: a matrix, or those of all rows of a table without some of them.
///
/// The second kind is for data of many regimes, where each child has correlations of its own. They
/// differ by few rows from those of the whole table, which all children share, and a score of one
/// child reads few rows of them, so each row is computed when it is first read.
class Correlations {
public:
    explicit Correlations(Matrix<double> matrix);

    /// `whole` are the correlations of the whole table, as large as the square of the columns, and
    /// must outlive this object. The products of `removed`, rows in units of the standard deviations
    /// of the whole table, are subtracted, and `spread` is the standard deviation of what is left.
    Correlations(const double* whole, Matrix<double> removed, std::vector<double> spread);

    [[nodiscard]] std::size_t columns() const { return columns_; }
    [[nodiscard]] std::span<const double> row(std::size_t i) const {
        const double* const known = rows_[i].load(std::memory_order_acquire);
        return {known != nullptr ? known : compute(i), columns_};
    }

private:
    [[nodiscard]] const double* compute(std::size_t i) const;

    struct Lazy {
        std::mutex mutex;
        std::vector<std::unique_ptr<double[]>> computed;
    };

    std::size_t columns_;
    Matrix<double> matrix_;  // all correlations, or the removed rows
    const double* whole_ = nullptr;
    std::vector<double> spread_;
    std::unique_ptr<std::atomic<const double*>[]> rows_;
    std::unique_ptr<Lazy> lazy_;
};

}  // namespace isthmus
