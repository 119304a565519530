#pragma once

#include <vector>

#include "scoring/local_score.hpp"

namespace isthmus {

/// Another score times a factor, minus a price that depends on the number of parents only.
class PenalisedScore final : public LocalScore {
public:
    /// `prices[k]` is the price of k parents, for 0 to d; the inner score must outlive this object.
    PenalisedScore(const LocalScore& inner, std::vector<double> prices, double factor);

    [[nodiscard]] std::size_t size() const override { return inner_.size(); }
    void extensions(Variable child, Variables parents, Variables candidates, std::span<double> out,
                    Watch& watch) const override;
    void reductions(Variable child, Variables parents, std::size_t first, std::span<double> out,
                    Watch& watch) const override;

private:
    const LocalScore& inner_;
    std::vector<double> prices_;
    double factor_;
};

}  // namespace isthmus
