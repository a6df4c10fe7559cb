"""Matching: the lexical score, topic evidence, the priors that order hits, and the plain ranking of a library."""

from __future__ import annotations

from functools import lru_cache
from math import log2, sqrt

from gatekeeper.spec.lexicon import tag_aliases, word_list
from gatekeeper.spec.model import BELOW_THRESHOLD, HIT, NO_TOPIC_EVIDENCE, Match, Priors, Score, Usage
from gatekeeper.spec.request import fold
from gatekeeper.spec.settings import (
    ALONE_LEXICAL,
    DF_MAX_RATIO,
    DF_MIN_TEMPLATES,
    HALF_LIFE_DAYS,
    WEAK_LEXICAL,
    SpecSettings,
)
from gatekeeper.spec.tokenizing import damp_generic, is_gram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gatekeeper.spec.model import Fingerprint, Query, Template

COSINE_SHARE, COVERAGE_SHARE = 0.6, 0.4
LEXICAL_SHARE, PRIOR_SHARE = 0.9, 0.1
RANK_DIGITS = 12  # ranks are compared to this many
PRIOR_WEIGHTS = {"same_category": 0.14, "tag_overlap": 0.08, "same_repo": 0.08, "recency": 0.05, "popularity": 0.03}
_PRIOR_MASS = sum(PRIOR_WEIGHTS.values())
_NEVER = Usage()


# --- the lexical score


def norm(fingerprint: Fingerprint) -> float:
    """The length of a fingerprint as a vector."""
    return float(sqrt(sum(weight * weight for weight in fingerprint.weights.values())))


def coverage_mass(query: Fingerprint) -> float:
    """The weight of the tokens that coverage counts: paths say which file, not what to do."""
    return sum(weight for token, weight in query.weights.items() if token not in query.paths)


def score(query: Fingerprint, template: Fingerprint, *, common: frozenset[str] = frozenset()) -> Score:
    """Lexical nearness 0 to 1: 0.6 cosine over all tokens + 0.4 coverage of the query's tokens that are no path.

    common: tokens that too many templates of the library hold to be evidence. An empty side scores 0.
    """
    template = damp_generic(template)
    shared = [token for token in query.weights if token in template.weights]
    evidence = tuple(token for token in shared if is_topic(token) and token not in common)
    ignored = tuple(token for token in shared if token not in evidence)
    length = norm(query) * norm(template)
    if not length:
        return Score(0.0, 0.0, 0.0)
    cosine = sum(query.weights[token] * template.weights[token] for token in shared) / length
    overlap = sum(min(query.weights[token], template.weights[token]) for token in shared if token not in query.paths)
    mass = coverage_mass(query)
    coverage = overlap / mass if mass else 0.0
    return Score(cosine, coverage, COSINE_SHARE * cosine + COVERAGE_SHARE * coverage, tuple(shared), evidence, ignored)


# --- topic evidence


@lru_cache(maxsize=1)
def _low_signals() -> tuple[frozenset[str], frozenset[str]]:
    """Tokens that are no topic, and what 2-grams make of them: fragments of container words (情页 of 详情页), and the
    joints of two weak words (示文 of 提示文案)."""
    signals = word_list("signals")
    containers = [word for word in signals.of("containers") if not word.isascii()]
    fragments = {
        word[i : i + size] for word in containers for size in range(2, len(word)) for i in range(len(word) - size + 1)
    }
    weak = [word for word in signals.of("weak") if not word.isascii()]
    joints = {first[-1] + second[0] for first in weak for second in weak} - signals.of("no-joint")
    plain = signals.of("actions", "containers", "weak") | word_list("stops").of("generic-base-names")
    return frozenset(plain), frozenset(fragments | joints)


def is_topic(token: str) -> bool:
    """Whether a shared token tells one topic from another: no action, no container or piece of one, no index.vue."""
    plain, fragments = _low_signals()
    return token not in plain and token not in fragments


def common_tokens(fingerprints: Sequence[Fingerprint]) -> frozenset[str]:
    """Tokens that more than 40% of a library of 8 templates or more hold; none for a smaller one."""
    n_templates = len(fingerprints)
    if n_templates < DF_MIN_TEMPLATES:
        return frozenset()
    df: dict[str, int] = {}
    for fingerprint in fingerprints:
        for token in fingerprint.weights:
            df[token] = df.get(token, 0) + 1
    return frozenset(token for token, count in df.items() if count > DF_MAX_RATIO * n_templates)


_TOPIC, _MODAL = 1_000_000, 1_000  # the places of topic points, modal words and other tokens in one number


def evidence_points(token: str, weight: float, *, is_common: bool = False) -> int:
    """What sharing a token is worth as evidence: a topic 2-gram 1 and a topic word 2 points, counted in millions;
    a modal word (允许, 导出, redis) one in thousands; any other token one."""
    if is_common or not is_topic(token):
        return 1
    if token in _modal_words():
        return _MODAL
    return _TOPIC if is_gram(token, weight) else 2 * _TOPIC


@lru_cache(maxsize=1)
def _modal_words() -> frozenset[str]:
    """Words that go with any topic: "not allowed", "export", and every technology."""
    technologies = word_list("terms").of("layer", "backend", "store", "frontend", "language", "format")
    return word_list("signals").of("modal") | technologies


def verdict_of(lexical: float, n_points: int, threshold: float) -> str:
    """The verdict of a score; the line is inclusive. n_points: sum of `evidence_points`.

    Below 0.25 one 2-gram alone is no evidence. A modal word alone is none below 0.5: it counts as a 2-gram once
    another token is shared beside it.
    """
    if lexical < threshold:
        return BELOW_THRESHOLD
    n_topic, rest = divmod(n_points, _TOPIC)
    n_modal, n_others = divmod(rest, _MODAL)
    if n_topic or n_modal + n_others > 1 or lexical >= ALONE_LEXICAL:
        n_topic += n_modal
    if n_topic == 0 or (n_topic == 1 and lexical < WEAK_LEXICAL):
        return NO_TOPIC_EVIDENCE
    return HIT


def points_of(query: Fingerprint, found: Score) -> int:
    """The points of all that a query shares with a template."""
    return sum(
        evidence_points(token, query.weights.get(token, 0.0), is_common=token not in found.topic_evidence)
        for token in found.shared
    )


# --- priors


def recency(days: float | None) -> float:
    """max(0.5, 0.5^(days / 90)); 0.5 for a template that was never used."""
    if days is None or days != days:
        return 0.5
    return max(0.5, float(0.5 ** (max(days, 0.0) / HALF_LIFE_DAYS)))


def popularity(hits: int) -> float:
    """min(1, log2(hits + 1) / 5)."""
    return min(1.0, log2(max(hits, 0) + 1) / 5)


def same_category(a: str, b: str) -> bool:
    """Whether the first path segments are equal; an unknown category is equal to none."""
    first = a.partition("/")[0].strip().lower()
    return bool(first) and first == b.partition("/")[0].strip().lower()


def tag_key(tag: str) -> str:
    """The key that tags of one meaning share: a-switch, el-switch and 开关 are switch."""
    tag = " ".join(fold(tag).strip().lower().split())
    aliases = tag_aliases()
    if tag in aliases.keys:
        return aliases.keys[tag]
    for prefix in aliases.prefixes:
        if tag.startswith(prefix) and tag[len(prefix) :] in aliases.components:
            return aliases.keys.get(tag[len(prefix) :], tag[len(prefix) :])
    return tag


def tag_overlap(query_tags: Iterable[str], template_tags: Iterable[str]) -> float:
    """The share of the template's tags that the query has, by meaning."""
    wanted = {tag_key(tag) for tag in template_tags}
    return len(wanted & {tag_key(tag) for tag in query_tags}) / len(wanted) if wanted else 0.0


def shared_tags(query_tags: Iterable[str], template_tags: Iterable[str]) -> list[tuple[str, str]]:
    """The tags of one meaning, as the query and as the template spells them, in the order of the template."""
    spelled: dict[str, str] = {}
    for tag in query_tags:
        spelled.setdefault(tag_key(tag), tag)
    return [(spelled[tag_key(tag)], tag) for tag in template_tags if tag_key(tag) in spelled]


def priors_of(query: Query, template: Template, *, repo: str = "", usage: Usage = _NEVER) -> Priors:
    """What speaks for a template besides its words. repo: the hash of the current project."""
    return Priors(
        float(same_category(query.category, template.category)),
        tag_overlap(query.tags, template.tags),
        float(bool(repo) and template.repo == repo),
        recency(usage.days),
        popularity(usage.hits),
    )


def prior(priors: Priors) -> float:
    """The weighted mean of the priors, 0 to 1."""
    return float(sum(weight * getattr(priors, name) for name, weight in PRIOR_WEIGHTS.items())) / _PRIOR_MASS


def rank_score(lexical: float, priors: Priors) -> float:
    """0.9 lexical + 0.1 prior: the order of hits. Priors never make a hit."""
    return LEXICAL_SHARE * lexical + PRIOR_SHARE * prior(priors)


# --- a whole library, plainly


def match_template(
    query: Query,
    template: Template,
    *,
    threshold: float,
    common: frozenset[str] = frozenset(),
    repo: str = "",
    usage: Usage = _NEVER,
) -> Match:
    """One template as a query sees it."""
    found = score(query, template.fingerprint, common=common)
    priors = priors_of(query, template, repo=repo, usage=usage)
    return Match(
        template,
        found,
        priors,
        rank_score(found.lexical, priors),
        verdict_of(found.lexical, points_of(query, found), threshold),
    )


def rank(
    query: Query,
    templates: Sequence[Template],
    *,
    settings: SpecSettings | None = None,
    repo: str = "",
    usage: Mapping[str, Usage] | None = None,
) -> list[Match]:
    """Every template, hits first, best first, ties by id. `TemplateIndex` gives the same hits faster."""
    threshold = (settings or SpecSettings()).match_threshold
    common = common_tokens([template.fingerprint for template in templates])
    matches = [
        match_template(
            query, template, threshold=threshold, common=common, repo=repo, usage=(usage or {}).get(template.id, _NEVER)
        )
        for template in templates
    ]
    return sorted(matches, key=rank_order)


def rank_order(match: Match) -> tuple[bool, float, str]:
    """The sort key of matches; what differs in rounding only is a tie."""
    return not match.hit, -round(match.rank_score, RANK_DIGITS), match.template.id
