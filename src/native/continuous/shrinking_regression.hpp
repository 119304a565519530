#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "continuous/upper_factor.hpp"
#include "core/exclusive.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Regresses a child on its parents, which are removed one after the other.
///
/// A removal costs k² by rotations of the Cholesky factor. Where parents depend on each other, each
/// stage is a regression of its own.
class ShrinkingRegression {
public:
    /// `moments` has rows of length `variables` and must outlive this object. Parents that are in
    /// `removals` leave in that order; `tolerance` is that of `regress`.
    ShrinkingRegression(std::span<const double> moments, std::size_t variables, std::size_t child,
                        std::vector<Variable> parents, std::vector<Variable> removals,
                        double tolerance);

    /// Returns whether all parents in `removals` are removed.
    bool step(Watch& watch);

    /// Share of the child's variance that the parents leave, for each stage so far: before any
    /// removal, after the first, …
    [[nodiscard]] std::span<const double> shares() const { return shares_; }
    /// Weights of the parents that are left, of one stage after the other.
    [[nodiscard]] std::span<const double> weights() const { return weights_; }

    /// Two threads must not use one object at the same time; bindings claim it.
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void advance(Watch& watch);
    void begin();
    void finish_factor(bool independent);
    void remove_next();
    void describe(Watch& watch);

    std::span<const double> moments_;
    std::size_t variables_;
    std::size_t child_;
    std::vector<Variable> parents_;
    std::vector<Variable> removals_;
    double tolerance_;
    double total_;
    std::size_t removed_ = 0;
    bool begun_ = false;
    bool factored_ = false;
    bool independent_ = false;
    UpperFactor factor_;
    std::vector<double> solved_;  // z of U'z = moments of the parents with the child
    std::vector<double> shares_;
    std::vector<double> weights_;
    InUse in_use_;
};

}  // namespace isthmus
