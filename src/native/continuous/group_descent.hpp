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
    /// Sweeps over all groups alternate with many over those that are not zero. These need only
    /// part of the features, which is copied: it is small, and the gradient of it is quick to keep.
    enum class Phase { fill, all, gather, active, scatter };
    struct Active {
        std::size_t group;
        std::size_t place;  // of its first coefficient among those of all active groups
    };

    void advance(Watch& watch);
    void fill(Watch& watch);
    void sweep_all(Watch& watch);
    void choose_active();
    void gather(Watch& watch);
    void sweep_active(Watch& watch);
    void scatter(Watch& watch);
    [[nodiscard]] bool move(std::size_t group, std::size_t place, std::span<double> coefficients,
                            std::span<double> gradient, std::span<const double> features);
    [[nodiscard]] bool end_sweep();
    [[nodiscard]] std::size_t begin_of(std::size_t group) const {
        return static_cast<std::size_t>(starts_[group]);
    }
    [[nodiscard]] std::size_t size_of(std::size_t group) const {
        return begin_of(group + 1) - begin_of(group);
    }
    [[nodiscard]] std::span<const double> part(std::span<const double> values, std::size_t place,
                                               std::size_t group) const {
        return values.subspan(place, size_of(group));
    }

    std::span<const double> features_;
    std::vector<Variable> starts_;
    std::vector<double> steeps_;
    std::size_t size_;
    Problem problem_;
    std::vector<double> coefficients_;
    std::vector<double> gradient_;
    std::vector<double> delta_;
    std::vector<Active> active_;
    std::vector<std::size_t> places_;  // of the active coefficients among all
    std::vector<double> active_coefficients_;
    std::vector<double> active_gradient_;
    std::vector<double> active_features_;
    std::vector<double> changes_;  // of the active coefficients
    Phase phase_ = Phase::all;
    bool copied_ = false;  // whether the active part was copied
    std::size_t row_ = 0;  // to be filled in, gathered or scattered next
    std::size_t at_ = 0;   // cause that moves next
    std::size_t sweeps_ = 0;
    double worst_ = 0.0;
    bool finished_ = true;
    InUse in_use_;
};

}  // namespace isthmus
