#include "screened/family_tree.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace isthmus {

namespace {

/// Room that trees share, because there are many of them.
struct Room {
    FamilyScores::Ranking raising;
    std::vector<FamilyTree::Local> path;
    std::vector<double> without;
};

Room& shared_room() {
    thread_local Room room;
    return room;
}

}  // namespace

std::vector<double> FamilyScores::coefficients(std::span<const Local>) const { return {}; }

FamilyTree::FamilyTree(std::unique_ptr<const FamilyScores> scores,
                       std::vector<std::uint8_t> allowed, std::vector<Local> required)
    : scores_{std::move(scores)}, allowed_{std::move(allowed)}, required_{std::move(required)} {
    if (candidates() > std::numeric_limits<Local>::max()) {
        throw std::invalid_argument{"there are too many candidates"};
    }
    for (const Local p : required_) {
        if (p >= candidates()) throw std::invalid_argument{"a required parent is no candidate"};
    }
    leaves_.push_back({});  // the number 0 means that there is none
    nodes_.push_back({});
}

FamilyTree::Family FamilyTree::find(const Available& available) {
    std::vector<Local>& path = shared_room().path;
    path.assign(required_.begin(), required_.end());
    std::uint32_t at = 0;
    while (true) {
        if (!nodes_[at].expanded) expand(at, path);
        const Branch* const begin = branches_.data() + nodes_[at].first;
        const Branch* const end = begin + nodes_[at].branches;
        const Branch* const taken = std::find_if(begin, end, [&](const Branch& branch) {
            return (available[branch.candidate >> 6] >> (branch.candidate & 63) & 1) != 0;
        });
        if (taken == end) break;
        path.push_back(taken->candidate);
        std::uint32_t next = taken->node;
        if (next == 0) {
            next = static_cast<std::uint32_t>(nodes_.size());
            branches_[static_cast<std::size_t>(taken - branches_.data())].node = next;
            nodes_.push_back({});
        }
        at = next;
    }
    if (nodes_[at].leaf == 0) {
        const std::uint32_t leaf = shrink(path, nodes_[at].score);
        nodes_[at].leaf = leaf;
    }
    const Leaf& leaf = leaves_[nodes_[at].leaf];
    return {leaf.score, {parents_.data() + leaf.first, leaf.parents}};
}

void FamilyTree::expand(std::uint32_t node, std::span<const Local> parents) {
    FamilyScores::Ranking& raising = shared_room().raising;
    raising.clear();
    const double score = scores_->extend(parents, allowed_, raising);
    std::ranges::sort(raising);
    nodes_[node] = {.score = score,
                    .first = static_cast<std::uint32_t>(branches_.size()),
                    .branches = static_cast<std::uint32_t>(raising.size()),
                    .leaf = 0,
                    .expanded = true};
    for (const auto& [rank, candidate] : raising) {
        branches_.push_back({.node = 0, .candidate = candidate});
    }
}

/// Takes parents away as long as that raises the score.
std::uint32_t FamilyTree::shrink(std::vector<Local>& parents, double score) {
    std::vector<double>& without = shared_room().without;
    const std::size_t fixed = required_.size();
    // The last one was added because it raises the score.
    std::size_t kept = 1;
    while (parents.size() > std::max<std::size_t>(fixed + kept, 1)) {
        without.resize(parents.size() - fixed - kept);
        scores_->reduce(parents, fixed, without);
        const auto best = std::ranges::max_element(without);
        if (!(*best > score)) break;
        score = *best;
        parents.erase(parents.begin() + static_cast<std::ptrdiff_t>(fixed) +
                      (best - without.begin()));
        kept = 0;
    }
    const auto leaf = static_cast<std::uint32_t>(leaves_.size());
    leaves_.push_back({.score = score,
                       .first = static_cast<std::uint32_t>(parents_.size()),
                       .parents = static_cast<std::uint32_t>(parents.size())});
    parents_.insert(parents_.end(), parents.begin(), parents.end());
    return leaf;
}

}  // namespace isthmus
