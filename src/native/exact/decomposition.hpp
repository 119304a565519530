#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/bit_set.hpp"
#include "core/exclusive.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// Nodes that can be solved on their own, with their parent sets within them.
struct Component {
    std::vector<Variable> nodes;
    std::vector<std::int64_t> starts;  // of the lines of each of them
    std::vector<Word> sets;            // over positions in `nodes`
    std::vector<double> scores;
    std::vector<std::int64_t> lines;   // where each line stands in the table
};

/// Splits the nodes of a score table into parts that no cycle of possible parents connects.
///
/// Fan, Malone and Yuan 2014. Parents outside a part come before it in every order that matters, so
/// they are free; sets that differ in them only are one, which can split the part again.
class Decomposition {
public:
    /// A table in arrays of someone else, which `owner` keeps alive: best first for each node. Sets
    /// that score up to `slack` less than a subset stay.
    Decomposition(std::vector<std::int64_t> starts, std::span<const Word> sets,
                  std::span<const double> scores, double slack, std::shared_ptr<const void> owner);

    /// Goes on until the watch ends the slice; returns whether it is done.
    bool step(Watch& watch);

    [[nodiscard]] bool done() const { return waiting_.empty() && parts_.empty(); }
    [[nodiscard]] const std::vector<Component>& components() const { return components_; }
    [[nodiscard]] InUse::Guard claim() { return in_use_.claim(); }

private:
    using Nodes = std::vector<Variable>;

    /// The lines of one node that are worth keeping when only parents in a part count.
    struct Filter {
        std::size_t next = 0;
        std::vector<std::uint32_t> kept;
        // Sets seen so far, the best first: the sets, the same folded to one word, and scores.
        std::vector<Word> sets;
        std::vector<Word> folded;
        std::vector<double> scores;
    };

    void advance(Watch& watch);
    void split(Watch& watch);
    void restrict_part(Watch& watch);
    void filter(Variable v, Watch& watch);
    void filter_one(Filter& filter, std::uint32_t line);
    void add_component(const Nodes& nodes);
    [[nodiscard]] std::span<const Word> row(std::uint32_t line) const {
        return sets_.subspan(line * words_, words_);
    }

    std::size_t words_;
    std::span<const Word> sets_;
    std::span<const double> scores_;
    double slack_;
    std::shared_ptr<const void> owner_;

    std::vector<std::vector<std::uint32_t>> lists_;  // lines of each node that are left
    std::vector<Nodes> waiting_;                     // parts that may split again
    std::vector<Nodes> parts_;                       // of the one under way, the last one first
    std::vector<Component> components_;

    // The part that is being restricted to its own nodes.
    std::vector<Word> inside_;
    std::size_t restricted_ = 0;
    std::optional<Filter> filter_;
    std::vector<Word> masked_;

    // The union of the sets of each node, for splitting.
    std::vector<std::vector<Variable>> candidates_;
    InUse in_use_;
};

}  // namespace isthmus
