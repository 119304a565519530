#pragma once

#include <cstddef>

#include "core/bit_set.hpp"

namespace isthmus {

/// The first of `masks[begin..end)` that has nothing in common with `outside`; `end` if none has.
[[nodiscard]] std::size_t first_disjoint_far(const Word* masks, std::size_t begin, std::size_t end,
                                             Word outside);

/// The same; looks at the first few by itself, because that is where most scans end.
[[nodiscard]] inline std::size_t first_disjoint(const Word* masks, std::size_t begin,
                                                std::size_t end, Word outside) {
    const std::size_t near = end - begin < 8 ? end : begin + 8;
    for (std::size_t line = begin; line < near; ++line) {
        if ((masks[line] & outside) == 0) return line;
    }
    return near == end ? end : first_disjoint_far(masks, near, end, outside);
}

}  // namespace isthmus
