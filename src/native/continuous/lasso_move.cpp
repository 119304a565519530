#include "continuous/lasso_move.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isthmus {

LassoMove::LassoMove(LassoOrder& order)
    : order_{order}, own_{order.problem()}, other_{order.problem()} {}

void LassoMove::begin(std::size_t mover, double least, double worth) {
    mover_ = mover;
    least_ = least;
    worth_ = worth;
    find_bounds();
    gain_.assign(others_.size(), 0.0);
    opened_.assign(others_.size(), 0);
    solving_ = false;
    own_solving_ = false;
    solutions_.clear();
    fell_ = 0.0;
    best_ = here_;
    most_ = least;
    at_ = low_;
    hope_ = 0.0;
    stage_ = Stage::gains;
}

void LassoMove::find_bounds() {
    const Matrix<std::uint8_t>& required = order_.problem().required;
    here_ = order_.place(mover_);
    others_.clear();
    low_ = 0;
    high_ = order_.size() - 1;
    for (const std::size_t v : order_.order()) {
        if (v == mover_) continue;
        const std::size_t m = others_.size();
        others_.push_back(v);
        if (required.row(mover_)[v] != 0) low_ = m + 1;
        if (required.row(v)[mover_] != 0) high_ = std::min(high_, m);
    }
}

double LassoMove::run(Watch& watch) {
    if (stage_ == Stage::gains) find_gains(watch);
    if (stage_ == Stage::earlier) look_earlier(watch);
    if (stage_ == Stage::wishes) find_wishes(watch);
    if (stage_ == Stage::hope) find_hope(watch);
    if (stage_ == Stage::later) look_later(watch);
    if (stage_ == Stage::mover_column || stage_ == Stage::other_columns) solve_columns(watch);
    return fell_;
}

void LassoMove::load_own() {
    own_.load(mover_, order_.column(mover_));
    const auto open = order_.problem().open.row(mover_);
    for (std::size_t p = 0; p < here_; ++p) {
        if (open[others_[p]] != 0) own_.open(others_[p]);
    }
}

double LassoMove::solve_own(Watch& watch) {
    own_solving_ = true;
    const double value = own_.solve(watch);
    own_solving_ = false;
    return value;
}

/// Minimum of `child` after the first others, and after the mover if asked for.
double LassoMove::solve_other(std::size_t child, std::size_t places, bool with_mover,
                              Watch& watch) {
    if (!solving_) {
        other_.load(child, order_.column(child));
        if (!with_mover) other_.close(mover_);
        const auto open = order_.problem().open.row(child);
        for (std::size_t p = 0; p < places; ++p) {
            if (open[others_[p]] != 0) other_.open(others_[p]);
        }
        if (with_mover) other_.open(mover_);
        solving_ = true;
    }
    const double value = other_.solve(watch);
    solving_ = false;
    return value;
}

/// What the others before the mover would gain by it as a new predecessor.
void LassoMove::find_gains(Watch& watch) {
    for (; at_ < here_; ++at_, watch.poll()) {
        const std::size_t v = others_[at_];
        if (!solving_) {
            if (!order_.wants(v, mover_)) continue;
            if (worth_ != 0.0 && !order_.promises(v, mover_, worth_, watch)) continue;
        }
        gain_[at_] = order_.column(v).value - solve_other(v, at_, true, watch);
        hope_ += gain_[at_];
    }
    at_ = here_;
    if (hope_ <= least_) {
        stage_ = Stage::wishes;
        return;
    }
    load_own();
    own_value_ = order_.column(mover_).value;
    sum_ = 0.0;
    stale_ = false;
    stage_ = Stage::earlier;
}

/// Finds the best earlier place: others gain by the mover as a new predecessor, the mover loses its
/// own. Its loss grows along the way, so beyond what all others together could gain there is
/// nothing to find.
void LassoMove::look_earlier(Watch& watch) {
    const double value = order_.column(mover_).value;
    while (at_ > low_) {
        const std::size_t m = at_ - 1;
        if (!own_solving_) {
            if (own_.close(others_[m])) stale_ = true;
            // Only a place just before one that gains can be the best.
            if (gain_[m] <= 0.0) {
                --at_;
                continue;
            }
            sum_ += gain_[m];
        }
        if (stale_) {
            own_value_ = solve_own(watch);
            stale_ = false;
        }
        --at_;
        const double gain = sum_ - (own_value_ - value);
        if (gain > most_) {
            best_ = m;
            most_ = gain;
        }
        if (own_value_ - value >= hope_) break;
        watch.poll();
    }
    at_ = here_;
    stage_ = Stage::wishes;
}

/// Which variables after the mover it would take as new predecessors.
void LassoMove::find_wishes(Watch& watch) {
    const auto open = order_.problem().open.row(mover_);
    for (; at_ < high_; ++at_, watch.poll()) {
        const std::size_t v = others_[at_];
        opened_[at_] = open[v] != 0;
        if (worth_ != 0.0 && opened_[at_] != 0) {
            opened_[at_] = order_.wants(mover_, v) && order_.promises(mover_, v, worth_, watch);
        }
    }
    at_ = here_;
    bool wanted = false;
    for (std::size_t m = here_; m < high_ && !wanted; ++m) {
        wanted = worth_ == 0.0 ? order_.wants(mover_, others_[m]) : opened_[m] != 0;
    }
    if (!wanted) {
        begin_change();
        return;
    }
    load_own();
    for (std::size_t m = here_; m < high_; ++m) {
        if (opened_[m] != 0) own_.open(others_[m]);
    }
    stage_ = Stage::hope;
}

/// What the mover would gain by all of them.
void LassoMove::find_hope(Watch& watch) {
    const double value = order_.column(mover_).value;
    hope_ = value - solve_own(watch);
    if (hope_ <= most_) {
        begin_change();
        return;
    }
    load_own();
    own_value_ = value;
    sum_ = 0.0;
    stale_ = false;
    counted_ = false;
    stage_ = Stage::later;
}

/// Finds the best later place: the mover gains new predecessors, its children lose it. Their loss
/// grows along the way, so beyond what all predecessors together would give there is nothing to
/// find.
void LassoMove::look_later(Watch& watch) {
    const LassoProblem& problem = order_.problem();
    const double value = order_.column(mover_).value;
    const double c = problem.scale[mover_];
    while (true) {
        const bool last = at_ == high_;
        const std::size_t v = last ? mover_ : others_[at_];
        const bool is_child = !last && order_.column(v).weights[mover_] != 0.0;
        // Only a place just before a child, or the last one, can be the best.
        if (is_child || last) {
            if (stale_) {
                own_value_ = solve_own(watch);
                stale_ = false;
            }
            const double gain = value - own_value_ - sum_;
            if (gain > most_) {
                best_ = at_;
                most_ = gain;
            }
        }
        if (last) break;
        if (is_child) {
            double loss = std::numeric_limits<double>::infinity();
            if (!solving_ && worth_ > 0.0) loss = order_.loss_without(v, mover_, watch);
            if (loss > 0.1 * worth_) {
                loss = solve_other(v, at_, false, watch) - order_.column(v).value;
            }
            sum_ += loss;
            if (sum_ >= hope_) break;
        }
        if (opened_[at_] != 0) {
            own_.open(v);
            const double slope = c * (problem.moments.row(mover_)[v] - own_.product(v));
            if (std::abs(slope) - problem.penalty.row(mover_)[v] > problem.tolerance) stale_ = true;
        }
        ++at_;
        watch.poll();
    }
    begin_change();
}

void LassoMove::begin_change() {
    if (best_ == here_) {
        stage_ = Stage::finished;
        return;
    }
    new_order_ = others_;
    new_order_.insert(new_order_.begin() + static_cast<std::ptrdiff_t>(best_), mover_);
    new_place_.resize(new_order_.size());
    for (std::size_t p = 0; p < new_order_.size(); ++p) new_place_[new_order_[p]] = p;
    at_ = std::min(here_, best_);
    stage_ = Stage::mover_column;
}

/// Minimum of a column along the new order.
double LassoMove::solve_along(std::size_t child, Watch& watch) {
    if (!solving_) {
        const auto open = order_.problem().open.row(child);
        other_.load(child, order_.column(child));
        for (const std::size_t i : order_.column(child).parents) {
            if (new_place_[i] >= new_place_[child]) other_.close(i);
        }
        for (std::size_t p = 0; p < new_place_[child]; ++p) {
            if (open[new_order_[p]] != 0) other_.open(new_order_[p]);
        }
        solving_ = true;
    }
    const double value = other_.solve(watch);
    solving_ = false;
    other_.renew_product();
    solutions_.emplace_back(child, other_.solution());
    return value;
}

void LassoMove::solve_columns(Watch& watch) {
    if (stage_ == Stage::mover_column) {
        fell_ = 0.0;
        const double before = order_.column(mover_).value;
        fell_ = before - solve_along(mover_, watch);
        stage_ = Stage::other_columns;
        watch.poll();
    }
    const std::size_t stop = std::max(here_, best_);
    for (; at_ <= stop; ++at_, watch.poll()) {
        const std::size_t v = new_order_[at_];
        if (v == mover_) continue;
        const bool again = best_ < here_ ? order_.wants(v, mover_)
                                         : order_.column(v).weights[mover_] != 0.0;
        if (again) fell_ += order_.column(v).value - solve_along(v, watch);
    }
    commit();
}

void LassoMove::commit() {
    order_.reorder(std::move(new_order_));
    for (auto& [child, solution] : solutions_) order_.store(child, std::move(solution));
    solutions_.clear();
    stage_ = Stage::finished;
}

}  // namespace isthmus
