#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/exclusive.hpp"
#include "core/types.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Minimises c'Sc / 2 - b'c + Σ penalty |c of a group| by block coordinate descent.
class GroupDescent {
public:
    struct Problem {
        std::vector<double> cross;      // b
        std::vector<double> penalties;  // of each group
        std::vector<Variable> causes;   // groups that may move; the others keep their coefficients
        double tolerance;               // largest change of a gradient in the last sweep
        std::size_t limit;              // number of sweeps
    };

    /// `features` is S, which must outlive this object: it may be too large for a copy. Group k has
    /// the coefficients from `starts[k]` to `starts[k + 1]`; `steeps[k]` is the largest eigenvalue
    /// of its block of S.
    GroupDescent(std::span<const double> features, std::vector<Variable> starts,
                 std::vector<double> steeps);

    /// Starts from these coefficients.
    void begin(Problem problem, std::vector<double> coefficients);
    /// Returns whether the minimum, or the limit of sweeps, is reached.
    bool step(Watch& watch);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t groups() const { return steeps_.size(); }
    [[nodiscard]] std::size_t sweeps() const { return sweeps_; }
    [[nodiscard]] bool finished() const { return finished_; }
    [[nodiscard]] std::span<const double> coefficients() const { return coefficients_; }

    /// Two threads must not use one object at the same time; bindings claim it.
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    void advance(Watch& watch);
    [[nodiscard]] bool idle(std::size_t start, std::size_t stop) const;
    [[nodiscard]] bool move(std::size_t group);
    void end_sweep();

    std::span<const double> features_;
    std::vector<Variable> starts_;
    std::vector<double> steeps_;
    std::size_t size_;
    Problem problem_;
    std::vector<double> coefficients_;
    std::vector<double> gradient_;
    std::vector<double> delta_;
    std::size_t filled_ = 0;  // coefficients that are in the gradient
    std::size_t at_ = 0;      // cause that moves next
    std::size_t sweeps_ = 0;
    double worst_ = 0.0;
    bool everything_ = true;
    bool finished_ = true;
    InUse in_use_;
};

}  // namespace isthmus
