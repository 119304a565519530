#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/watch.hpp"

namespace isthmus {

/// Sorts in pieces, so that it can be paused and go on: short runs first, then merges.
template <class T, class Less>
class ResumableSort {
public:
    ResumableSort(std::vector<T> items, Less less) : items_{std::move(items)}, less_{less} {
        merged_.reserve(items_.size());
    }

    /// Sorts to the end; after a pause the same call goes on.
    void run(Watch& watch) {
        while (sorted_ < items_.size()) {
            const std::size_t end = std::min(sorted_ + width_, items_.size());
            std::stable_sort(at(sorted_), at(end), less_);
            sorted_ = end;
            watch.poll();
        }
        while (width_ < items_.size()) {
            while (merged_.size() < items_.size()) {
                merge_some();
                watch.poll();
            }
            items_.swap(merged_);
            merged_.clear();
            left_ = right_ = 0;
            width_ *= 2;
        }
    }

    [[nodiscard]] std::span<const T> items() const { return items_; }

private:
    static constexpr std::size_t piece = 2048;

    [[nodiscard]] auto at(std::size_t index) {
        return items_.begin() + static_cast<std::ptrdiff_t>(index);
    }

    void merge_some() {
        const std::size_t begin = merged_.size() / (2 * width_) * (2 * width_);
        const std::size_t middle = std::min(begin + width_, items_.size());
        const std::size_t end = std::min(middle + width_, items_.size());
        if (merged_.size() == begin) {
            left_ = begin;
            right_ = middle;
        }
        const std::size_t stop = std::min(end, merged_.size() + piece);
        while (merged_.size() < stop) {
            const bool take_right =
                left_ == middle || (right_ < end && less_(items_[right_], items_[left_]));
            merged_.push_back(items_[take_right ? right_++ : left_++]);
        }
    }

    std::vector<T> items_;
    std::vector<T> merged_;
    Less less_;
    std::size_t width_ = 1024;
    std::size_t sorted_ = 0;
    std::size_t left_ = 0;
    std::size_t right_ = 0;
};

}  // namespace isthmus
