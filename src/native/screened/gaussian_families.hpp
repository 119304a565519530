#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "screened/family_tree.hpp"

namespace isthmus {

/// What a criterion of linear Gaussian networks takes for a family of k parents:
/// constant[k] - factor * log(variance of the child given its parents).
struct GaussianCriterion {
    std::vector<double> constant;
    double factor;
    double tolerance;          // share of a variance below which a column is determined by others
    std::size_t max_parents;
};

/// Scores of a child from the correlations among its candidates and the child, the child's last.
class GaussianFamilies final : public FamilyScores {
public:
    /// The criterion must outlive this object.
    GaussianFamilies(const GaussianCriterion& criterion, std::vector<double> correlation,
                     std::size_t candidates);

    double extend(std::span<const Local> parents, std::span<const std::uint8_t> allowed,
                  Ranking& raising) const override;
    void reduce(std::span<const Local> parents, std::size_t first,
                std::span<double> out) const override;
    [[nodiscard]] std::vector<double> coefficients(std::span<const Local> parents) const override;

private:
    const GaussianCriterion& criterion_;
    std::vector<double> correlation_;
    std::size_t width_;
};

}  // namespace isthmus
