#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "scoring/local_score.hpp"
#include "scoring/paused_batches.hpp"

namespace isthmus {

/// Node-average likelihood: each set of variables is scored on the rows that are complete for it.
///
/// Of n rows, m(S) have values of all variables of a set S. Let T(S) be the total correlation of S
/// in these rows: the sum of the entropies of its variables minus their joint entropy. Let L be the
/// mean log-likelihood of the child by itself, and
///
///     G(S) = n * T(S) - penalty * n / m(S) * (free parameters of S beyond those of its variables).
///
/// The score of a family is
///
///     n * L - penalty * (r - 1) + G(parents and child) - G(parents) - sum of price[child][parent].
///
/// It is a difference of two functions of sets, so if the prices are symmetric, Markov-equivalent
/// graphs have the same score. A family without a complete row has minus infinity.
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
    struct Group;

    [[nodiscard]] Group begin(std::vector<Variable> members, Watch& watch) const;
    /// G of the members with one more variable, or of the members if `candidate` is negative.
    [[nodiscard]] double dependence(Group& group, Variable candidate, Watch& watch) const;
    /// The score of a child without parents.
    [[nodiscard]] double alone(Variable child) const;
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
