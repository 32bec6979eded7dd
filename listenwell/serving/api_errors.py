"""API errors in the format of OpenAI's API."""

import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from listenwell.errors import InputError, ListenwellError, UnknownNameError
from listenwell.serialization import dumps

GONE = 499
"""Status of a request whose client disconnected; only the log shows it."""
_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "server_error",
    502: "server_error",
    503: "overloaded_error",
}
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    422: "invalid_value",
}


class ApiError(Exception):
    """An error response.

    Args:
        status: HTTP status.
        code: a constant name for programs.
        message: what is wrong and what to do.
        retry_after: seconds after which to retry.
        param: the invalid field.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        retry_after: float | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(status, code)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.headers: dict[str, str] = {}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"

    def content(self) -> dict[str, Any]:
        """The response body."""
        return {
            "error": {
                "message": self.message,
                "type": _TYPES.get(self.status, "invalid_request_error"),
                "param": self.param,
                "code": self.code,
            }
        }

    def response(self) -> Response:
        """The response."""
        return Json(self.content(), self.status, self.headers)


class Json(JSONResponse):
    """A JSON response that can hold any string a user sends, and no NaN."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401
        """One line."""
        return dumps(finite(content)).encode()


def finite(value: Any) -> Any:  # noqa: ANN401
    """The same values with None for numbers that JSON cannot represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value


def api_error_of(error: Exception) -> ApiError:
    """The error response for an exception; an unexpected one reveals nothing of its cause."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, InputError | UnknownNameError):
        return ApiError(422, "invalid_value", str(error))
    if isinstance(error, ListenwellError):  # not the fault of this request
        status = getattr(error, "status", 503)
        return ApiError(status, "unavailable", str(error))
    return ApiError(500, "failed", "Internal error. Try again; if it persists, tell the operator.")


def add_handlers(app: FastAPI) -> None:
    """Give every known error the same format, without repeating what the user sent."""

    async def respond(_: Request, error: Exception) -> Response:
        return api_error_of(error).response()

    async def respond_http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = _CODES.get(error.status_code, "refused")
        api_error = ApiError(error.status_code, code, str(error.detail))
        api_error.headers.update(error.headers or {})
        return api_error.response()

    async def respond_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "body")
        problem = str(first["msg"]).removeprefix("Value error, ")
        message = f"{where}: {problem}." if where else f"{problem}."
        return ApiError(422, "invalid_value", message.replace("..", "."), param=where or None).response()

    app.add_exception_handler(ApiError, respond)
    app.add_exception_handler(ListenwellError, respond)
    app.add_exception_handler(HTTPException, respond_http)
    app.add_exception_handler(RequestValidationError, respond_invalid)
