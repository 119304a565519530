#include "bindings.hpp"

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels.";
    // At exit nanobind lists what is still alive, on the user's terminal. Objects that a module's
    // globals or another library's caches hold are no leak of ours.
    nanobind::set_leak_warnings(false);
    m.def(
        "source_hash", [] { return ISTHMUS_SOURCE_HASH; },
        "SHA-256 of the sources that this module was compiled from.");
    isthmus::bind_counting(m);
    isthmus::bind_scoring(m);
    isthmus::bind_discrete_scores(m);
    isthmus::bind_xges(m);
    isthmus::bind_orders(m);
    isthmus::bind_continuous(m);
    isthmus::bind_exact(m);
    isthmus::bind_exact_posterior(m);
    isthmus::bind_hill_climb(m);
    isthmus::bind_table_orders(m);
    isthmus::bind_mcmc(m);
    isthmus::bind_screened(m);
}
