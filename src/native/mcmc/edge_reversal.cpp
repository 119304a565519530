#include "mcmc/edge_reversal.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace isthmus {

EdgeReversal::EdgeReversal(const FamilyTables& tables)
    : tables_{tables},
      parents_{tables.size(), words_for(tables.size())},
      proposal_{parents_},
      children_{parents_},
      allowed_(words_for(tables.size())),
      single_(allowed_),
      everything_(allowed_),
      waiting_(allowed_),
      none_(allowed_) {
    for (std::size_t v = 0; v < tables.size(); ++v) add(everything_, static_cast<Variable>(v));
}

void EdgeReversal::start(const Matrix<Word>& parents) {
    parents_ = parents;
    changed_ = false;
}

bool EdgeReversal::propose(Chance& chance) {
    edges_.clear();
    std::size_t kept = 0;
    for (std::size_t v = 0; v < parents_.rows(); ++v) {
        for_each(parents_.row(v), [&](Variable u) {
            edges_.emplace_back(static_cast<std::size_t>(u), v);
        });
    }
    if (edges_.empty()) return false;
    const auto [i, j] = edges_[chance.below(edges_.size())];
    proposal_ = parents_;
    std::ranges::fill(proposal_.row(i), 0);
    std::ranges::fill(proposal_.row(j), 0);
    orphan(i, j);

    // There: parents of i, j among them, and then any parents of j.
    find_allowed(i, i, none_);
    std::ranges::fill(single_, 0);
    add(single_, static_cast<Variable>(j));
    log_ratio_ = tables_[i].restricted(allowed_, single_);
    if (log_ratio_ == -std::numeric_limits<double>::infinity()) return false;
    tables_[i].parents(tables_[i].draw(allowed_, single_, chance), proposal_.row(i));
    find_allowed(j, i, proposal_.row(i));
    const double second = tables_[j].total(allowed_);
    if (second == -std::numeric_limits<double>::infinity()) return false;
    log_ratio_ += second;
    tables_[j].parents(tables_[j].draw(allowed_, {}, chance), proposal_.row(j));

    // Back: parents of j, i among them, and then any parents of i.
    find_allowed(j, j, none_);
    std::ranges::fill(single_, 0);
    add(single_, static_cast<Variable>(i));
    log_ratio_ -= tables_[j].restricted(allowed_, single_);
    find_allowed(i, j, parents_.row(j));
    log_ratio_ -= tables_[i].total(allowed_);

    for (std::size_t v = 0; v < proposal_.rows(); ++v) kept += count(proposal_.row(v));
    log_ratio_ += std::log(static_cast<double>(edges_.size()) / static_cast<double>(kept));
    return true;
}

void EdgeReversal::commit() {
    std::swap(parents_, proposal_);
    changed_ = true;
}

void EdgeReversal::orphan(std::size_t i, std::size_t j) {
    for (std::size_t v = 0; v < children_.rows(); ++v) std::ranges::fill(children_.row(v), 0);
    for (const auto& [parent, child] : edges_) {
        if (child != i && child != j) add(children_.row(parent), static_cast<Variable>(child));
    }
}

void EdgeReversal::find_allowed(std::size_t node, std::size_t other,
                                std::span<const Word> parents) {
    std::ranges::copy(everything_, allowed_.begin());
    flip(allowed_, static_cast<Variable>(node));
    std::ranges::fill(waiting_, 0);
    add(waiting_, static_cast<Variable>(node));
    for (std::size_t w = 0; w < waiting_.size();) {
        if (waiting_[w] == 0) {
            ++w;
            continue;
        }
        const auto v = static_cast<Variable>(64 * w) + std::countr_zero(waiting_[w]);
        flip(waiting_, v);
        const auto children = children_.row(static_cast<std::size_t>(v));
        std::size_t first = w;
        const auto visit = [&](std::size_t word, Word found) {
            found &= allowed_[word];
            allowed_[word] &= ~found;
            waiting_[word] |= found;
            if (found != 0) first = std::min(first, word);
        };
        for (std::size_t word = 0; word < children.size(); ++word) visit(word, children[word]);
        if (has(parents, v)) visit(other / 64, Word{1} << (other % 64));
        w = first;
    }
}

}  // namespace isthmus
