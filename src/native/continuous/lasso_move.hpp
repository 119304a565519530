#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "continuous/lasso_column.hpp"
#include "continuous/lasso_order.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Moves one variable to its best place in an order.
///
/// Only columns that gain or lose the mover as a predecessor and care about it are solved again.
/// Nothing in the order changes before all of them are solved, so an interrupted move leaves it as
/// it was.
class LassoMove {
public:
    explicit LassoMove(LassoOrder& order);

    /// The sum of the minima must fall by more than `least`. A gain of less than `worth` in one
    /// column is not looked for, and a loss of less than a tenth of it is estimated.
    void begin(std::size_t mover, double least, double worth);
    /// Returns by how much the sum falls: zero if the mover stays. After a pause, call it again.
    double run(Watch& watch);

private:
    enum class Stage { gains, earlier, wishes, hope, later, mover_column, other_columns, finished };

    void find_bounds();
    void load_own();
    [[nodiscard]] double solve_own(Watch& watch);
    [[nodiscard]] double solve_other(std::size_t child, std::size_t places, bool with_mover,
                                     Watch& watch);
    [[nodiscard]] double solve_along(std::size_t child, Watch& watch);
    void find_gains(Watch& watch);
    void look_earlier(Watch& watch);
    void find_wishes(Watch& watch);
    void find_hope(Watch& watch);
    void look_later(Watch& watch);
    void begin_change();
    void solve_columns(Watch& watch);
    void commit();

    LassoOrder& order_;
    LassoColumn own_;
    LassoColumn other_;
    Stage stage_ = Stage::finished;
    bool solving_ = false;      // whether a column is under way
    bool own_solving_ = false;  // whether that of the mover is

    std::size_t mover_ = 0;
    double least_ = 0.0;
    double worth_ = 0.0;
    std::vector<std::size_t> others_;  // the order without the mover
    std::vector<double> gain_;         // of the other at each place by the mover before it
    std::vector<char> opened_;         // others that the mover may take as new parents
    std::size_t here_ = 0;
    std::size_t low_ = 0;
    std::size_t high_ = 0;

    std::size_t at_ = 0;  // place under consideration
    double hope_ = 0.0;   // most that can be gained
    double own_value_ = 0.0;
    double sum_ = 0.0;    // gained or lost by the others so far
    bool stale_ = false;  // whether the mover's column must be solved again
    bool counted_ = false;
    std::size_t best_ = 0;
    double most_ = 0.0;

    std::vector<std::size_t> new_order_;
    std::vector<std::size_t> new_place_;
    std::vector<std::pair<std::size_t, ColumnSolution>> solutions_;
    double fell_ = 0.0;
};

}  // namespace isthmus
