#include "screened/family_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/simd.hpp"

namespace isthmus {

namespace {

/// Room for factors, which functions work with.
struct Scratch {
    std::vector<double> solved;    // one row for each parent, over candidates and the child
    std::vector<double> variance;  // of candidates and the child, given the parents
    std::vector<double> left;      // of the child, given each candidate as well
    std::vector<std::pair<double, FamilyTree::Local>> order;
    std::vector<double> matrix;
    std::vector<FamilyTree::Local> path;
};

Scratch& scratch() {
    thread_local Scratch room;
    return room;
}

/// Takes one more parent out of all columns: `row` becomes its own part, divided by its deviation.
ISTHMUS_CLONES void eliminate(double* row, const double* correlation, const double* solved,
                              const double* factors, std::size_t stride, std::size_t parents,
                              double scale, double* variance, std::size_t width) {
    for (std::size_t j = 0; j < width; ++j) row[j] = correlation[j];
    for (std::size_t t = 0; t < parents; ++t) {
        const double f = factors[t];
        const double* const other = solved + t * stride;
        for (std::size_t j = 0; j < width; ++j) row[j] -= f * other[j];
    }
    for (std::size_t j = 0; j < width; ++j) {
        row[j] *= scale;
        variance[j] -= row[j] * row[j];
    }
}

/// What is left of the child if each candidate is a further parent.
ISTHMUS_CLONES void try_candidates(double* left, const double* correlation, const double* solved,
                                   std::size_t stride, std::size_t parents, const double* variance,
                                   double tolerance, std::size_t width) {
    const std::size_t child = width;
    for (std::size_t j = 0; j < width; ++j) left[j] = correlation[j];
    for (std::size_t t = 0; t < parents; ++t) {
        const double* const row = solved + t * stride;
        const double own = row[child];
        for (std::size_t j = 0; j < width; ++j) left[j] -= own * row[j];
    }
    for (std::size_t j = 0; j < width; ++j) {
        // A candidate that the parents determine explains nothing.
        const double pivot = variance[j] > tolerance ? variance[j] : 1e300;
        left[j] = variance[child] - left[j] * left[j] / pivot;
    }
}

double score_of(const GaussianCriterion& criterion, std::size_t parents, double variance) {
    return criterion.constant[parents] -
           criterion.factor * std::log(std::max(variance, criterion.tolerance));
}

/// The factor of the parents' correlations and the child's, in `room.solved`; returns what is left
/// of the child.
double factor(std::span<const double> correlation, std::size_t width,
              std::span<const FamilyTree::Local> parents, double tolerance, Scratch& room) {
    const std::size_t stride = width + 1;
    const std::size_t k = parents.size();
    room.solved.resize(std::max(room.solved.size(), (k + 1) * stride));
    room.variance.assign(stride, 1.0);
    room.matrix.resize(std::max(room.matrix.size(), k + 1));
    for (std::size_t i = 0; i < k; ++i) {
        const std::size_t p = parents[i];
        for (std::size_t t = 0; t < i; ++t) room.matrix[t] = room.solved[t * stride + p];
        const double pivot = room.variance[p];
        // A parent that the earlier ones determine explains nothing.
        const double scale = pivot > tolerance ? 1.0 / std::sqrt(pivot) : 0.0;
        eliminate(room.solved.data() + i * stride, correlation.data() + p * stride,
                  room.solved.data(), room.matrix.data(), stride, i, scale, room.variance.data(),
                  stride);
    }
    return room.variance[width];
}

}  // namespace

FamilyTree::FamilyTree(std::vector<double> correlation, std::vector<std::uint8_t> allowed,
                       std::vector<Local> required)
    : correlation_{std::move(correlation)},
      allowed_{std::move(allowed)},
      required_{std::move(required)} {
    const std::size_t width = candidates() + 1;
    if (correlation_.size() != width * width) {
        throw std::invalid_argument{"the correlations are not those of the candidates and the child"};
    }
    if (candidates() > std::numeric_limits<Local>::max()) {
        throw std::invalid_argument{"there are too many candidates"};
    }
    for (const Local p : required_) {
        if (p >= candidates()) throw std::invalid_argument{"a required parent is no candidate"};
    }
    leaves_.push_back({});  // the number 0 means that there is none
    nodes_.push_back({});
}

FamilyTree::Family FamilyTree::find(const Available& available,
                                    const GaussianCriterion& criterion) {
    std::vector<Local>& path = scratch().path;
    path.assign(required_.begin(), required_.end());
    std::uint32_t at = 0;
    while (true) {
        if (!nodes_[at].expanded) expand(at, path, criterion);
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
        const std::uint32_t leaf = shrink(path, nodes_[at].score, criterion);
        nodes_[at].leaf = leaf;
    }
    const Leaf& leaf = leaves_[nodes_[at].leaf];
    return {leaf.score, {parents_.data() + leaf.first, leaf.parents}};
}

void FamilyTree::expand(std::uint32_t node, std::span<const Local> parents,
                        const GaussianCriterion& criterion) {
    Scratch& room = scratch();
    const std::size_t width = candidates();
    const std::size_t stride = width + 1;
    const std::size_t k = parents.size();
    const double variance = factor(correlation_, width, parents, criterion.tolerance, room);
    Node& own = nodes_[node];
    own.score = score_of(criterion, k, variance);
    own.expanded = true;
    own.first = static_cast<std::uint32_t>(branches_.size());
    own.branches = 0;
    if (k >= criterion.max_parents || k + 1 >= criterion.constant.size()) return;
    room.left.resize(std::max(room.left.size(), width));
    try_candidates(room.left.data(), correlation_.data() + width * stride, room.solved.data(),
                   stride, k, room.variance.data(), criterion.tolerance, width);
    // What must be left of the child for the score to rise.
    const double below =
        std::max(variance, criterion.tolerance) *
        std::exp((criterion.constant[k + 1] - criterion.constant[k]) / criterion.factor);
    room.order.clear();
    for (std::size_t j = 0; j < width; ++j) {
        if (!(room.left[j] < below) || allowed_[j] == 0) continue;
        if (std::ranges::find(parents, j) != parents.end()) continue;
        room.order.emplace_back(room.left[j], static_cast<Local>(j));
    }
    std::ranges::sort(room.order);
    for (const auto& [left, candidate] : room.order) {
        branches_.push_back({.node = 0, .candidate = candidate});
    }
    own.branches = static_cast<std::uint32_t>(room.order.size());
}

/// Takes parents away as long as that raises the score.
std::uint32_t FamilyTree::shrink(std::vector<Local>& parents, double score,
                                 const GaussianCriterion& criterion) {
    Scratch& room = scratch();
    const std::size_t fixed = required_.size();
    // The last one was added because it raises the score.
    std::size_t kept = 1;
    while (parents.size() > std::max<std::size_t>(fixed, 1)) {
        const std::size_t k = parents.size();
        double best = score;
        std::size_t worst = k;
        std::vector<Local> others(parents.begin() + 1, parents.end());
        for (std::size_t i = 0; i + kept < k; ++i) {
            if (i > 0) others[i - 1] = parents[i - 1];
            if (i < fixed) continue;
            const double left =
                factor(correlation_, candidates(), others, criterion.tolerance, room);
            const double without = score_of(criterion, k - 1, left);
            if (without > best) {
                best = without;
                worst = i;
            }
        }
        if (worst == k) break;
        parents.erase(parents.begin() + static_cast<std::ptrdiff_t>(worst));
        score = best;
        kept = 0;
    }
    const auto leaf = static_cast<std::uint32_t>(leaves_.size());
    leaves_.push_back({.score = score,
                       .first = static_cast<std::uint32_t>(parents_.size()),
                       .parents = static_cast<std::uint32_t>(parents.size())});
    parents_.insert(parents_.end(), parents.begin(), parents.end());
    return leaf;
}

std::vector<double> FamilyTree::coefficients(std::span<const Local> parents,
                                             const GaussianCriterion& criterion) const {
    Scratch& room = scratch();
    const std::size_t stride = candidates() + 1;
    const std::size_t k = parents.size();
    (void)factor(correlation_, candidates(), parents, criterion.tolerance, room);
    std::vector<double> weight(k);
    for (std::size_t i = k; i-- > 0;) {
        // Row i of the factor over later parents, and over the child.
        double s = room.solved[i * stride + candidates()];
        for (std::size_t j = i + 1; j < k; ++j) s -= room.solved[i * stride + parents[j]] * weight[j];
        const double own = room.solved[i * stride + parents[i]];
        weight[i] = own > 0.0 ? s / own : 0.0;
    }
    return weight;
}

}  // namespace isthmus
