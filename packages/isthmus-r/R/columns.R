# Data frames become Python tables here, and nowhere else. reticulate turns the NA of integer,
# logical and character columns into values, without a word.

#' Convert a data frame into the table that Isthmus reads.
ist_table <- function(data) {
  if (!is.data.frame(data)) {
    stop("Give a data frame; got an object of class '", class(data)[1], "'.", call. = FALSE)
  }
  if (anyDuplicated(names(data))) {
    stop("Two columns are named '", names(data)[anyDuplicated(names(data))], "'.", call. = FALSE)
  }
  columns <- lapply(names(data), function(name) column(data[[name]], name))
  names(columns) <- names(data)
  do.call(reticulate::dict, c(columns, convert = FALSE))
}

column <- function(x, name) {
  numpy <- reticulate::import("numpy", convert = FALSE)
  missing <- is.na(x)
  if (is.factor(x)) {
    labelled(as.character(x), missing, numpy)
  } else if (inherits(x, "Date")) {
    # Whole days since 1970; a negative number with a fraction belongs to the day before.
    dates(floor(unclass(x)), "datetime64[D]", missing, numpy)
  } else if (inherits(x, "POSIXct")) {
    dates(round(unclass(x) * 1e6), "datetime64[us]", missing, numpy)
  } else if (is.object(x) || !is.null(dim(x)) || !is.atomic(x)) {
    # Such as 64-bit integers of bit64, whose numbers are those of other doubles.
    stop("Column '", name, "' has class '", class(x)[1], "', which cannot be read. Convert it to ",
         "numbers, text, a factor or dates.", call. = FALSE)
  } else if (is.double(x)) {
    numbers(x, numpy)  # NA is NaN
  } else if (is.integer(x)) {
    without(numbers(replace(x, missing, 0L), numpy)$astype("int64"), missing, numpy)
  } else if (is.logical(x)) {
    without(truths(replace(x, missing, FALSE), numpy), missing, numpy)
  } else if (is.character(x)) {
    labelled(x, missing, numpy)
  } else {
    stop("Column '", name, "' has type '", typeof(x), "', which cannot be read.", call. = FALSE)
  }
}

# Doubles as bytes: reticulate's own arrays need a NumPy of its age.
numbers <- function(x, numpy) {
  if (length(x) == 0) return(numpy$zeros(0L))
  numpy$frombuffer(writeBin(as.double(x), raw()), dtype = "float64")
}

truths <- function(x, numpy) {
  numbers(x, numpy)$astype("bool")
}

# Text, with None where it is missing.
labelled <- function(x, missing, numpy) {
  text <- as.list(enc2utf8(replace(x, missing, "")))
  without(numpy$array(text, dtype = "object"), missing, numpy)
}

# Values with None where they are missing; an array without missing values stays as it is.
without <- function(values, missing, numpy) {
  if (!any(missing)) {
    return(values)
  }
  numpy$where(truths(missing, numpy), NULL, values$astype("object"))
}

dates <- function(x, type, missing, numpy) {
  if (any(abs(x[!missing]) > 2^53)) {
    stop("A date is too far from 1970.", call. = FALSE)
  }
  whole <- numbers(replace(x, missing, 0), numpy)
  never <- numpy$datetime64("NaT")
  numpy$where(truths(missing, numpy), never, whole$astype("int64")$astype(type))
}
