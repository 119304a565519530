#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/zeroed_array.hpp"
#include "counting/bitmaps.hpp"
#include "counting/histograms.hpp"
#include "scoring/discrete_data.hpp"

namespace isthmus {

/// Replaces keys by 0, 1, ... in the order of their appearance.
class Renumbering {
public:
    explicit Renumbering(std::size_t most_keys)
        : buckets_{std::bit_ceil(std::max<std::size_t>(16, 2 * most_keys + 1))} {}

    /// Returns how many different keys there are.
    std::size_t renumber(std::span<std::int64_t> keys);

private:
    struct Bucket {
        std::int64_t key;
        std::uint32_t round;  // buckets of earlier rounds count as empty
        std::uint32_t number;
    };

    ZeroedArray<Bucket> buckets_;
    std::uint32_t round_ = 0;
};

/// Combinations of levels that the data hold: their rows as bitmaps, and how many they are.
struct Combinations {
    /// More are counted faster by histograms.
    static constexpr std::size_t most = 256;

    std::array<const Word*, most> maps;
    std::array<std::int64_t, most> rows;
    std::size_t count = 0;
};

/// Room to work in.
struct DiscreteRoom {
    explicit DiscreteRoom(const DiscreteData& data)
        : maps{2 * (Combinations::most + 1) * data.words()},
          configuration{data.rows()},
          joint{data.rows()},
          keys{data.rows()},
          shorts{data.rows()},
          table{std::max(least_table, 8 * data.rows())},
          numbers{data.rows()} {}

    /// Cells of the smallest room for histograms; untouched memory costs nothing.
    static constexpr std::size_t least_table = std::size_t{1} << 20;

    ZeroedArray<Word> maps;  // of combinations: two halves, used in turn
    std::array<Combinations, 2> lists;
    ZeroedArray<std::int64_t> configuration;  // number of the parents' configuration of each row
    ZeroedArray<std::int64_t> joint;          // the same with the child
    ZeroedArray<std::int64_t> keys;
    ZeroedArray<std::uint16_t> shorts;
    ZeroedArray<std::int64_t> table;  // zero between uses
    InterleavedHistogram histogram;
    Renumbering numbers;
    std::array<std::int64_t, Combinations::most * DiscreteData::most_levels> counts;
};

/// Rooms that are kept between calls: to allocate one takes longer than most scores. There are as
/// many as threads have used one score at the same time.
class DiscreteRooms {
public:
    explicit DiscreteRooms(const DiscreteData& data) : data_{data} {}

    class Loan {
    public:
        Loan(DiscreteRooms& owner, std::unique_ptr<DiscreteRoom> room)
            : owner_{owner}, room_{std::move(room)} {}
        ~Loan() { owner_.take_back(std::move(room_)); }
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

        [[nodiscard]] DiscreteRoom& room() { return *room_; }

    private:
        DiscreteRooms& owner_;
        std::unique_ptr<DiscreteRoom> room_;
    };

    [[nodiscard]] Loan borrow();

private:
    void take_back(std::unique_ptr<DiscreteRoom> room) noexcept;

    const DiscreteData& data_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<DiscreteRoom>> free_;
};

}  // namespace isthmus
