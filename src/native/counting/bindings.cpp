#include "bindings.hpp"
#include "counting/checks.hpp"
#include "counting/tables.hpp"

namespace isthmus {

namespace {

using Integers = Given<std::int64_t, 1>;
using Weights = std::optional<Array<std::int64_t, 1>>;

template <class T>
std::span<const T> view(const Array<T, 1>& array) {
    return {array.data(), array.size()};
}

template <class Code>
CodedColumns<Code> checked_columns(const Array<Code, 2>& codes, const Weights& weights,
                                   const Array<std::int64_t, 1>& cardinalities) {
    const CodedColumns<Code> data{
        .codes = {codes.data(), codes.size()},
        .rows = codes.shape(1),
        .weights = weights ? view(*weights) : std::span<const std::int64_t>{},
        .cardinalities = view(cardinalities)};
    check_cardinalities(data.cardinalities, codes.shape(0));
    if (weights) check_weights(data.weights, data.rows);
    return data;
}

std::pair<Integers, Integers> to_arrays(CountTables tables) {
    std::vector<std::int64_t> offsets(tables.offsets.begin(), tables.offsets.end());
    return {give(std::move(offsets)), give(std::move(tables.values))};
}

template <class Code>
std::pair<Integers, Integers> tally_sets(const Array<Code, 2>& codes, const Weights& weights,
                                         const Array<std::int64_t, 1>& cardinalities,
                                         const Array<Variable, 2>& sets, CountingMethod method) {
    const auto data = checked_columns(codes, weights, cardinalities);
    if (sets.shape(1) == 0) throw nb::value_error("a table needs at least one variable");
    CountTables tables;
    {
        const nb::gil_scoped_release no_gil;
        const VariableSets lines{sets.shape(1), {sets.data(), sets.data() + sets.size()}};
        check_sets(data, lines);
        auto watch = Watch::unlimited(&check_signals);
        tables = count_tables(data, lines, method, watch);
    }
    return to_arrays(std::move(tables));
}

template <class Code>
std::pair<Integers, Integers> tally_all(const Array<Code, 2>& codes, const Weights& weights,
                                        const Array<std::int64_t, 1>& cardinalities,
                                        std::size_t size, CountingMethod method) {
    const auto data = checked_columns(codes, weights, cardinalities);
    check_set_size(data.variables(), size);
    CountTables tables;
    {
        const nb::gil_scoped_release no_gil;
        check_sets(data, VariableSets::all(data.variables(), size));
        auto watch = Watch::unlimited(&check_signals);
        tables = count_all_tables(data, size, method, watch);
    }
    return to_arrays(std::move(tables));
}

template <class Code>
void bind_codes(nb::module_& m) {
    m.def("tally_sets", &tally_sets<Code>, "codes"_a.noconvert(), "weights"_a.none(),
          "cardinalities"_a, "sets"_a, "method"_a = CountingMethod::fastest,
          "Count a table for each row of ``sets``: where each starts, and all cells.");
    m.def("tally_all", &tally_all<Code>, "codes"_a.noconvert(), "weights"_a.none(),
          "cardinalities"_a, "size"_a, "method"_a = CountingMethod::fastest,
          "Count the tables of all sets of ``size`` variables, in lexicographic order.");
}

}  // namespace

void bind_counting(nb::module_& m) {
    nb::enum_<CountingMethod>(m, "CountingMethod")
        .value("FASTEST", CountingMethod::fastest)
        .value("BITMAPS", CountingMethod::bitmaps)
        .value("HISTOGRAMS", CountingMethod::histograms);
    bind_codes<std::uint8_t>(m);
    bind_codes<std::uint16_t>(m);
}

}  // namespace isthmus
