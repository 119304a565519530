#pragma once

#include <cstddef>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"
#include "scoring/correlations.hpp"

namespace isthmus {

/// A Cholesky factor of the correlations of a list of columns, which grows row by row.
///
/// A row depends on the columns before it alone, so for another list the rows of the common
/// beginning stay. That also makes it possible to pause: the rows computed before are still there
/// when the same list is asked for again.
class GrowingFactor {
public:
    /// Computes the rows of `columns` that are not there yet, polling after each one.
    void extend_to(const Correlations& correlation, Variables columns, double tolerance,
                   Watch& watch);

    /// The share of column `i` that the columns before it do not explain, not below the tolerance.
    [[nodiscard]] double pivot(std::size_t i) const { return pivots_[i]; }
    [[nodiscard]] const std::vector<const double*>& rows() const { return rows_; }

private:
    std::vector<Variable> columns_;
    std::vector<double> pivots_;
    std::vector<std::vector<double>> values_;  // row i has room for i + 1 values
    std::vector<const double*> rows_;
};

}  // namespace isthmus
