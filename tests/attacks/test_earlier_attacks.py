"""Earlier attacks that were stopped, and the tests that keep it so.

Each attack is one line: what the attacker tries, and the name of the test that tries it. A test
that is removed or renamed is noticed here, so that no attack is forgotten with it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

ATTACKS = {
    "serve with two signatures": "test_a_site_does_not_serve_without_all_signatures",
    "invented peers": "test_hospitals_that_the_author_invented_are_not_among_the_peers",
    "a window around one person": "test_a_window_chosen_by_the_coordinator_shows_no_record",
    "such a window in the study": "test_a_window_signed_by_a_malicious_author_shows_no_record",
    "does a value occur": "test_a_window_does_not_tell_whether_a_value_occurs",
    "fewer rows than columns": "test_fewer_rows_than_columns_are_not_released",
    "what refusals tell": "test_questions_about_one_site_are_answered_alike_whatever_its_data_are",
    "a cut or deleted ledger": "test_a_ledger_that_was_cut_or_reset_shows_at_the_next_round",
    "numbers of 400 digits": "test_a_number_of_four_hundred_digits_does_not_raise",
    "time steps as persons": "test_one_patient_with_many_time_steps_is_no_cohort",
    "billions of tables": "test_billions_of_tables_are_refused_at_once",
    "a flag of one patient": "test_a_rare_flag_does_not_show_the_record_of_its_only_patient",
    "clinics of one group": "test_a_group_of_clinics_does_not_hold_enough_shares",
    "a flapping site": "test_a_flapping_site_does_not_use_up_the_rounds_of_a_study",
    "a key that others can read": "test_a_key_that_others_can_read_is_refused",
    "markup in a report": "test_names_from_the_data_cannot_become_markup",
    "sites killed": "test_sites_killed_during_admm_go_on",
    "coordinator killed": "test_a_coordinator_killed_after_every_write",
    "both, over gRPC": "test_kills_and_a_flapping_network",
}


@pytest.fixture(scope="module")
def names() -> set[str]:
    text = "\n".join(file.read_text(encoding="utf-8") for file in TESTS.rglob("test_*.py"))
    return set(re.findall(r"^def (test_\w+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_earlier_attack_is_still_tried(attack: str, names: set[str]) -> None:
    assert ATTACKS[attack] in names
