#include "scoring/discrete_room.hpp"

#include <algorithm>

namespace isthmus {

std::size_t Renumbering::renumber(std::span<std::int64_t> keys) {
    if (++round_ == 0) {
        // The count of rounds has wrapped around: forget all of them.
        std::ranges::fill(buckets_.span(), Bucket{});
        round_ = 1;
    }
    const auto buckets = buckets_.span();
    const std::size_t mask = buckets.size() - 1;
    std::uint32_t used = 0;
    for (std::int64_t& key : keys) {
        const std::uint64_t spread = static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15;
        auto place = static_cast<std::size_t>(spread >> 20) & mask;
        while (buckets[place].round == round_ && buckets[place].key != key) {
            place = (place + 1) & mask;
        }
        Bucket& bucket = buckets[place];
        if (bucket.round != round_) bucket = {.key = key, .round = round_, .number = used++};
        key = bucket.number;
    }
    return used;
}

DiscreteRooms::Loan DiscreteRooms::borrow() {
    {
        const std::lock_guard lock{mutex_};
        if (!free_.empty()) {
            auto room = std::move(free_.back());
            free_.pop_back();
            return {*this, std::move(room)};
        }
        // So that `take_back` never has to allocate.
        free_.reserve(free_.capacity() + 1);
    }
    return {*this, std::make_unique<DiscreteRoom>(data_)};
}

void DiscreteRooms::take_back(std::unique_ptr<DiscreteRoom> room) noexcept {
    const std::lock_guard lock{mutex_};
    free_.push_back(std::move(room));
}

}  // namespace isthmus
