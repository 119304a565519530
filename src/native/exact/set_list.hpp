#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/arena.hpp"
#include "core/bit_set.hpp"
#include "core/resumable_sort.hpp"
#include "exact/exhaustive_sets.hpp"
#include "exact/promising_sets.hpp"

namespace isthmus {

/// Parent sets of one child with their scores.
struct SetList {
    std::vector<Word> sets;  // some words for each set
    std::vector<double> scores;
};

/// Turns what was found for one child into a list: best first, then small first, then by members.
///
/// Where sets were found in two ways, those that a subset beats are left out. All of it can be
/// paused, because a child can have millions of sets.
class SetListBuilder {
public:
    /// Either may be missing; both must outlive this object and stay as they are.
    SetListBuilder(std::size_t variables, const ExhaustiveSets* exhaustive,
                   const PromisingSets* promising);

    /// Goes on to the end; after a pause the same call goes on.
    void run(Watch& watch);
    [[nodiscard]] SetList take() { return std::move(list_); }

private:
    struct Line {
        double score;
        std::size_t size;
        const Word* words;
    };
    struct Less {
        std::size_t words;
        bool operator()(const Line& a, const Line& b) const;
    };
    using Sort = ResumableSort<Line, Less>;

    void gather(Watch& watch);
    void collect(const std::vector<Variable>& base, const std::vector<Variable>& names,
                 const std::int32_t* members, std::size_t size, double score);
    void prune(Watch& watch);
    void write(Watch& watch);

    std::size_t words_;
    const ExhaustiveSets* exhaustive_;
    const PromisingSets* promising_;
    Arena<Word> storage_;
    std::vector<Line> lines_;
    std::size_t gathered_ = 0;
    std::optional<Sort> sort_;
    bool sorted_ = false;

    // Pruning: kept lines, and each of their sets folded into one word.
    std::vector<Line> kept_;
    std::vector<Word> folded_;
    std::size_t looked_at_ = 0;

    std::size_t written_ = 0;
    SetList list_;
};

}  // namespace isthmus
