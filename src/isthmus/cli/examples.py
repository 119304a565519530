"""The example in the help of each command. They are run in the tests, from top to bottom."""

from __future__ import annotations

EXAMPLES = {
    "datasets list": "isthmus datasets list",
    "datasets write": "isthmus datasets write asia -o patients.csv",
    "learn": "isthmus learn patients.csv -o network.html -o network.bif",
    "sample": "isthmus sample patients.csv --draws 100 -o edges.csv",
    "bootstrap": "isthmus bootstrap patients.csv --replicates 20 -o stability.csv",
    "compare": "isthmus compare network.bif dataset:asia",
    "fit": "isthmus fit network.bif patients.csv -o fitted.json",
    "query": "isthmus query fitted.json --target lung --given xray=yes --do smoke=no",
    "simulate": "isthmus simulate fitted.json --rows 500 -o simulated.csv",
    "site new": "isthmus site new north --name north --organisation 'North Hospital'",
    "coordinator new": "isthmus coordinator new lead --host coordinator.example.org",
    "study variables": "isthmus study variables --continuous age 0 120 --continuous pressure 0 300 "
    "-o variables.toml",
    "coordinator draft": "isthmus coordinator draft lead study --author north/identity.pem "
    "--title 'Blood pressure' --purpose 'Causes of high blood pressure' "
    "--variables variables.toml --card north/card.toml --card east/card.toml "
    "--card south/card.toml",
    "coordinator status": "isthmus coordinator status lead study",
    "coordinator run": "isthmus coordinator run lead study -o network.html",
    "study show": "isthmus study show study",
    "site policy": "isthmus site policy north study",
    "site pin": "isthmus site pin north east/card.toml south/card.toml",
    "study check": "isthmus study check north study",
    "study sign": "isthmus study sign north study",
    "site dry-run": "isthmus site dry-run north study --data pressure.csv",
    "site join": "isthmus site join north study --data pressure.csv",
    "site certify": "isthmus site certify north",
    "ledger show": "isthmus ledger show north",
    "ledger verify": "isthmus ledger verify north",
    "ledger heads": "isthmus ledger heads north",
    "ledger repair": "isthmus ledger repair north",
    "ledger rotate": "isthmus ledger rotate north",
    "site rotate": "isthmus site rotate north",
    "site accept": "isthmus site accept east north/succession.toml",
    "party new": "isthmus party new bank --name bank --organisation 'Bank plc' "
    "--address bank.example.org:9300",
    "party draft": "isthmus party draft bank joint --title Customers --purpose 'Why they leave' "
    "--identifier customer --party bank/card.toml bank.toml --party shop/card.toml shop.toml",
    "party policy": "isthmus party policy bank joint",
    "party pin": "isthmus party pin bank shop/card.toml",
    "party dry-run": "isthmus party dry-run bank joint --data accounts.csv",
    "party run": "isthmus party run bank joint --data accounts.csv -o network.html",
    "party status": "isthmus party status bank joint",
    "party rotate": "isthmus party rotate bank",
    "party accept": "isthmus party accept shop bank/succession.toml",
    "completion": "isthmus completion bash",
}
