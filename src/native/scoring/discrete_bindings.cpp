#include "bindings.hpp"
#include "counting/checks.hpp"
#include "scoring/discrete_score.hpp"
#include "scoring/incomplete_score.hpp"

namespace isthmus {

namespace {

template <class Code>
void make_score(DiscreteScore* self, const Array<Code, 2>& codes,
                const std::optional<Array<std::int64_t, 1>>& weights,
                const Array<std::int64_t, 1>& cardinalities, DiscreteForm form, double parameter,
                bool bitmaps) {
    const std::size_t rows = codes.shape(1);
    const CodedColumns<Code> columns{.codes = {codes.data(), codes.size()},
                                     .rows = rows,
                                     .weights = {},
                                     .cardinalities = {cardinalities.data(), cardinalities.size()}};
    check_cardinalities(columns.cardinalities, codes.shape(0));
    std::vector<std::int64_t> given;
    if (weights) {
        given = to_vector(*weights);
        check_weights(given, rows);
    }
    const nb::gil_scoped_release no_gil;
    for (std::size_t v = 0; v < columns.variables(); ++v) {
        check_codes(columns, static_cast<Variable>(v));
    }
    std::construct_at(self,
                      DiscreteData{Matrix<std::uint16_t>{rows, {codes.data(), codes.data() + codes.size()}},
                                   rows, std::move(given), to_vector(cardinalities), bitmaps},
                      form, parameter);
}

template <class Code>
void bind_constructor(nb::class_<DiscreteScore, LocalScore>& score) {
    score.def("__init__", &make_score<Code>, "codes"_a.noconvert(), "weights"_a.none(),
              "cardinalities"_a, "form"_a, "parameter"_a, nb::kw_only(), "bitmaps"_a = true,
              "Score coded rows; ``bitmaps=False`` counts by histograms only.");
}

void make_incomplete_score(IncompleteScore* self, const Array<std::uint16_t, 2>& codes,
                           const std::optional<Array<std::int64_t, 1>>& weights,
                           const Array<std::int64_t, 1>& cardinalities, double penalty,
                           const Array<double, 2>& prices) {
    const std::size_t rows = codes.shape(1);
    auto levels = to_vector(cardinalities);
    check_cardinalities(levels, codes.shape(0));
    auto with_missing = levels;
    for (std::int64_t& count : with_missing) {
        if (count > 65'535) throw nb::value_error("at most 65,535 levels leave a code for missing");
        ++count;
    }
    const CodedColumns<std::uint16_t> columns{.codes = {codes.data(), codes.size()},
                                              .rows = rows,
                                              .weights = {},
                                              .cardinalities = with_missing};
    std::vector<std::int64_t> given;
    if (weights) {
        given = to_vector(*weights);
        check_weights(given, rows);
    }
    const nb::gil_scoped_release no_gil;
    for (std::size_t v = 0; v < columns.variables(); ++v) {
        check_codes(columns, static_cast<Variable>(v));
    }
    std::construct_at(self,
                      Matrix<std::uint16_t>{rows, {codes.data(), codes.data() + codes.size()}},
                      std::move(given), std::move(levels), penalty, to_matrix(prices));
}

}  // namespace

void bind_discrete_scores(nb::module_& m) {
    nb::enum_<DiscreteForm>(m, "DiscreteForm", "Which function of counts a discrete score adds up.")
        .value("LIKELIHOOD", DiscreteForm::likelihood, "BIC and AIC; penalty per free parameter.")
        .value("BDEU", DiscreteForm::bdeu, "BDeu; equivalent sample size.")
        .value("K2", DiscreteForm::k2, "K2; pseudo-count of a cell.")
        .value("SUPPORT", DiscreteForm::support, "Number of combinations seen; no parameter.");
    nb::class_<DiscreteScore, LocalScore> score(m, "DiscreteScore");
    bind_constructor<std::uint8_t>(score);
    bind_constructor<std::uint16_t>(score);

    nb::class_<IncompleteScore, LocalScore>(m, "IncompleteScore")
        .def("__init__", &make_incomplete_score, "codes"_a.noconvert(), "weights"_a.none(),
             "cardinalities"_a, "penalty"_a, "prices"_a,
             "Score coded rows in which the cardinality of a variable stands for a missing value.");
}

}  // namespace isthmus
