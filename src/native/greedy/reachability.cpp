#include "greedy/reachability.hpp"

#include <algorithm>

namespace isthmus {

void Reachability::join(Variable source, Variable child) {
    const auto own = reach_.row(static_cast<std::size_t>(source));
    const auto other = row(child);
    for (std::size_t w = 0; w < own.size(); ++w) own[w] |= other[w];
    own[word(child)] |= std::uint64_t{1} << (child & 63);
}

void Reachability::add(Variable parent, Variable child) {
    for (std::size_t x = 0; x < pending_.size(); ++x) {
        const auto source = static_cast<Variable>(x);
        if (source == parent || test(source, parent)) join(source, child);
    }
}

bool Reachability::rebuild(const std::vector<std::vector<Variable>>& parents) {
    const std::size_t d = parents.size();
    // From the sinks up: a node is done when all its children are.
    std::ranges::fill(pending_, 0);
    for (std::size_t x = 0; x < d; ++x) {
        std::ranges::fill(reach_.row(x), 0);
        for (const Variable parent : parents[x]) ++pending_[static_cast<std::size_t>(parent)];
    }
    stack_.clear();
    for (std::size_t x = 0; x < d; ++x) {
        if (pending_[x] == 0) stack_.push_back(static_cast<Variable>(x));
    }
    std::size_t done = 0;
    while (!stack_.empty()) {
        const Variable child = stack_.back();
        stack_.pop_back();
        ++done;
        for (const Variable parent : parents[static_cast<std::size_t>(child)]) {
            join(parent, child);
            if (--pending_[static_cast<std::size_t>(parent)] == 0) stack_.push_back(parent);
        }
    }
    return done == d;
}

}  // namespace isthmus
