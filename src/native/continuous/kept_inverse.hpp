#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// The inverse of r I - V under changes of single columns of V.
///
/// Each change is an update of rank one. A column of the inverse is brought up to date when it is
/// read: then several updates pass over it at once, and not all columns through memory every time.
class KeptInverse {
public:
    /// The identity, until it is replaced.
    explicit KeptInverse(std::size_t size);

    /// Replaces it, row by row.
    void set(const Matrix<double>& inverse);
    /// Copies row `index`.
    void row(std::size_t index, std::span<double> target) const;
    /// Takes up a change of column `column` of V, in these rows. `row` is that row of the inverse,
    /// as it is before.
    void update(std::span<const std::size_t> rows, std::span<const double> changes,
                std::span<const double> row, double shrink);
    /// Brings columns up to date where many updates wait. Call it after each update; it resumes
    /// after a pause.
    void tidy(Watch& watch);
    /// Brings everything up to date.
    void flush();
    /// Column of the inverse; up to date after `flush`.
    [[nodiscard]] std::span<const double> column(std::size_t index) const {
        return columns_.row(index);
    }

private:
    static constexpr std::uint32_t most_pending = 32;

    void bring_up_to_date(std::size_t column);

    Matrix<double> columns_;
    // Update k adds left_k[i] * right_k[m] to the entry in row i and column m.
    Matrix<double> left_;
    Matrix<double> right_;
    std::uint32_t pending_ = 0;
    std::vector<std::uint32_t> applied_;  // of the pending updates, to each column
    std::size_t tidied_ = 0;
    std::vector<const double*> sources_;
};

}  // namespace isthmus
