#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "continuous/column_solver.hpp"
#include "continuous/upper_factor.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Lassos of all columns: c_j/2 (w'Sw - 2 S_j'w) + Σ λ_ji |w_i| for column j.
struct LassoProblem {
    Matrix<double> moments;        // S
    std::vector<double> scale;     // c
    Matrix<double> penalty;        // λ, [to, from]
    Matrix<std::uint8_t> open;     // [to, from]: whether there may be an edge
    Matrix<std::uint8_t> required; // [to, from]: whether one must come before the other
    double tolerance;              // largest slope at which a column counts as solved

    [[nodiscard]] std::size_t variables() const { return moments.columns(); }
};

/// The solution of one column.
struct ColumnSolution {
    std::vector<double> weights;
    std::vector<double> product;       // S w
    double value = 0.0;                // the minimum, less c S_jj / 2
    std::vector<std::size_t> parents;  // in the order of the factor
    std::vector<double> factor;        // packed; empty where it is not known
    bool factored = false;
};

/// The lasso of one column, whose parents may be opened and closed between solutions.
///
/// The Hessian of a lasso does not change, so its Cholesky factor is kept while weights enter and
/// leave: a step costs k² instead of k³. Columns that depend on each other have no factor; they are
/// left to `ColumnSolver`.
class LassoColumn {
public:
    explicit LassoColumn(const LassoProblem& problem);

    /// Starts from a solution. All parents are closed but those with weights.
    void load(std::size_t child, const ColumnSolution& start);
    /// Starts from weights alone. All parents are closed but those with weights.
    void load(std::size_t child, std::span<const double> weights);

    void open(std::size_t parent) { open_[parent] = 1; }
    /// Takes a parent away, its weight too. Returns whether it had one.
    bool close(std::size_t parent);
    [[nodiscard]] double weight(std::size_t parent) const { return weights_[parent]; }
    /// S w of one variable, at the last solution.
    [[nodiscard]] double product(std::size_t variable) const { return product_[variable]; }

    /// Returns the minimum, less the constant c S_jj / 2. After a pause, call it again.
    double solve(Watch& watch);
    /// Computes S w from nothing: updates add up rounding errors.
    void renew_product();
    [[nodiscard]] ColumnSolution solution() const;

private:
    enum class Stage { loaded, factoring, solving, general };

    void clear(std::size_t child);
    void begin_factor();
    void leave(std::size_t position);
    void change(std::size_t variable, double by);
    void refresh();
    [[nodiscard]] double worst_slope();
    [[nodiscard]] bool enter();
    [[nodiscard]] bool advance();
    [[nodiscard]] double current_value() const;
    void begin_general();
    [[nodiscard]] double general(Watch& watch);

    const LassoProblem& problem_;
    std::size_t child_ = 0;
    std::vector<std::uint8_t> open_;
    std::vector<double> weights_;
    std::vector<double> product_;          // S w as of the last refresh
    std::vector<double> change_;           // of the weights since then
    std::vector<std::size_t> changed_;     // which of them
    std::vector<std::uint8_t> is_changed_;
    std::vector<std::size_t> active_;      // in the order of the factor
    std::vector<double> sign_;
    std::vector<double> own_;              // S w of the active ones, always up to date
    std::vector<double> slope_;            // negative slopes: the right-hand side
    std::vector<double> step_;
    std::vector<double> along_;
    std::vector<double> entries_;
    UpperFactor factor_;
    ColumnSolver solver_;
    double value_ = 0.0;
    std::size_t settled_ = 0;  // active weights before newcomers
    int steps_ = 0;
    bool entering_ = false;
    bool one_by_one_ = false;
    bool stalled_ = false;
    bool factored_ = false;
    Stage stage_ = Stage::loaded;
};

}  // namespace isthmus
