#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "orders/table_order.hpp"

namespace isthmus {

/// Puts windows of neighbours at their best places in an order, one after the other.
class WindowSweep {
public:
    using Line = TableOrder::Line;

    /// Windows of `size` nodes that begin with each of `firsts`. The order must be settled, outlive
    /// this object, and be changed by nobody else.
    WindowSweep(TableOrder& order, Variables firsts, std::size_t size);

    /// Goes on to the end; after a pause the same call goes on.
    void run(Watch& watch);
    [[nodiscard]] double gained() const { return gained_; }
    [[nodiscard]] std::size_t moved() const { return next_; }

private:
    /// A window that is tried at all places, first to the left, then to the right.
    struct Weighing {
        std::size_t begin;
        std::size_t place;  // all nodes up to this one have been passed
        bool right = false;
        double own = 0.0;
        double passed = 0.0;
        double best_gain;
        std::size_t best_place;
    };

    void weigh(Weighing& weighing, Watch& watch);
    void pass_left(Weighing& weighing);
    void pass_right(Weighing& weighing);
    void start_side(Weighing& weighing);
    void consider(Weighing& weighing, std::size_t target, double margin);
    void move(const Weighing& weighing);
    [[nodiscard]] Variable member(const Weighing& weighing, std::size_t k) const {
        return order_.at(weighing.begin + k);
    }

    TableOrder& order_;
    std::vector<Variable> firsts_;
    std::size_t size_;
    std::size_t next_ = 0;
    double gained_ = 0.0;
    std::optional<Weighing> weighing_;
    std::vector<Line> held_;       // lines of the window where it is tried
    std::vector<Line> best_held_;  // and at its best place
    std::vector<Line> passed_;     // by place, the line of a node that the window has passed
    std::vector<Word> outside_;
};

}  // namespace isthmus
