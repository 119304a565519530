#include "mcmc/partition_chain.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "scoring/log_gamma.hpp"

namespace isthmus {

namespace {

/// Nodes whose parents are drawn at once: six cost about as much as all other moves of a round.
constexpr std::size_t block = 6;
/// The same in tests of single moves, which go through all choices.
constexpr std::size_t small_block = 3;

/// The logarithm of the probability of one division of `size` nodes into two parts, the first with
/// `first` nodes: its size is drawn first, from 1 to size - 1.
double log_division(std::size_t size, std::size_t first) {
    const auto n = static_cast<double>(size);
    const auto k = static_cast<double>(first);
    const double subsets = log_gamma(n + 1.0) - log_gamma(k + 1.0) - log_gamma(n - k + 1.0);
    return -std::log(n - 1.0) - subsets;
}

std::size_t divisible(const Partition& partition) {
    std::size_t count = 0;
    for (std::size_t e = 0; e < partition.elements(); ++e) count += partition.size(e) > 1 ? 1 : 0;
    return count;
}

}  // namespace

PartitionChain::PartitionChain(std::shared_ptr<const FamilyTables> tables, const Labels& labels)
    : tables_{std::move(tables)},
      now_{labels.size()},
      next_{labels.size()},
      relocation_{*tables_},
      reversal_{*tables_},
      block_{*tables_},
      graph_{.parents = {labels.size(), words_for(labels.size())}, .score = 0.0} {
    set_labels(labels);
}

void PartitionChain::set_labels(const Labels& labels) { now_.set(labels, *tables_); }

void PartitionChain::move(std::size_t kind, Chance& chance) {
    switch (static_cast<Move>(kind)) {
        case relocate: return relocate_node(chance);
        case swap_near: return swap_neighbours(chance);
        case swap_any: return swap_nodes(chance);
        case split_or_merge: return chance.below(2) == 0 ? split(chance) : merge(chance);
        case reverse_edge: return reverse_edges(1, chance);
        case resample_block: return resample(small_block, chance);
    }
}

void PartitionChain::round(Chance& chance) {
    // Relocations mix best where scores are flat, reversals where they are peaked, and blocks leave
    // modes that differ in the edges among several nodes.
    for (int i = 0; i < 3; ++i) {
        relocate_node(chance);
        swap_nodes(chance);
    }
    swap_neighbours(chance);
    move(split_or_merge, chance);
    // In a hot chain every reversal needs the weight of a whole partition.
    reverse_edges(heat_ == 1.0 ? 6 : 4, chance);
    resample(block, chance);
}

void PartitionChain::propose(double log_ratio, Chance& chance) {
    next_.set(proposal_, *tables_, now_);
    const double gain = next_.log_weight() - now_.log_weight();
    if (chance.accept(heat_ * gain + log_ratio)) std::swap(now_, next_);
}

void PartitionChain::relocate_node(Chance& chance) {
    const std::size_t node = chance.below(now_.nodes());
    relocation_.propose(now_, node, heat_, chance, proposal_);
    if (proposal_ == now_.labels()) return;
    next_.set(proposal_, *tables_, now_);
    std::swap(now_, next_);
}

void PartitionChain::swap_neighbours(Chance& chance) {
    if (now_.elements() < 2) return;
    const std::size_t e = chance.below(now_.elements() - 1);
    const auto first = nodes_of(e);
    const auto second = nodes_of(e + 1);
    proposal_ = now_.labels();
    std::swap(proposal_[first[chance.below(first.size())]],
              proposal_[second[chance.below(second.size())]]);
    propose(0.0, chance);
}

void PartitionChain::swap_nodes(Chance& chance) {
    if (now_.elements() < 2) return;
    const std::size_t a = chance.below(now_.nodes());
    const std::size_t b = chance.below(now_.nodes());
    if (now_.labels()[a] == now_.labels()[b]) return;
    proposal_ = now_.labels();
    std::swap(proposal_[a], proposal_[b]);
    propose(0.0, chance);
}

void PartitionChain::split(Chance& chance) {
    const std::size_t choices = divisible(now_);
    if (choices == 0) return;
    std::size_t e = 0;
    for (std::size_t skip = chance.below(choices) + 1; skip > 0; ++e) {
        if (now_.size(e) > 1) --skip;
    }
    --e;
    auto nodes = nodes_of(e);
    const std::size_t first = chance.below(nodes.size() - 1) + 1;
    for (std::size_t i = 0; i < first; ++i) {
        std::swap(nodes[i], nodes[i + chance.below(nodes.size() - i)]);
    }
    proposal_ = now_.labels();
    for (std::uint32_t& label : proposal_) label += label > e ? 1 : 0;
    for (std::size_t i = first; i < nodes.size(); ++i) ++proposal_[nodes[i]];
    const double there =
        -std::log(static_cast<double>(choices)) + log_division(nodes.size(), first);
    const double back = -std::log(static_cast<double>(now_.elements()));
    propose(back - there, chance);
}

void PartitionChain::merge(Chance& chance) {
    if (now_.elements() < 2) return;
    const std::size_t e = chance.below(now_.elements() - 1);
    proposal_ = now_.labels();
    for (std::uint32_t& label : proposal_) label -= label > e ? 1 : 0;
    const std::size_t first = now_.size(e);
    const std::size_t size = first + now_.size(e + 1);
    // The merged element can be divided; its two parts may or may not have been.
    std::size_t choices = divisible(now_) + 1;
    choices -= first > 1 ? 1 : 0;
    choices -= size - first > 1 ? 1 : 0;
    const double there = -std::log(static_cast<double>(now_.elements() - 1));
    const double back = -std::log(static_cast<double>(choices)) + log_division(size, first);
    propose(back - there, chance);
}

void PartitionChain::reverse_edges(std::size_t count, Chance& chance) {
    draw(graph_, chance);
    reversal_.start(graph_.parents);
    for (std::size_t i = 0; i < count; ++i) {
        if (!reversal_.propose(chance)) continue;
        if (heat_ == 1.0) {
            if (chance.accept(reversal_.log_ratio())) reversal_.commit();
            continue;
        }
        // With the graph as part of the state, the target is the graph's weight times that of its
        // partition to the power of heat - 1.
        next_.set(partition_of(reversal_.proposal()), *tables_, now_);
        const double gain = next_.log_weight() - now_.log_weight();
        if (chance.accept(reversal_.log_ratio() + (heat_ - 1.0) * gain)) {
            reversal_.commit();
            std::swap(now_, next_);
        }
    }
    if (heat_ == 1.0 && reversal_.changed()) {
        next_.set(partition_of(reversal_.parents()), *tables_, now_);
        std::swap(now_, next_);
    }
}

void PartitionChain::resample(std::size_t size, Chance& chance) {
    // In a hot chain the weight of a graph is no product over families.
    if (heat_ != 1.0) return;
    draw(graph_, chance);
    block_.resample(graph_.parents, size, chance);
    next_.set(partition_of(graph_.parents), *tables_, now_);
    std::swap(now_, next_);
}

void PartitionChain::draw(Graph& graph, Chance& chance) const {
    graph.score = 0.0;
    for (std::size_t v = 0; v < now_.nodes(); ++v) {
        const auto family = (*tables_)[v].draw(now_.allowed(v), now_.wanted(v), chance);
        (*tables_)[v].parents(family, graph.parents.row(v));
        graph.score += family.score;
    }
}

void PartitionChain::demands(ParentDemands& demands) const {
    for (std::size_t v = 0; v < now_.nodes(); ++v) {
        std::ranges::copy(now_.allowed(v), demands.allowed.row(v).begin());
        std::ranges::fill(demands.wanted.row(v), 0);
        std::ranges::copy(now_.wanted(v), demands.wanted.row(v).begin());
    }
}

std::vector<std::size_t> PartitionChain::nodes_of(std::size_t element) const {
    std::vector<std::size_t> nodes;
    for_each(now_.element(element),
             [&](Variable v) { nodes.push_back(static_cast<std::size_t>(v)); });
    return nodes;
}

}  // namespace isthmus
