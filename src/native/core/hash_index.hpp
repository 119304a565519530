#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace isthmus {

/// Finds items by a hash of 32 bits; the items themselves and their equality are the owner's.
///
/// Extendible hashing: a segment that is full splits in two, the others stay as they are. So an
/// insertion never rehashes more than one segment, which takes less than a millisecond, however
/// large the index is.
class HashIndex {
public:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    HashIndex() : segments_(1), directory_{&segments_.front()} {}
    HashIndex(const HashIndex&) = delete;
    HashIndex& operator=(const HashIndex&) = delete;

    /// The item with this hash for which `same(item)` holds; `none` if there is none.
    template <class Same>
    [[nodiscard]] std::uint32_t find(std::uint32_t hash, Same&& same) const {
        const auto& slots = segment_of(hash).slots;
        if (slots.empty()) return none;
        const std::size_t mask = slots.size() - 1;
        for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
            if (slots[at].item == none) return none;
            if (slots[at].hash == hash && same(slots[at].item)) return slots[at].item;
        }
    }

    /// Asks for the memory that `find` will look at, so that it is there by then.
    void prefetch(std::uint32_t hash) const {
#if defined(__GNUC__)
        const auto& slots = segment_of(hash).slots;
        if (!slots.empty()) __builtin_prefetch(&slots[hash & (slots.size() - 1)]);
#else
        static_cast<void>(hash);
#endif
    }

    /// Adds an item that is not there yet.
    void insert(std::uint32_t hash, std::size_t item) {
        if (item >= none) throw std::length_error{"there are too many sets for an index"};
        Segment* segment = &segment_of(hash);
        while (3 * (segment->used + 1) > 2 * segment->slots.size()) {
            grow(*segment, hash);
            segment = &segment_of(hash);
        }
        put(*segment, {hash, static_cast<std::uint32_t>(item)});
    }

private:
    struct Slot {
        std::uint32_t hash;
        std::uint32_t item;
    };
    struct Segment {
        std::vector<Slot> slots;
        std::size_t used = 0;
        unsigned depth = 0;  // number of leading bits in which its hashes agree
    };

    static constexpr std::size_t first_slots = 16;
    static constexpr std::size_t most_slots = std::size_t{1} << 13;
    // Hashes that agree in this number of bits are crowded, and splitting would not help.
    static constexpr unsigned most_depth = 18;

    [[nodiscard]] Segment& segment_of(std::uint32_t hash) const {
        return *directory_[static_cast<std::size_t>(std::uint64_t{hash} >> (32 - depth_))];
    }

    static void put(Segment& segment, Slot slot) {
        const std::size_t mask = segment.slots.size() - 1;
        std::size_t at = slot.hash & mask;
        while (segment.slots[at].item != none) at = (at + 1) & mask;
        segment.slots[at] = slot;
        ++segment.used;
    }

    void grow(Segment& segment, std::uint32_t hash) {
        if (segment.slots.size() < most_slots || segment.depth == most_depth) {
            const std::size_t size = std::max(first_slots, 2 * segment.slots.size());
            std::vector<Slot> old(size, Slot{0, none});
            old.swap(segment.slots);
            segment.used = 0;
            for (const Slot& slot : old) {
                if (slot.item != none) put(segment, slot);
            }
            return;
        }
        if (segment.depth == depth_) double_directory();
        split(segment, hash);
    }

    void double_directory() {
        std::vector<Segment*> doubled;
        doubled.reserve(2 * directory_.size());
        for (Segment* segment : directory_) doubled.insert(doubled.end(), 2, segment);
        directory_ = std::move(doubled);
        ++depth_;
    }

    void split(Segment& low, std::uint32_t hash) {
        Segment& high = segments_.emplace_back();
        high.slots.assign(low.slots.size(), Slot{0, none});
        std::vector<Slot> old(low.slots.size(), Slot{0, none});
        old.swap(low.slots);
        low.used = 0;
        high.depth = ++low.depth;
        const std::uint32_t bit = std::uint32_t{1} << (32 - low.depth);
        for (const Slot& slot : old) {
            if (slot.item != none) put((slot.hash & bit) != 0 ? high : low, slot);
        }
        // The upper half of the entries that led to `low` now leads to `high`.
        const std::size_t width = std::size_t{1} << (depth_ - low.depth);
        const auto prefix = static_cast<std::size_t>((hash | bit) >> (32 - low.depth));
        for (std::size_t i = 0; i < width; ++i) directory_[prefix * width + i] = &high;
    }

    std::deque<Segment> segments_;  // does not move them
    std::vector<Segment*> directory_;
    unsigned depth_ = 0;
};

/// Spreads the bits of a number over a hash.
[[nodiscard]] inline std::uint32_t hash_of(std::uint64_t key) {
    key = (key ^ (key >> 33)) * 0xFF51AFD7ED558CCD;
    key = (key ^ (key >> 33)) * 0xC4CEB9FE1A85EC53;
    return static_cast<std::uint32_t>(key >> 32);
}

/// Word number `index` of a sequence that looks random: names for members of sets.
[[nodiscard]] inline std::uint64_t random_word(std::uint64_t index) {
    std::uint64_t word = (index + 1) * 0x9E3779B97F4A7C15;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
    return word ^ (word >> 31);
}

}  // namespace isthmus
