#include "exact/subset_dp.hpp"

#include <bit>
#include <limits>
#include <stdexcept>
#include <utility>

namespace isthmus {

SubsetDP::SubsetDP(ComponentProblem problem) : problem_{std::move(problem)} {
    if (problem_.size() > 40) throw std::invalid_argument{"there are too many nodes for all subsets"};
    values_ = ZeroedArray<double>{std::size_t{1} << problem_.size()};
    sinks_ = ZeroedArray<std::int8_t>{values_.size()};
}

bool SubsetDP::step(Watch& watch) {
    run_slice([&] {
        while (!done()) {
            solve(next_);
            ++next_;
            if (next_ % 64 == 0) watch.poll();
        }
    });
    return done();
}

void SubsetDP::solve(Word subset) {
    double best = -std::numeric_limits<double>::infinity();
    std::int8_t sink = -1;
    for (Word left = subset; left != 0; left &= left - 1) {
        const auto x = static_cast<std::size_t>(std::countr_zero(left));
        const Word before = subset ^ (Word{1} << x);
        const double rest = values_.data()[before];
        if (rest + problem_.score(problem_.begin(x)) <= best) continue;
        const std::size_t line = problem_.best_line(x, before);
        if (line == problem_.end(x) || !(rest + problem_.score(line) > best)) continue;
        best = rest + problem_.score(line);
        sink = static_cast<std::int8_t>(x);
    }
    sinks_.data()[subset] = sink;
    values_.data()[subset] = best;
}

std::vector<std::int64_t> SubsetDP::lines() const {
    if (!done()) return {};
    std::vector<std::int64_t> lines(problem_.size(), -1);
    for (Word subset = problem_.everything(); subset != 0;) {
        const int sink = sinks_.data()[subset];
        if (sink < 0) return {};
        subset ^= Word{1} << sink;
        const auto x = static_cast<std::size_t>(sink);
        lines[x] = static_cast<std::int64_t>(problem_.best_line(x, subset));
    }
    return lines;
}

}  // namespace isthmus
