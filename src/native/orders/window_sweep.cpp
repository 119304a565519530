#include "orders/window_sweep.hpp"

#include <algorithm>
#include <stdexcept>

namespace isthmus {

WindowSweep::WindowSweep(TableOrder& order, Variables firsts, std::size_t size)
    : order_{order},
      firsts_{firsts.begin(), firsts.end()},
      size_{size},
      passed_(order.size()),
      outside_(order.table().words()) {
    if (size == 0 || size > order.size()) {
        throw std::invalid_argument{"a window must have at least one node, and no more than all"};
    }
    held_.resize(size);
    best_held_.resize(size);
    for (const Variable v : firsts_) {
        if (v < 0 || static_cast<std::size_t>(v) >= order.size()) {
            throw std::out_of_range{"there is no such node"};
        }
    }
}

void WindowSweep::run(Watch& watch) {
    while (next_ < firsts_.size()) {
        if (!weighing_) {
            const std::size_t begin = order_.place(firsts_[next_]);
            if (begin + size_ > order_.size()) {
                ++next_;
                continue;
            }
            weighing_ = Weighing{.begin = begin,
                                 .place = begin,
                                 .best_gain = order_.table().least_gain(),
                                 .best_place = begin};
            for (std::size_t k = 0; k < size_; ++k) {
                weighing_->own += order_.worth(member(*weighing_, k));
            }
            start_side(*weighing_);
        }
        weigh(*weighing_, watch);
        if (weighing_->best_place != weighing_->begin) move(*weighing_);
        weighing_.reset();
        ++next_;
        watch.poll();
    }
}

void WindowSweep::start_side(Weighing& weighing) {
    for (std::size_t k = 0; k < size_; ++k) held_[k] = order_.line(member(weighing, k));
    weighing.passed = 0.0;
    order_.outside_at(weighing.begin, outside_);
}

/// Finds where the window gains most.
void WindowSweep::weigh(Weighing& weighing, Watch& watch) {
    while (!weighing.right) {
        if (weighing.place > 0) {
            --weighing.place;
            pass_left(weighing);
            consider(weighing, weighing.place, 0.0);
        } else {
            weighing.right = true;
            weighing.place = weighing.begin + size_;
            start_side(weighing);
        }
        if (weighing.place % 16 == 0) watch.poll();
    }
    while (weighing.place < order_.size()) {
        pass_right(weighing);
        // The left is taken if both sides are as good.
        consider(weighing, weighing.place - size_ + 1, order_.table().least_gain());
        ++weighing.place;
        if (weighing.place % 16 == 0) watch.poll();
    }
}

/// The window goes before the node at `place`.
void WindowSweep::pass_left(Weighing& weighing) {
    const ScoreLines& table = order_.table();
    const Variable u = order_.at(weighing.place);
    flip(outside_, u);
    // The window loses u.
    for (std::size_t k = 0; k < size_; ++k) {
        const Variable v = member(weighing, k);
        held_[k] = table.without(v, u, held_[k], outside_);
        flip(outside_, v);
    }
    // And u wins the window, which is not outside by now.
    Line line = order_.line(u);
    for (std::size_t k = 0; k < size_; ++k) {
        line = table.with(u, member(weighing, k), line, outside_);
    }
    for (std::size_t k = 0; k < size_; ++k) flip(outside_, member(weighing, k));
    passed_[weighing.place] = line;
    weighing.passed += table.worth(u, line) - order_.worth(u);
}

/// The window goes after the node at `place`.
void WindowSweep::pass_right(Weighing& weighing) {
    const ScoreLines& table = order_.table();
    const Variable u = order_.at(weighing.place);
    Line line = order_.line(u);
    for (std::size_t k = 0; k < size_; ++k) {
        if (line < table.end(u) && table.holds(line, member(weighing, k))) {
            line = table.first(u, line + 1, outside_);
            break;
        }
    }
    flip(outside_, u);
    for (std::size_t k = 0; k < size_; ++k) {
        const Variable v = member(weighing, k);
        held_[k] = table.with(v, u, held_[k], outside_);
        flip(outside_, v);
    }
    for (std::size_t k = 0; k < size_; ++k) flip(outside_, member(weighing, k));
    passed_[weighing.place] = line;
    weighing.passed += table.worth(u, line) - order_.worth(u);
}

void WindowSweep::consider(Weighing& weighing, std::size_t target, double margin) {
    double gain = weighing.passed - weighing.own;
    for (std::size_t k = 0; k < size_; ++k) {
        gain += order_.table().worth(member(weighing, k), held_[k]);
    }
    if (gain > weighing.best_gain + margin) {
        weighing.best_gain = gain;
        weighing.best_place = target;
        best_held_ = held_;
    }
}

/// Moves the window; all lines are known from passing.
void WindowSweep::move(const Weighing& weighing) {
    const std::size_t begin = weighing.begin;
    const std::size_t target = weighing.best_place;
    std::vector<Line> lines;
    if (target < begin) {
        lines = best_held_;
        for (std::size_t i = target; i < begin; ++i) lines.push_back(passed_[i]);
    } else {
        for (std::size_t i = begin + size_; i < target + size_; ++i) lines.push_back(passed_[i]);
        lines.insert(lines.end(), best_held_.begin(), best_held_.end());
    }
    order_.move(begin, size_, target, lines);
    gained_ += weighing.best_gain;
}

}  // namespace isthmus
