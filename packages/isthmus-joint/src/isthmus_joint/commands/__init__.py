"""Commands on studies of several organisations."""

EXAMPLES = {
    "site new": "isthmus site new north --name north --organisation 'North Hospital'",
    "site enrol": "isthmus site enrol north study isthmus://... --name north "
    "--organisation 'North Hospital' --data pressure.csv",
    "coordinator new": "isthmus coordinator new lead --host coordinator.example.org",
    "study variables": "isthmus study variables --continuous age 0 120 --continuous pressure 0 300 "
    "-o variables.toml",
    "coordinator draft": "isthmus coordinator draft lead study --author north/identity.pem "
    "--title 'Blood pressure' --purpose 'Causes of high blood pressure' "
    "--variables variables.toml --sites 3",
    "coordinator status": "isthmus coordinator status lead study",
    "coordinator run": "isthmus coordinator run lead study -o network.html",
    "study show": "isthmus study show study",
    "study assess": "isthmus study assess study -o assessment.md",
    "study code": "isthmus study code",
    "site policy": "isthmus site policy north study",
    "site pin": "isthmus site pin north east/card.toml south/card.toml",
    "study check": "isthmus study check north study",
    "study sign": "isthmus study sign north study",
    "site freeze": "isthmus site freeze north study --data pressure.csv",
    "site dry-run": "isthmus site dry-run north study",
    "site join": "isthmus site join north study",
    "site certify": "isthmus site certify north",
    "ledger show": "isthmus ledger show north",
    "ledger verify": "isthmus ledger verify north",
    "ledger heads": "isthmus ledger heads north",
    "ledger repair": "isthmus ledger repair north",
    "ledger rotate": "isthmus ledger rotate north",
    "ledger testify": "isthmus ledger testify north east -o north-about-east.json",
    "ledger restore": "isthmus ledger restore east north-about-east.json south-about-east.json",
    "site rotate": "isthmus site rotate north",
    "site files": "isthmus site files north",
    "site erase": "isthmus site erase north --study study",
    "coordinator files": "isthmus coordinator files lead",
    "coordinator erase": "isthmus coordinator erase lead --study study",
    "site accept": "isthmus site accept east north/succession.toml",
    "party new": "isthmus party new bank --name bank --organisation 'Bank plc' "
    "--address bank.example.org:9300",
    "party draft": "isthmus party draft bank joint --title Customers --purpose 'Why they leave' "
    "--identifier customer --party bank/card.toml bank.toml --party shop/card.toml shop.toml "
    "--people 3000 3000",
    "party policy": "isthmus party policy bank joint",
    "party pin": "isthmus party pin bank shop/card.toml",
    "party dry-run": "isthmus party dry-run bank joint --data accounts.csv",
    "party run": "isthmus party run bank joint --data accounts.csv -o network.html",
    "party status": "isthmus party status bank joint",
    "party rotate": "isthmus party rotate bank",
    "party files": "isthmus party files bank",
    "party erase": "isthmus party erase bank --all",
    "synthesise": "isthmus synthesise pressure.csv --variables variables.toml --epsilon 1 "
    "--whole age -o synthetic.csv",
    "party accept": "isthmus party accept shop bank/succession.toml",
}
"""An example of each command, for its help."""
