#pragma once

#include <cstddef>

#include "core/growing_vector.hpp"

namespace isthmus {

/// A heap with the largest key on top.
///
/// Which of several equal keys comes first is part of a search's result, so it is written out here
/// and does not depend on a library.
template <class Item>
class MaxHeap {
public:
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] bool empty() const { return entries_.empty(); }
    [[nodiscard]] double top_key() const { return entries_[0].key; }

    void push(double key, Item item) {
        std::size_t i = entries_.size();
        entries_.push_back({key, item});
        while (i > 0) {
            const std::size_t up = (i - 1) / 2;
            if (entries_[up].key >= key) break;
            entries_[i] = entries_[up];
            i = up;
        }
        entries_[i] = {key, item};
    }

    Item pop() {
        const Item top = entries_[0].item;
        const std::size_t n = entries_.size() - 1;
        const Entry last = entries_[n];
        std::size_t i = 0;
        while (true) {
            std::size_t down = 2 * i + 1;
            if (down >= n) break;
            if (down + 1 < n && entries_[down + 1].key > entries_[down].key) ++down;
            if (entries_[down].key <= last.key) break;
            entries_[i] = entries_[down];
            i = down;
        }
        if (n > 0) entries_[i] = last;
        entries_.pop_back();
        return top;
    }

private:
    struct Entry {
        double key;
        Item item;
    };

    GrowingVector<Entry> entries_;
};

}  // namespace isthmus
