#include "continuous/lasso_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "continuous/vectors.hpp"

namespace isthmus {

namespace {

/// Maximum number of elements of Cholesky factors in memory: half a gigabyte.
constexpr std::size_t most_kept = std::size_t{1} << 26;
constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

}  // namespace

void LassoOrder::reset(std::vector<std::size_t> order, const Matrix<double>& weights) {
    const std::size_t d = order.size();
    columns_.assign(d, {});
    dependent_.assign(d, 0);
    place_.resize(d);
    kept_ = 0;
    factoring_ = nobody;
    for (std::size_t j = 0; j < d; ++j) {
        const auto row = weights.row(j);
        columns_[j].weights.assign(row.begin(), row.end());
    }
    reorder(std::move(order));
}

void LassoOrder::reorder(std::vector<std::size_t> order) {
    order_ = std::move(order);
    for (std::size_t p = 0; p < order_.size(); ++p) place_[order_[p]] = p;
}

void LassoOrder::store(std::size_t child, ColumnSolution solution) {
    kept_ -= columns_[child].factor.size();
    make_room(solution.factor.size());
    kept_ += solution.factor.size();
    columns_[child] = std::move(solution);
    dependent_[child] = 0;
    if (factoring_ == child) factoring_ = nobody;
}

void LassoOrder::make_room(std::size_t numbers) {
    if (kept_ + numbers <= most_kept) return;
    for (ColumnSolution& column : columns_) {
        column.factor = {};
        column.factored = false;
    }
    kept_ = 0;
}

bool LassoOrder::wants(std::size_t child, std::size_t parent) const {
    if (problem_.open.row(child)[parent] == 0) return false;
    const double slope = problem_.scale[child] * (problem_.moments.row(child)[parent] -
                                                  columns_[child].product[parent]);
    return std::abs(slope) - problem_.penalty.row(child)[parent] > problem_.tolerance;
}

bool LassoOrder::factorise(std::size_t child, Watch& watch) {
    ColumnSolution& column = columns_[child];
    if (column.factored) return true;
    if (dependent_[child] != 0) return false;
    const std::size_t k = column.parents.size();
    if (factoring_ != child) {
        factor_.resize(k);
        for (std::size_t a = 0; a < k; ++a) {
            const auto row = problem_.moments.row(column.parents[a]);
            for (std::size_t b = a; b < k; ++b) factor_.row(a)[b - a] = row[column.parents[b]];
        }
        factoring_ = child;
    }
    const bool done = factor_.factorise(watch);
    factoring_ = nobody;
    if (!done) {
        dependent_[child] = 1;
        return false;
    }
    auto packed = factor_.packed();
    make_room(packed.size());
    kept_ += packed.size();
    column.factor = std::move(packed);
    column.factored = true;
    return true;
}

bool LassoOrder::promises(std::size_t child, std::size_t parent, double worth, Watch& watch) {
    if (!factorise(child, watch)) return true;
    const ColumnSolution& column = columns_[child];
    const double c = problem_.scale[child];
    const double slope =
        c * (problem_.moments.row(child)[parent] - column.product[parent]);
    const auto row = problem_.moments.row(parent);
    double left = row[parent];
    const double floor = 1e-10 * left;
    const double explains = slope * slope;
    const double price = 2.0 * worth * c;
    const std::size_t k = column.parents.size();
    solved_.resize(k);
    for (std::size_t a = 0; a < k; ++a) solved_[a] = row[column.parents[a]];
    const double* line = column.factor.data();
    for (std::size_t a = 0; a < k; ++a) {
        // What is left of the variance only falls: the answer may be known early.
        if (explains > price * std::max(left, floor)) return true;
        const double z = solved_[a] / line[0];
        add_scaled(solved_.data() + a + 1, line + 1, -z, k - a - 1);
        left -= z * z;
        line += k - a;
    }
    return explains > price * std::max(left, floor);
}

double LassoOrder::loss_without(std::size_t child, std::size_t parent, Watch& watch) {
    if (!factorise(child, watch)) return std::numeric_limits<double>::infinity();
    const ColumnSolution& column = columns_[child];
    const std::size_t k = column.parents.size();
    const auto which = static_cast<std::size_t>(std::ranges::find(column.parents, parent) -
                                                column.parents.begin());
    // The diagonal entry of the inverse: the squared norm of a column of the factor's inverse.
    solved_.assign(k, 0.0);
    solved_[which] = 1.0;
    const double* line = column.factor.data() + which * (2 * k - which + 1) / 2;
    double norm = 0.0;
    for (std::size_t a = which; a < k; ++a) {
        const double z = solved_[a] / line[0];
        add_scaled(solved_.data() + a + 1, line + 1, -z, k - a - 1);
        norm += z * z;
        line += k - a;
    }
    const double weight = column.weights[parent];
    return 0.5 * problem_.scale[child] * weight * weight / norm;
}

}  // namespace isthmus
