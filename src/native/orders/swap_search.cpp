#include "orders/swap_search.hpp"

#include <algorithm>
#include <limits>

#include "core/checked.hpp"

namespace isthmus {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

SwapSearch::SwapSearch(std::shared_ptr<const ScoreLines> table, Variables order,
                       Options options)
    : order_{std::move(table), order},
      options_{options},
      gains_(order.empty() ? 0 : order.size() - 1),
      outside_(order_.table().words(), ~Word{0}),
      tabu_{saturated_product(order.size(), order.size())},
      best_{order.begin(), order.end()},
      best_total_{-infinity} {}

bool SwapSearch::step(Watch& watch) {
    run_slice([&] {
        begin(watch);
        while (!ended_) {
            ended_ = moves_ == options_.most || move();
            if (moves_ % 8 == 0) watch.poll();
        }
    });
    return ended_;
}

void SwapSearch::begin(Watch& watch) {
    if (begun_) return;
    order_.settle(watch);
    while (known_ < gains_.size()) {
        gains_[known_] = gain_of(known_);
        flip(outside_, order_.at(known_));
        ++known_;
        if (known_ % 8 == 0) watch.poll();
    }
    total_ = best_total_ = order_.total();
    begun_ = true;
}

std::uint64_t& SwapSearch::kept_until(Variable a, Variable b) {
    return tabu_.span()[static_cast<std::size_t>(a) * order_.size() + static_cast<std::size_t>(b)];
}

/// Lines of the nodes at `place` and behind it if they changed places. `outside_` is that of
/// `place`, and stays so.
std::pair<TableOrder::Line, TableOrder::Line> SwapSearch::lines_after(std::size_t place) {
    const Variable x = order_.at(place);
    const Variable y = order_.at(place + 1);
    const auto second = order_.table().without(y, x, order_.line(y), outside_);
    flip(outside_, y);
    const auto first = order_.table().with(x, y, order_.line(x), outside_);
    flip(outside_, y);
    return {first, second};
}

double SwapSearch::gain_of(std::size_t place) {
    const Variable x = order_.at(place);
    const Variable y = order_.at(place + 1);
    const auto [first, second] = lines_after(place);
    const double before = order_.worth(x) + order_.worth(y);
    return order_.table().worth(x, first) + order_.table().worth(y, second) - before;
}

bool SwapSearch::move() {
    std::size_t at = gains_.size();
    double gain = -infinity;
    for (std::size_t i = 0; i < gains_.size(); ++i) {
        if (!(gains_[i] > gain)) continue;
        const bool free = kept_until(order_.at(i), order_.at(i + 1)) <= moves_;
        // Tabu does not hold for what leads to the best of all.
        if (free || total_ + gains_[i] > best_total_ + order_.table().least_gain()) {
            at = i;
            gain = gains_[i];
        }
    }
    ++moves_;
    const bool lost = at == gains_.size() || gain < -1e12;
    if (lost || (options_.patience == 0 && gain <= order_.table().least_gain())) return true;
    const Variable x = order_.at(at);
    const Variable y = order_.at(at + 1);
    const std::size_t low = at > 0 ? at - 1 : 0;
    order_.outside_at(at, outside_);
    const auto [first, second] = lines_after(at);
    order_.swap(at, first, second);
    kept_until(y, x) = moves_ + options_.memory;
    total_ += gain;
    if (low < at) flip(outside_, order_.at(low));
    for (std::size_t i = low; i < std::min(gains_.size(), at + 2); ++i) {
        gains_[i] = gain_of(i);
        flip(outside_, order_.at(i));
    }
    if (total_ > best_total_ + order_.table().least_gain()) {
        best_total_ = total_;
        best_.assign(order_.order().begin(), order_.order().end());
        idle_ = 0;
        return false;
    }
    ++idle_;
    return idle_ >= options_.patience;
}

}  // namespace isthmus
