"""Shuffle sharding: the queues of a flow, and how likely heavy flows occupy all of them.

A level with queues is a deck of cards. Each flow is dealt a hand of them by a hash of its name, and each of its requests waits
in the queue of that hand with the least estimated work. Sources: KEP-1040 "Queue assignment",
`util/shufflesharding/shufflesharding.go` (NewDealer, DealIntoHand) and `util/flowcontrol/apf_filter.go` (computeFlowHash).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import ceil, comb, log2

from apflint.budgets import MAX_ELEPHANTS, MAX_SHARDS_WORK
from apflint.errors import UserError
from apflint.record import NamedTuple

MAX_ENTROPY_BITS = 60
"""Maximum bits of the hash that a hand may require (`MaxHashBits`)."""
MAX_QUEUES = 10_000_000
"""Maximum number of queues (`pkg/apis/flowcontrol/validation`, `priorityLevelConfigurationQueuingMaxQueues`)."""
MAX_DECK = 1 << 26
"""Maximum size of a deck for the dealer."""
MAX_HAND = 15
"""Maximum size of a hand within 60 bits (of 15 or 16 queues)."""
DOCUMENTED_ELEPHANTS = (1, 4, 16)
# fmt: off
DOCUMENTED_PAIRS = (
    (12, 32), (10, 32), (10, 64), (9, 64), (8, 64), (8, 128), (7, 128), (7, 256), (6, 256), (6, 512), (6, 1024),
)
# fmt: on
"""Hand and deck of each row of the table in the Kubernetes documentation, page "API Priority and Fairness"."""


def required_entropy_bits(queues: int, hand_size: int) -> int:
    """Return the bits of a hash that a hand requires, computed in floating point as by `RequiredEntropyBits`."""
    return ceil(log2(queues) * hand_size)


def why_no_dealer(queues: int, hand_size: int) -> str | None:
    """Return why no hand can be dealt, or None if one can. The conditions are those of `NewDealer`, in its order."""
    if queues <= 0 or hand_size <= 0:
        return f"queues ({queues}) and hand size ({hand_size}) must be at least 1"
    if hand_size > queues:
        return f"a hand of {hand_size} is larger than the deck of {queues} queues"
    if queues > MAX_DECK:
        return f"{queues} queues are more than {MAX_DECK}, the largest deck"
    bits = required_entropy_bits(queues, hand_size)
    if bits > MAX_ENTROPY_BITS:
        return f"a hand of {hand_size} from {queues} queues needs {bits} bits of hash, more than {MAX_ENTROPY_BITS}"
    return None


def is_admitted(queues: int, hand_size: int) -> bool:
    """Return whether the API server admits a level with these values, after defaulting."""
    return queues <= MAX_QUEUES and why_no_dealer(queues, hand_size) is None


def flow_hash(flow_schema: str, distinguisher: str) -> int:
    """Return the hash of a flow, an unsigned integer of 64 bits (`computeFlowHash`)."""
    from hashlib import sha256  # OpenSSL takes 2 ms to load, and only flows are hashed

    return int.from_bytes(sha256(_encode(flow_schema) + b"\0" + _encode(distinguisher)).digest()[:8], "little")


def _encode(text: str) -> bytes:
    """Return the bytes of a string in Go: an argument that is not UTF-8 keeps its bytes, half a surrogate pair is U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text).encode()


def deal(hash_value: int, queues: int, hand_size: int) -> tuple[int, ...]:
    """Return the hand of a hash: distinct queue numbers from 0, in the order of dealing (`DealIntoHand`).

    The digits of the hash, in a base that decreases by one with each card, select among the remaining cards. Raises UserError
    if the server has no dealer for these values.
    """
    problem = why_no_dealer(queues, hand_size)
    if problem is not None:
        raise UserError(problem)
    hand: list[int] = []
    dealt: list[int] = []
    for remaining in range(queues, queues - hand_size, -1):
        hash_value, card = divmod(hash_value, remaining)
        # Skip each dealt card that is not above this one, the lowest first.
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
    """Return the maximum hand size for a number of queues, 0 if even a hand of 1 is not admitted."""
    return max((hand for hand in range(1, MAX_HAND + 1) if is_admitted(queues, hand)), default=0)


def largest_deck(hand_size: int) -> int:
    """Return the maximum number of queues for a hand size, 0 if the hand size is not admitted."""
    if not 1 <= hand_size <= MAX_HAND:
        return 0
    decks = range(hand_size, MAX_QUEUES + 1)
    return decks[bisect_right(decks, MAX_ENTROPY_BITS, key=lambda deck: required_entropy_bits(deck, hand_size)) - 1]


def squish_ratio(hand_size: int, queues: int, elephants: int) -> tuple[int, int]:
    """Return the probability that elephants squish a mouse, as numerator and denominator (not reduced).

    A mouse is squished if each queue of its hand is also in the hand of an elephant; all hands are equally likely. By inclusion
    and exclusion over the mouse's queues that are in no hand of an elephant: sum over i of (-1)^i C(h, i) C(d - i, h)^n /
    C(d, h)^n. Exact for every hand that fits its deck, beyond 60 bits too. Raises UserError for values out of range.
    """
    if not 1 <= hand_size <= queues:
        raise UserError(f"the hand size must be from 1 to the number of queues ({queues}), not {hand_size}")
    if queues > MAX_QUEUES:
        raise UserError(f"the number of queues must be at most {MAX_QUEUES}, not {queues}")
    if not 0 <= elephants <= MAX_ELEPHANTS:
        raise UserError(f"the number of elephants must be from 0 to {MAX_ELEPHANTS}, not {elephants}")
    if hand_size * required_entropy_bits(queues, hand_size) * max(1, elephants) > MAX_SHARDS_WORK:
        raise UserError(f"a hand of {hand_size} from {queues} queues is too large to compute for {elephants} elephants")
    hands = comb(queues, hand_size)
    missing = hands
    squished = 0
    for untouched in range(hand_size + 1):
        squished += (-1) ** untouched * comb(hand_size, untouched) * missing**elephants
        remaining = max(1, queues - untouched)
        missing = missing * (remaining - hand_size) // remaining  # C(remaining - 1, h) from C(remaining, h)
    return squished, hands**elephants


def squish_probability(hand_size: int, queues: int, elephants: int) -> float:
    """Return `squish_ratio` as the nearest float, from 0 to 1."""
    squished, hands = squish_ratio(hand_size, queues, elephants)
    return squished / hands


class Sharding(NamedTuple):
    """A hand size, a number of queues, and the probabilities of being squished."""

    hand_size: int
    queues: int
    entropy_bits: int
    squish: dict[int, float]
    """Probabilities by the number of elephants."""

    @property
    def problem(self) -> str | None:
        """Why the API server does not admit this pair, or None if it does."""
        if self.queues > MAX_QUEUES:
            return f"{self.queues} queues are more than {MAX_QUEUES}, the maximum of the API server"
        return why_no_dealer(self.queues, self.hand_size)


def compute_sharding(hand_size: int, queues: int, elephants: tuple[int, ...] = DOCUMENTED_ELEPHANTS) -> Sharding:
    """Compute the probabilities of one pair. Raises UserError for values out of range."""
    squish = {count: squish_probability(hand_size, queues, count) for count in elephants}
    return Sharding(hand_size, queues, required_entropy_bits(queues, hand_size), squish)


def compute_documented_table(elephants: tuple[int, ...] = DOCUMENTED_ELEPHANTS) -> tuple[Sharding, ...]:
    """Compute the table of the Kubernetes documentation."""
    return tuple(compute_sharding(hand, deck, elephants) for hand, deck in DOCUMENTED_PAIRS)


def recommend_pairs(probability: float, elephants: int, max_queues: int = 1024) -> tuple[Sharding, ...]:
    """Return pairs whose probability of being squished is at most `probability`, the cheapest first.

    Each hand size has the minimum number of queues within 60 bits and `max_queues`, because each queue takes memory.
    A pair is omitted if another pair has at most as many queues and a smaller hand. Raises UserError for values out of range.
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


def _smallest_deck(probability: float, elephants: int, hand: int, largest: int) -> int | None:
    """Return the minimum number of queues for a hand, or None. The probability decreases with the number of queues."""
    decks = range(hand, largest + 1)
    at = bisect_left(decks, True, key=lambda deck: squish_probability(hand, deck, elephants) <= probability)
    return decks[at] if at < len(decks) else None


def find_safest_pair(elephants: int, max_queues: int = 1024) -> Sharding:
    """Return the pair within 60 bits and `max_queues` with the lowest probability of being squished."""
    if max_queues < 1:
        raise UserError(f"the number of queues must be at least 1, not {max_queues}")
    decks = ((hand, min(max_queues, largest_deck(hand))) for hand in range(1, MAX_HAND + 1))
    pairs = [compute_sharding(hand, deck, (elephants,)) for hand, deck in decks if hand <= deck]
    return min(pairs, key=lambda pair: (pair.squish[elephants], pair.queues, pair.hand_size))
