skip_without_python()

test_that("values of every type arrive, with and without NA", {
  expect_equal(seen(c(1L, 3L)), "[1, 3]")
  expect_equal(seen(c(1L, NA, -3L)), "[1, None, -3]")
  expect_equal(seen(c(TRUE, FALSE)), "[True, False]")
  expect_equal(seen(c(TRUE, NA, FALSE)), "[True, None, False]")
  expect_equal(seen(c("a", "NA")), "['a', 'NA']")
  expect_equal(seen(c("a", NA, "\u00e9")), "['a', None, '\u00e9']")
  expect_equal(seen(c(1.5, NA, NaN, -Inf, 0.1)), "[1.5, nan, nan, -inf, 0.1]")
  expect_equal(seen(factor(c("v", "u", NA))), "['v', 'u', None]")
  expect_equal(seen(factor(c("lo", "hi"), levels = c("lo", "hi"), ordered = TRUE)), "['lo', 'hi']")
  expect_equal(
    seen(as.Date(c("2020-02-29", NA, "1960-06-01"))),
    "[datetime.date(2020, 2, 29), None, datetime.date(1960, 6, 1)]"
  )
  expect_equal(
    seen(as.POSIXct(c("2020-01-01 12:00:00", NA, "1969-12-31 23:59:59"), tz = "UTC")),
    paste0(
      "[datetime.datetime(2020, 1, 1, 12, 0), None, ",
      "datetime.datetime(1969, 12, 31, 23, 59, 59)]"
    )
  )
})

test_that("the largest integers and tables of one row or none keep their types", {
  expect_equal(seen(c(.Machine$integer.max, -.Machine$integer.max)), "[2147483647, -2147483647]")
  expect_equal(seen(7L), "[7]")
  expect_equal(seen("a"), "['a']")
  expect_equal(seen(NA), "[None]")
  expect_equal(seen(NA_character_), "[None]")
  for (empty in list(integer(), logical(), character(), numeric())) expect_equal(seen(empty), "[]")
})

test_that("what cannot be read is refused by name", {
  big <- structure(c(1, 2), class = "integer64")  # doubles that are no doubles
  expect_error(ist_table(structure(list(n = big), row.names = 1:2, class = "data.frame")),
               "'n' has class 'integer64'")
  expect_error(seen(c(1i, 2i)), "complex")
  expect_error(ist_table(data.frame(x = I(list(1, 2)))), "'x'")
  expect_error(ist_table(list(x = 1)), "data frame")
  expect_error(ist_table(data.frame(a = 1, a = 2, check.names = FALSE)), "Two columns")
})

test_that("the library refuses missing values of every type, and drops their rows", {
  data <- sprinkler()
  for (column in list(data$rain, as.integer(data$rain), ifelse(data$rain, "yes", "no"))) {
    data$rain <- replace(column, 1:10, NA)
    expect_error(ist_learn(data), "10")
    fitted <- ist_fit(data, ist_learn(data, missing = "drop"), missing = "drop")
    levels <- ist_query(fitted, "rain")$probabilities
    expect_length(levels, 2)  # NA is no level
    expect_equal(max(levels), mean(!sprinkler()$rain[-(1:10)]), tolerance = 0.01)
  }
})
