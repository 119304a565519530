"""`isthmus ledger`: what has left a site or a party, entry by entry."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import isthmus_joint as joint
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode
from isthmus.errors import LedgerError, StudyError, counted
from isthmus_joint.commands.arguments import add_action
from isthmus_joint.commands.keys import load_identity, own_keys


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "The ledger of a site or a party: everything that has left, and everything that was "
        "refused. HOME is its private folder."
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    action = partial(add_action, actions, "site or party", study=False)
    show = action("show", "verify the ledger and print it", _show)
    verify = action("verify", "verify the ledger", _verify)
    repair = action("repair", "put an incomplete last line aside, after a power failure", _repair)
    for each in (show, verify, repair):
        each.add_argument(
            "--head",
            action="append",
            default=[],
            metavar="HASH",
            help="hash of an entry that the ledger must contain, because another site remembers "
            "it; may be repeated",
        )
    action("heads", "print what this site remembers of the ledgers of others", _heads)
    action("rotate", "begin a new file that continues the chain", _rotate)
    testify = action("testify", "state what is remembered of a peer with a lost ledger", _testify)
    testify.add_argument("name", metavar="NAME", help="name of the peer, as in the policy")
    testify.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="file for the peer"
    )
    back = action("restore", "count what left after the backup of a restored ledger", _restore)
    back.add_argument(
        "testimony",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="what a peer remembers; 'isthmus ledger testify' of the peer writes it",
    )
    back.add_argument(
        "--spent-in-full",
        action="store_true",
        help="not all peers have stated what they remember: count the whole budget of the policy "
        "as spent",
    )


def _show(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.records.ledger import readable, received_results, summary

    entries = _entries(options.home, options.head)
    say(readable(entries))
    give(ledger=entries)
    _require_complete(entries)
    if released := summary(entries):
        say(f"Data released:\n{released}")
    _say_spent(options.home, entries)
    if results := received_results(entries):
        say(f"Results received:\n{results}")
    return _say_intact(entries)


def _verify(options: argparse.Namespace) -> ExitCode:
    entries = _entries(options.home, options.head)
    _require_complete(entries)
    return _say_intact(entries)


def _require_complete(entries: list[Mapping[str, Any]]) -> None:
    """Raise `LedgerError` if other sites have told this one of an entry that it has lost."""
    from isthmus_joint.records.ledger_entries import missed_by_witnesses

    for number, head in missed_by_witnesses(entries):
        raise LedgerError(
            f"The ledger has lost entries: when entry {number} was written, another site knew "
            f"the entry {head[:16]}…, which is not in it. A crash cannot cause this, because an "
            "entry is on disk before others learn of it. If the ledger was restored from a backup, "
            "'isthmus ledger restore' counts what it lacks."
        )


def _heads(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.agreement.identity import key_text
    from isthmus_joint.records.ledger_entries import remembered_heads

    heads = remembered_heads(_entries(options.home, []))
    policy = options.home / "policy.toml"
    peers = (joint.Policy.read(policy).peers or ()) if policy.exists() else ()
    names = {m.key.hex(): m.name for m in peers}
    for key, head in heads.items():
        say(f"{names.get(key, key_text(bytes.fromhex(key)))}: {head}")
    if not heads:
        say("This ledger remembers no entry of another one.")
    else:
        say("Each site can check its own ledger: isthmus ledger verify HOME --head HASH")
    give(heads=heads)
    return ExitCode.DONE


def _repair(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.records.ledger import repair

    identity = load_identity(options.home / "identity.pem")
    torn = repair(_path(options.home), identity, heads=options.head)
    say(f"Put an incomplete line of {torn} bytes aside." if torn else "No line is incomplete.")
    give(bytes_put_aside=torn)
    return _say_intact(_entries(options.home, []))


def _rotate(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.records.ledger import rotate

    aside = rotate(_path(options.home))
    say(f"The entries so far are in {aside}. Keep it: the ledger needs all its parts.")
    give(earlier_part=str(aside))
    return _say_intact(_entries(options.home, []))


def _testify(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.records.testimony import WitnessStatement

    peers = joint.Policy.read(options.home / "policy.toml").peers or ()
    of = next((m.key for m in peers if m.name == options.name), None)
    if of is None:
        raise StudyError(
            f"The policy has no peer {options.name!r}; it has {[m.name for m in peers]}."
        )
    identity = load_identity(options.home / "identity.pem")
    known = WitnessStatement.about(of, identity.public, _entries(options.home, []))
    known.write(options.output, identity)
    say(f"Wrote what is remembered of {options.name!r} to {options.output}: the last entry of its")
    say(f"ledger, and the numbers of the rounds in {counted(len(known.rounds), 'study')}.")
    give(written=str(options.output), studies=sorted(known.rounds))
    return ExitCode.DONE


def _restore(options: argparse.Namespace) -> ExitCode:
    from isthmus_joint.noise.accounting import rho_of
    from isthmus_joint.records.testimony import WitnessStatement, restore

    policy = joint.Policy.read(options.home / "policy.toml")
    identity, own = load_identity(options.home / "identity.pem"), own_keys(options.home) or []
    others = {m.key.hex(): m.name for m in policy.peers or () if m.key not in own}
    given = [WitnessStatement.read(path) for path in options.testimony]
    strangers = [t for t in given if t.by not in others or bytes.fromhex(t.of) not in own]
    if strangers:
        raise StudyError(
            "A statement is not about this site, or its key is not that of a peer of the policy."
        )
    absent = sorted(name for key, name in others.items() if key not in {t.by for t in given})
    if absent and not options.spent_in_full:
        raise StudyError(
            f"There is no statement of {absent}. Each peer writes one: isthmus ledger testify HOME "
            "NAME -o FILE. Or pass --spent-in-full, which counts the whole budget as spent."
        )
    everything = 0.0
    if absent and policy.maximum_epsilon > 0:
        everything = rho_of(policy.maximum_epsilon, policy.maximum_delta)
    studies = restore(options.home / "ledger.jsonl", identity, given, everything)
    say(f"{counted(len(studies), 'study')} had answers that the ledger lacks. Their budgets count")
    say("as spent in full, and this site answers nothing more in them. It can take part in the")
    say("next study.")
    give(studies=studies)
    _say_spent(options.home, _entries(options.home, []))
    return _say_intact(_entries(options.home, []))


def spent_before(home: Path, study: Any) -> Any:
    """Return what earlier answers with noise have cost; ``None`` if the study has no noise."""
    from isthmus_joint.noise.accounting import Spending

    if study.privacy is None or not (home / "ledger.jsonl").exists():
        return None
    return Spending.of(_entries(home, []))


def _say_spent(home: Path, entries: list[Mapping[str, Any]]) -> None:
    """Print what answers with noise have cost, if there are any or may be."""
    from isthmus_joint.agreement.policy import MAXIMUM_DELTA
    from isthmus_joint.noise.accounting import Spending, epsilon_of

    spent, path = Spending.of(entries), home / "policy.toml"
    policy = joint.Policy.read(path) if path.exists() else None
    if not spent.costs and (policy is None or policy.maximum_epsilon == 0.0):
        return
    delta = MAXIMUM_DELTA if policy is None else policy.maximum_delta
    say(spent.describe(delta, None if policy is None else policy.maximum_epsilon))
    give(
        epsilon={name: epsilon_of(rho, delta) for name, rho in spent.costs.items()},
        epsilon_in_total=epsilon_of(spent.total, delta),
        delta=delta,
    )


def _path(home: Path) -> Path:
    path = home / "ledger.jsonl"
    if not path.exists():
        raise FileNotFoundError(
            f"There is no ledger {str(path)!r}. Name the private folder of a site or a party; the "
            "ledger begins with its first answer."
        )
    return path


def _entries(home: Path, head: list[str]) -> list[Mapping[str, Any]]:
    from isthmus_joint.records.ledger_entries import verify

    return list(verify(_path(home), head=head, keys=own_keys(home)))


def _say_intact(entries: list[Mapping[str, Any]]) -> ExitCode:
    say(f"The ledger has {len(entries)} entries and is intact.")
    give(entries=len(entries), head=str(entries[-1]["hash"]) if entries else None)
    if entries:
        say("The others keep the hash of its last entry at every round. It is now:")
        say(str(entries[-1]["hash"]))
    return ExitCode.DONE
