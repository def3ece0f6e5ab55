"""Random requests that the OpenAPI description allows get answers that it describes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from molgraph.serve.limits import Limits
from tests.serve.conftest import changed

schemathesis = pytest.importorskip("schemathesis")
FEW = settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck])


@pytest.mark.slow
def test_answers_are_as_described(service: Any) -> None:
    from schemathesis.specs.openapi.checks import positive_data_acceptance  # a schema cannot say "as long as smiles"

    from molgraph.serve.app import make_app

    schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(changed(service, limits=Limits(jobs=1_000))))
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @FEW
        @given(case=operation.as_strategy())
        def trial(case: Any) -> None:
            if "model" in (case.path_parameters or {}):
                case.path_parameters["model"] = "tiny"
            answer = case.call_and_validate(excluded_checks=[positive_data_acceptance])
            tried.add((case.operation.label, answer.status_code))

        trial()
    assert len({label for label, _ in tried}) == 10, tried
    assert {("GET /models", 200), ("POST /models/{model}/predict", 200), ("POST /draw", 200)} <= tried
