skip_without_python()

test_that("a collider is learned, fitted and asked", {
  data <- sprinkler()
  solution <- ist_learn(data)
  expect_equal(solution$edges$from, c("rain", "sprinkler"))
  expect_equal(solution$edges$to, c("wet", "wet"))
  expect_true(all(solution$edges$directed))
  expect_output(print(solution), "2 edges, 3 variables")
  network <- ist_fit(data, solution)
  both <- ist_query(network, "wet", given = list(rain = TRUE, sprinkler = FALSE))$probabilities
  counted <- mean(data$wet[data$rain & !data$sprinkler])
  expect_equal(both[["TRUE"]], counted, tolerance = 0.02)
  joint <- ist_query(network, c("rain", "wet"))$probabilities
  expect_equal(dim(joint), c(2, 2))
  expect_equal(joint["TRUE", "TRUE"], mean(data$rain & data$wet), tolerance = 0.05)
  expect_error(ist_query(network, "wet", given = list(rain = NA)), "NA")
})

test_that("an effect is that of lm", {
  data <- line()
  graph <- reticulate::import("isthmus")$DAG(c("x", "y"), list(reticulate::tuple("x", "y")))
  found <- ist_effect(data, graph, "x", "y")
  expect_equal(found$value, unname(coef(lm(y ~ x, data))["x"]), tolerance = 1e-6)
  moments <- ist_query(ist_fit(data, graph, curves = FALSE), c("x", "y"))$moments
  expect_equal(moments$mean[moments$variable == "y"], mean(data$y), tolerance = 1e-6)
})

test_that("draws and replicates are whole numbers, also as doubles", {
  data <- line()
  drawn <- ist_sample(data, draws = 50, seed = 3)
  expect_equal(sum(drawn$edges$probability), 1, tolerance = 1e-6)  # one edge, of two directions
  resampled <- ist_bootstrap(data, replicates = 10)
  expect_setequal(resampled$edges$from, c("x", "y"))
  expect_error(ist_sample(data, draws = 1.5), "whole number")
})

test_that("knowledge, scores and kinds are passed on", {
  data <- line()
  known <- ist_knowledge(required = cbind("y", "x"))
  expect_equal(ist_learn(data, knowledge = known)$edges$from, "y")
  solution <- ist_learn(sprinkler(), score = "K2", search = "HillClimb")
  expect_match(reticulate::py_str(solution$python), "K2")
  data$x <- round(data$x)
  expect_error(ist_learn(data, kinds = c(x = "nonsense")), "nonsense")
})

test_that("graphs are made from edges, without bnlearn", {
  data <- line()
  data$z <- data$y + rnorm(nrow(data))
  edges <- data.frame(from = c("x", "y"), to = c("y", "z"))
  found <- ist_effect(data, edges, "x", "z")
  expect_equal(found$value, unname(coef(lm(z ~ x, data))["x"]), tolerance = 1e-6)
  expect_equal(ist_fit(data, as.matrix(edges))$dag$to, c("y", "z"))
  expect_equal(unlist(ist_dag(edges[1, ], nodes = c("x", "y", "z"))$nodes), c("x", "y", "z"))
  expect_error(ist_dag(ist_learn(data)$edges), "direction")
})

test_that("a table is held against a graph", {
  data <- line()
  data$z <- data$y + rnorm(nrow(data))
  right <- ist_validate(data, data.frame(from = c("x", "y"), to = c("y", "z")))
  expect_true(right$agrees)
  expect_equal(right$independences[c("x", "y", "given")], data.frame(x = "x", y = "z", given = "y"))
  expect_false(ist_validate(data, ist_dag(data.frame("x", "z"), names(data)))$agrees)
})

test_that("messages name options as R writes them", {
  data <- line()
  data$day <- as.Date("2024-01-01") + seq_len(nrow(data))
  expect_error(ist_learn(data), 'kinds = c(`day` = "days")', fixed = TRUE)
  data <- line()
  data$x[1:20] <- NA
  expect_error(ist_learn(data), 'missing = ... with "drop" or "em"', fixed = TRUE)
  expect_error(ist_learn(line(), score = "bic"), "no score 'bic'")
})
