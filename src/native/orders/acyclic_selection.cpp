#include "orders/acyclic_selection.hpp"

#include <algorithm>

namespace isthmus {

namespace {

void merge(std::span<Word> into, std::span<const Word> from) {
    for (std::size_t w = 0; w < into.size(); ++w) into[w] |= from[w];
}

}  // namespace

AcyclicSelection::AcyclicSelection(const TableOrder& order)
    : order_{order},
      below_{order.size(), order.table().words()},
      above_{order.size(), order.table().words()},
      fresh_(order.table().words()),
      chosen_(order.size()),
      left_{order.size()},
      unplaced_(order.table().words(), ~Word{0}),
      waiting_{order.order().begin(), order.order().end()} {
    for (const Variable v : waiting_) {
        add(below_.row(index(v)), v);
        add(above_.row(index(v)), v);
    }
    sorted_.reserve(order.size());
}

void AcyclicSelection::run(Watch& watch) {
    while (left_ > 0) {
        choose(order_.at(left_ - 1));
        --left_;
        watch.poll();
    }
    sort(watch);
}

void AcyclicSelection::choose(Variable v) {
    const ScoreLines& table = order_.table();
    const auto below = below_.row(index(v));
    const auto line = table.first(v, table.begin(v), below);
    chosen_[index(v)] = line;
    if (line == table.end(v)) return;
    std::ranges::fill(fresh_, 0);
    table.for_each_member(line, [&](Variable p) { merge(fresh_, above_.row(index(p))); });
    for_each(fresh_, [&](Variable a) { merge(below_.row(index(a)), below); });
    for_each(below, [&](Variable a) { merge(above_.row(index(a)), fresh_); });
}

void AcyclicSelection::sort(Watch& watch) {
    const ScoreLines& table = order_.table();
    while (!waiting_.empty()) {
        // All that are free in one pass over the rest, those that become so on the way included.
        std::size_t kept = 0;
        for (const Variable v : waiting_) {
            const auto line = chosen_[index(v)];
            if (line != table.end(v) && !table.fits(line, unplaced_)) {
                waiting_[kept++] = v;
                continue;
            }
            sorted_.push_back(v);
            flip(unplaced_, v);
        }
        waiting_.resize(kept);
        watch.poll();
    }
}

bool AcyclicSelection::changed() const { return !std::ranges::equal(order_.order(), sorted_); }

}  // namespace isthmus
