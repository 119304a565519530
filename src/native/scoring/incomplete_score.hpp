#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "scoring/local_score.hpp"
#include "scoring/paused_batches.hpp"

namespace isthmus {

/// Node-average likelihood: each family is scored on the rows that are complete for it.
///
/// m of n rows have values of the child and its parents. Let I be the mutual information of child
/// and parents in these m rows, s the standard deviation of what a row contributes to it, and L the
/// mean log-likelihood of the child by itself. The score is
///
///     n * (L + I) - penalty * (r - 1) * (1 + (q - 1) * n / m) - s * sum of price[child][parent]
///
/// with r and q as in `DiscreteScore`. A family without a complete row has minus infinity.
class IncompleteScore final : public LocalScore {
public:
    /// A row of `codes` for each variable, in which the cardinality stands for a missing value;
    /// `weights` is empty if every row counts once.
    IncompleteScore(Matrix<std::uint16_t> codes, std::vector<std::int64_t> weights,
                    std::vector<std::int64_t> cardinalities, double penalty,
                    Matrix<double> prices);

    [[nodiscard]] std::size_t size() const override { return cardinalities_.size(); }
    void extensions(Variable child, Variables parents, Variables candidates, std::span<double> out,
                    Watch& watch) const override;
    void reductions(Variable child, Variables parents, std::size_t first, std::span<double> out,
                    Watch& watch) const override;

private:
    struct Family;

    [[nodiscard]] Family begin(Variable child, Variables parents, Watch& watch) const;
    /// The score of the family with one more parent, or as it is if `candidate` is negative.
    [[nodiscard]] double value(Family& family, Variable candidate, Watch& watch) const;
    [[nodiscard]] double averaged(const Family& family, Variable candidate, double mean,
                                  double variance, std::int64_t complete) const;
    [[nodiscard]] std::size_t levels(Variable variable) const {
        return static_cast<std::size_t>(cardinalities_[static_cast<std::size_t>(variable)]);
    }
    [[nodiscard]] const std::uint16_t* column(Variable variable) const {
        return codes_.row(static_cast<std::size_t>(variable)).data();
    }
    [[nodiscard]] std::int64_t weight(std::size_t row) const {
        return weights_.empty() ? 1 : weights_[row];
    }

    Matrix<std::uint16_t> codes_;
    std::vector<std::int64_t> weights_;
    std::vector<std::int64_t> cardinalities_;
    double penalty_;
    Matrix<double> prices_;
    std::int64_t total_;
    mutable PausedBatches paused_;
};

}  // namespace isthmus
