#include "exact/decomposition.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/line_scan.hpp"
#include "exact/strong_parts.hpp"

namespace isthmus {

Decomposition::Decomposition(std::vector<std::int64_t> starts, std::span<const Word> sets,
                             std::span<const double> scores, double slack,
                             std::shared_ptr<const void> owner)
    : sets_{sets}, scores_{scores}, slack_{slack}, owner_{std::move(owner)} {
    if (starts.empty() || starts.front() != 0 || !std::ranges::is_sorted(starts) ||
        starts.back() != static_cast<std::int64_t>(scores_.size())) {
        throw std::invalid_argument{"starts must ascend from 0 to the number of lines"};
    }
    if (scores_.size() >= std::numeric_limits<std::uint32_t>::max()) {
        throw std::length_error{"there are too many lines"};
    }
    const std::size_t d = starts.size() - 1;
    words_ = words_for(d);
    if (sets_.size() != scores_.size() * words_) {
        throw std::invalid_argument{"sets need one bit for each node, in words of 64"};
    }
    lists_.resize(d);
    Nodes all;
    for (std::size_t v = 0; v < d; ++v) {
        all.push_back(static_cast<Variable>(v));
        for (auto line = starts[v]; line < starts[v + 1]; ++line) {
            lists_[v].push_back(static_cast<std::uint32_t>(line));
        }
    }
    inside_.resize(words_);
    masked_.resize(words_);
    if (d > 0) waiting_.push_back(std::move(all));
}

bool Decomposition::step(Watch& watch) {
    run_slice([&] {
        advance(watch);
    });
    return done();
}

void Decomposition::advance(Watch& watch) {
    while (!done()) {
        if (parts_.empty()) {
            split(watch);
        } else {
            restrict_part(watch);
        }
        watch.poll();
    }
}

/// Splits the last part that waits into strongly connected ones.
void Decomposition::split(Watch& watch) {
    const Nodes& nodes = waiting_.back();
    std::vector<std::size_t> place(lists_.size(), lists_.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) place[index(nodes[i])] = i;
    while (candidates_.size() < nodes.size()) {
        std::ranges::fill(masked_, 0);
        for (const std::uint32_t line : lists_[index(nodes[candidates_.size()])]) {
            for (std::size_t w = 0; w < words_; ++w) masked_[w] |= row(line)[w];
        }
        auto& candidates = candidates_.emplace_back();
        for_each(masked_, [&](Variable p) { candidates.push_back(p); });
        watch.poll();
    }
    Successors successors(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const Variable p : candidates_[i]) {
            if (index(p) < place.size() && place[index(p)] < nodes.size()) {
                successors[place[index(p)]].push_back(i);
            }
        }
    }
    const auto parts = strong_parts(successors, watch);
    candidates_.clear();
    if (parts.size() == 1 && nodes.size() > 1) {
        add_component(nodes);
        waiting_.pop_back();
        return;
    }
    for (const auto& part : parts) {
        Nodes& own = parts_.emplace_back();
        for (const std::size_t i : part) own.push_back(nodes[i]);
    }
    std::ranges::reverse(parts_);
    waiting_.pop_back();
}

/// Restricts the next part to its own nodes; it is a component, or waits to be split again.
void Decomposition::restrict_part(Watch& watch) {
    Nodes& part = parts_.back();
    std::ranges::fill(inside_, 0);
    for (const Variable v : part) add(inside_, v);
    while (restricted_ < part.size()) {
        filter(part[restricted_], watch);
        ++restricted_;
        watch.poll();
    }
    restricted_ = 0;
    if (part.size() == 1) {
        add_component(part);
    } else {
        waiting_.push_back(std::move(part));
    }
    parts_.pop_back();
}

/// Leaves out sets that score less than a subset, by more than the slack.
void Decomposition::filter(Variable v, Watch& watch) {
    auto& lines = lists_[index(v)];
    if (!filter_) filter_.emplace();
    while (filter_->next < lines.size()) {
        filter_one(*filter_, lines[filter_->next]);
        ++filter_->next;
        if (filter_->next % 16 == 0) watch.poll();
    }
    lines = std::move(filter_->kept);
    filter_.reset();
}

void Decomposition::filter_one(Filter& filter, std::uint32_t line) {
    for (std::size_t w = 0; w < words_; ++w) masked_[w] = row(line)[w] & inside_[w];
    const double score = scores_[line];
    const Word outside = ~fold(masked_);
    const std::size_t seen = filter.scores.size();
    std::size_t same = seen;
    for (std::size_t at = first_disjoint(filter.folded.data(), 0, seen, outside); at < seen;
         at = first_disjoint(filter.folded.data(), at + 1, seen, outside)) {
        const std::span<const Word> other{filter.sets.data() + at * words_, words_};
        if (std::ranges::equal(other, masked_)) {
            same = at;
        } else if (score <= filter.scores[at] - slack_ && is_subset(other, masked_)) {
            return;
        }
    }
    if (same == seen) {
        filter.sets.insert(filter.sets.end(), masked_.begin(), masked_.end());
        filter.folded.push_back(~outside);
        filter.scores.push_back(score);
    } else if (slack_ == 0.0 || score < filter.scores[same] - slack_) {
        return;
    }
    filter.kept.push_back(line);
}

void Decomposition::add_component(const Nodes& nodes) {
    std::vector<std::size_t> place(lists_.size(), nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) place[index(nodes[i])] = i;
    const std::size_t words = words_for(nodes.size());
    Component component{.nodes = nodes, .starts = {0}, .sets = {}, .scores = {}, .lines = {}};
    for (const Variable v : nodes) {
        for (const std::uint32_t line : lists_[index(v)]) {
            component.sets.resize(component.sets.size() + words);
            const auto target = std::span{component.sets}.last(words);
            for_each(row(line), [&](Variable p) {
                const std::size_t own = index(p) < place.size() ? place[index(p)] : nodes.size();
                if (own < nodes.size()) add(target, static_cast<Variable>(own));
            });
            component.scores.push_back(scores_[line]);
            component.lines.push_back(line);
        }
        component.starts.push_back(static_cast<std::int64_t>(component.scores.size()));
    }
    components_.push_back(std::move(component));
}

}  // namespace isthmus
