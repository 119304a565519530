#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orders/score_lines.hpp"

namespace isthmus {

/// An order of the nodes of a score table, in which each has its first line that fits.
class TableOrder {
public:
    using Line = ScoreLines::Line;

    TableOrder(std::shared_ptr<const ScoreLines> table, Variables order);

    /// Takes another order, in which no node has its line yet.
    void reset(Variables order);
    /// Gives each node its line; after a pause the same call goes on.
    void settle(Watch& watch);
    [[nodiscard]] bool settled() const { return settled_ == order_.size(); }

    /// The sum of the scores, of a settled order.
    [[nodiscard]] double total() const;
    [[nodiscard]] const ScoreLines& table() const { return *table_; }
    [[nodiscard]] std::size_t size() const { return order_.size(); }
    [[nodiscard]] Variables order() const { return order_; }
    [[nodiscard]] Variable at(std::size_t place) const { return order_[place]; }
    [[nodiscard]] std::size_t place(Variable v) const { return place_[index(v)]; }
    [[nodiscard]] Line line(Variable v) const { return lines_[index(v)]; }
    [[nodiscard]] double worth(Variable v) const { return table_->worth(v, line(v)); }

    /// Lets the nodes at `place` and `place + 1` change places; their lines are given.
    void swap(std::size_t place, Line first, Line second);
    /// Puts the window of `size` nodes at `begin` so that it begins at `target`. Lines are given for
    /// all nodes from the smaller place on, in their new order.
    void move(std::size_t begin, std::size_t size, std::size_t target, std::span<const Line> lines);

    /// What does not come before a place.
    void outside_at(std::size_t place, std::span<Word> outside) const;

private:
    std::shared_ptr<const ScoreLines> table_;
    std::vector<Variable> order_;
    std::vector<std::size_t> place_;
    std::vector<Line> lines_;
    std::vector<Word> outside_;  // at the place that is settled next
    std::size_t settled_ = 0;
};

}  // namespace isthmus
