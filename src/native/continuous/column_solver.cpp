#include "continuous/column_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "continuous/column_limits.hpp"
#include "continuous/vectors.hpp"

namespace isthmus {

ColumnSolver::ColumnSolver(std::size_t variables) : product_(variables), along_(variables) {}

void ColumnSolver::begin(const ColumnProblem& problem, std::span<double> weights) {
    problem_.emplace(problem);
    weights_ = weights;
    active_.clear();
    sign_.clear();
    rows_.clear();
    step_.clear();
    std::ranges::fill(product_, 0.0);
    used_ = 0.0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const double w = weights[i];
        if (w == 0.0) continue;
        active_.push_back(i);
        sign_.push_back(w > 0.0 ? 1.0 : -1.0);
        if (problem.barrier > 0.0) used_ += problem.curb[i] * w * w;
        rows_.push_back(problem.moments.row(i).data());
        step_.push_back(w);
    }
    add_scaled_rows(product_.data(), rows_.data(), step_.data(), rows_.size(), weights.size());
    const auto target = problem.moments.row(problem.child);
    value_ = 0.0;
    for (const std::size_t i : active_) {
        value_ += problem.scale * weights[i] * (0.5 * product_[i] - target[i]) +
                  problem.penalty[i] * std::abs(weights[i]);
    }
    if (problem.barrier > 0.0) value_ -= problem.barrier * std::log(1.0 - used_);
    steps_ = 0;
    one_by_one_ = false;
    stalled_ = false;
    under_way_ = true;
    factoring_ = false;
}

double ColumnSolver::solve(Watch& watch) {
    while (true) {
        if (!factoring_) {
            if (steps_ == most_steps) break;
            ++steps_;
            prepare_slopes();
            settled_ = active_.size();
            if (worst_ <= problem().tolerance || stalled_) {
                enter();
                if (active_.size() == settled_) break;
            }
            ridge_ = 0.0;
            assemble();
            factoring_ = true;
        }
        // Where columns depend on each other a ridge is added: then the direction is long where
        // the loss does not change, and ends where the first weight becomes zero.
        while (!factor_.factorise(watch)) {
            if (ridge_ > 1.0) break;
            ridge_ = std::max(1e-8, 100.0 * ridge_);
            assemble();
        }
        factoring_ = false;
        const bool moved = advance();
        // Slopes are rounded in proportion to the variances: less may not be to be had. Then zero
        // weights still get their turn, unless it was theirs.
        if (!moved && (stalled_ || entering_)) break;
        stalled_ = !moved;
        watch.poll();
    }
    under_way_ = false;
    return value_;
}

void ColumnSolver::prepare_slopes() {
    const auto& [moments, child, c, penalty, open, t, curb, tolerance] = problem();
    const auto target = moments.row(child);
    const double left = 1.0 - used_;
    slope_.resize(active_.size());
    worst_ = 0.0;
    for (std::size_t a = 0; a < active_.size(); ++a) {
        const std::size_t i = active_[a];
        double slope = c * (product_[i] - target[i]) + penalty[i] * sign_[a];
        if (t > 0.0) slope += 2.0 * t * curb[i] * weights_[i] / left;
        slope_[a] = -slope;
        worst_ = std::max(worst_, std::abs(slope));
    }
}

/// Lets the zero weights whose slope exceeds their penalty most become active.
void ColumnSolver::enter() {
    const auto& [moments, child, c, penalty, open, t, curb, tolerance] = problem();
    const auto target = moments.row(child);
    const std::size_t d = weights_.size();
    double worst = 0.0;
    for (std::size_t i = 0; i < d; ++i) {
        if (open[i] != 0 && weights_[i] == 0.0) {
            worst = std::max(worst, std::abs(c * (product_[i] - target[i])) - penalty[i]);
        }
    }
    if (!(worst > tolerance)) return;
    int room = one_by_one_ ? 1 : most_newcomers;
    const double least = one_by_one_ ? worst : 0.5 * worst;
    for (std::size_t i = 0; i < d && room > 0; ++i) {
        if (open[i] == 0 || weights_[i] != 0.0) continue;
        const double slope = c * (product_[i] - target[i]);
        const double excess = std::abs(slope) - penalty[i];
        if (excess >= least) {
            active_.push_back(i);
            sign_.push_back(slope > 0.0 ? -1.0 : 1.0);
            slope_.push_back(sign_.back() * excess);
            --room;
        }
    }
}

void ColumnSolver::assemble() {
    const auto& [moments, child, c, penalty, open, t, curb, tolerance] = problem();
    const std::size_t k = active_.size();
    const double left = 1.0 - used_;
    factor_.resize(k);
    for (std::size_t a = 0; a < k; ++a) {
        const std::size_t i = active_[a];
        const auto row = moments.row(i);
        double* const line = factor_.row(a);
        if (t > 0.0) {
            const double pull = 4.0 * t * curb[i] * weights_[i] / (left * left);
            for (std::size_t b = a; b < k; ++b) {
                const std::size_t m = active_[b];
                line[b - a] = c * row[m] + pull * curb[m] * weights_[m];
            }
            line[0] += 2.0 * t * curb[i] / left;
        } else {
            for (std::size_t b = a; b < k; ++b) line[b - a] = c * row[active_[b]];
        }
        // A constant has no slope and needs no step.
        line[0] = line[0] > 0.0 ? (1.0 + ridge_) * line[0] : 1.0;
    }
    factor_.begin_factorisation();
}

/// Drops newcomers that head the wrong way; finds where the first weight reaches zero.
void ColumnSolver::keep_within_signs() {
    longest_ = 1.0;
    hit_ = none;
    for (std::size_t a = 0; a < active_.size();) {
        const double w = weights_[active_[a]];
        if (step_[a] * sign_[a] <= 0.0) {
            if (w == 0.0) {
                active_[a] = active_.back();
                sign_[a] = sign_.back();
                step_[a] = step_.back();
                active_.pop_back();
                sign_.pop_back();
                step_.pop_back();
                continue;
            }
            if (step_[a] != 0.0 && -w / step_[a] < longest_) {
                longest_ = -w / step_[a];
                hit_ = a;
            }
        }
        ++a;
    }
}

/// Takes the step; returns whether that helped.
bool ColumnSolver::advance() {
    const auto& [moments, child, c, penalty, open, t, curb, tolerance] = problem();
    const auto target = moments.row(child);
    const std::size_t d = weights_.size();
    step_ = slope_;
    factor_.solve_lower(step_);
    factor_.solve_upper(step_);
    entering_ = active_.size() > settled_;
    keep_within_signs();
    const std::size_t k = active_.size();
    if (entering_ && k == settled_) {
        // Together the newcomers head the wrong way, but the worst alone cannot.
        entering_ = std::exchange(one_by_one_, true);
        return !entering_;
    }
    one_by_one_ = false;
    const double left = 1.0 - used_;
    std::ranges::fill(along_, 0.0);
    rows_.clear();
    for (const std::size_t i : active_) rows_.push_back(moments.row(i).data());
    add_scaled_rows(along_.data(), rows_.data(), step_.data(), k, d);
    double linear = 0.0;
    double square = 0.0;
    double slope = 0.0;
    for (std::size_t a = 0; a < k; ++a) {
        const std::size_t i = active_[a];
        linear += step_[a] * (c * (product_[i] - target[i]) + penalty[i] * sign_[a]);
        square += step_[a] * c * along_[i];
        if (t > 0.0) slope += 2.0 * t * curb[i] * weights_[i] * step_[a] / left;
    }
    slope += linear;
    if (k == 0 || !(slope < 0.0)) return false;
    double length = longest_;
    double fallen = value_;
    double within = 0.0;
    bool taken = false;
    for (int halving = 0; halving < most_halvings; ++halving) {
        within = 0.0;
        if (t > 0.0) {
            for (std::size_t a = 0; a < k; ++a) {
                const double w = weights_[active_[a]] + length * step_[a];
                within += curb[active_[a]] * w * w;
            }
        }
        if (within < 1.0) {
            fallen = value_ + length * linear + 0.5 * length * length * square;
            if (t > 0.0) fallen -= t * (std::log(1.0 - within) - std::log(left));
            if (fallen <= value_ + 1e-4 * length * slope) {
                taken = true;
                break;
            }
        }
        length *= 0.5;
    }
    if (!taken) return false;
    for (std::size_t a = 0; a < k; ++a) weights_[active_[a]] += length * step_[a];
    add_scaled(product_.data(), along_.data(), length, d);
    if (hit_ != none && length == longest_) {
        weights_[active_[hit_]] = 0.0;
        active_[hit_] = active_.back();
        sign_[hit_] = sign_.back();
        active_.pop_back();
        sign_.pop_back();
    }
    const bool still =
        hit_ == none && value_ - fallen <= 1e-15 * (std::abs(value_) + c * target[child]);
    used_ = within;
    value_ = fallen;
    return !still;
}

}  // namespace isthmus
