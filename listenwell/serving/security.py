"""Who may call the service, and what a browser may do with its answers."""

import hashlib
import hmac
import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listenwell.serving.api_errors import ApiError

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""A page may use what this service serves and nothing else; no script or style stands in the markup."""
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
"""Paths that need no key: they hold nothing of anybody's. So do files under /static/."""
VISITOR = "listenwell_visitor"
"""The cookie with a visitor's token."""
VISITOR_HEADER = "X-Listenwell-Visitor"
"""The same for programs."""
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
"""How 32 random bytes are spelled."""
_YEAR = 365 * 24 * 3600


class SecureHeaders:
    """Puts the headers on every answer; one that says nothing else is not kept by browsers."""

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
    """Lets in who has the key; without one, only requests that name this computer.

    Without the second, a page elsewhere could point its own name at 127.0.0.1 and talk to the service in a
    visitor's browser (DNS rebinding).

    Args:
        app: what is inside.
        api_key: None for none.
        hosts: further names of this service.
    """

    def __init__(self, app: ASGIApp, api_key: str | None, hosts: tuple[str, ...] = ()) -> None:
        self._app, self._key = app, api_key
        self._hosts = LOCAL_NAMES | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
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
                421, "wrong_host", "This service does not go by that name. Start it with --allow-host NAME."
            )
        if scope["path"] in OPEN or scope["path"].startswith("/static/"):
            return None
        if is_key(given_key(headers), self._key):
            return None
        return ApiError(401, "invalid_api_key", "Send the API key as: Authorization: Bearer KEY")


def host_name(header: str) -> str:
    """The name in a Host header, without its port."""
    name = header.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def given_key(headers: Headers) -> str:
    """The key a client sent, as OpenAI's clients do or in a header of its own; empty for none."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else headers.get("x-api-key", "")


def is_key(given: str, key: str) -> bool:
    """Whether two keys are the same, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(_digest(given), _digest(key))


def new_visitor() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def visitor_of(connection: HTTPConnection) -> str | None:
    """The token that came with a request, in the header or the cookie; None for none or an odd one."""
    token = connection.headers.get(VISITOR_HEADER) or connection.cookies.get(VISITOR)
    return token if token and _TOKEN.fullmatch(token) else None


def owner_of(token: str) -> str:
    """What the store knows a visitor by: whoever reads it cannot act as one of them."""
    return _digest(token).hex()


def remember(response: Response, token: str, is_encrypted: bool) -> None:
    """Give a visitor their token, out of reach of scripts and of other sites."""
    response.set_cookie(VISITOR, token, _YEAR, secure=is_encrypted, httponly=True, samesite="strict")
    response.headers[VISITOR_HEADER] = token


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
