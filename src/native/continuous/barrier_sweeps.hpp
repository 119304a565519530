#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "continuous/column_solver.hpp"
#include "continuous/kept_inverse.hpp"
#include "core/exclusive.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Learns weights column by column under a barrier -t log det(r I - W ∘ W).
///
/// Weights are kept as `incoming[j, i]`, the weight of the edge from i to j, so that what enters a
/// node is contiguous. Turns, penalties and t come from outside, sweep by sweep.
class BarrierSweeps {
public:
    struct Sweep {
        std::vector<Variable> turns;
        std::vector<double> scale;   // c of each column
        Matrix<double> penalty;      // [to, from]
        double barrier;              // t
        double tolerance;
    };

    /// `open[j, i]` says whether i may be a parent of j; `radius` is r.
    BarrierSweeps(Matrix<double> moments, Matrix<std::uint8_t> open, double radius);

    /// Begins a sweep; one that is not finished is given up.
    void begin(Sweep sweep);
    /// Sets column after column to its minimum; returns whether the sweep is finished.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t variables() const { return moments_.rows(); }
    /// Columns done in this sweep.
    [[nodiscard]] std::size_t done() const { return next_; }
    /// Largest change of a weight in this sweep.
    [[nodiscard]] double moved() const { return moved_; }
    [[nodiscard]] const Matrix<double>& incoming() const { return incoming_; }
    /// How far the kept inverse of r I - W ∘ W is from one: rounding adds up over sweeps.
    [[nodiscard]] double inverse_error();
    /// Replaces the kept inverse; not while a sweep is under way.
    void set_inverse(const Matrix<double>& inverse);

    /// Two threads must not use one object at the same time; bindings claim it.
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    enum class Stage { begin_column, solve_column, tidy_inverse };

    void advance(Watch& watch);
    void begin_column(std::size_t child);
    void end_column(std::size_t child);

    Matrix<double> moments_;
    Matrix<std::uint8_t> open_;
    double radius_;
    Matrix<double> incoming_;
    KeptInverse inverse_;
    Sweep sweep_;
    ColumnSolver solver_;
    Stage stage_ = Stage::begin_column;
    std::size_t next_ = 0;
    double moved_ = 0.0;
    std::vector<double> curb_;
    std::vector<double> before_;
    std::vector<double> row_;  // of the inverse
    std::vector<std::size_t> changed_;
    std::vector<double> change_;
    InUse in_use_;
};

}  // namespace isthmus
