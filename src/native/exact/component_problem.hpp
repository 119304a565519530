#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/bit_set.hpp"
#include "core/line_scan.hpp"

namespace isthmus {

/// At most 64 nodes with their parent sets, best first, each as one word.
class ComponentProblem {
public:
    /// Lines of node v are `starts[v]` to `starts[v + 1]`; each node has one.
    ComponentProblem(std::span<const std::int64_t> starts, std::vector<Word> masks,
                     std::vector<double> scores)
        : masks_{std::move(masks)}, scores_{std::move(scores)} {
        const auto refuse = [](const char* text) { throw std::invalid_argument{text}; };
        if (starts.size() < 2 || starts.size() > 65) refuse("there must be 1 to 64 nodes");
        if (masks_.size() != scores_.size()) refuse("each set needs one score");
        if (starts.front() != 0 || starts.back() != static_cast<std::int64_t>(masks_.size())) {
            refuse("starts must ascend from 0 to the number of lines");
        }
        for (std::size_t v = 0; v + 1 < starts.size(); ++v) {
            if (starts[v] >= starts[v + 1]) refuse("each node needs a line");
        }
        for (const std::int64_t start : starts) starts_.push_back(static_cast<std::size_t>(start));
        for (std::size_t v = 0; v < size(); ++v) {
            for (std::size_t line = begin(v); line < end(v); ++line) {
                if ((masks_[line] & ~(everything() & ~(Word{1} << v))) != 0) {
                    refuse("a set holds its own node, or one that there is not");
                }
            }
        }
    }

    [[nodiscard]] std::size_t size() const { return starts_.size() - 1; }
    [[nodiscard]] std::size_t begin(std::size_t v) const { return starts_[v]; }
    [[nodiscard]] std::size_t end(std::size_t v) const { return starts_[v + 1]; }
    [[nodiscard]] Word mask(std::size_t line) const { return masks_[line]; }
    [[nodiscard]] double score(std::size_t line) const { return scores_[line]; }
    [[nodiscard]] Word everything() const { return ~Word{0} >> (64 - size()); }

    /// The best line of `v` with parents among `placed`; past its last if there is none.
    [[nodiscard]] std::size_t best_line(std::size_t v, Word placed) const {
        return first_disjoint(masks_.data(), begin(v), end(v), ~placed);
    }

private:
    std::vector<std::size_t> starts_;
    std::vector<Word> masks_;
    std::vector<double> scores_;
};

}  // namespace isthmus
