#include "continuous/lasso_column.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "continuous/column_limits.hpp"
#include "continuous/vectors.hpp"

namespace isthmus {

namespace {

void take_away(auto& values, std::size_t position) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(position));
}

}  // namespace

LassoColumn::LassoColumn(const LassoProblem& problem)
    : problem_{problem},
      open_(problem.variables()),
      weights_(problem.variables()),
      product_(problem.variables()),
      change_(problem.variables()),
      is_changed_(problem.variables()),
      solver_{problem.variables()} {}

void LassoColumn::clear(std::size_t child) {
    child_ = child;
    std::ranges::fill(open_, std::uint8_t{0});
    for (const std::size_t i : changed_) {
        change_[i] = 0.0;
        is_changed_[i] = 0;
    }
    changed_.clear();
    active_.clear();
    sign_.clear();
    own_.clear();
    factored_ = false;
    stage_ = Stage::loaded;
}

void LassoColumn::load(std::size_t child, const ColumnSolution& start) {
    clear(child);
    std::ranges::copy(start.weights, weights_.begin());
    std::ranges::copy(start.product, product_.begin());
    active_ = start.parents;
    for (const std::size_t i : active_) {
        open_[i] = 1;
        sign_.push_back(weights_[i] > 0.0 ? 1.0 : -1.0);
        own_.push_back(product_[i]);
    }
    if (start.factored) {
        factor_.load(start.factor, active_.size());
        factored_ = true;
    }
}

void LassoColumn::load(std::size_t child, std::span<const double> weights) {
    clear(child);
    std::ranges::copy(weights, weights_.begin());
    std::ranges::fill(product_, 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] == 0.0) continue;
        if (!(problem_.moments.row(i)[i] > 0.0)) {
            // A constant explains nothing.
            weights_[i] = 0.0;
            continue;
        }
        active_.push_back(i);
        open_[i] = 1;
        sign_.push_back(weights[i] > 0.0 ? 1.0 : -1.0);
        add_scaled(product_.data(), problem_.moments.row(i).data(), weights[i], weights.size());
    }
    for (const std::size_t i : active_) own_.push_back(product_[i]);
}

void LassoColumn::change(std::size_t variable, double by) {
    change_[variable] += by;
    if (std::exchange(is_changed_[variable], 1) == 0) changed_.push_back(variable);
}

bool LassoColumn::close(std::size_t parent) {
    open_[parent] = 0;
    if (weights_[parent] == 0.0) return false;
    const double weight = std::exchange(weights_[parent], 0.0);
    change(parent, -weight);
    const auto row = problem_.moments.row(parent);
    for (std::size_t a = 0; a < active_.size(); ++a) own_[a] -= row[active_[a]] * weight;
    leave(static_cast<std::size_t>(std::ranges::find(active_, parent) - active_.begin()));
    return true;
}

/// Takes an active variable, whose weight is zero, from the list and the factor.
void LassoColumn::leave(std::size_t position) {
    take_away(active_, position);
    take_away(sign_, position);
    take_away(own_, position);
    if (factored_) factor_.remove(position);
}

void LassoColumn::begin_factor() {
    const std::size_t k = active_.size();
    factor_.resize(k);
    for (std::size_t a = 0; a < k; ++a) {
        const auto row = problem_.moments.row(active_[a]);
        double* const line = factor_.row(a);
        for (std::size_t b = a; b < k; ++b) line[b - a] = row[active_[b]];
    }
}

/// Brings the whole product up to date.
void LassoColumn::refresh() {
    const std::size_t d = weights_.size();
    for (const std::size_t i : changed_) {
        add_scaled(product_.data(), problem_.moments.row(i).data(), change_[i], d);
        change_[i] = 0.0;
        is_changed_[i] = 0;
    }
    changed_.clear();
    for (std::size_t a = 0; a < active_.size(); ++a) own_[a] = product_[active_[a]];
}

double LassoColumn::current_value() const {
    const double c = problem_.scale[child_];
    const auto target = problem_.moments.row(child_);
    const auto penalty = problem_.penalty.row(child_);
    double value = 0.0;
    for (std::size_t a = 0; a < active_.size(); ++a) {
        const std::size_t i = active_[a];
        value += c * weights_[i] * (0.5 * own_[a] - target[i]) + penalty[i] * std::abs(weights_[i]);
    }
    return value;
}

double LassoColumn::solve(Watch& watch) {
    if (stage_ == Stage::loaded) {
        if (!factored_) begin_factor();
        stage_ = Stage::factoring;
    }
    if (stage_ == Stage::factoring) {
        factored_ = factored_ || factor_.factorise(watch);
        if (!factored_) {
            begin_general();
            return general(watch);
        }
        value_ = current_value();
        steps_ = 0;
        stalled_ = false;
        one_by_one_ = false;
        stage_ = Stage::solving;
    }
    if (stage_ == Stage::general) return general(watch);
    while (steps_ < most_steps) {
        ++steps_;
        double worst = worst_slope();
        settled_ = active_.size();
        if (worst <= problem_.tolerance || stalled_) {
            if (!changed_.empty()) {
                refresh();
                worst = worst_slope();
            }
            if (worst <= problem_.tolerance || stalled_) {
                if (!enter()) {
                    begin_general();
                    return general(watch);
                }
                if (active_.size() == settled_) break;
            }
        }
        const bool moved = advance();
        // Slopes are rounded in proportion to the variances: less may not be to be had. Then zero
        // weights still get their turn, unless it was theirs.
        if (!moved && (stalled_ || entering_)) break;
        stalled_ = !moved;
        watch.poll();
    }
    refresh();
    stage_ = Stage::loaded;
    return value_;
}

/// Hands over to the solver that needs no factor.
void LassoColumn::begin_general() {
    factored_ = false;
    solver_.begin({.moments = problem_.moments,
                   .child = child_,
                   .scale = problem_.scale[child_],
                   .penalty = problem_.penalty.row(child_),
                   .open = open_,
                   .barrier = 0.0,
                   .curb = {},
                   .tolerance = problem_.tolerance},
                  weights_);
    stage_ = Stage::general;
}

double LassoColumn::general(Watch& watch) {
    const double value = solver_.solve(watch);
    std::vector<double> weights = weights_;
    const std::vector<std::uint8_t> open = open_;
    std::vector<double> product{solver_.product().begin(), solver_.product().end()};
    clear(child_);
    open_ = open;
    weights_ = std::move(weights);
    product_ = std::move(product);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i] == 0.0) continue;
        active_.push_back(i);
        sign_.push_back(weights_[i] > 0.0 ? 1.0 : -1.0);
        own_.push_back(product_[i]);
    }
    value_ = value;
    return value;
}

void LassoColumn::renew_product() {
    std::ranges::fill(product_, 0.0);
    for (const std::size_t i : active_) {
        add_scaled(product_.data(), problem_.moments.row(i).data(), weights_[i], weights_.size());
    }
    for (std::size_t a = 0; a < active_.size(); ++a) own_[a] = product_[active_[a]];
}

ColumnSolution LassoColumn::solution() const {
    return {.weights = weights_,
            .product = product_,
            .value = value_,
            .parents = active_,
            .factor = factored_ ? factor_.packed() : std::vector<double>{},
            .factored = factored_};
}

}  // namespace isthmus
