#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/exclusive.hpp"
#include "orders/acyclic_selection.hpp"
#include "orders/table_order.hpp"
#include "orders/window_sweep.hpp"

namespace isthmus {

/// An order over a score table that its owner improves, one job after the other.
///
/// Random choices come from outside, and with them the jobs: score an order, sweep over windows, let
/// nodes choose acyclic parents. Each job is done in time slices.
class TableRun {
public:
    TableRun(std::shared_ptr<const ScoreLines> table, Variables order);

    /// Begins to score another order; a job under way is dropped.
    void reset(Variables order);
    /// Begins to put windows of `size` nodes that begin with `firsts` at their best places.
    void sweep(Variables firsts, std::size_t size);
    /// Begins an acyclic selection; the run then goes on from the order that it gives.
    void select();
    /// Works until the watch ends the slice; returns whether the job is done.
    bool step(Watch& watch);

    [[nodiscard]] bool done() const { return !sweep_ && !selection_ && order_.settled(); }
    [[nodiscard]] const TableOrder& order() const { return order_; }
    /// What the last sweep gained, so far if it is under way.
    [[nodiscard]] double gained() const { return sweep_ ? sweep_->gained() : gained_; }
    /// Whether the last selection changed the order.
    [[nodiscard]] bool changed() const { return changed_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void check_done() const;

    TableOrder order_;
    std::optional<WindowSweep> sweep_;
    std::optional<AcyclicSelection> selection_;
    double gained_ = 0.0;
    bool changed_ = false;
    InUse in_use_;
};

}  // namespace isthmus
