#include "core/line_scan.hpp"

#include "core/simd.hpp"

namespace isthmus {

ISTHMUS_CLONES std::size_t first_disjoint_far(const Word* masks, std::size_t begin,
                                              std::size_t end, Word outside) {
    constexpr std::size_t block = 16;
    std::size_t line = begin;
    for (; line + block <= end; line += block) {
        // Whether there is one in the block, without branches: this becomes vector instructions.
        Word hit = 0;
        for (std::size_t i = 0; i < block; ++i) {
            hit |= static_cast<Word>((masks[line + i] & outside) == 0 ? 1 : 0);
        }
        if (hit != 0) break;
    }
    while (line < end && (masks[line] & outside) != 0) ++line;
    return line;
}

}  // namespace isthmus
