#pragma once

#include <vector>

#include "scoring/local_score.hpp"

namespace isthmus {

/// A score of its own for each child, for data in which rows do not inform about every child.
class ChildScores final : public LocalScore {
public:
    /// One score per variable, each of all variables; they must outlive this object.
    explicit ChildScores(std::vector<const LocalScore*> scores);

    [[nodiscard]] std::size_t size() const override { return scores_.size(); }
    void extensions(Variable child, Variables parents, Variables candidates, std::span<double> out,
                    Watch& watch) const override {
        of(child).extensions(child, parents, candidates, out, watch);
    }
    void reductions(Variable child, Variables parents, std::size_t first, std::span<double> out,
                    Watch& watch) const override {
        of(child).reductions(child, parents, first, out, watch);
    }

private:
    [[nodiscard]] const LocalScore& of(Variable child) const {
        return *scores_[static_cast<std::size_t>(child)];
    }

    std::vector<const LocalScore*> scores_;
};

}  // namespace isthmus
