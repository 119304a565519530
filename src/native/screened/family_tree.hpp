#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace isthmus {

/// Scores of one child with sets of parents, where its candidates are numbered.
class FamilyScores {
public:
    using Local = std::uint16_t;  // position among the candidates
    /// Candidates with something that is the smaller the better they are.
    using Ranking = std::vector<std::pair<double, Local>>;

    FamilyScores() = default;
    virtual ~FamilyScores() = default;
    FamilyScores(const FamilyScores&) = delete;
    FamilyScores& operator=(const FamilyScores&) = delete;

    /// Scores parents, and lists the further candidates that raise the score as one parent more.
    virtual double extend(std::span<const Local> parents, std::span<const std::uint8_t> allowed,
                          Ranking& raising) const = 0;
    /// Scores what is left of the parents without `parents[first + i]`, for each `out[i]`.
    virtual void reduce(std::span<const Local> parents, std::size_t first,
                        std::span<double> out) const = 0;
    /// Returns the coefficients of standardised parents; none unless the model is linear.
    [[nodiscard]] virtual std::vector<double> coefficients(std::span<const Local> parents) const;
};

/// The parents of one variable among few candidates, for any set of them that is available.
///
/// Parents are found by growing (the best candidate that raises the score, one after another) and
/// then by shrinking. As in the grow-shrink trees of Andrews et al. (2023), each set that growing
/// reaches is a node, which lists the candidates that raise its score, the best first; so candidates
/// are scored once per node, whichever of them are available.
class FamilyTree {
public:
    using Local = FamilyScores::Local;
    using Available = std::vector<std::uint64_t>;

    /// The best parents of an available set.
    struct Family {
        double score;
        std::span<const Local> parents;
    };

    FamilyTree() = default;
    /// `allowed` says which candidates may be parents; `required` are parents whatever is available.
    FamilyTree(std::unique_ptr<const FamilyScores> scores, std::vector<std::uint8_t> allowed,
               std::vector<Local> required);

    [[nodiscard]] std::size_t candidates() const { return allowed_.size(); }
    [[nodiscard]] bool allows(std::size_t candidate) const { return allowed_[candidate] != 0; }

    /// Finds the best parents among the available candidates. The family is valid until the next
    /// call.
    [[nodiscard]] Family find(const Available& available);
    [[nodiscard]] std::vector<double> coefficients(std::span<const Local> parents) const {
        return scores_->coefficients(parents);
    }

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

    void expand(std::uint32_t node, std::span<const Local> parents);
    std::uint32_t shrink(std::vector<Local>& parents, double score);

    std::unique_ptr<const FamilyScores> scores_;
    std::vector<std::uint8_t> allowed_;
    std::vector<Local> required_;
    std::vector<Node> nodes_;
    std::vector<Branch> branches_;
    std::vector<Leaf> leaves_;
    std::vector<Local> parents_;  // of leaves
};

}  // namespace isthmus
