#pragma once

#include <memory>
#include <span>
#include <vector>

#include "scoring/local_score.hpp"

namespace isthmus {

/// An upper bound on the score of every superset S of a parent set P of a child c:
///
///     score(c | S) <= top[c, |P|] - sum over P of weight[c, p]
///                     - scale[c] * product over P of levels[p] - factor[c] * support(c | P)
///
/// Where `gain` is known, adding j to a set with p and q raises the score by at most
/// `gain[p, q, j] - scale[c] * product * (levels[j] - 1)`; `gain[p, p, j]` holds for every set with
/// p, and `gain[j, j, j]` for every set.
class ScoreBound {
public:
    struct Parts {
        Matrix<double> top;                         // d rows of d + 1
        Matrix<double> weight;                      // d rows, or one for all children
        std::vector<double> scale;
        std::vector<double> levels;
        std::vector<double> factor;
        std::shared_ptr<const LocalScore> support;  // nothing if `factor` is zero
        std::vector<double> gain;                   // d * d * d, d * 1 * d, or empty
    };

    /// The bound for one child; a view.
    struct Child {
        std::span<const double> top;
        std::span<const double> weight;
        double scale;
        std::span<const double> levels;
        double factor;
        const LocalScore* support;
        std::span<const double> gain;
        bool pairs;

        /// What adding `j` to a set that holds `p` and `q` can gain.
        [[nodiscard]] double gain_of(std::size_t p, std::size_t q, std::size_t j) const {
            const std::size_t d = levels.size();
            return pairs ? gain[(p * d + q) * d + j] : gain[p * d + j];
        }
    };

    explicit ScoreBound(Parts parts);

    /// Nothing is known of supersets.
    [[nodiscard]] static ScoreBound none(std::size_t size);

    [[nodiscard]] std::size_t size() const { return parts_.levels.size(); }
    [[nodiscard]] Child of(Variable child) const;
    [[nodiscard]] const LocalScore* support() const { return parts_.support.get(); }

private:
    Parts parts_;
};

}  // namespace isthmus
