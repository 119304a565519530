#pragma once

#include <cstdint>
#include <vector>

#include "scoring/count_values.hpp"
#include "scoring/discrete_data.hpp"
#include "scoring/discrete_room.hpp"
#include "scoring/local_score.hpp"
#include "scoring/paused_batches.hpp"

namespace isthmus {

/// Scores discrete variables from their rows. Every score here has the form
///
///     sum over cells f(n_jk) - sum over parent configurations g(n_j) - penalty * (r - 1) * q
///
/// with r the levels of the child and q the product of the parents' levels (also of combinations
/// that nobody has seen). f and g are `n log n` for BIC and AIC, and
/// `lgamma(n + s) - lgamma(s)` for BDeu (s = ess / (q r) and ess / q) and K2 (s = a and a r).
class DiscreteScore final : public LocalScore {
public:
    /// `parameter` is the penalty per free parameter (likelihood), the equivalent sample size
    /// (BDeu), the pseudo-count of a cell (K2), or not used.
    DiscreteScore(DiscreteData data, DiscreteForm form, double parameter);

    [[nodiscard]] std::size_t size() const override { return data_.variables(); }
    void extensions(Variable child, Variables parents, Variables candidates, std::span<double> out,
                    Watch& watch) const override;
    void reductions(Variable child, Variables parents, std::size_t first, std::span<double> out,
                    Watch& watch) const override;

private:
    [[nodiscard]] double base(Variable child, Variables parents, DiscreteRoom& room,
                              Watch& watch) const;

    DiscreteData data_;
    CountValues values_;
    mutable DiscreteRooms rooms_;
    mutable PausedBatches paused_;
};

}  // namespace isthmus
