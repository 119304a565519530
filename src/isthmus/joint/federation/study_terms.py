"""The terms of secure sums in a study."""

from __future__ import annotations

from isthmus.joint.agreement.study import Study
from isthmus.joint.secure_sum.protocol import secure_sums
from isthmus.joint.secure_sum.terms import Terms


def terms_of(study: Study) -> Terms:
    """Return the sites of a study and how many must answer; its protocol must be secure sums."""
    return secure_sums(study.protocol).terms(study.roster)
