#include "mcmc/sampling_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/checked.hpp"
#include "core/pool.hpp"

namespace isthmus {

SamplingRun::SamplingRun(std::shared_ptr<const FamilyTables> tables,
                         const std::vector<Chain::Labels>& starts,
                         const std::vector<std::uint64_t>& seeds, Options options)
    : tables_{std::move(tables)}, options_{options} {
    constexpr std::size_t most = std::size_t{1} << 40;
    if (!tables_->done()) throw std::invalid_argument{"the tables are not built yet"};
    if (starts.size() != seeds.size() || starts.empty()) {
        throw std::invalid_argument{"every chain needs a start and a seed"};
    }
    if (options.levels < 1 || options.levels > 64 || options.thin < 1) {
        throw std::invalid_argument{"levels must be 1 to 64, and thin at least 1"};
    }
    if (options.warmup > most || saturated_product(options.thin, options.draws) > most ||
        saturated_product(options.draws, nodes() * words_for(nodes())) > most) {
        throw std::invalid_argument{"there are too many draws"};
    }
    chains_.reserve(starts.size());
    for (std::size_t c = 0; c < starts.size(); ++c) {
        chains_.push_back(std::make_unique<TemperedChain>(tables_, options.space, starts[c],
                                                          seeds[c], options.levels));
    }
}

bool SamplingRun::step(Watch& watch, std::size_t jobs) {
    const std::size_t last = options_.warmup + options_.thin * options_.draws;
    const Pool pool{jobs};
    return run_slice([&] {
        // Chains advance together, so that a run that is stopped has the same draws of each.
        while (reached_ < last) {
            const std::size_t goal = std::min(reached_ + std::max(chunk, options_.thin), last);
            std::vector<TemperedChain*> waiting;
            for (const auto& chain : chains_) {
                if (chain->rounds() < goal) waiting.push_back(chain.get());
            }
            pool.run(waiting.size(), watch, [&](std::size_t i, Watch& own) {
                waiting[i]->run(goal, options_.warmup, options_.thin, own);
            });
            reached_ = goal;
        }
    });
}

std::size_t SamplingRun::rounds() const {
    std::size_t total = 0;
    for (const auto& chain : chains_) total += chain->rounds();
    return total;
}

std::size_t SamplingRun::total_rounds() const {
    return chains() * (options_.warmup + options_.thin * options_.draws);
}

}  // namespace isthmus
