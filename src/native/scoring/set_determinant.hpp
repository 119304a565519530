#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/watch.hpp"
#include "scoring/correlations.hpp"
#include "scoring/doubled_factor.hpp"
#include "scoring/gaussian_tile.hpp"

namespace isthmus {

/// The log determinant of the correlations of a set of columns, also where some columns are exact
/// linear combinations of others (totals and their parts, a code and its coarser version).
///
/// It depends on the set alone, not on the order of its columns. Therefore a score that is a
/// difference of two such values is the same for equivalent graphs.
///
/// For a set of full rank it is the log determinant. Otherwise it is
///
///     log pdet + log(tolerance) * (2 - 2^(1 - nullity))
///
/// where `pdet`, the product of the eigenvalues other than 0, is a smooth continuation of the
/// determinant. The first dependence in a set is worth `-log(tolerance)`, each further one half of
/// the one before. So a parent set that determines its child wins nothing by more parents: a
/// parent that is no combination of the others leaves the score of the fit as it is, and one that
/// is a combination lowers it.
class SetDeterminant {
public:
    SetDeterminant(const Correlations& correlation, double tolerance)
        : correlation_{correlation}, tolerance_{tolerance} {}

    /// Log-determinant contribution of `nullity` linear dependences.
    [[nodiscard]] static double worth(std::size_t nullity, double tolerance);

    /// `columns` may come in any order. Left by an exception of the watch, the same call goes on
    /// where it was left.
    [[nodiscard]] double log_of(Variables columns, Watch& watch);

private:
    bool add_row();
    void add_digits();
    [[nodiscard]] double log_of_combinations();

    const Correlations& correlation_;
    double tolerance_;
    std::vector<Variable> set_;     // ascending
    std::vector<Variable> sorted_;  // the set that is asked for
    std::vector<Variable> order_;   // of elimination
    bool started_ = false;
    bool finished_ = false;
    std::size_t rank_ = 0;
    double log_ = 0.0;
    std::vector<double> lower_;         // rows as long as the set
    std::vector<double> left_;          // what the factor does not explain yet of each column
    DoubledFactor more_digits_;
    std::vector<double> combinations_;  // coefficients of the dependent columns, a row for each
};

/// Tells whether any column of a set is nearly determined by the others.
///
/// The share of its variance that each column keeps, given all others, does not depend on an order,
/// and no pivot of any order is smaller. Where the least share is well above the tolerance, a factor
/// in any order therefore gives the determinant.
class LeastShare {
public:
    /// How small the least share may be, also in sets of many columns.
    [[nodiscard]] static double wanted(double tolerance, std::size_t size);

    /// Starts with a bound that costs nothing: the product of all pivots, which are not below
    /// `smallest`.
    void start(double product, double smallest, double wanted_share);
    /// Computes the share itself, if the bound was too low, from the rows of a Cholesky factor.
    void compute(std::span<const double* const> lower);

    [[nodiscard]] bool is_computed() const { return computed_; }
    [[nodiscard]] bool is_at_least(double share) const { return bound_ >= share; }
    [[nodiscard]] bool is_enough() const { return bound_ >= wanted_; }
    /// Whether it is still enough with one more column of which `left` is left, by a bound.
    [[nodiscard]] bool is_enough_with(double left) const { return bound_ * left >= wanted_; }
    /// The least share of the set with each column of a tile, once computed, from the rows of these
    /// below the factor and what is left of them.
    [[nodiscard]] Tile least_with(std::span<const Tile> rows, const Tile& left) const;
    [[nodiscard]] bool is_enough(double share) const { return share >= wanted_; }
    /// The share that column `j` keeps, once computed.
    [[nodiscard]] double share(std::size_t j) const { return 1.0 / diagonal_[j]; }
    /// The share that column `j` keeps given all others but the last, once computed.
    [[nodiscard]] double share_before_last(std::size_t j) const;
    /// The coefficients of that column's regression on the set, once computed.
    void regress(std::span<const double> row, std::span<double> coefficients) const;

private:
    [[nodiscard]] double at(std::size_t i, std::size_t j) const {
        return inverse_[j / tile_width * size_ + i].value[j % tile_width];
    }
    [[nodiscard]] double squares(std::size_t j, std::size_t end) const;

    double bound_ = 0.0;
    double wanted_ = 0.0;
    bool computed_ = false;
    std::vector<Tile> inverse_;    // of the factor, as `invert_factor` writes it
    std::vector<double> diagonal_;  // of the inverse of the set's correlations
    std::size_t size_ = 0;          // of the set
};

}  // namespace isthmus
