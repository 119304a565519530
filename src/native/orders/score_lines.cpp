#include "orders/score_lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace isthmus {

ScoreLines::ScoreLines(std::vector<std::int64_t> starts, const Word* sets, const double* scores,
                       std::size_t lines, std::size_t words, std::shared_ptr<const void> owner)
    : sets_{sets}, scores_{scores}, words_{words}, owner_{std::move(owner)} {
    if (starts.empty() || starts.front() != 0 ||
        starts.back() != static_cast<std::int64_t>(lines) || !std::ranges::is_sorted(starts)) {
        throw std::invalid_argument{"starts must ascend from 0 to the number of lines"};
    }
    if (words_ != words_for(starts.size() - 1)) {
        throw std::invalid_argument{"sets need one bit for each node, in words of 64"};
    }
    if (lines >= std::numeric_limits<Line>::max()) {
        throw std::length_error{"there are too many lines for an index"};
    }
    starts_.reserve(starts.size());
    for (const std::int64_t start : starts) starts_.push_back(static_cast<Line>(start));
    double scale = 0.0;
    for (std::size_t v = 0; v < size(); ++v) {
        if (starts_[v] == starts_[v + 1]) continue;
        const double best = scores_[starts_[v]];
        if (std::isfinite(best)) scale += std::abs(best);
    }
    least_gain_ = std::max(least_gain_, 1e-14 * scale);
}

void ScoreLines::make_index(Watch& watch) const {
    const std::scoped_lock lock{mutex_};
    if (ready_.load(std::memory_order_relaxed)) return;
    if (next_ == 0) {
        // Storage that is large is asked for at once, and touched bit by bit.
        needed_.reserve(size() * words_);
        held_.reserve(size() * words_);
        ranks_.reserve(size() * words_);
        if (words_ == 1) masks_.reserve(lines());
        if (words_ > 1) members_.reserve(lines());
    }
    while (index(next_) < size()) {
        add_node(next_);
        ++next_;
        watch.poll();
    }
    ready_.store(true, std::memory_order_release);
}

void ScoreLines::add_node(Variable v) const {
    std::vector<Word> needed(words_, begin(v) == end(v) ? 0 : ~Word{0});
    std::vector<Word> held(words_);
    for (Line line = begin(v); line < end(v); ++line) {
        for (std::size_t w = 0; w < words_; ++w) {
            needed[w] &= row(line)[w];
            held[w] |= row(line)[w];
        }
    }
    const std::size_t spare = 64 * words_ - size();
    const bool beyond = spare > 0 && held.back() >> (64 - spare) != 0;
    if (beyond || has(held, v)) {
        throw std::invalid_argument{"a set holds its own node, or one that there is not"};
    }
    std::vector<std::size_t> ranks(words_);
    std::size_t known = 0;
    for (std::size_t w = 0; w < words_; ++w) {
        ranks[w] = known;
        known += static_cast<std::size_t>(std::popcount(held[w]));
    }
    const auto rank = [&](Variable p) {
        const Word below = (Word{1} << (p & 63)) - 1;
        return ranks[index(p) / 64] +
               static_cast<std::size_t>(std::popcount(held[index(p) / 64] & below));
    };
    // Where the holders of each member begin, then the holders themselves.
    std::vector<std::size_t> at(known + 1);
    for (Line line = begin(v); line < end(v); ++line) {
        for_each(row(line), [&](Variable p) { ++at[rank(p) + 1]; });
    }
    for (std::size_t i = 0; i < known; ++i) at[i + 1] += at[i];
    const auto holders = known == 0 ? std::span<Line>{} : storage_.allocate(at[known]);
    const auto members =
        known == 0 || words_ == 1 ? std::span<Line>{} : storage_.allocate(at[known]);
    const std::size_t first = holders_.size();
    for (std::size_t i = 0; i < known; ++i) {
        holders_.push_back(holders.subspan(at[i], at[i + 1] - at[i]));
    }
    std::size_t written = 0;
    for (Line line = begin(v); line < end(v); ++line) {
        const std::size_t before = written;
        for_each(row(line), [&](Variable p) {
            holders[at[rank(p)]++] = line;
            if (words_ > 1) members[written++] = static_cast<std::uint32_t>(p);
        });
        if (words_ == 1) {
            masks_.push_back(row(line)[0]);
        } else {
            members_.push_back(members.subspan(before, written - before));
        }
    }
    needed_.insert(needed_.end(), needed.begin(), needed.end());
    held_.insert(held_.end(), held.begin(), held.end());
    for (const std::size_t before : ranks) ranks_.push_back(first + before);
}

}  // namespace isthmus
