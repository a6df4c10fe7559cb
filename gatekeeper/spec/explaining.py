"""Why a template matches a text, or why it does not: every number of the way, for one template or for all."""

from __future__ import annotations

from gatekeeper.spec.matching import common_tokens, match_template, rank_order, shared_tags
from gatekeeper.spec.model import BELOW_THRESHOLD, HIT, NO_TOPIC_EVIDENCE, SKIPPED, Explanation, Usage
from gatekeeper.spec.preparing import effective_length, prepare, should_skip_matching
from gatekeeper.spec.settings import SpecSettings
from gatekeeper.spec.tokenizing import query_fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gatekeeper.spec.lexicon import WordList
    from gatekeeper.spec.model import Match, Prepared, Query, Template


def explain(
    text: str,
    templates: Sequence[Template],
    *,
    template_id: str | None = None,
    has_image: bool = False,
    settings: SpecSettings | None = None,
    repo: str = "",
    usage: Mapping[str, Usage] | None = None,
    terms: WordList | None = None,
) -> list[Explanation]:
    """One explanation a template, hits first; only that of `template_id` if given.

    A text that recall skips is explained all the same, with the verdict that says so.
    """
    threshold = (settings or SpecSettings()).match_threshold
    prepared = prepare(text)
    query = query_fingerprint(prepared.text, terms)
    common = common_tokens([template.fingerprint for template in templates])
    is_skipped = should_skip_matching(text, has_image)
    matches = [
        match_template(
            query,
            template,
            threshold=threshold,
            common=common,
            repo=repo,
            usage=(usage or {}).get(template.id, Usage()),
        )
        for template in templates
        if template_id in (None, template.id)
    ]
    return [
        _explanation(match, prepared, query, threshold, text if is_skipped else None)
        for match in sorted(matches, key=rank_order)
    ]


def _explanation(match: Match, prepared: Prepared, query: Query, threshold: float, skipped: str | None) -> Explanation:
    verdict = match.verdict if skipped is None else SKIPPED
    return Explanation(
        match.template.id,
        match.template.name,
        prepared,
        query.weights,
        match.template.fingerprint.weights,
        match.score,
        match.priors,
        match.rank_score,
        threshold,
        verdict,
        _line(match, verdict, threshold, skipped) + _tag_line(query, match.template),
    )


def _tag_line(query: Query, template: Template) -> str:
    """The tags that both have, with the spelling of each side: 开关 = switch."""
    pairs = shared_tags(query.tags, template.tags)
    names = [a if a == b else f"{a} = {b}" for a, b in pairs]
    return f"; tags {', '.join(names)}" if names else ""


def _line(match: Match, verdict: str, threshold: float, skipped: str | None) -> str:
    """The verdict in one sentence."""
    found = match.score
    if verdict == SKIPPED:
        return f"{SKIPPED}: {effective_length(skipped or '')[0]} effective characters"
    if verdict == HIT:
        return f"{HIT}: lexical {found.lexical:.3f} >= {threshold:g}, topic evidence {', '.join(found.topic_evidence)}"
    return explain_scalars(found.lexical, found.topic_evidence, threshold, found.ignored, verdict)


def explain_scalars(
    lexical: float,
    topic_evidence: Sequence[str],
    threshold: float,
    ignored: Sequence[str] = (),
    verdict: str | None = None,
) -> str:
    """The sentence for a score without a template: below the line, or over it without topic evidence."""
    verdict = verdict or (BELOW_THRESHOLD if lexical < threshold else HIT if topic_evidence else NO_TOPIC_EVIDENCE)
    if verdict == BELOW_THRESHOLD:
        return f"{BELOW_THRESHOLD}: lexical {lexical:.3f} < {threshold:g}"
    if verdict == HIT:
        return f"{HIT}: lexical {lexical:.3f} >= {threshold:g}"
    shared = f"; shared but no topic: {', '.join(ignored)}" if ignored else ""
    weak = f"; too little for this score: {', '.join(topic_evidence)}" if topic_evidence else ""
    return f"{NO_TOPIC_EVIDENCE}: lexical {lexical:.3f} >= {threshold:g}{shared}{weak}"
