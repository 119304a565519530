#include "exact/cluster_search.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace isthmus {

ClusterSearch::ClusterSearch(Choice choice, std::vector<Variable> first,
                             std::vector<Variable> second, std::size_t most, double limit)
    : choice_{std::move(choice)},
      first_{std::move(first)},
      second_{std::move(second)},
      most_{most},
      limit_{limit} {
    const auto refuse = [](const char* text) { throw std::invalid_argument{text}; };
    const auto& starts = choice_.starts;
    const std::size_t lines = choice_.amounts.size();
    if (starts.empty() || starts.front() != 0 || !std::ranges::is_sorted(starts) ||
        starts.back() != static_cast<std::int64_t>(lines)) {
        refuse("starts must ascend from 0 to the number of lines");
    }
    size_ = starts.size() - 1;
    words_ = words_for(size_);
    if (choice_.sets.size() != lines * words_) refuse("sets need one bit for each node");
    if (first_.size() != second_.size()) refuse("first and second must be of one length");
    const auto missing = [&](Variable v) { return v < 0 || index(v) >= size_; };
    if (std::ranges::any_of(first_, missing) || std::ranges::any_of(second_, missing)) {
        throw std::out_of_range{"there is no such node"};
    }
    if (!std::ranges::equal(first_, second_, std::ranges::not_equal_to{})) {
        refuse("a pair must be of two nodes");
    }
    inside_.resize(words_);
    best_inside_.resize(words_);
    alive_.resize(lines);
    change_.resize(size_);
    const std::size_t spare = 64 * words_ - size_;
    for (std::size_t line = 0; line < lines; ++line) {
        if (spare > 0 && set(line).back() >> (64 - spare) != 0) {
            refuse("a set holds a node that there is not");
        }
    }
    if (!done()) start_pair();
}

std::size_t ClusterSearch::begin(Variable v) const {
    return static_cast<std::size_t>(choice_.starts[index(v)]);
}

void ClusterSearch::start_pair() {
    std::ranges::fill(inside_, 0);
    members_.clear();
    total_ = 0.0;
    best_ = limit_;
    next_ = first_[pair_];
}

bool ClusterSearch::step(Watch& watch) {
    run_slice([&] {
        while (!done()) {
            take_in(next_);
            if (members_.size() > 1 && total_ < best_ - 1e-9) {
                best_ = total_;
                best_inside_ = inside_;
            }
            if (members_.size() == size_) {
                next_ = nobody;
            } else {
                next_ = members_.size() == 1 ? second_[pair_] : choose_next();
            }
            if (next_ == nobody) {
                if (best_ < limit_) keep();
                ++pair_;
                if (!done()) start_pair();
            }
            watch.poll();
        }
    });
    return done();
}

/// Sets with the new member no longer avoid the cluster, its own may.
void ClusterSearch::take_in(Variable added) {
    add(inside_, added);
    members_.insert(std::ranges::lower_bound(members_, added), added);
    for (const Variable v : members_) {
        for (std::size_t line = begin(v); line < end(v); ++line) {
            if (v == added) {
                alive_[line] = disjoint(set(line), inside_) ? 1 : 0;
                if (alive_[line] != 0) total_ += choice_.amounts[line];
            } else if (alive_[line] != 0 && has(set(line), added)) {
                alive_[line] = 0;
                total_ -= choice_.amounts[line];
            }
        }
    }
}

/// The node that brings least: its sets that avoid the cluster, less those that hold it.
Variable ClusterSearch::choose_next() {
    std::ranges::fill(change_, 0.0);
    for (std::size_t u = 0; u < size_; ++u) {
        const auto v = static_cast<Variable>(u);
        const bool member = has(inside_, v);
        for (std::size_t line = begin(v); line < end(v); ++line) {
            const double amount = choice_.amounts[line];
            if (!member) {
                if (disjoint(set(line), inside_)) change_[u] += amount;
            } else if (alive_[line] != 0) {
                // What is alive avoids the cluster, so all in it are outside.
                for_each(set(line), [&](Variable p) { change_[index(p)] -= amount; });
            }
        }
    }
    Variable best = nobody;
    for (std::size_t u = 0; u < size_; ++u) {
        const auto v = static_cast<Variable>(u);
        if (!has(inside_, v) && (best == nobody || change_[u] < change_[index(best)])) best = v;
    }
    const bool hopeless = best == nobody || (change_[index(best)] > 0.0 &&
                                             total_ + change_[index(best)] >= 2.0);
    return hopeless ? nobody : best;
}

void ClusterSearch::keep() {
    for (std::size_t c = 0; c < sums_.size(); ++c) {
        if (std::equal(best_inside_.begin(), best_inside_.end(),
                       clusters_.begin() + static_cast<std::ptrdiff_t>(c * words_))) {
            return;
        }
    }
    clusters_.insert(clusters_.end(), best_inside_.begin(), best_inside_.end());
    sums_.push_back(best_);
}

}  // namespace isthmus
