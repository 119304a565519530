#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace isthmus {

/// What a criterion of linear Gaussian networks takes for a family of k parents:
/// constant[k] - factor * log(variance of the child given its parents).
struct GaussianCriterion {
    std::vector<double> constant;
    double factor;
    double tolerance;          // share of a variance below which a column is determined by others
    std::size_t max_parents;
};

/// The parents of one variable among few candidates, for any set of them that is available.
///
/// Parents are found by growing (the best candidate that raises the score, one after another) and
/// then by shrinking. As in the grow-shrink trees of Andrews et al. (2023), each set that growing
/// reaches is a node, which lists the candidates that raise its score, the best first; so candidates
/// are scored once per node, whichever of them are available.
class FamilyTree {
public:
    using Local = std::uint16_t;  // position among the candidates
    using Available = std::vector<std::uint64_t>;

    /// The best parents of an available set.
    struct Family {
        double score;
        std::span<const Local> parents;
    };

    FamilyTree() = default;
    /// `correlation` has a row for each candidate, and the child's last. `allowed` says which
    /// candidates may be parents; `required` are parents whatever is available.
    FamilyTree(std::vector<double> correlation, std::vector<std::uint8_t> allowed,
               std::vector<Local> required);

    [[nodiscard]] std::size_t candidates() const { return allowed_.size(); }
    [[nodiscard]] bool allows(std::size_t candidate) const { return allowed_[candidate] != 0; }

    /// Finds the best parents among the available candidates. The family is valid until the next
    /// call.
    [[nodiscard]] Family find(const Available& available, const GaussianCriterion& criterion);
    /// Returns the coefficients of standardised parents.
    [[nodiscard]] std::vector<double> coefficients(std::span<const Local> parents,
                                                   const GaussianCriterion& criterion) const;

private:
    struct Branch {
        std::uint32_t node;  // 0 if there is none yet
        Local candidate;
    };
    struct Node {
        double score = 0.0;
        std::uint32_t first = 0;  // branch
        std::uint32_t branches = 0;
        std::uint32_t leaf = 0;   // 0 if it was not shrunk yet
        bool expanded = false;
    };
    struct Leaf {
        double score;
        std::uint32_t first;  // parent
        std::uint32_t parents;
    };

    void expand(std::uint32_t node, std::span<const Local> parents,
                const GaussianCriterion& criterion);
    std::uint32_t shrink(std::vector<Local>& parents, double score,
                         const GaussianCriterion& criterion);

    std::vector<double> correlation_;
    std::vector<std::uint8_t> allowed_;
    std::vector<Local> required_;
    std::vector<Node> nodes_;
    std::vector<Branch> branches_;
    std::vector<Leaf> leaves_;
    std::vector<Local> parents_;  // of leaves
};

}  // namespace isthmus
