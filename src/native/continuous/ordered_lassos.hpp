#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "continuous/lasso_column.hpp"
#include "continuous/lasso_move.hpp"
#include "continuous/lasso_order.hpp"
#include "core/exclusive.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Lassos along an order of the variables, which then move in it while the sum of minima falls.
///
/// Random choices come from outside: the order to start from, and the turns in which variables
/// move.
class OrderedLassos {
public:
    explicit OrderedLassos(LassoProblem problem);

    /// Starts from an order and any weights, [to, from].
    void start(Variables order, const Matrix<double>& weights);
    /// Lets variables move in these turns, once all columns are solved. `least` and `worth` are
    /// those of `LassoMove`; an edge matters if it explains more than `worth`.
    void sweep(Variables turns, double least, double worth);
    /// Solves columns or moves variables; returns whether there is nothing left to do.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t variables() const { return problem_.variables(); }
    /// Columns solved since the start.
    [[nodiscard]] std::size_t settled() const { return settled_; }
    /// Turns taken in this sweep.
    [[nodiscard]] std::size_t moved() const { return next_; }
    /// By how much the sum of minima fell in this sweep.
    [[nodiscard]] double fell() const { return fell_; }
    /// Variables that have, or had, an edge that matters with one that moved after their turn.
    [[nodiscard]] const std::vector<std::uint8_t>& stirred() const { return stirred_; }
    [[nodiscard]] const LassoOrder& order() const { return order_; }

    /// Two threads must not use one object at the same time; bindings claim it.
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void advance(Watch& watch);
    void settle(Watch& watch);
    void mark_neighbours(std::size_t variable);

    LassoProblem problem_;
    LassoOrder order_;
    LassoMove move_;
    LassoColumn column_;
    std::size_t settled_ = 0;
    bool solving_ = false;
    bool moving_ = false;
    std::vector<std::size_t> turns_;
    std::size_t next_ = 0;
    double least_ = 0.0;
    double worth_ = 0.0;
    double fell_ = 0.0;
    std::vector<std::uint8_t> stirred_;
    std::vector<std::uint8_t> neighbours_;  // of the variable that moves, before it does
    InUse in_use_;
};

}  // namespace isthmus
