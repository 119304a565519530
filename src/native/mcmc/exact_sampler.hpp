#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/exclusive.hpp"
#include "core/random.hpp"
#include "mcmc/exact_posterior.hpp"

namespace isthmus {

/// Independent draws of graphs from the exact posterior.
///
/// A graph is drawn layer by layer: first its sources, then the nodes with parents among these only,
/// and so on. Whether a node is in the next layer is decided node by node. With U the nodes placed
/// and L the last layer, the weight of all completions that agree with the decisions is
///
///     sum over K of prod(c(u), u in K) g(U with K),
///
/// where c(u) is -a(u, U without L) for undecided nodes, which have a parent in L or outside of U,
/// -a(u, U) for nodes that are not in the layer, and a(u, U) - a(u, U without L) for those in it,
/// which are all in K. At last, each node draws its parents from U, with one in L at least.
class ExactSampler {
public:
    /// The posterior must be done, and must not be stepped again.
    ExactSampler(std::shared_ptr<ExactPosterior> posterior, std::uint64_t seed);

    /// Draws until this number of graphs is reached or the watch ends the slice; returns whether
    /// it is reached.
    bool step(std::size_t draws, Watch& watch);

    [[nodiscard]] std::size_t size() const { return posterior_->weights()->size(); }
    [[nodiscard]] const ExactPosterior& posterior() const { return *posterior_; }
    [[nodiscard]] std::size_t draws() const { return scores_.size(); }
    /// For each draw and node the parents as bits.
    [[nodiscard]] const std::vector<Word>& parents() const { return parents_; }
    /// The logarithm of the weight of each draw.
    [[nodiscard]] const std::vector<double>& scores() const { return scores_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    /// The heaviest parent sets of a node, best first.
    struct Heavy {
        std::vector<Word> sets;
        std::vector<double> logs;
    };

    void list_heavy(std::size_t v);
    bool draw();
    [[nodiscard]] Word draw_layer(Word placed, Word last);
    void read_levels(Word placed, Word last);
    [[nodiscard]] Word draw_parents(std::size_t v, Word placed, Word last);
    /// a(v, part of whole), with the exponent of a(v, whole).
    [[nodiscard]] double sum_within(std::size_t v, Word part, Word whole) const;
    [[nodiscard]] double uniform() {
        return static_cast<double>(random_.next() >> 11) * 0x1.0p-53;
    }

    std::shared_ptr<ExactPosterior> posterior_;
    SplitMix random_;
    std::vector<Heavy> heavy_;
    std::vector<std::size_t> nodes_;  // outside of the placed ones
    std::vector<std::int32_t> exponents_;
    ZeroedArray<double> levels_;  // sums over the undecided nodes, with k decided at 2^k
    ZeroedArray<double> decided_;
    std::vector<double> first_;  // what the first layer reads, which is the same for all draws
    std::vector<Word> family_;   // of the draw under way
    std::vector<Word> parents_;
    std::vector<double> scores_;
    InUse in_use_;
};

}  // namespace isthmus
