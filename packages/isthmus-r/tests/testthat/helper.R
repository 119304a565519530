# What Python sees of a column, as its own text: no conversion back can hide a mistake.
seen <- function(x) {
  table <- ist_table(data.frame(x = x, stringsAsFactors = FALSE))
  reticulate::py_str(table$get("x")$tolist())
}

sprinkler <- function(n = 1000) {
  set.seed(7)
  rain <- runif(n) < 0.3
  sprinkler <- runif(n) < 0.4
  wet <- (rain & runif(n) < 0.9) | (sprinkler & runif(n) < 0.8)
  data.frame(rain, sprinkler, wet)
}

line <- function(n = 500) {
  set.seed(1)
  x <- rnorm(n)
  data.frame(x, y = 3 + 2 * x + rnorm(n))
}

skip_without_python <- function() {
  skip_if_not(reticulate::py_module_available("isthmus"), "the Python package isthmus")
}
