#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/arena.hpp"
#include "core/bit_set.hpp"
#include "core/line_scan.hpp"
#include "core/watch.hpp"

namespace isthmus {

/// A score table: for each node lines with a parent set and its score, the best first.
///
/// `outside` always means the nodes that do not come before a node: a line fits if its set has
/// nothing outside. An index knows which lines of a node hold another, so that a change of one
/// predecessor costs one look for most nodes.
class ScoreLines {
public:
    using Line = std::uint32_t;
    /// Score of a node without a line: finite, so that mending one fault is a gain.
    static constexpr double never = -1e15;

    /// A table in arrays of someone else, which `owner` keeps alive. Starts are checked here; sets
    /// are checked by `prepare`.
    ScoreLines(std::vector<std::int64_t> starts, const Word* sets, const double* scores,
               std::size_t lines, std::size_t words, std::shared_ptr<const void> owner);

    /// Makes the index. Whoever uses the table calls this first; after a pause it goes on. Several
    /// threads may.
    void prepare(Watch& watch) const {
        if (!ready_.load(std::memory_order_acquire)) make_index(watch);
    }

    [[nodiscard]] std::size_t size() const { return starts_.size() - 1; }
    [[nodiscard]] std::size_t words() const { return words_; }
    [[nodiscard]] std::size_t lines() const { return starts_.back(); }
    [[nodiscard]] Line begin(Variable v) const { return starts_[index(v)]; }
    [[nodiscard]] Line end(Variable v) const { return starts_[index(v) + 1]; }
    [[nodiscard]] double score(Line line) const { return scores_[line]; }
    [[nodiscard]] double worth(Variable v, Line line) const {
        return line < end(v) ? scores_[line] : never;
    }

    /// Differences of sums of scores below this are rounding.
    [[nodiscard]] double least_gain() const { return least_gain_; }

    [[nodiscard]] bool fits(Line line, std::span<const Word> outside) const {
        if (words_ == 1) return (masks_[line] & outside[0]) == 0;
        for (const std::uint32_t p : members_[line]) {
            if (has(outside, static_cast<Variable>(p))) return false;
        }
        return true;
    }
    [[nodiscard]] bool holds(Line line, Variable v) const {
        if (words_ == 1) return (masks_[line] >> v & 1) != 0;
        for (const std::uint32_t p : members_[line]) {
            if (p == static_cast<std::uint32_t>(v)) return true;
        }
        return false;
    }
    /// Calls `visit(p)` for each member of a line.
    template <class Visit>
    void for_each_member(Line line, Visit&& visit) const {
        if (words_ == 1) {
            for_each(std::span{&masks_[line], 1}, visit);
            return;
        }
        for (const std::uint32_t p : members_[line]) visit(static_cast<Variable>(p));
    }

    /// The first line of `v` from `from` that fits; past the last if none does.
    [[nodiscard]] Line first(Variable v, Line from, std::span<const Word> outside) const {
        const Line past = end(v);
        if (words_ == 1) {
            return static_cast<Line>(first_disjoint(masks_.data(), from, past, outside[0]));
        }
        for (Line line = from; line < past; ++line) {
            if (fits(line, outside)) return line;
        }
        return past;
    }
    /// The line of `v` when `added`, no longer outside, comes before it too.
    [[nodiscard]] Line with(Variable v, Variable added, Line line,
                            std::span<const Word> outside) const {
        for (const Line other : holders(v, added)) {
            if (other >= line) break;
            if (fits(other, outside)) return other;
        }
        return line;
    }
    /// The line of `v` when `removed`, outside by now, no longer comes before it.
    [[nodiscard]] Line without(Variable v, Variable removed, Line line,
                               std::span<const Word> outside) const {
        if (line == end(v) || !holds(line, removed)) return line;
        return first(v, line + 1, outside);
    }

    /// What is in every set of `v`.
    [[nodiscard]] std::span<const Word> needed(Variable v) const {
        return {needed_.data() + index(v) * words_, words_};
    }

private:
    [[nodiscard]] std::span<const Word> row(Line line) const {
        return {sets_ + std::size_t{line} * words_, words_};
    }
    /// Lines of `v` that hold `member`, ascending.
    [[nodiscard]] std::span<const Line> holders(Variable v, Variable member) const {
        const std::size_t word = index(v) * words_ + index(member) / 64;
        const Word bit = Word{1} << (member & 63);
        if ((held_[word] & bit) == 0) return {};
        const auto rank = static_cast<std::size_t>(std::popcount(held_[word] & (bit - 1)));
        return holders_[ranks_[word] + rank];
    }
    void make_index(Watch& watch) const;
    void add_node(Variable v) const;

    std::vector<Line> starts_;
    const Word* sets_;
    const double* scores_;
    double least_gain_ = 1e-8;
    std::size_t words_;
    std::shared_ptr<const void> owner_;

    // The index, made by `prepare`.
    mutable std::atomic<bool> ready_ = false;
    mutable std::mutex mutex_;
    mutable Variable next_ = 0;
    mutable std::vector<Word> masks_;  // the sets, if a word is enough for them;
    mutable std::vector<std::span<const std::uint32_t>> members_;  // else the members of each line
    mutable std::vector<Word> needed_;
    mutable std::vector<Word> held_;          // by node and word, who is in some line of it
    mutable std::vector<std::size_t> ranks_;  // by node and word, how many are before those
    mutable std::vector<std::span<const Line>> holders_;
    mutable Arena<std::uint32_t> storage_;
};

}  // namespace isthmus
