#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "scoring/local_score.hpp"
#include "screened/family_tree.hpp"

namespace isthmus {

/// Scores of a child by any local score.
class LocalFamilies final : public FamilyScores {
public:
    /// The score must outlive this object.
    LocalFamilies(const LocalScore& score, Variable child, std::vector<Variable> candidates,
                  std::size_t max_parents);

    double extend(std::span<const Local> parents, std::span<const std::uint8_t> allowed,
                  Ranking& raising) const override;
    void reduce(std::span<const Local> parents, std::size_t first,
                std::span<double> out) const override;

private:
    [[nodiscard]] std::vector<Variable> variables(std::span<const Local> parents) const;

    const LocalScore& score_;
    Variable child_;
    std::vector<Variable> candidates_;
    std::size_t max_parents_;
};

}  // namespace isthmus
