"""What docs/algorithm.md says of scores, the gate, pruning and the cover, in plain and slow Python."""

from __future__ import annotations

import math
import re
from bisect import bisect_right

from reference_text import anchors, collapse, fold, is_ngram, segments, sentence_ends, tokens

from gatekeeper import Settings
from gatekeeper.stems import inflections
from gatekeeper.topic_gate import DEICTIC_PATTERNS, INTERROGATIVES, PRONOUNS

SIDES = (0, 1)  # user, assistant

# --- numbers


def natural_log(x: float) -> float:
    m, exponent = math.frexp(x)
    if m < 0.70710678118654752:
        m, exponent = 2.0 * m, exponent - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 1.0 / 21.0
    for odd in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = series * z + 1.0 / odd
    return exponent * 6.93147180369123816490e-01 + (
        2.0 * s + (2.0 * s * z * series + exponent * 1.90821492927058770002e-10))  # fmt: skip


def idf(df: int, n_blocks: int) -> float:
    return natural_log((n_blocks + 1.0) / (df + 1.0)) + 1.0


def cost_power(cost: float) -> float:
    """cost ** 0.8, as cost over its fifth root."""
    root = math.ldexp(1.0, (math.frexp(cost)[1] + 4) // 5)
    for _ in range(9):
        root += (cost / (root * root * root * root) - root) / 5.0
    return cost / root


def total(values) -> float:
    """The sum from left to right, never compensated."""
    result = 0.0
    for value in values:
        result += value
    return result


def lex_sum(terms, length: int, average: float, k1: float, b: float) -> float:
    """BM25 before the division by the idf mass; terms: (idf, tf) in the order of the query."""
    norm = k1 * (1.0 - b) + (k1 * b / average * length if average > 0.0 else 0.0)
    return total(weight * (k1 + 1.0) * tf / (tf + norm) for weight, tf in terms if tf > 0)


def is_deictic(text: str) -> bool:
    head = text.lstrip()
    folded = fold(head)
    return not (folded[:2] == "it" and head[:2].isupper()) and any(re.match(p, folded) for p in DEICTIC_PATTERNS)


# --- records


class Anchor:
    """An anchor of a query. tf: turn to (tf of the user's side, tf of the assistant's)."""

    def __init__(self, text: str, tf: dict[int, tuple[int, int]], n_blocks: int, is_searched: bool) -> None:
        self.text = text
        self.tf = tf
        self.df = len(tf)
        self.idf = self.weight = idf(self.df, n_blocks)
        self.last_turn = max(tf, default=-1)
        self.is_searched = is_searched
        self.form_of: Anchor | None = None


def words_of(found: list[Anchor]) -> list[list[Anchor]]:
    """The anchors, each with its forms."""
    return [[word, *(a for a in found if a.form_of is word)] for word in found if word.form_of is None]


class Candidate:
    """kept: spans of the kept sentences of each side; covers: indexes of the anchors that these hold."""

    def __init__(self, turn: int, score: float, lex: tuple[float, float], exact: float, recency: float) -> None:
        self.turn, self.score, self.lex, self.exact, self.recency = turn, score, lex, exact, recency
        self.kept: list[list[tuple[int, int]]] = []
        self.texts: list[str] = []
        self.covers: set[int] = set()


# --- the conversation


class Conversation:
    """The twin of a `ContextGatekeeper`: everything is counted anew whenever it is asked."""

    def __init__(self, turns=(), settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.turns: list[tuple[str, str] | None] = []
        self.sides: list[tuple[list[str], list[str]]] = []  # the anchors of both sides, with repetitions
        self.topic_starts: list[int] = []
        for turn in turns:
            self.add_turn(*turn)

    def add_turn(self, user: str, assistant: str) -> None:
        if self.turns:
            found = dict.fromkeys(anchor for anchor, _ in anchors(user))
            action = self.gate(user, self.weighted(self.above_floor([self.term(anchor) for anchor in found])))[0]
            self.topic_starts.append(len(self.turns) if action == "switch" else self.topic_starts[-1])
        else:
            self.topic_starts.append(0)
        self.turns.append((user, assistant))
        self.sides.append(([a for a, _ in anchors(user)], [a for a, _ in anchors(assistant)]))

    def forget(self, turn: int) -> None:
        self.turns[turn] = None
        self.sides[turn] = ([], [])

    @property
    def n_blocks(self) -> int:
        return sum(turn is not None for turn in self.turns)

    def average(self, side: int) -> float:
        return sum(len(sides[side]) for sides in self.sides) / max(self.n_blocks, 1)

    # --- anchors

    def term(self, text: str) -> Anchor:
        counts = {turn: (user.count(text), assistant.count(text)) for turn, (user, assistant) in enumerate(self.sides)}
        tf = {turn: (min(u, 65535), min(a, 65535)) for turn, (u, a) in counts.items() if u or a}
        return Anchor(text, tf, self.n_blocks, is_searched=False)

    def searched(self, text: str) -> Anchor:
        phrase = collapse(text)
        inside = {anchor for anchor, _ in anchors(phrase)}
        counts = {
            turn: tuple(min(collapse(side).count(phrase), 65535) for side in texts)
            for turn, texts in enumerate(self.turns) if texts is not None
        }  # fmt: skip
        everywhere = {turn: tf for turn, tf in counts.items() if any(tf)}
        tf = {turn: n for turn, n in everywhere.items() if inside <= {*self.sides[turn][0], *self.sides[turn][1]}}
        return Anchor(text, tf or everywhere, self.n_blocks, is_searched=True)

    def above_floor(self, found: list[Anchor], quoted: set[str] = frozenset()) -> list[Anchor]:
        """Without the n-grams below the floor, quoted ones apart; all of them where the floor would leave nothing."""
        floor = min(self.settings.ngram_idf_floor, idf(1, self.n_blocks))
        kept = [a for a in found if a.text in quoted or not is_ngram(a.text) or a.idf >= floor]
        return kept or found

    def own_anchors(self, query: str) -> list[Anchor]:
        found = tokens(query)
        if not found:
            fallback = fold(query.strip()[:20])
            if re.search(r"[^\W_][^\W_]|(?![\x00-\x7f])[^\W_]", fallback):  # listed words, which are no search key
                return self.weighted([Anchor(fallback, {}, self.n_blocks, is_searched=False)], empty_idf=0.0)
            return self.weighted([self.searched(fallback)]) if fallback else []
        words = {anchor for anchor, _, is_phrase in found if not is_phrase}
        texts = dict.fromkeys(anchor for anchor, _, _ in found)
        quoted = {anchor for anchor, _, is_phrase in found if is_phrase}
        own = self.above_floor([self.term(text) if text in words else self.searched(text) for text in texts], quoted)
        return self.weighted(own, quoted)

    def weighted(self, found: list[Anchor], quoted: set[str] = frozenset(), empty_idf: float | None = None):
        """An n-gram that no quotation gave counts less, and so does what no turn holds."""
        s = self.settings
        for anchor in found:
            if empty_idf is not None:
                anchor.idf = empty_idf
            anchor.weight = anchor.idf
            if is_ngram(anchor.text) and anchor.text not in quoted:
                anchor.weight = anchor.idf * s.ngram_weight
            if not anchor.df:
                anchor.weight *= s.unseen_weight
        return found

    def inherited(self) -> list[Anchor]:
        first = max(self.topic_starts[-1], len(self.turns) - 8) if self.turns else 0
        texts: list[str] = []
        for turn in reversed(range(first, len(self.turns))):
            texts += self.sides[turn][0]
            if self.sides[turn][0] and not is_deictic(self.turns[turn][0]):
                break
        return self.weighted(self.above_floor([self.term(text) for text in dict.fromkeys(texts)]))

    def anchors(self, query: str) -> list[Anchor]:
        """A(q), inherited ones behind the query's own, forms of a word behind it."""
        found = self.own_anchors(query)
        if self.points_back(query, found):
            texts = {anchor.text for anchor in found}
            found = found + [anchor for anchor in self.inherited() if anchor.text not in texts]
        if self.settings.stems:
            found = self.with_forms(found)
        if self.settings.squared_idf:
            for anchor in found:
                anchor.weight *= anchor.weight
        return found

    def with_forms(self, found: list[Anchor]) -> list[Anchor]:
        """Other forms of the words that some turn holds; a word and its forms weigh the idf of all their blocks."""
        taken = {anchor.text for anchor in found if not anchor.is_searched}
        grown = []
        for anchor in found:
            grown.append(anchor)
            if is_ngram(anchor.text) or anchor.is_searched or not anchor.idf:
                continue
            forms = [self.term(text) for text in inflections(anchor.text) if text not in taken and tokens(text)]
            forms = [form for form in forms if form.df]
            taken.update(form.text for form in forms)
            for form in forms:
                form.form_of = anchor
                grown.append(form)
            if forms:
                weight = idf(min(self.n_blocks, anchor.df + sum(form.df for form in forms)), self.n_blocks)
                for one in (anchor, *forms):
                    one.weight = weight
        return grown

    def points_back(self, query: str, own: list[Anchor]) -> bool:
        action, overlap, _, deictic, _ = self.gate_query(query)
        if deictic or action == "switch" or any(anchor.df for anchor in own):
            return deictic
        if tokens(query):
            return overlap > self.settings.overlap_continue
        fallback = fold(query.strip()[:20])
        return not any(map(str.isalnum, fallback)) or bool(re.search(INTERROGATIVES, fallback))

    # --- gate

    def implied(self, text: str) -> float:
        """The mass that speaks for the topic unsaid."""
        s = self.settings
        mass = s.pronoun_mass * min(2, len(re.findall(PRONOUNS, fold(text[:400]))))
        last = self.turns[-1] if self.turns else None
        if last is not None and not set(text) & set("?？") and set((last[1] or last[0])[-12:]) & set("?？"):
            mass += s.answer_mass
        return mass

    def topic_window(self) -> int:
        return min(self.settings.topic_window, len(self.turns) - self.topic_starts[-1]) if self.turns else 0

    def gate(self, text: str, found: list[Anchor]) -> tuple[str, float, float, bool, tuple[str, ...]]:
        """(action, overlap, new_ratio, deictic, anchors that the topic lacks)."""
        ages = self.settings.topic_window
        masses = [0.0] * (ages + 1)
        new = []
        for anchor in found:
            age = len(self.turns) - anchor.last_turn if anchor.df else 0
            masses[age if age <= ages else 0] += anchor.weight
            if not 1 <= age <= self.topic_window():
                new.append(anchor.text)
        held = total(masses[1 : self.topic_window() + 1])
        lacking = total([masses[0], *masses[self.topic_window() + 1 :]])
        shared = held
        held += self.implied(text) if held + lacking else 0.0
        overlap, new_ratio = (held / (held + lacking), lacking / (held + lacking)) if held + lacking else (0.0, 0.0)
        deictic = is_deictic(text)
        s = self.settings
        switches = overlap < s.overlap_switch and new_ratio > s.new_ratio_switch and shared < s.shared_mass
        action = "switch" if switches and not deictic and overlap <= s.overlap_continue else "continue"
        return action, overlap, new_ratio, deictic, tuple(new)

    def gate_query(self, query: str) -> tuple[str, float, float, bool, tuple[str, ...]]:
        return self.gate(query, self.own_anchors(query) if tokens(query) else [])

    # --- recall

    def content_words(self, query: str) -> tuple[list[str], list[str]]:
        """(words and versions, 4-character windows of CJK segments)."""
        words = dict.fromkeys(text for text, _, is_phrase in tokens(query) if not is_phrase and not is_ngram(text))
        version = re.compile(r"v?\d+\.\d+\.\d+")
        words = [word for word in words if any(map(str.isalpha, word)) or version.fullmatch(word)]
        if self.settings.stems:
            words += [a.text for a in self.anchors(query) if a.form_of and a.form_of.text in words]
        return words, [s[i : i + 4] for s in segments(query) for i in range(len(s) - 3)]

    def passing(self, query: str) -> set[int]:
        """The turns that a query lets pass after a switch."""
        words, windows = self.content_words(query)
        if not words and not windows:
            return set(range(len(self.turns)))
        held = [{*user, *assistant} for user, assistant in self.sides]
        folded = [[fold(side) for side in texts or ("", "")] for texts in self.turns]
        passing = {
            turn for turn in range(len(self.turns))
            if any(word in held[turn] for word in words)
            or any({w[:3], w[1:]} <= held[turn] and any(w in side for side in folded[turn]) for w in windows)
        }  # fmt: skip
        heads = [segment[:2] for segment in segments(query) if len(segment) >= 4]
        return passing or {turn for turn in range(len(self.turns)) if any(head in held[turn] for head in heads)}

    def lex(self, turn: int, found: list[Anchor]) -> tuple[float, float]:
        """BM25 of both sides over the idf mass; joint sides are one text, which is the user's."""
        s = self.settings
        mass = total(anchor.weight for anchor in found)
        if not mass:
            return 0.0, 0.0
        tf = [(a.weight, *a.tf.get(turn, (0, 0))) for a in found]
        lengths = [len(side) for side in self.sides[turn]]
        if s.joint_sides:
            average = sum(len(side) for sides in self.sides for side in sides) / max(self.n_blocks, 1)
            terms = [(weight, user + assistant) for weight, user, assistant in tf]
            return lex_sum(terms, sum(lengths), average, s.k1, s.b) / mass, 0.0
        user, assistant = (
            lex_sum([(one[0], one[1 + side]) for one in tf], lengths[side], self.average(side), s.k1, s.b)
            for side in SIDES
        )  # fmt: skip
        return user / mass, assistant / mass

    def recency_share(self, query: str, found: list[Anchor]) -> float:
        if is_deictic(query) or not set(query) & set("?？"):
            return 1.0
        first = len(self.turns) - 1
        n_characters = len("".join(self.turns[first] or "")) if self.turns else 0
        while first > max(0, len(self.turns) - 8):
            n_characters += len("".join(self.turns[first - 1] or ""))
            if n_characters > 600:
                break
            first -= 1
        known = total(anchor.weight for anchor in found if anchor.df)
        return total(anchor.weight for anchor in found if anchor.last_turn >= max(first, 0)) / known if known else 1.0

    def in_context(self, query: str) -> list[tuple[int, float]]:
        """(turn, score) of every turn that holds an anchor, stands beside one that does or is recent, best first."""
        s = self.settings
        found = self.anchors(query)
        if not found:
            return []
        live = [turn for turn, texts in enumerate(self.turns) if texts is not None]
        touched = {turn for anchor in found for turn in anchor.tf}
        lex = {turn: self.lex(turn, found) for turn in touched}
        lexical = {turn: s.weight_user * user + s.weight_assistant * assistant
                   for turn, (user, assistant) in lex.items()}  # fmt: skip
        steps = [(d, other) for d in range(1, s.neighbour_window + 1) for other in (-d, d)]
        beside = {turn: total(lexical.get(turn + step, 0.0) / d for d, step in steps) for turn in live}
        best = max((lexical.get(turn, 0.0) + s.weight_neighbours * beside[turn] for turn in live), default=0.0) or 1.0
        scores = []
        for turn in live:
            user, assistant = lex.get(turn, (0.0, 0.0))
            recency = self.recency_share(query, found) * max(0.0, 1.0 - (len(self.turns) - turn) / s.recency_window)
            score = (s.weight_user * user / best + s.weight_assistant * assistant / best + s.weight_recency * recency
                     + s.weight_neighbours * beside[turn] / best)  # fmt: skip
            if score > 0.0:
                scores.append((turn, score))
        return sorted(scores, key=lambda one: (-one[1], -one[0]))[: s.max_candidates]

    def scored(self, found: list[Anchor]) -> list[Candidate]:
        """Every block that shares an anchor, best first."""
        s = self.settings
        candidates = []
        for turn in {turn for anchor in found for turn in anchor.tf}:
            lex = self.lex(turn, found)
            exact = float(all(any(turn in form.tf for form in word) for word in words_of(found)
                              if any(form.df for form in word)))
            recency = max(0.0, 1.0 - (len(self.turns) - turn) / s.recency_window)
            score = (s.weight_user * lex[0] + s.weight_assistant * lex[1] + s.weight_exact * exact
                     + s.weight_recency * recency)  # fmt: skip
            candidates.append(Candidate(turn, score, lex, exact, recency))
        return sorted(candidates, key=lambda c: (-c.score, -c.turn))

    def candidates(self, query: str) -> list[Candidate]:
        found = self.anchors(query)
        passing = self.passing(query) if self.gate_query(query)[0] == "switch" else set(range(len(self.turns)))
        best = [c for c in self.scored(found) if c.turn in passing][: self.settings.max_candidates] if any(
            anchor.weight for anchor in found) else []
        for candidate in best:
            self.prune(candidate, found)
        return best

    def coverage(self, turn: int, found: list[Anchor]) -> float:
        """The share of the query's idf mass that a block is about; a word and its forms count as one."""
        s = self.settings
        mass = []
        for word in words_of(found):
            shares = []
            for side in SIDES:
                tf = math.sqrt(sum(form.tf.get(turn, (0, 0))[side] for form in word))
                shares.append(lex_sum([(1.0, tf)], len(self.sides[turn][side]), s.coverage_length, s.k1, s.b))
            mass.append(word[0].weight * min(1.0, max(shares)))
        return total(mass) / total(word[0].weight for word in words_of(found))

    def holding_enough(self, query: str, candidates: list[Candidate]) -> list[Candidate]:
        s = self.settings
        found, action = self.anchors(query), self.gate_query(query)[0]
        least = s.min_coverage * min(1.0, self.n_blocks / 10)
        coverage = {c.turn: self.coverage(c.turn, found) for c in candidates}
        enough = []
        for c in candidates:
            in_topic = action == "continue" and c.turn >= self.topic_starts[-1]
            if coverage[c.turn] >= (least * s.topic_coverage_ratio if in_topic else least):
                enough.append(c)
        best = [c for c in enough if coverage[c.turn] >= s.min_coverage_of_best * max(coverage[c.turn] for c in enough)]
        covered = set().union(*(c.covers for c in best))
        word_mass = total(anchor.weight for anchor in found if anchor.form_of is None)
        adds = max(least * word_mass, 1e-9)
        return [c for c in enough
                if c in best or total(found[i].weight for i in sorted(c.covers - covered)) >= adds]  # fmt: skip

    # --- pruning

    def sentence_masks(self, turn: int, side: int, found: list[Anchor]) -> list[set[int]]:
        """For each sentence of a side, the indexes of the anchors that begin in it."""
        text = self.turns[turn][side]
        ends = sentence_ends(text)
        masks: list[set[int]] = [set() for _ in ends]
        index = {anchor.text: i for i, anchor in enumerate(found) if not anchor.is_searched}
        for anchor, start in anchors(text):
            if anchor in index:
                masks[bisect_right(ends, start)].add(index[anchor])
        for i, anchor in enumerate(found):
            if anchor.is_searched and turn in anchor.tf:
                pattern = r"\s+".join(map(re.escape, anchor.text.split()))
                for match in re.finditer(pattern, fold(text)):
                    sentence = bisect_right(ends, match.start())
                    if match.end() <= ends[sentence]:
                        masks[sentence].add(i)
        return masks

    def prune(self, candidate: Candidate, found: list[Anchor]) -> None:
        for side in SIDES:
            text = self.turns[candidate.turn][side]
            spans = list(zip([0, *sentence_ends(text)], sentence_ends(text), strict=False))
            masks = self.sentence_masks(candidate.turn, side, found)
            mass = [total(found[i].weight for i in sorted(mask)) for mask in masks]
            first = [0] if side == 1 and spans else []
            ranked = sorted((i for i in range(len(spans)) if masks[i] and i not in first), key=lambda i: (-mass[i], i))
            kept = sorted([*first, *ranked][: self.settings.max_sentences])
            candidate.kept.append([spans[i] for i in kept])
            candidate.texts.append("".join(text[a:b] for a, b in candidate.kept[side]).strip())
            candidate.covers.update(*(masks[i] for i in kept))
        words = [i if anchor.form_of is None else found.index(anchor.form_of) for i, anchor in enumerate(found)]
        candidate.covers = {words[i] for i in candidate.covers}

    # --- cover

    def cover(self, query: str, budget: int, count) -> list[tuple[int, float, list[str]]]:
        """The greedy steps: (turn, gain, newly covered anchors). count: tokens of a text; budget: of the prompt."""
        found = self.anchors(query)
        candidates = self.holding_enough(query, self.candidates(query))
        left = [c for c in candidates if any(c.texts)]
        everything = set().union(*(c.covers for c in candidates))
        coverable = total(found[i].weight for i in sorted(everything))
        room = budget - count(f"[query] {query}")
        covered: set[int] = set()
        ever: set[int] = set()
        steps: list[tuple[Candidate, float, list[str]]] = []
        n_covers = self.settings.n_covers
        while True:
            if total(found[i].weight for i in sorted(covered)) >= self.settings.coverage_stop * coverable:
                n_covers -= 1
                if not n_covers:
                    break
                covered = set()
            options = []
            for candidate in left:
                cost = count(rendered(candidate))
                new = sorted(candidate.covers - covered)
                gain = total(found[i].weight for i in new) / cost_power(cost)
                if cost <= room and gain > 0.0:
                    options.append((gain, candidate.score, candidate.turn, cost, new, candidate))
            if not options:
                break
            gain, _, _, cost, new, best = max(options, key=lambda option: option[:3])
            left.remove(best)
            first = sorted(best.covers - ever)
            covered |= best.covers
            ever |= best.covers
            room -= cost
            steps.append((best, gain, [found[i].text for i in first]))
        while steps and count(prompt([c for c, _, _ in steps], query)) > budget:
            steps.pop()
        return [(candidate.turn, gain, new) for candidate, gain, new in steps]


def rendered(candidate: Candidate) -> str:
    """The block under its labels; the tests' texts hold nothing that must be escaped."""
    labels = zip(("user", "assistant"), candidate.texts, strict=True)
    return "".join(f"[{candidate.turn} {name}] {text}\n" for name, text in labels if text)


def prompt(chosen: list[Candidate], query: str) -> str:
    return "".join(rendered(c) for c in sorted(chosen, key=lambda c: c.turn)) + f"[query] {query}"
