#include "orders/table_order.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace isthmus {

TableOrder::TableOrder(std::shared_ptr<const ScoreLines> table, Variables order)
    : table_{std::move(table)},
      order_(table_->size()),
      place_(table_->size()),
      lines_(table_->size()),
      outside_(table_->words()) {
    reset(order);
}

void TableOrder::reset(Variables order) {
    std::vector<std::uint8_t> seen(order_.size());
    if (order.size() != order_.size()) throw std::invalid_argument{"every node must come once"};
    for (const Variable v : order) {
        const bool inside = v >= 0 && index(v) < seen.size();
        if (!inside || std::exchange(seen[index(v)], 1) != 0) {
            throw std::invalid_argument{"every node must come once"};
        }
    }
    std::ranges::copy(order, order_.begin());
    for (std::size_t i = 0; i < order_.size(); ++i) {
        place_[index(order_[i])] = i;
        lines_[index(order_[i])] = table_->end(order_[i]);
    }
    std::ranges::fill(outside_, ~Word{0});
    settled_ = 0;
}

void TableOrder::settle(Watch& watch) {
    table_->prepare(watch);
    while (settled_ < order_.size()) {
        const Variable v = order_[settled_];
        lines_[index(v)] = table_->first(v, table_->begin(v), outside_);
        flip(outside_, v);
        ++settled_;
        if (settled_ % 8 == 0) watch.poll();
    }
}

double TableOrder::total() const {
    double total = 0.0;
    for (std::size_t v = 0; v < order_.size(); ++v) total += worth(static_cast<Variable>(v));
    return total;
}

void TableOrder::outside_at(std::size_t place, std::span<Word> outside) const {
    std::ranges::fill(outside, ~Word{0});
    for (std::size_t i = 0; i < place; ++i) flip(outside, order_[i]);
}

void TableOrder::swap(std::size_t place, Line first, Line second) {
    const Variable x = order_[place];
    const Variable y = order_[place + 1];
    lines_[index(x)] = first;
    lines_[index(y)] = second;
    std::swap(order_[place], order_[place + 1]);
    std::swap(place_[index(x)], place_[index(y)]);
}

void TableOrder::move(std::size_t begin, std::size_t size, std::size_t target,
                      std::span<const Line> lines) {
    const auto at = [&](std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); };
    if (target < begin) {
        std::rotate(at(target), at(begin), at(begin + size));
    } else {
        std::rotate(at(begin), at(begin + size), at(target + size));
    }
    const std::size_t low = std::min(begin, target);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        place_[index(order_[low + i])] = low + i;
        lines_[index(order_[low + i])] = lines[i];
    }
}

}  // namespace isthmus
