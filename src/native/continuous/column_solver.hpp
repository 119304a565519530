#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "continuous/upper_factor.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// The problem of one column of weights, all others held fixed:
///
///     c/2 (w'Sw - 2 S_j'w) + Σ λ_i |w_i| - t log(1 - Σ g_i w_i²)
///
/// The last term is exact: -log det(s I - W ∘ W) depends on column j through Σ g_i w_i² alone.
struct ColumnProblem {
    const Matrix<double>& moments;         // S
    std::size_t child;                     // j
    double scale;                          // c
    std::span<const double> penalty;       // λ
    std::span<const std::uint8_t> open;    // weights that may leave zero
    double barrier;                        // t
    std::span<const double> curb;          // g; read only where t > 0
    double tolerance;
};

/// Minimises over one column by Newton steps on the non-zero weights within their signs.
class ColumnSolver {
public:
    explicit ColumnSolver(std::size_t variables);

    /// Starts from these weights, which are changed in place. All that `problem` refers to must
    /// stay until the solution.
    void begin(const ColumnProblem& problem, std::span<double> weights);
    /// Returns the minimum, less the constant c S_jj / 2. After a pause, call it again.
    double solve(Watch& watch);
    [[nodiscard]] bool under_way() const { return under_way_; }
    /// S w at the solution.
    [[nodiscard]] std::span<const double> product() const { return product_; }

private:
    [[nodiscard]] const ColumnProblem& problem() const { return *problem_; }
    void prepare_slopes();
    void enter();
    void assemble();
    void keep_within_signs();
    [[nodiscard]] bool advance();

    std::optional<ColumnProblem> problem_;
    std::span<double> weights_;
    std::vector<double> product_;
    UpperFactor factor_;
    std::vector<double> slope_;  // negative slopes: the right-hand side of the Newton system
    std::vector<double> step_;
    std::vector<double> along_;
    std::vector<const double*> rows_;  // of the moments, one for each active weight
    std::vector<std::size_t> active_;
    std::vector<double> sign_;
    double value_ = 0.0;
    double used_ = 0.0;     // Σ g_i w_i²
    double worst_ = 0.0;    // largest slope of an active weight
    double ridge_ = 0.0;
    double longest_ = 1.0;  // the step that brings the first weight to zero, and which
    std::size_t hit_ = 0;
    std::size_t settled_ = 0;  // active weights before newcomers
    bool one_by_one_ = false;
    bool entering_ = false;
    bool stalled_ = false;
    int steps_ = 0;
    bool under_way_ = false;
    bool factoring_ = false;
};

}  // namespace isthmus
