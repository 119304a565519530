# Answers of bnlearn to the tasks of docs/how-to/tasks.md; started by tasks_bnlearn.py in a folder
# that has the tables. Writes lines "task,quantity,value".
suppressMessages(library(bnlearn))
set.seed(1)
answer <- function(task, quantity, value) cat(task, ",", quantity, ",", format(value, digits = 17), "\n", sep = "")
table <- function(name, factors = FALSE) {
  rows <- read.csv(paste0(name, ".csv"), check.names = FALSE, stringsAsFactors = TRUE)
  if (factors) rows[] <- lapply(rows, factor)
  whole <- sapply(rows, is.integer)
  rows[whole] <- lapply(rows[whole], as.numeric)
  rows
}
graph <- function(name, nodes) {
  arcs <- read.csv(paste0(name, ".edges.csv"), check.names = FALSE, colClasses = "character")
  dag <- empty.graph(nodes)
  arcs(dag) <- as.matrix(arcs)
  dag
}
answer(0, as.character(packageVersion("bnlearn")), 0)

wine <- table("wine")
learned <- graph("wine", names(wine))
answer(2, "size of the Markov blanket", length(mb(learned, "cultivar")))
naive <- bn.fit(graph("naive", names(wine)), wine)
answer(4, "mean of alcohol in cultivar B", coef(naive$alcohol)[1, 2])

births <- table("births")
years <- graph("births", names(births))
answer(7, "mean prediction of 2010", mean(predict(bn.fit(years, births), "2010", births)))
answer(7, "spread of predictions of 2010", sd(predict(bn.fit(years, births), "2010", births)))

weeks <- table("weeks")
answer(11, "rise per year", coef(bn.fit(graph("weeks", names(weeks)), weeks)$co2)[2])
rises <- table("rises")
months <- levels(rises$month)
rise <- bn.fit(graph("rises", names(rises)), rises)$rise
answer(12, "rise in May", coef(rise)[1, months == "May"])

voters <- table("voters", factors = TRUE)
tiers <- tiers2blacklist(list("educ", "selfLR", "PID", "TVnews", "vote"))
found <- hc(voters, score = "bic", blacklist = tiers)
answer(14, "BIC of the graph of hc", score(found, voters, type = "bic"))
answer(19, "BIC of the graph of Isthmus", score(graph("voters", names(voters)), voters, type = "bic"))
answer(19, "BIC of an own graph", score(graph("own", names(voters)), voters, type = "bic"))
fitted <- read.bif("voters.bif")
share <- function(network, evidence) {
  drawn <- cpdist(network, nodes = "vote", evidence = evidence, method = "lw", n = 2e6)
  weights <- attr(drawn, "weights")
  sum(weights[drawn$vote == "Dole"]) / sum(weights)
}
answer(15, "P(Dole) given selfLR = 4 and educ = 7", share(fitted, list(selfLR = "4", educ = "7")))
set <- mutilated(fitted, list(PID = "3"))
answer(18, "P(Dole) after PID is set to 3", share(set, list(PID = "3")))

logs <- table("marriages")
effect <- graph("marriages", names(logs))
answer(22, "effect of rate_marriage on affairs", coef(bn.fit(effect, logs)$affairs)["rate_marriage"])

plans <- table("plans")
plans$idp <- factor(plans$idp)
own <- coef(bn.fit(graph("plans", names(plans)), plans)$mdvis)
answer(27, "effect of idp on mdvis", own[1, 2] - own[1, 1])

pixels <- table("pixels")
started <- proc.time()[["elapsed"]]
climbed <- hc(pixels, score = "bic-g")
answer(28, "seconds of hc", proc.time()[["elapsed"]] - started)
answer(28, "BIC of the graph of hc", score(climbed, pixels, type = "bic-g"))
ours <- graph("pixels", names(pixels))
answer(28, "BIC of the graph of Isthmus", score(ours, pixels, type = "bic-g"))
