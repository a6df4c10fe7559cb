"""Secrets in pasted text: keys, tokens, passwords, e-mail addresses. They are masked before anything is written."""

from __future__ import annotations

import re

_START = r"(?<![A-Za-z0-9])"
_KEY_BLOCK = (
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[\s\S]){0,20000}"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
# what the issuers prefix their tokens with
_TOKENS = "|".join(
    (
        _START + r"(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])?[A-Za-z0-9_-]{16,200}",
        _START + r"gh[pousr]_[A-Za-z0-9]{20,255}",
        _START + r"github_pat_[A-Za-z0-9_]{20,255}",
        _START + r"gl[a-z]{1,6}-[A-Za-z0-9_-]{16,100}",
        _START + r"xox[abeprs]-[A-Za-z0-9-]{10,200}",
        _START + r"xapp-[A-Za-z0-9-]{10,200}",
        _START + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
        _START + r"AIza[A-Za-z0-9_-]{30,60}",
        _START + r"ya29\.[A-Za-z0-9_-]{20,500}",
        _START + r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,100}",
        _START + r"(?:shp(?:at|ca|pa|ss)|dop_v1|dor_v1|doo_v1|sq0[a-z]{3})[_-][A-Za-z0-9_-]{20,200}",
        _START + r"(?:npm|hf|pypi)[_-][A-Za-z0-9_-]{20,250}",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{4,4000}(?:\.[A-Za-z0-9_-]{0,2000})?",
    )
)
# types, placeholders, masks, calls and settings of the surroundings are no values
_NO_SECRET = (
    r"(?:string|str|null|none|undefined|true|false|number|required|optional)(?![A-Za-z0-9])|\*|<|\$\{|\["
    r"|[A-Za-z_$][\w$.]{0,80}\(|(?:process\.env|os\.environ|import\.meta|config|settings|this|self)[.\[]"
)
_HEADER = (
    rf"(?i)(?P<keep>\b(?:proxy-)?authorization[\"']?\s{{0,3}}[:=：＝]\s{{0,3}}[\"']?(?:[a-z][a-z0-9-]{{1,20}}\s{{1,3}})?"
    rf"|(?<![a-z])bearer\s{{1,3}}(?=[A-Za-z0-9._~+/-]{{12}}))(?!{_NO_SECRET})[!#-&(-~]{{6,4000}}(?![!#-&(-~]|\s{{1,3}}\[)"
)
_COOKIE = (
    r"(?i)(?P<keep>(?<![a-z])(?:set-)?cookie[\"']?\s{0,3}[:：]\s{0,3}[\"']?)"
    r"(?=[\w.-]{1,80}=)[^\s\"'](?:[^\"'\n]{0,4000}[^\s\"'])?"
)
_IN_ADDRESS = r"(?P<keep>[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s:/@\"']{0,100}:)(?!\[)[^\s/\"']{1,200}(?=@)"
_WEBHOOK = r"(?P<keep>https://hooks\.[a-z.]{3,40}/[a-z]{1,20}/)[A-Za-z0-9_/-]{16,200}"
_OPTION = (
    r"(?P<keep>(?<![\w-])(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:"
    r"|--(?:password|passwd|token|secret|api-key)[ =][\"']?)"
    rf"(?!{_NO_SECRET})[^\s\"']{{4,400}}"
)
_SECRET_NAMES = (
    r"password|passwd|pwd|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|secret[_-]?key|signing[_-]?key|"
    r"encryption[_-]?key|private[_-]?key|credential|token(?!s)"
)
_ASSIGNED = (
    rf"(?i)(?P<keep>(?<![A-Za-z0-9])[A-Za-z0-9_-]{{0,30}}?(?:{_SECRET_NAMES})s?[\"']?"
    rf"\s{{0,3}}[=:：＝]\s{{0,3}}[\"']?)(?!{_NO_SECRET})"
    r"(?:(?<=[\"'])[^\"'\n]{4,400}|[!#-%*-+\--:<-\\^-|~(]{4,400})"
)
_IN_CHINESE = (
    r"(?P<keep>(?:密码|密碼|口令|密钥|密鑰|令牌|秘钥|秘鑰)\s{0,2}[是为為:：=＝]\s{0,2}[\"'「]?)(?=[!-~]{4})(?!\[)[!-~]{4,200}"
)
_EMAIL = r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"

# kind, a hint without which the pattern need not be tried, the pattern; "keep" stays in front of the mask
_MASKS = tuple(
    (kind, re.compile(hint), re.compile(pattern))
    for kind, hint, pattern in (
        ("private-key", "PRIVATE KEY", _KEY_BLOCK),
        ("token", "(?i)bearer|authorization", _HEADER),
        ("token", "(?i)cookie", _COOKIE),
        ("token", r"[a-z0-9]{2}[-_]|AKIA|ASIA|AIza|eyJ|ya29|SG\.", _TOKENS),
        ("token", r"https://hooks\.", _WEBHOOK),
        ("password", "://[^@]{0,400}@", _IN_ADDRESS),
        ("password", "-u|--", _OPTION),
        ("password", "(?i)passw|pwd|passphrase|secret|key|token|credential", _ASSIGNED),
        ("password", "[码碼令钥鑰牌]", _IN_CHINESE),
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
