#pragma once

#include <cstddef>
#include <vector>

#include "continuous/lasso_column.hpp"
#include "continuous/upper_factor.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// An order of the variables with the lasso of each column on its predecessors.
class LassoOrder {
public:
    explicit LassoOrder(const LassoProblem& problem) : problem_{problem} {}

    /// Takes an order and any weights, [to, from]; the columns are not solved along it yet.
    void reset(std::vector<std::size_t> order, const Matrix<double>& weights);
    /// Replaces the order; the columns that care must be stored again.
    void reorder(std::vector<std::size_t> order);
    void store(std::size_t child, ColumnSolution solution);

    [[nodiscard]] const LassoProblem& problem() const { return problem_; }
    [[nodiscard]] std::size_t size() const { return order_.size(); }
    [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }
    [[nodiscard]] std::size_t place(std::size_t variable) const { return place_[variable]; }
    [[nodiscard]] const ColumnSolution& column(std::size_t child) const { return columns_[child]; }

    /// Whether a weight from `parent`, now zero, would lower the value of `child`.
    [[nodiscard]] bool wants(std::size_t child, std::size_t parent) const;
    /// Whether `child` would gain more than `worth` by another parent beside those it has.
    ///
    /// A test of one weight, without the penalty: much cheaper than to solve the column again.
    [[nodiscard]] bool promises(std::size_t child, std::size_t parent, double worth, Watch& watch);
    /// Estimates what `child` loses without one of its parents: exact if the others stay, none
    /// turns its sign and none is added.
    [[nodiscard]] double loss_without(std::size_t child, std::size_t parent, Watch& watch);

private:
    /// Sees that the factor of the parents' moments is there; returns whether there is one.
    [[nodiscard]] bool factorise(std::size_t child, Watch& watch);
    void make_room(std::size_t numbers);

    const LassoProblem& problem_;
    std::vector<std::size_t> order_;
    std::vector<std::size_t> place_;
    std::vector<ColumnSolution> columns_;
    std::vector<std::uint8_t> dependent_;  // columns whose parents depend on each other
    std::size_t kept_ = 0;                 // numbers in the factors of all columns
    UpperFactor factor_;
    std::size_t factoring_ = static_cast<std::size_t>(-1);  // column whose factor is under way
    std::vector<double> solved_;
};

}  // namespace isthmus
