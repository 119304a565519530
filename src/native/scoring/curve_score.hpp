#pragma once

#include <cstdint>
#include <vector>

#include "scoring/correlations.hpp"
#include "scoring/local_score.hpp"
#include "scoring/paused_batches.hpp"

namespace isthmus {

/// The columns of each variable: its own ones, and then functions of it that nest.
struct CurveColumns {
    /// The columns of variable v are `starts[v]` to `starts[v + 1]`.
    std::vector<Variable> starts;
    /// How many of them stand for the variable itself: its value, or its indicators.
    std::vector<Variable> own;
    /// How many of the others each further degree has, ascending; one row per variable, padded by
    /// zeros.
    Matrix<Variable> degrees;
};

/// Prices of a family: of so many parents, and of so many columns of parents.
struct CurvePrices {
    /// Of one coefficient in the regression of one column, if some block has several.
    double coefficient;
    /// Of 0, 1, … d parents with one column each.
    std::vector<double> parents;
    /// Of 0, 1, … columns, without the price for the number of candidates.
    std::vector<double> columns;
};

/// Scores regressions of a variable on functions of its parents, with as many as pay.
///
/// Each parent enters by its own columns. Then functions of the parent that gains most are added,
/// as long as some gain more than their price. `allowed(p, c)` says whether functions of p may enter
/// the regression of c: an edge without them is straight.
class CurveScore final : public LocalScore {
public:
    CurveScore(Matrix<double> correlation, CurveColumns columns, std::vector<double> base,
               CurvePrices prices, Matrix<std::uint8_t> allowed, double half_n, double tolerance);

    [[nodiscard]] std::size_t size() const override { return base_.size(); }
    void extensions(Variable child, Variables parents, Variables candidates, std::span<double> out,
                    Watch& watch) const override;
    void reductions(Variable child, Variables parents, std::size_t first, std::span<double> out,
                    Watch& watch) const override;

    /// The degree of the functions of each parent: 0 for a line.
    [[nodiscard]] std::vector<Variable> degrees(Variable child, Variables parents) const;
    /// The score, with the functions of `straight` left out after all others were chosen with it.
    [[nodiscard]] double without_functions(Variable child, Variables parents,
                                           Variable straight) const;

private:
    class Regression;

    [[nodiscard]] double price(Variable child, Variables parents, std::size_t columns) const;

    Correlations correlation_;
    CurveColumns columns_;
    std::vector<double> base_;
    CurvePrices prices_;
    Matrix<std::uint8_t> allowed_;
    double half_n_;
    double tolerance_;
    mutable PausedBatches paused_;
};

}  // namespace isthmus
