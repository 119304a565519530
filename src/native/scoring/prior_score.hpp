#pragma once

#include <vector>

#include "scoring/local_score.hpp"

namespace isthmus {

/// Another score plus a weight for each parent: the logarithm of a prior of edges.
class PriorScore final : public LocalScore {
public:
    /// `weights[child * d + parent]` is added for each edge; the inner score must outlive this
    /// object.
    PriorScore(const LocalScore& inner, std::vector<double> weights);

    [[nodiscard]] std::size_t size() const override { return inner_.size(); }
    void extensions(Variable child, Variables parents, Variables candidates, std::span<double> out,
                    Watch& watch) const override;
    void reductions(Variable child, Variables parents, std::size_t first, std::span<double> out,
                    Watch& watch) const override;

private:
    [[nodiscard]] double weight(Variable child, Variable parent) const;
    [[nodiscard]] double total(Variable child, Variables parents) const;

    const LocalScore& inner_;
    std::vector<double> weights_;
};

}  // namespace isthmus
