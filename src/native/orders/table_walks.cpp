#include "orders/table_walks.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace isthmus {

namespace {

// Before memory is allocated that the machine promises and does not have.
std::size_t checked(std::size_t walks) {
    constexpr std::size_t most = std::size_t{1} << 24;
    if (walks > most) throw std::invalid_argument{"there can be at most 16,777,216 walks"};
    return walks;
}

}  // namespace

TableWalks::TableWalks(std::shared_ptr<const ScoreLines> table, std::size_t walks)
    : table_{std::move(table)}, outside_{checked(walks), table_->words(), ~Word{0}} {}

void TableWalks::restart() {
    for (std::size_t e = 0; e < walks(); ++e) std::ranges::fill(outside_.row(e), ~Word{0});
}

void TableWalks::take(Variables actions, std::span<double> rewards, Watch& watch) {
    if (actions.size() != walks()) throw std::invalid_argument{"each walk needs one action"};
    const auto missing = [&](Variable v) {
        return v < 0 || static_cast<std::size_t>(v) >= size();
    };
    if (std::ranges::any_of(actions, missing)) throw std::out_of_range{"there is no such node"};
    table_->prepare(watch);
    // All rewards first: a signal in between must not leave some walks a step ahead.
    for (std::size_t e = 0; e < actions.size(); ++e) {
        const Variable v = actions[e];
        rewards[e] = table_->worth(v, table_->first(v, table_->begin(v), outside_.row(e)));
        if (e % 16 == 15) watch.poll_signals();
    }
    for (std::size_t e = 0; e < actions.size(); ++e) {
        outside_.row(e)[static_cast<std::size_t>(actions[e]) / 64] &=
            ~(Word{1} << (actions[e] & 63));
    }
}

void TableWalks::allowed(std::span<bool> out, Watch& watch) {
    table_->prepare(watch);
    if (!demanding_) find_demanding();
    for (std::size_t e = 0; e < walks(); ++e) {
        const auto outside = outside_.row(e);
        bool* const marks = out.data() + e * size();
        for (std::size_t first = 0; first < size(); first += 64) {
            const std::size_t count = std::min<std::size_t>(64, size() - first);
            const Word word = outside[first / 64];
            for (std::size_t i = 0; i < count; ++i) marks[first + i] = (word >> i & 1) != 0;
        }
        for (const Variable v : *demanding_) {
            if (!disjoint(table_->needed(v), outside)) marks[v] = false;
        }
        if (e % 16 == 15) watch.poll_signals();
    }
}

void TableWalks::find_demanding() {
    demanding_.emplace();
    for (std::size_t v = 0; v < size(); ++v) {
        const auto node = static_cast<Variable>(v);
        if (count(table_->needed(node)) > 0) demanding_->push_back(node);
    }
}

}  // namespace isthmus
