#include "mcmc/partition.hpp"

#include <algorithm>
#include <stdexcept>

namespace isthmus {

namespace {

bool equal(std::span<const Word> a, std::span<const Word> b) { return std::ranges::equal(a, b); }

}  // namespace

Partition::Partition(std::size_t nodes)
    : labels_(nodes),
      sizes_(nodes + 1),
      members_{nodes + 1, words_for(nodes)},
      before_{nodes + 1, words_for(nodes)},
      weights_(nodes) {}

void Partition::index(const Labels& labels) {
    labels_ = labels;
    count_ = labels.empty() ? 0 : std::ranges::max(labels) + std::size_t{1};
    for (std::size_t e = 0; e < count_; ++e) {
        sizes_[e] = 0;
        std::ranges::fill(members_.row(e), 0);
    }
    for (std::size_t v = 0; v < labels.size(); ++v) {
        add(members_.row(labels[v]), static_cast<Variable>(v));
        ++sizes_[labels[v]];
    }
    std::ranges::fill(before_.row(0), 0);
    for (std::size_t e = 0; e < count_; ++e) {
        for (std::size_t w = 0; w < members_.columns(); ++w) {
            before_.row(e + 1)[w] = before_.row(e)[w] | members_.row(e)[w];
        }
    }
}

void Partition::set(const Labels& labels, const FamilyTables& tables) {
    index(labels);
    total_ = 0.0;
    for (std::size_t v = 0; v < labels_.size(); ++v) {
        weights_[v] = weigh(v, tables);
        total_ += weights_[v];
    }
}

void Partition::set(const Labels& labels, const FamilyTables& tables, const Partition& other) {
    index(labels);
    // Elements of both partitions that stand at the same place in the same way.
    total_ = 0.0;
    for (std::size_t v = 0; v < labels_.size(); ++v) {
        const bool same = equal(allowed(v), other.allowed(v)) && equal(wanted(v), other.wanted(v));
        weights_[v] = same ? other.weights_[v] : weigh(v, tables);
        total_ += weights_[v];
    }
}

double Partition::weigh(std::size_t node, const FamilyTables& tables) const {
    if (labels_[node] == 0) return tables[node].total(allowed(node));
    return tables[node].restricted(allowed(node), wanted(node));
}

Partition::Labels partition_of(const Matrix<Word>& parents) {
    const std::size_t d = parents.rows();
    constexpr auto open = static_cast<std::uint32_t>(-1);
    Partition::Labels labels(d, open);
    std::vector<Word> placed(parents.columns());
    std::size_t left = d;
    for (std::uint32_t label = 0; left > 0; ++label) {
        std::vector<std::size_t> ready;
        for (std::size_t v = 0; v < d; ++v) {
            if (labels[v] == open && is_subset(parents.row(v), placed)) ready.push_back(v);
        }
        if (ready.empty()) throw std::invalid_argument{"the graph has a cycle"};
        for (const std::size_t v : ready) {
            labels[v] = label;
            add(placed, static_cast<Variable>(v));
        }
        left -= ready.size();
    }
    return labels;
}

}  // namespace isthmus
