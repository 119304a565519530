#include "exact/pattern_databases.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace isthmus {

PatternDatabases::PatternDatabases(const ComponentProblem& problem,
                                   std::span<const std::int64_t> sizes)
    : problem_{problem} {
    std::size_t shift = 0;
    for (const std::int64_t size : sizes) {
        if (size < 1 || size > 40) throw std::invalid_argument{"a pattern has 1 to 40 nodes"};
        const auto width = static_cast<std::size_t>(size);
        groups_.push_back({shift, width, nullptr});
        shift += width;
    }
    if (shift != problem.size()) throw std::invalid_argument{"each node needs one pattern"};
    for (Group& group : groups_) {
        group.table = std::make_unique_for_overwrite<double[]>(std::size_t{1} << group.size);
    }
}

void PatternDatabases::fill(Watch& watch) {
    while (group_ < groups_.size()) {
        const Group& group = groups_[group_];
        while (next_ < Word{1} << group.size) {
            group.table[next_] = next_ == 0 ? 0.0 : best_of(group, next_);
            ++next_;
            if (next_ % 64 == 0) watch.poll();
        }
        next_ = 0;
        ++group_;
    }
}

double PatternDatabases::best_of(const Group& group, Word subset) const {
    const Word free = ~(subset << group.shift);
    double best = -std::numeric_limits<double>::infinity();
    for (Word left = subset; left != 0; left &= left - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(left));
        const std::size_t x = group.shift + i;
        const std::size_t line = problem_.best_line(x, free);
        if (line == problem_.end(x)) continue;
        best = std::max(best, problem_.score(line) + group.table[subset ^ (Word{1} << i)]);
    }
    return best;
}

}  // namespace isthmus
