#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "core/doubled.hpp"
#include "core/types.hpp"
#include "scoring/correlations.hpp"

namespace isthmus {

/// A Cholesky factor of the correlations of a few columns, with twice the digits.
///
/// Where columns nearly determine each other, the pivots of an ordinary factor have few digits left,
/// and others in another order of the columns. Those of this one are exact to the last digits of a
/// double as long as they are above 1e-14 or so, so the order does not matter.
class DoubledFactor {
public:
    /// Sets of more columns take too long to be factored at once.
    static constexpr std::size_t most_columns = 128;
    /// Columns are tried so many at a time.
    static constexpr std::size_t width = 8;

    /// Returns false if some pivot is not above `least`; the factor is then of no use.
    [[nodiscard]] bool factor(const Correlations& correlation, Variables columns, double least);

    [[nodiscard]] double pivot(std::size_t i) const { return pivots_[i]; }
    /// The rows of the factor, rounded.
    [[nodiscard]] std::span<const double* const> rows() const { return rows_; }

    /// What is left of one more column.
    struct Left {
        double before_last;  // given all columns but the last one
        double last;         // of the last column, given all and this one
        double own;          // given all columns
    };

    /// Puts columns below the factor, up to `width` of them.
    void try_columns(const Correlations& correlation, Variables tried, std::span<Left> out);
    /// The rows of the columns that were tried last, rounded: by column of the factor, then by lane.
    [[nodiscard]] std::span<const double, width> tried_rows(std::size_t i) const {
        return solved_[i].high;
    }

private:
    struct alignas(64) Lanes {
        std::array<double, width> high;
        std::array<double, width> low;
    };

    std::vector<Variable> columns_;
    std::vector<Doubled> lower_;     // rows as long as the set
    std::vector<Lanes> blocks_;      // the same, `width` rows at a time, by columns
    std::vector<Doubled> inverses_;  // of the diagonal
    std::vector<double> pivots_;
    std::vector<double> rounded_;
    std::vector<const double*> rows_;
    std::vector<Lanes> solved_;

    static void subtract(std::span<const Doubled> factors, const Lanes* earlier, Lanes& own);
    static void scale(Doubled factor, Lanes& own);
};

}  // namespace isthmus
