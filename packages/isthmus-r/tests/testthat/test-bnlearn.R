skip_without_python()
skip_if_not_installed("bnlearn")

test_that("learned graphs go to bnlearn and back", {
  solution <- ist_learn(sprinkler())
  graph <- as_bnlearn(solution)
  expect_equal(nrow(bnlearn::arcs(graph)), 2)
  expect_true(bnlearn::directed(graph))
  expect_equal(as_bnlearn(ist_learn(line())) |> bnlearn::undirected.arcs() |> nrow(), 2)
  again <- from_bnlearn(bnlearn::cpdag(graph))
  expect_equal(reticulate::py_str(again), reticulate::py_str(from_bnlearn(graph)))
})

test_that("classes with undirected edges come from bnlearn", {
  chain <- from_bnlearn(bnlearn::cpdag(bnlearn::model2network("[a][b|a][c|b]")))
  expect_match(class(chain)[1], "CPDAG")
  expect_equal(reticulate::import_builtins()$len(chain$undirected), 2)
})

test_that("discrete networks have the tables of bnlearn, both ways", {
  data <- as.data.frame(lapply(bnlearn::learning.test, as.factor))
  graph <- bnlearn::model2network("[A][C][F][B|A][D|A:C][E|B:F]")
  theirs <- bnlearn::bn.fit(graph, data)
  ours <- ist_fit(data, graph, pseudo_count = 0)
  back <- as_bnlearn(ours)
  for (node in bnlearn::nodes(graph)) {
    table <- back[[node]]$prob
    axes <- match(names(dimnames(theirs[[node]]$prob)), names(dimnames(table)))
    if (length(dim(table)) > 1) table <- aperm(table, axes)
    expect_equal(as.numeric(table), as.numeric(theirs[[node]]$prob), tolerance = 1e-8)
  }
  asked <- ist_query(from_bnlearn(theirs), "E", given = list(B = "c", F = "a"))$probabilities
  expect_equal(as.numeric(asked), as.numeric(theirs$E$prob[, "c", "a"]), tolerance = 1e-8)
})

test_that("Gaussian networks have the coefficients of bnlearn, both ways", {
  data <- bnlearn::gaussian.test
  graph <- bnlearn::model2network("[A][B][E][G][C|A:B][D|B][F|A:D:E:G]")
  theirs <- bnlearn::bn.fit(graph, data)
  back <- as_bnlearn(ist_fit(data, graph, curves = FALSE))
  for (node in bnlearn::nodes(graph)) {
    expected <- theirs[[node]]$coefficients
    expect_equal(back[[node]]$coefficients[names(expected)], expected, tolerance = 1e-6)
    expect_equal(back[[node]]$sd, theirs[[node]]$sd, tolerance = 0.01)
  }
  asked <- ist_query(from_bnlearn(theirs), "C", given = list(A = 1, B = 2))$moments
  expect_equal(asked$mean, sum(theirs$C$coefficients * c(1, 1, 2)), tolerance = 1e-8)
  expect_equal(asked$sd, theirs$C$sd, tolerance = 1e-8)
})

test_that("networks that bnlearn does not have are refused", {
  expect_error(as_bnlearn(1), "ist_learn")
  expect_error(from_bnlearn(1), "bn.fit")
})
