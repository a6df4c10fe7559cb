"""Secrets in pasted text: keys, tokens, passwords, e-mail addresses. They are masked before anything is written."""

from __future__ import annotations

import re

_START = r"(?<![A-Za-z0-9])"
_KEY_BLOCK = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?!-----)[\s\S]){0,8000}"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
# what the issuers prefix their tokens with
_TOKENS = "|".join(
    (
        _START + r"(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])?[A-Za-z0-9_-]{16,200}",
        _START + r"gh[pousr]_[A-Za-z0-9]{20,255}",
        _START + r"github_pat_[A-Za-z0-9_]{20,255}",
        _START + r"glpat-[A-Za-z0-9_-]{16,100}",
        _START + r"xox[abprs]-[A-Za-z0-9-]{10,200}",
        _START + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
        _START + r"AIza[A-Za-z0-9_-]{30,60}",
        _START + r"(?:npm|hf|pypi)[_-][A-Za-z0-9_-]{20,250}",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{4,4000}(?:\.[A-Za-z0-9_-]{0,2000})?",
    )
)
_BEARER = (
    r"(?i)(?P<keep>\bauthorization\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)\s{1,3}"
    r"|(?<![a-z])bearer\s{1,3}(?=[A-Za-z0-9._~+/-]{12}))[A-Za-z0-9._~+/=-]{6,4000}"
)
_IN_ADDRESS = r"(?P<keep>[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s:/@\"']{0,100}:)(?!\[)[^\s@/\"']{1,200}(?=@)"
_SECRET_NAMES = (
    r"password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?key|secret[_-]?key|client[_-]?secret|"
    r"private[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token|token|credential"
)
# types, placeholders and masks are no values
_NO_SECRET = r"string|str|null|none|undefined|true|false|number|required|optional|\*|<|\$\{|\["
_ASSIGNED = (
    rf"(?i)(?P<keep>(?:(?<![A-Za-z])|(?<=_))(?:[A-Za-z0-9_-]{{0,30}}[_-])?(?:{_SECRET_NAMES})s?[\"']?"
    rf"\s{{0,3}}[=:：＝]\s{{0,3}}[\"']?)(?!{_NO_SECRET})[^\s\"',;，；。&)}}\]]{{4,400}}"
)
_IN_CHINESE = r"(?P<keep>(?:密码|口令|密钥|令牌|秘钥)\s{0,2}[是为:：=＝]\s{0,2}[\"'「]?)(?=[!-~]{4})(?!\[)[!-~]{4,200}"
_EMAIL = r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"

# kind, a hint without which the pattern need not be tried, the pattern; "keep" stays in front of the mask
_MASKS = tuple(
    (kind, re.compile(hint), re.compile(pattern))
    for kind, hint, pattern in (
        ("private-key", "PRIVATE KEY", _KEY_BLOCK),
        ("token", r"[a-z]{2}[-_]|AKIA|ASIA|AIza|eyJ", _TOKENS),
        ("token", "(?i)bearer|authorization", _BEARER),
        ("password", "://[^@]{0,400}@", _IN_ADDRESS),
        ("password", "(?i)passw|pwd|passphrase|secret|key|token|credential", _ASSIGNED),
        ("password", "[码令钥牌]", _IN_CHINESE),
        ("email", "@", _EMAIL),
    )
)


def mask_secrets(text: str) -> tuple[str, dict[str, int]]:
    """The text with each secret replaced by its kind in brackets, and how many of each kind there were.

    Kinds: private-key, token, password, email. Idempotent; linear in the text.
    """
    counts: dict[str, int] = {}
    for kind, hint, pattern in _MASKS:
        if not hint.search(text):
            continue

        def mask(match: re.Match[str], kind: str = kind) -> str:
            counts[kind] = counts.get(kind, 0) + 1
            return (match.groupdict().get("keep") or "") + f"[{kind}]"

        text = pattern.sub(mask, text)
    return text, counts
