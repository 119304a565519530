// The steps of a lasso: slopes, weights that leave zero, and Newton steps within the signs.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "continuous/lasso_column.hpp"
#include "continuous/column_limits.hpp"

namespace isthmus {

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
                for (auto* const values : {&step_, &slope_, &along_}) {
                    values->erase(values->begin() + static_cast<std::ptrdiff_t>(a));
                }
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

}  // namespace isthmus
