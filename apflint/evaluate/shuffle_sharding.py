"""Shuffle sharding: the queues of a flow, and the probability that busy flows fill all queues of another flow.

The queues of a level are a deck of cards. The server deals each flow a hand of queues, by a hash of the flow's name. Each
request waits in the queue of the hand that has the least estimated work. An elephant is a flow with so many requests that it
fills all queues of its hand. A mouse is a flow that is not an elephant. Elephants squish a mouse if they fill all queues of the
hand of the mouse.

Sources: KEP-1040 "Queue assignment", `util/shufflesharding/shufflesharding.go` (NewDealer, DealIntoHand) and
`util/flowcontrol/apf_filter.go` (computeFlowHash).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import ceil, comb, log2

from apflint.budgets import MAX_ELEPHANTS, MAX_SHARDS_WORK
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

MAX_ENTROPY_BITS = 60
"""Maximum number of hash bits that a hand may require (`MaxHashBits`)."""
MAX_QUEUES = 10_000_000
"""Maximum number of queues (`pkg/apis/flowcontrol/validation`, `priorityLevelConfigurationQueuingMaxQueues`)."""
MAX_DECK = 1 << 26
"""Maximum number of queues that `NewDealer` accepts."""
MAX_HAND = 15
"""Largest hand size that the API server accepts. A hand of this size requires at most 60 hash bits only if the level
has 15 or 16 queues."""
DOCUMENTED_ELEPHANTS = (1, 4, 16)
BUSY_FLOWS = 4
"""Number of elephants for which a hand size is good or bad, if nothing is known about the flows: the second documented number."""
MAX_SQUISH_PROBABILITY = 0.01
"""Maximum probability that `BUSY_FLOWS` elephants squish a mouse with a good hand size. APF605 reports greater probabilities."""
# fmt: off
DOCUMENTED_PAIRS = (
    (12, 32), (10, 32), (10, 64), (9, 64), (8, 64), (8, 128), (7, 128), (7, 256), (6, 256), (6, 512), (6, 1024),
)
# fmt: on
"""Hand size and number of queues in each row of the table on the page "API Priority and Fairness" of kubernetes.io."""


def required_entropy_bits(queues: int, hand_size: int) -> int:
    """Return the number of hash bits that a hand requires. Uses floating point, as `RequiredEntropyBits`."""
    return ceil(log2(queues) * hand_size)


def find_sharding_error(queues: int, hand_size: int) -> str | None:
    """Return why shuffle sharding is impossible with these values, or None if it is possible.

    The conditions and their order are those of `NewDealer`.
    """
    if queues <= 0 or hand_size <= 0:
        return f"queues ({queues}) and handSize ({hand_size}) must be at least 1"
    if hand_size > queues:
        return f"handSize {hand_size} is greater than queues {queues}"
    if queues > MAX_DECK:
        return f"queues {queues} is greater than {MAX_DECK}, the maximum of shuffle sharding"
    bits = required_entropy_bits(queues, hand_size)
    if bits > MAX_ENTROPY_BITS:
        return f"handSize {hand_size} with {queues} queues needs {bits} bits of hash, more than {MAX_ENTROPY_BITS}"
    return None


def is_admitted(queues: int, hand_size: int) -> bool:
    """Return whether the API server accepts a priority level with this number of queues and this hand size.

    If a field is absent in the manifest, the caller passes the default of the field.
    """
    return queues <= MAX_QUEUES and find_sharding_error(queues, hand_size) is None


def flow_hash(flow_schema: str, distinguisher: str) -> int:
    """Return the hash of a flow as an unsigned integer of 64 bits (`computeFlowHash`)."""
    from hashlib import sha256  # imported here because loading OpenSSL takes 2 ms

    return int.from_bytes(sha256(_encode(flow_schema) + b"\0" + _encode(distinguisher)).digest()[:8], "little")


def _encode(text: str) -> bytes:
    """Return the UTF-8 bytes that a Go program has for the same string.

    Bytes of a command-line argument that are not UTF-8 are kept. Python stores them as surrogates U+DC80 to U+DCFF. If
    the text has other lone surrogates, which only JSON can contain, all surrogates become U+FFFD.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text).encode()


def deal(hash_value: int, queues: int, hand_size: int) -> tuple[int, ...]:
    """Return the hand that a hash selects: distinct queue numbers from 0, in the order of dealing (`DealIntoHand`).

    Each digit of the hash selects one of the remaining cards. The base of the digits is the number of remaining cards, which
    decreases by 1 with each card. Raises UserError if shuffle sharding is impossible with these values (see `find_sharding_error`).
    """
    problem = find_sharding_error(queues, hand_size)
    if problem is not None:
        raise UserError(problem)
    hand: list[int] = []
    dealt: list[int] = []
    for remaining in range(queues, queues - hand_size, -1):
        hash_value, card = divmod(hash_value, remaining)
        # `card` is an index among the remaining cards. To get the index in the whole deck, add 1 for each lower card
        # that is already dealt.
        for place, other in enumerate(dealt):
            if card < other:
                dealt.insert(place, card)
                break
            card += 1
        else:
            dealt.append(card)
        hand.append(card)
    return tuple(hand)


def largest_hand(queues: int) -> int:
    """Return the maximum hand size for a number of queues, or 0 if the API server accepts no hand size."""
    return max((hand for hand in range(1, MAX_HAND + 1) if is_admitted(queues, hand)), default=0)


def find_best_hand(queues: int) -> int:
    """Return the hand size with the lowest probability that `BUSY_FLOWS` elephants squish a mouse.

    An elephant is a flow that fills all queues of its hand. Together, the elephants squish another
    flow, the mouse, if they fill all queues of the mouse. Return 0 if the API server accepts no hand
    size for `queues` queues.
    """
    hands = range(1, largest_hand(queues) + 1)
    return min(hands, key=lambda hand: (squish_probability(hand, queues, BUSY_FLOWS), hand), default=0)


def largest_deck(hand_size: int) -> int:
    """Return the maximum number of queues for a hand size, or 0 if the API server accepts no number of queues."""
    if not 1 <= hand_size <= MAX_HAND:
        return 0
    decks = range(hand_size, MAX_QUEUES + 1)
    return decks[bisect_right(decks, MAX_ENTROPY_BITS, key=lambda deck: required_entropy_bits(deck, hand_size)) - 1]


def squish_ratio(hand_size: int, queues: int, elephants: int) -> tuple[int, int]:
    """Return the probability that a number of elephants squish a mouse, as numerator and denominator (not reduced).

    All hands are equally likely. By inclusion and exclusion over the queues of the mouse that are in no elephant's hand, the
    probability is the sum over i of (-1)^i C(h, i) C(d - i, h)^n / C(d, h)^n, with hand size h, d queues and n elephants.
    The result is exact, also for hands that need more than 60 hash bits. Raises UserError for values out of range.
    """
    if not 1 <= queues <= MAX_QUEUES:
        raise UserError(f"the number of queues must be from 1 to {MAX_QUEUES}, not {queues}")
    if not 1 <= hand_size <= queues:
        raise UserError(f"the hand size must be from 1 to the number of queues ({queues}), not {hand_size}")
    if not 0 <= elephants <= MAX_ELEPHANTS:
        raise UserError(f"the number of elephants (busy flows) must be from 0 to {MAX_ELEPHANTS}, not {elephants}")
    if hand_size * required_entropy_bits(queues, hand_size) * max(1, elephants) > MAX_SHARDS_WORK:
        raise UserError(
            f"the probability for a hand of {hand_size} from {queues} queues takes too long to compute for {elephants}"
            " elephants"
        )
    hands = comb(queues, hand_size)
    missing = hands
    squished = 0
    for untouched in range(hand_size + 1):
        squished += (-1) ** untouched * comb(hand_size, untouched) * missing**elephants
        remaining = max(1, queues - untouched)
        missing = missing * (remaining - hand_size) // remaining  # C(remaining, h) becomes C(remaining - 1, h)
    return squished, hands**elephants


def squish_probability(hand_size: int, queues: int, elephants: int) -> float:
    """Return the probability that `elephants` busy flows fill all queues of a light flow, from 0 to 1.

    The result is the float that is nearest to the exact fraction `squish_ratio`.
    """
    squished, hands = squish_ratio(hand_size, queues, elephants)
    return squished / hands


class Sharding(NamedTuple):
    """A hand size and a number of queues, with the probabilities that busy flows fill all queues of a light flow."""

    hand_size: int
    queues: int
    entropy_bits: int
    squish: dict[int, float]
    """Maps the number of elephants to the probability (0 to 1) that a mouse is squished."""

    @property
    def problem(self) -> str | None:
        """Return why the API server rejects this hand size and number of queues, or None if the server accepts them."""
        if self.queues > MAX_QUEUES:
            return f"{self.queues} queues are more than {MAX_QUEUES}, the maximum of the API server"
        return find_sharding_error(self.queues, self.hand_size)


def compute_sharding(hand_size: int, queues: int, elephants: tuple[int, ...] = DOCUMENTED_ELEPHANTS) -> Sharding:
    """Return the probability that elephants fill all queues of a mouse's hand, for each number of elephants.

    An elephant is a flow that fills all queues of its hand, and a mouse is any other flow. Raises
    UserError for values out of range.
    """
    squish = {count: squish_probability(hand_size, queues, count) for count in elephants}
    return Sharding(hand_size, queues, required_entropy_bits(queues, hand_size), squish)


def compute_documented_table(elephants: tuple[int, ...] = DOCUMENTED_ELEPHANTS) -> tuple[Sharding, ...]:
    """Compute the table of the Kubernetes documentation: the probabilities of DOCUMENTED_PAIRS."""
    return tuple(compute_sharding(hand, deck, elephants) for hand, deck in DOCUMENTED_PAIRS)


def recommend_pairs(probability: float, elephants: int, max_queues: int = 1024) -> tuple[Sharding, ...]:
    """Return pairs of hand size and number of queues that isolate flows.

    For each pair, the probability that `elephants` flows with many requests (elephants) squish a flow
    with few requests (a mouse) is at most `probability`. The pair with the fewest queues is first.

    For each hand size, the number of queues is the smallest that achieves the probability, with at most
    `max_queues` queues and 60 hash bits. A pair is omitted if a smaller hand size achieves the
    probability with at most as many queues. Raises UserError for values out of range.
    """
    if not 0 < probability <= 1:
        raise UserError(f"the probability must be greater than 0 and at most 1, not {probability:g}")
    if elephants < 1:
        raise UserError(f"the number of elephants must be at least 1, not {elephants}")
    pairs: list[Sharding] = []
    for hand in range(1, MAX_HAND + 1):
        deck = _smallest_deck(probability, elephants, hand, min(max_queues, largest_deck(hand)))
        if deck and not any(other.queues <= deck for other in pairs):
            pairs.append(compute_sharding(hand, deck, (elephants,)))
    return tuple(sorted(pairs, key=lambda pair: (pair.queues, pair.hand_size)))


def find_isolating_pair(queues: int, elephants: int = BUSY_FLOWS) -> Sharding | None:
    """Return the pair of hand size and number of queues that isolates flows with the fewest queues.

    With this pair, the probability that `elephants` flows with many requests (elephants) squish a flow
    with few requests (a mouse) is at most a tenth of `MAX_SQUISH_PROBABILITY`. The pair has at most
    `queues` queues, or at most 64 queues if `queues` is less than 64. Return None if there is no such
    pair.
    """
    return next(iter(recommend_pairs(MAX_SQUISH_PROBABILITY / 10, elephants, max(queues, 64))), None)


def _smallest_deck(probability: float, elephants: int, hand: int, largest: int) -> int | None:
    """Return the minimum number of queues for which the probability of a squished mouse is at most `probability`.

    A mouse is squished if all queues of its hand also belong to the hands of `elephants` busy flows.
    The probability decreases as the number of queues increases. Return None if even `largest` queues
    have a greater probability.
    """
    decks = range(hand, largest + 1)
    at = bisect_left(decks, True, key=lambda deck: squish_probability(hand, deck, elephants) <= probability)
    return decks[at] if at < len(decks) else None


def find_safest_pair(elephants: int, max_queues: int = 1024) -> Sharding:
    """Return the pair of hand size and number of queues that isolates flows best.

    For this pair, the probability that `elephants` busy flows fill all queues of another flow is the
    lowest. The pair has at most `max_queues` queues and 60 hash bits. Raises UserError for values out
    of range.
    """
    if max_queues < 1:
        raise UserError(f"the maximum number of queues must be at least 1, not {max_queues}")
    decks = ((hand, min(max_queues, largest_deck(hand))) for hand in range(1, MAX_HAND + 1))
    pairs = [compute_sharding(hand, deck, (elephants,)) for hand, deck in decks if hand <= deck]
    return min(pairs, key=lambda pair: (pair.squish[elephants], pair.queues, pair.hand_size))
