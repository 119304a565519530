#include "greedy/score_rows.hpp"

#include <algorithm>

namespace isthmus {

namespace {

// A row without entries points here: it has been asked for.
constexpr ScoreRows::Gain no_gains{};

}  // namespace

std::size_t ScoreRows::Shard::slot(std::uint64_t key) const {
    const std::size_t mask = entries_.size() - 1;
    auto place = static_cast<std::size_t>(key >> 20) & mask;
    while (entries_[place].key != key && entries_[place].key != 0) place = (place + 1) & mask;
    return place;
}

const ScoreRows::Entry* ScoreRows::Shard::find(std::uint64_t key) const {
    const Entry& entry = entries_[slot(key)];
    return entry.key == 0 ? nullptr : &entry;
}

ScoreRows::Entry& ScoreRows::Shard::at(std::uint64_t key) {
    if (2 * used_ >= entries_.size()) grow();
    Entry& entry = entries_[slot(key)];
    if (entry.key == 0) {
        entry.key = key;
        ++used_;
    }
    return entry;
}

void ScoreRows::Shard::grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
        if (entry.key != 0) entries_[slot(entry.key)] = entry;
    }
}

ScoreRows::ScoreRows(const LocalScore& score, const ClassRules& rules)
    : score_{score},
      rules_{rules},
      words_{(rules.size() + 63) / 64},
      mixed_(rules.size()),
      values_(rules.size() + 1) {
    for (std::size_t v = 0; v < mixed_.size(); ++v) mixed_[v] = mix(v);
    parents_.reserve(rules.size());
    candidates_.reserve(rules.size());
}

std::uint64_t ScoreRows::key(std::size_t child, const Word* parents) const {
    std::uint64_t key = mix(child | std::uint64_t{1} << 40);
    for_each(parents, words_, [&](std::size_t v) { key ^= mixed_[v]; });
    return key | 1;
}

void ScoreRows::list_parents(const Word* parents) {
    parents_.clear();
    for_each(parents, words_, [&](std::size_t v) { parents_.push_back(static_cast<Variable>(v)); });
}

double ScoreRows::score(std::size_t child, const Word* parents, Watch& watch) {
    const std::uint64_t k = key(child, parents);
    if (const Entry* const known = shard(k).find(k)) return known->value;
    list_parents(parents);
    score_.extensions(static_cast<Variable>(child), parents_, {}, std::span{values_}.first(1),
                      watch);
    ++evaluations_;
    const double value = values_[0];
    shard(k).at(k).value = value;
    watch.poll();
    return value;
}

std::span<const ScoreRows::Gain> ScoreRows::row(std::size_t child, const Word* parents,
                                                Watch& watch) {
    const std::uint64_t k = key(child, parents);
    if (const Entry* const known = shard(k).find(k); known != nullptr && known->gains != nullptr) {
        return {known->gains, known->count};
    }
    list_parents(parents);
    candidates_.clear();
    if (parents_.size() < rules_.max_parents()) {
        const Word* const open = rules_.open(child);
        for (std::size_t w = 0; w < words_; ++w) {
            for_each_in_word(open[w] & ~parents[w], w, [&](std::size_t v) {
                candidates_.push_back(static_cast<Variable>(v));
            });
        }
    }
    score_.extensions(static_cast<Variable>(child), parents_, candidates_,
                      std::span{values_}.first(candidates_.size() + 1), watch);
    evaluations_ += candidates_.size() + 1;
    const double base = values_[0];
    const auto gains_more = [&](std::size_t j) { return values_[1 + j] - base > tolerance_; };
    std::size_t count = 0;
    for (std::size_t j = 0; j < candidates_.size(); ++j) count += gains_more(j) ? 1 : 0;
    const std::span<Gain> list = gains_.allocate(count);
    std::size_t end = 0;
    for (std::size_t j = 0; j < candidates_.size(); ++j) {
        if (!gains_more(j)) continue;
        list[end++] = {.variable = static_cast<std::size_t>(candidates_[j]),
                       .gain = values_[1 + j] - base};
    }
    Entry& entry = shard(k).at(k);
    entry.value = base;
    entry.gains = count == 0 ? &no_gains : list.data();
    entry.count = count;
    watch.poll();
    return list;
}

}  // namespace isthmus
