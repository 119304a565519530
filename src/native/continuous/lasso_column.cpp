#include "continuous/lasso_column.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "continuous/vectors.hpp"

namespace isthmus {

namespace {

constexpr int most_steps = 1000;
constexpr int most_halvings = 60;
/// How many weights may leave zero together.
constexpr int most_newcomers = 8;
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

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

double LassoColumn::worst_slope() {
    const double c = problem_.scale[child_];
    const auto target = problem_.moments.row(child_);
    const auto penalty = problem_.penalty.row(child_);
    slope_.resize(active_.size());
    double worst = 0.0;
    for (std::size_t a = 0; a < active_.size(); ++a) {
        const std::size_t i = active_[a];
        const double slope = c * (own_[a] - target[i]) + penalty[i] * sign_[a];
        slope_[a] = -slope;
        worst = std::max(worst, std::abs(slope));
    }
    return worst;
}

/// Lets the zero weights whose slope exceeds their penalty most become active. Returns false where
/// one of them depends on those that are active.
bool LassoColumn::enter() {
    const double c = problem_.scale[child_];
    const auto target = problem_.moments.row(child_);
    const auto penalty = problem_.penalty.row(child_);
    const std::size_t d = weights_.size();
    double worst = 0.0;
    for (std::size_t i = 0; i < d; ++i) {
        if (open_[i] != 0 && weights_[i] == 0.0) {
            worst = std::max(worst, std::abs(c * (product_[i] - target[i])) - penalty[i]);
        }
    }
    if (!(worst > problem_.tolerance)) return true;
    int room = one_by_one_ ? 1 : most_newcomers;
    const double least = one_by_one_ ? worst : 0.5 * worst;
    for (std::size_t i = 0; i < d && room > 0; ++i) {
        if (open_[i] == 0 || weights_[i] != 0.0) continue;
        const double slope = c * (product_[i] - target[i]);
        const double excess = std::abs(slope) - penalty[i];
        if (!(excess >= least)) continue;
        const auto row = problem_.moments.row(i);
        entries_.clear();
        for (const std::size_t b : active_) entries_.push_back(row[b]);
        entries_.push_back(row[i]);
        if (!factor_.append(entries_)) return false;
        active_.push_back(i);
        sign_.push_back(slope > 0.0 ? -1.0 : 1.0);
        own_.push_back(product_[i]);
        slope_.push_back(sign_.back() * excess);
        --room;
    }
    return true;
}

/// Takes a Newton step within the signs of the weights; returns whether that helped.
bool LassoColumn::advance() {
    const double c = problem_.scale[child_];
    const auto target = problem_.moments.row(child_);
    step_ = slope_;
    factor_.solve_lower(step_);
    factor_.solve_upper(step_);
    // What the step changes in S w: by its definition the right-hand side.
    along_.resize(slope_.size());
    for (std::size_t a = 0; a < slope_.size(); ++a) {
        step_[a] /= c;
        along_[a] = slope_[a] / c;
    }
    entering_ = active_.size() > settled_;
    double longest = 1.0;
    std::size_t hit = none;
    for (std::size_t a = 0; a < active_.size();) {
        const double w = weights_[active_[a]];
        if (step_[a] * sign_[a] <= 0.0) {
            if (w == 0.0) {
                // A newcomer that heads the wrong way.
                const auto row = problem_.moments.row(active_[a]);
                for (std::size_t b = 0; b < active_.size(); ++b) {
                    along_[b] -= row[active_[b]] * step_[a];
                }
                leave(a);
                take_away(step_, a);
                take_away(slope_, a);
                take_away(along_, a);
                continue;
            }
            if (step_[a] != 0.0 && -w / step_[a] < longest) {
                longest = -w / step_[a];
                hit = a;
            }
        }
        ++a;
    }
    const std::size_t k = active_.size();
    if (entering_ && k == settled_) {
        // Together the newcomers head the wrong way, but the worst alone cannot.
        entering_ = std::exchange(one_by_one_, true);
        return !entering_;
    }
    one_by_one_ = false;
    double linear = 0.0;
    double square = 0.0;
    for (std::size_t a = 0; a < k; ++a) {
        const std::size_t i = active_[a];
        linear += step_[a] * (c * (own_[a] - target[i]) + problem_.penalty.row(child_)[i] * sign_[a]);
        square += step_[a] * c * along_[a];
    }
    if (k == 0 || !(linear < 0.0)) return false;
    double length = longest;
    double fallen = value_;
    bool taken = false;
    for (int halving = 0; halving < most_halvings && !taken; ++halving) {
        fallen = value_ + length * linear + 0.5 * length * length * square;
        taken = fallen <= value_ + 1e-4 * length * linear;
        if (!taken) length *= 0.5;
    }
    if (!taken) return false;
    for (std::size_t a = 0; a < k; ++a) {
        const double before = weights_[active_[a]];
        const bool vanishes = a == hit && length == longest;
        const double after = vanishes ? 0.0 : before + length * step_[a];
        weights_[active_[a]] = after;
        change(active_[a], after - before);
        own_[a] += length * along_[a];
    }
    if (hit != none && length == longest) leave(hit);
    const bool still =
        hit == none && value_ - fallen <= 1e-15 * (std::abs(value_) + c * target[child_]);
    value_ = fallen;
    return !still;
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
