# The verbs of Isthmus. Results are lists of data frames and numbers; `python` is the object of the
# library itself, for all that is not here.

library_of_python <- function(...) {
  tryCatch(
    reticulate::import("isthmus", ...),
    error = function(e) {
      stop("The Python package isthmus cannot be imported: ", conditionMessage(e),
           "\nInstall it with reticulate::py_install('isthmus'), or choose a Python that has it ",
           "with reticulate::use_python().", call. = FALSE)
    }
  )
}

#' Learn the graph of a Bayesian network.
ist_learn <- function(data, ...) {
  solution <- call_python("learn", data, list(...))
  result("solution", solution, score = solution$score, edges = pattern_edges(solution$cpdag),
         dag = edge_frame(solution$dag$edges), notes = unlist(solution$notes))
}

#' Draw graphs from their posterior distribution.
ist_sample <- function(data, ...) {
  posterior <- call_python("sample", data, list(...))
  result("posterior", posterior, edges = pair_frame(posterior))
}

#' Learn graphs from resampled rows.
ist_bootstrap <- function(data, ..., jobs = 1) {
  # Worker processes would be started by R's program, which is no Python; so one by default.
  ensemble <- call_python("bootstrap", data, list(..., jobs = jobs))
  result("ensemble", ensemble, edges = pair_frame(ensemble))
}

#' Estimate the parameters of a network.
ist_fit <- function(data, graph, ...) {
  network <- call_python("fit", data, list(...), one_dag(graph))
  result("network", network, dag = edge_frame(network$dag$edges))
}

#' Ask a fitted network.
ist_query <- function(network, targets, given = list(), do = list()) {
  asked <- list(as.list(targets), evidence(given), evidence(do))
  answer <- do.call(network$python$query, asked)
  if (reticulate::py_has_attr(answer, "levels")) {
    levels <- named_list(answer$levels)
    values <- array_of(unconverted(answer, "values"), lapply(levels, as.character))
    result("answer", answer, probabilities = if (length(levels) == 1) values[seq_along(values)] else values)
  } else if (reticulate::py_has_attr(answer, "deviation")) {
    moments <- data.frame(
      variable = unlist(answer$names),
      mean = array_of(unconverted(answer, "mean")),
      sd = array_of(unconverted(answer, "deviation"))
    )
    result("answer", answer, moments = moments)
  } else {
    result("answer", answer)
  }
}

#' Estimate a total effect in a causal graph.
ist_effect <- function(data, graph, cause, effect, ...) {
  estimate <- call_python("effect", data, list(...), python_graph(graph), cause, effect)
  result("effect", estimate, value = estimate$value, standard_error = estimate$standard_error)
}

#' Test whether a table agrees with a graph.
ist_validate <- function(data, graph, ...) {
  answer <- call_python("validate", data, list(...), python_graph(graph))
  tested <- reticulate::import_builtins()$list(answer$independences)
  independences <- data.frame(
    x = vapply(tested, function(i) i$x, ""), y = vapply(tested, function(i) i$y, ""),
    given = vapply(tested, function(i) paste(unlist(i$given), collapse = ", "), ""),
    p_value = vapply(tested, function(i) i$p_value, 0),
    adjusted = vapply(tested, function(i) i$adjusted, 0)
  )
  result("validation", answer, agrees = answer$agrees, independences = independences)
}

#' A graph from its edges, without bnlearn.
ist_dag <- function(edges, nodes = NULL) {
  edges <- as.data.frame(edges)
  if (!is.null(edges$directed) && !all(edges$directed)) {
    stop("Some edges have no direction. Give the result of ist_learn() itself, or direct them.",
         call. = FALSE)
  }
  if (ncol(edges) < 2) stop("Edges are two columns of names: from, to.", call. = FALSE)
  from <- as.character(edges[[1]])
  to <- as.character(edges[[2]])
  pairs <- lapply(seq_along(from), function(i) reticulate::tuple(from[i], to[i]))
  library_of_python()$DAG(as.list(if (is.null(nodes)) unique(c(from, to)) else nodes), pairs)
}

#' What is known about the graph before data are seen.
ist_knowledge <- function(required = NULL, forbidden = NULL, tiers = list()) {
  pairs <- function(edges) {
    if (is.null(edges)) return(list())
    edges <- as.matrix(edges)
    lapply(seq_len(nrow(edges)), function(i) reticulate::tuple(edges[i, 1], edges[i, 2]))
  }
  library_of_python()$Knowledge(required = pairs(required), forbidden = pairs(forbidden),
                                tiers = lapply(tiers, as.list))
}

print.isthmus <- function(x, ...) {
  cat(reticulate::py_str(x$python), "\n", sep = "")
  invisible(x)
}

# --- arguments ------------------------------------------------------------------------------

WHOLE <- c("draws", "chains", "replicates", "seed", "jobs", "permutations")
MISSING <- c(drop = "DropRows", level = "MissingAsLevel", em = "ExpectationMaximisation")

call_python <- function(verb, data, options, ...) {
  ist <- library_of_python()
  for (name in intersect(names(options), WHOLE)) {
    if (options[[name]] != round(options[[name]])) {
      stop("'", name, "' must be a whole number; got ", options[[name]], ".", call. = FALSE)
    }
    options[[name]] <- as.integer(options[[name]])
  }
  if (is.character(options$missing)) {
    strategy <- MISSING[match.arg(options$missing, names(MISSING))]
    options$missing <- ist[[strategy]]()
  }
  for (name in intersect(names(options), c("score", "search", "sampler", "transform"))) {
    if (is.character(options[[name]])) options[[name]] <- strategy_named(ist, name, options[[name]])
  }
  if (!is.null(options$kinds)) {
    options$kinds <- do.call(reticulate::dict, as.list(options$kinds))
  }
  tryCatch(
    do.call(ist[[verb]], c(list(ist_table(data)), list(...), options)),
    error = function(e) stop(in_r(conditionMessage(e)), call. = FALSE)
  )
}

strategy_named <- function(ist, option, name) {
  if (!reticulate::py_has_attr(ist, name)) {
    stop("There is no ", option, " '", name, "'. Give the name of a class of the Python library, ",
         "such as ", c(score = "'GaussianBIC' or 'BDeu'", search = "'HillClimb' or 'Boss'",
         sampler = "'OrderMCMC'", transform = "'NormalScores'")[[option]], ".", call. = FALSE)
  }
  ist[[name]]()
}

# A message of the library, with its options as they are written in R.
in_r <- function(text) {
  text <- gsub("kinds=\\{'([^']+)': '(\\w+)'\\}", "kinds = c(`\\1` = \"\\2\")", text)
  text <- gsub("learn\\(data, missing=\\.\\.\\.\\)", "missing = ...", text)
  text <- gsub("\\bDropRows\\(\\)", "\"drop\"", text)
  text <- gsub("\\bMissingAsLevel\\(\\)", "\"level\"", text)
  text <- gsub("\\bExpectationMaximisation\\(\\)", "\"em\"", text)
  sub("^isthmus\\.errors\\.", "", text)
}

evidence <- function(values) {
  if (length(values) == 0) return(NULL)
  values <- lapply(as.list(values), function(v) if (is.factor(v)) as.character(v) else v)
  if (anyNA(values, recursive = TRUE)) {
    stop("Evidence must not be NA: leave out what is not known.", call. = FALSE)
  }
  do.call(reticulate::dict, values)
}

python_graph <- function(graph) {
  if (inherits(graph, "isthmus")) {
    if (reticulate::py_has_attr(graph$python, "cpdag") || is.null(graph$python$dag)) graph$python
    else graph$python$dag
  } else if (inherits(graph, c("bn", "bn.fit"))) {
    from_bnlearn(graph)
  } else if (is.data.frame(graph) || is.matrix(graph)) {
    ist_dag(graph)
  } else {
    graph
  }
}

one_dag <- function(graph) {
  graph <- python_graph(graph)
  if (reticulate::py_has_attr(graph, "preferred_dag")) graph$to_dag()
  else if (reticulate::py_has_attr(graph, "dag")) graph$dag
  else graph
}

# --- arrays ---------------------------------------------------------------------------------

# An attribute as a Python object, whatever it is.
unconverted <- function(object, name) {
  reticulate::import_builtins(convert = FALSE)$getattr(object, name)
}

# An array of NumPy, by way of a list: reticulate's own conversion needs a NumPy of its age.
array_of <- function(x, names = NULL) {
  x <- reticulate::import("numpy", convert = FALSE)$asarray(x)
  size <- unlist(reticulate::py_to_r(x$shape))
  values <- as.numeric(unlist(reticulate::py_to_r(x$ravel(order = "F")$tolist())))
  array(values, size, names)
}

# --- results --------------------------------------------------------------------------------

result <- function(kind, python, ...) {
  structure(list(..., python = python), class = c(paste0("isthmus_", kind), "isthmus"))
}

named_list <- function(mapping) {
  reticulate::import_builtins()$dict(mapping)
}

edge_frame <- function(edges, directed = TRUE) {
  edges <- reticulate::import_builtins()$list(edges)
  data.frame(
    from = vapply(edges, function(e) e[[1]], ""), to = vapply(edges, function(e) e[[2]], ""),
    directed = rep(directed, length(edges))
  )
}

pattern_edges <- function(graph) {
  sorted <- reticulate::import_builtins()$sorted
  rbind(edge_frame(sorted(graph$directed)), edge_frame(sorted(graph$undirected), FALSE))
}

pair_frame <- function(object) {
  matrix <- array_of(reticulate::py_call(unconverted(object, "edge_probabilities")))
  nodes <- unlist(reticulate::import_builtins()$list(object$nodes))
  at <- which(matrix > 0, arr.ind = TRUE)
  frame <- data.frame(from = nodes[at[, 1]], to = nodes[at[, 2]], probability = matrix[at])
  frame <- frame[order(-frame$probability, frame$from, frame$to), ]
  rownames(frame) <- NULL
  frame
}
