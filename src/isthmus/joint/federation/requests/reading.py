"""Reading requests that arrive at a site."""

from __future__ import annotations

from typing import Any

from isthmus.errors import FormatError, IsthmusError
from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.base import SumRequest
from isthmus.joint.federation.requests.fixed_point import NUMBERS, FixedPointEncoding
from isthmus.joint.request_catalogue import read_request


def read_sum_request(data: bytes, study: Study, grid: FixedPointEncoding) -> SumRequest[Any]:
    """Read a request that secure sums can answer; `FormatError` for anything else."""
    request = read_request(data, study)
    if not isinstance(request, SumRequest):
        raise FormatError(f"Secure sums cannot answer a request for {request.name}.")
    if request.violations(study):
        return request  # it will be refused; its size may be beyond computing
    try:
        size = request.size(grid)
    except (IsthmusError, ValueError, TypeError, OverflowError) as error:
        raise FormatError("This is not a request that fits the study.") from error
    if size > NUMBERS:
        raise FormatError(f"The request asks for {size} numbers; {NUMBERS} are allowed.")
    return request
