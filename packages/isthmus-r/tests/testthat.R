library(testthat)
library(isthmus)

test_check("isthmus")
