#pragma once

#include "bindings.hpp"

namespace isthmus {

/// Regressions and paths of graphs, which `bind_continuous` includes.
void bind_regressions(nb::module_& m);

}  // namespace isthmus
