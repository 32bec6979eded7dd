"""Authentication, visitor tokens and security headers."""

import hashlib
import hmac
import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell.serving.api_errors import ApiError

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Pages may load resources of this service only; inline scripts and styles are blocked."""
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
OPEN = ("/", "/docs", "/openapi.json", "/api/health", "/api/about")
"""Paths that need no key, like /static/: they hold no user data."""
VISITOR = "listenwell_visitor"
"""Name of the cookie with a visitor's token."""
VISITOR_HEADER = "X-Listenwell-Visitor"
"""Header with the same token, for API clients."""
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""The format of `secrets.token_urlsafe(32)`."""
_YEAR = 365 * 24 * 3600


class SecureHeaders:
    """Adds security headers to every response, and no-store unless it sets Cache-Control itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)


class AuthMiddleware:
    """Requires the API key; without a key, requires a Host header that names this computer.

    The Host check prevents DNS rebinding: otherwise a foreign page could point its own name at 127.0.0.1 and
    call the service from a visitor's browser.

    Args:
        app: the application.
        api_key: None for none.
        hosts: further host names of this service.
    """

    def __init__(self, app: ASGIApp, api_key: str | None, hosts: tuple[str, ...] = ()) -> None:
        self._app, self._key = app, api_key
        self._hosts = LOCAL_NAMES | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with 401 or 421."""
        api_error = self._api_error(scope) if scope["type"] == "http" else None
        if api_error:
            await api_error.response()(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _api_error(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        if self._key is None:
            if host_name(headers.get("host", "")) in self._hosts:
                return None
            return ApiError(
                421, "wrong_host", "This is not a host name of this service. Allow it with --allow-host NAME."
            )
        if scope["path"] in OPEN or scope["path"].startswith("/static/"):
            return None
        if is_key(client_key(headers), self._key):
            return None
        return ApiError(401, "invalid_api_key", "Send the API key as: Authorization: Bearer KEY")


def host_name(header: str) -> str:
    """The host name of a Host header, without the port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def client_key(headers: Headers) -> str:
    """The key of the Authorization or X-API-Key header; empty for none."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "")


def is_key(sent: str, key: str) -> bool:
    """Whether two keys are equal, compared in constant time."""
    return hmac.compare_digest(_digest(sent), _digest(key))


def new_visitor() -> str:
    """A random visitor token."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def visitor_of(connection: HTTPConnection) -> str | None:
    """The token in a request's header or cookie; None if missing or malformed."""
    token = connection.headers.get(VISITOR_HEADER) or connection.cookies.get(VISITOR)
    return token if token and _TOKEN.fullmatch(token) else None


def owner_of(token: str) -> str:
    """The hash by which the store identifies a visitor: reading the store reveals no token."""
    return _digest(token).hex()


def remember(response: Response, token: str, is_encrypted: bool) -> None:
    """Set a visitor's token as an HttpOnly, SameSite cookie and as a header."""
    response.set_cookie(VISITOR, token, _YEAR, secure=is_encrypted, httponly=True, samesite="strict")
    response.headers[VISITOR_HEADER] = token


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
