# Graphs and fitted networks, from and to the objects of bnlearn.

#' Convert a result into an object of bnlearn: a graph, or a fitted network.
as_bnlearn <- function(x) {
  needs_bnlearn()
  if (inherits(x, "isthmus_network")) return(fitted_to_bnlearn(x$python))
  if (!inherits(x, "isthmus_solution")) {
    stop("Give a result of ist_learn() or ist_fit().", call. = FALSE)
  }
  edges <- x$edges
  both <- edges[!edges$directed, ]
  arcs <- rbind(as.matrix(edges[c("from", "to")]), as.matrix(both[c("to", "from")]))
  graph_to_bnlearn(x$python$cpdag$nodes, arcs)
}

graph_to_bnlearn <- function(nodes, arcs) {
  graph <- bnlearn::empty.graph(unlist(reticulate::import_builtins()$list(nodes)))
  if (nrow(arcs) > 0) {
    bnlearn::arcs(graph) <- matrix(unname(as.matrix(arcs)), ncol = 2,
                                   dimnames = list(NULL, c("from", "to")))
  }
  graph
}

fitted_to_bnlearn <- function(network) {
  kind <- class(network)[1]
  graph <- graph_to_bnlearn(network$dag$nodes, edge_frame(network$dag$edges)[c("from", "to")])
  nodes <- bnlearn::nodes(graph)
  parents <- lapply(stats::setNames(nodes, nodes), function(n) unlist(network$dag$parents(n)))
  if (grepl("DiscreteNetwork$", kind)) {
    levels <- lapply(named_list(network$levels), as.character)
    tables <- unconverted(network, "tables")
    parts <- lapply(stats::setNames(nodes, nodes), function(n) {
      axes <- c(parents[[n]], n)
      table <- array_of(tables$get(n), levels[axes])
      aperm(table, c(length(axes), seq_along(parents[[n]])))  # bnlearn: the node first
    })
  } else if (grepl("GaussianNetwork$", kind)) {
    intercepts <- named_list(network$intercepts)
    variances <- named_list(network$variances)
    coefficients <- named_list(network$coefficients)
    parts <- lapply(stats::setNames(nodes, nodes), function(n) {
      slopes <- unlist(named_list(coefficients[[n]]))[parents[[n]]]
      list(coef = c("(Intercept)" = intercepts[[n]], slopes), sd = sqrt(variances[[n]]))
    })
  } else {
    stop("bnlearn has no network such as ", kind, ". Discrete networks and Gaussian networks with ",
         "straight lines (ist_fit(..., curves = FALSE)) can be converted.", call. = FALSE)
  }
  bnlearn::custom.fit(graph, parts)
}

#' Convert a graph or a fitted network of bnlearn.
from_bnlearn <- function(x) {
  needs_bnlearn()
  if (inherits(x, "bn.fit")) return(fitted_from_bnlearn(x))
  if (!inherits(x, "bn")) stop("Give an object of class 'bn' or 'bn.fit'.", call. = FALSE)
  ist <- library_of_python()
  pairs <- function(arcs) {
    lapply(seq_len(nrow(arcs)), function(i) reticulate::tuple(arcs[[i, 1]], arcs[[i, 2]]))
  }
  undirected <- bnlearn::undirected.arcs(x)
  nodes <- as.list(bnlearn::nodes(x))
  if (nrow(undirected) == 0) return(ist$DAG(nodes, pairs(bnlearn::arcs(x))))
  once <- undirected[undirected[, 1] < undirected[, 2], , drop = FALSE]
  ist$CPDAG(nodes, pairs(bnlearn::directed.arcs(x)), pairs(once))
}

fitted_from_bnlearn <- function(x) {
  models <- reticulate::import("isthmus.networks")
  dag <- from_bnlearn(bnlearn::bn.net(x))
  nodes <- stats::setNames(names(x), names(x))
  per_node <- function(f) do.call(reticulate::dict, lapply(nodes, f))
  parents <- lapply(nodes, function(n) unlist(dag$parents(n)))
  if (inherits(x, "bn.fit.dnet")) {
    levels <- lapply(x, function(part) {
      if (length(part$parents) == 0) names(part$prob) else dimnames(part$prob)[[1]]
    })
    network <- models$DiscreteNetwork(
      dag,
      per_node(function(n) do.call(reticulate::tuple, as.list(levels[[n]]))),
      per_node(function(n) {
        part <- x[[n]]
        table <- unclass(part$prob)
        if (length(part$parents) > 0) {
          table <- aperm(table, c(match(parents[[n]], names(dimnames(table))), 1))
        }
        numpy_array(table)
      })
    )
  } else if (inherits(x, "bn.fit.gnet")) {
    network <- models$GaussianNetwork(
      dag,
      per_node(function(n) unname(x[[n]]$coefficients[["(Intercept)"]])),
      per_node(function(n) {
        do.call(reticulate::dict, as.list(x[[n]]$coefficients[parents[[n]]]))
      }),
      per_node(function(n) x[[n]]$sd^2)
    )
  } else {
    stop("Only discrete and Gaussian networks of bnlearn can be converted.", call. = FALSE)
  }
  result("network", network, dag = edge_frame(network$dag$edges))
}

numpy_array <- function(x) {
  numpy <- reticulate::import("numpy", convert = FALSE)
  size <- do.call(reticulate::tuple, as.list(if (is.null(dim(x))) length(x) else dim(x)))
  numbers(as.numeric(x), numpy)$reshape(size, order = "F")
}

needs_bnlearn <- function() {
  if (!requireNamespace("bnlearn", quietly = TRUE)) {
    stop("Install bnlearn: install.packages('bnlearn').", call. = FALSE)
  }
}
