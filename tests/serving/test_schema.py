"""Whatever is sent: no server error, and nothing but what the OpenAPI page says."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from listenwell.serving.security import VISITOR_HEADER
from tests.serving.fake import FakeListener, fake_app, fake_settings, running

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = int(os.environ.get("LISTENWELL_SCHEMA_EXAMPLES", "6"))
OPERATIONS = [
    (method, path, mode)
    for path, methods in fake_app().openapi()["paths"].items()
    for method, operation in methods.items()
    for mode in GenerationMode
    # Of an operation that takes nothing there is no wrong use.
    if mode is GenerationMode.POSITIVE or {"parameters", "requestBody"} & set(operation)
]
VISITOR = {VISITOR_HEADER: "v" * 43}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The schema of a running service, and the name of a conversation in it."""
    import httpx2

    store = str(tmp_path_factory.mktemp("store") / "talks")
    limits = {"conversations": 10**6, "exchanges": 10**6}
    with running(fake_app(fake_settings(store=store, limits=limits), FakeListener())) as url:
        id = httpx2.post(f"{url}/api/conversations", json={}, headers=VISITOR).json()["id"]
        httpx2.post(f"{url}/api/conversations/{id}/messages", json={"text": "hi"}, headers=VISITOR)
        yield schemathesis.openapi.from_url(f"{url}/openapi.json"), id


@pytest.mark.parametrize(("method", "path", "mode"), OPERATIONS)
def test_no_request_is_a_server_error(service, method, path, mode):
    schema, id = service
    phases = [Phase.explicit, Phase.generate]

    @settings(max_examples=EXAMPLES, phases=phases, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schema[path][method.upper()].as_strategy(generation_mode=mode), st.booleans())
    def try_it(case, is_known):
        if is_known and "id" in case.path_parameters and method != "delete":
            case.path_parameters["id"] = id
        case.call_and_validate(checks=CHECKS, headers=VISITOR)

    try_it()
