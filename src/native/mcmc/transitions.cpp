#include "mcmc/transitions.hpp"

#include <cmath>
#include <stdexcept>

namespace isthmus {

namespace {

constexpr std::size_t most_nodes = 5;

std::unique_ptr<Chain> small_chain(const std::shared_ptr<const FamilyTables>& tables, Space space,
                                   const Chain::Labels& labels) {
    if (tables->size() > most_nodes) throw std::invalid_argument{"there are more than five nodes"};
    if (!tables->done()) throw std::invalid_argument{"the tables are not built yet"};
    return make_chain(tables, space, labels);
}

}  // namespace

std::map<Chain::Labels, double> transitions(const std::shared_ptr<const FamilyTables>& tables,
                                            Space space, const Chain::Labels& labels,
                                            std::size_t move, double heat, Watch& watch) {
    const auto chain = small_chain(tables, space, labels);
    if (move >= chain->moves()) throw std::invalid_argument{"there is no such move"};
    if (!(heat > 0.0) || !std::isfinite(heat)) {
        throw std::invalid_argument{"heat must be a positive number"};
    }
    chain->set_heat(heat);
    std::map<Chain::Labels, double> result;
    EveryChance chance;
    do {
        chain->set_labels(labels);
        chain->move(move, chance);
        result[chain->labels()] += chance.probability();
        watch.poll_signals();
    } while (chance.next());
    return result;
}

std::map<std::vector<Word>, double> graph_probabilities(
    const std::shared_ptr<const FamilyTables>& tables, Space space, const Chain::Labels& labels,
    Watch& watch) {
    const auto chain = small_chain(tables, space, labels);
    Graph graph{.parents = {labels.size(), words_for(labels.size())}, .score = 0.0};
    std::map<std::vector<Word>, double> result;
    EveryChance chance;
    do {
        chain->draw(graph, chance);
        std::vector<Word> key;
        for (std::size_t v = 0; v < labels.size(); ++v) key.push_back(graph.parents.row(v)[0]);
        result[key] += chance.probability();
        watch.poll_signals();
    } while (chance.next());
    return result;
}

std::vector<double> edge_probabilities(const std::shared_ptr<const FamilyTables>& tables,
                                       Space space, const Chain::Labels& labels) {
    if (!tables->done()) throw std::invalid_argument{"the tables are not built yet"};
    EdgeAverages averages{*tables};
    averages.add(*make_chain(tables, space, labels));
    return averages.means();
}

}  // namespace isthmus
