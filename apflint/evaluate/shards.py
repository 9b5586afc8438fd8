"""Shuffle sharding: which queues a flow is dealt, and how likely it is that heavy flows fill all of them.

A level with queues is a deck of cards; each flow is dealt a hand of them by a hash of its name, and each of its
requests waits in the queue of that hand with the least estimated work. Facts: KEP-1040 "Queue assignment", Kubernetes
`util/shufflesharding/shufflesharding.go` (NewDealer, DealIntoHand) and `util/flowcontrol/apf_filter.go` (computeFlowHash).
"""

from __future__ import annotations

from math import ceil, comb, log2

from apflint.budgets import MAX_ELEPHANTS, MAX_SHARDS_WORK
from apflint.record import NamedTuple

MAX_ENTROPY_BITS = 60
"""A hand may not need more bits of the hash than this (`MaxHashBits`)."""
MAX_QUEUES = 10_000_000
"""The most queues that the API admits (`pkg/apis/flowcontrol/validation`, `priorityLevelConfigurationQueuingMaxQueues`)."""
MAX_DECK = 1 << 26
"""The largest deck that the dealer admits."""
MAX_HAND = 15
"""The largest hand that 60 bits allow (of 15 or 16 queues)."""
DOCUMENTED_ELEPHANTS = (1, 4, 16)
DOCUMENTED_PAIRS = (
    (12, 32),
    (10, 32),
    (10, 64),
    (9, 64),
    (8, 64),
    (8, 128),
    (7, 128),
    (7, 256),
    (6, 256),
    (6, 512),
    (6, 1024),
)
"""Hand and deck of each row of the table in the Kubernetes documentation, page "API Priority and Fairness"."""


def required_entropy_bits(queues: int, hand_size: int) -> int:
    """How many bits of a hash it takes to deal a hand, as `RequiredEntropyBits` works it out (in floating point).

    Raises ValueError for a deck without cards; the server never asks then.
    """
    if queues < 1:
        raise ValueError(f"a deck needs at least 1 queue, not {queues}")
    return ceil(log2(queues) * hand_size)


def why_no_dealer(queues: int, hand_size: int) -> str | None:
    """Why no hand can be dealt, in words; None when one can be. The conditions are those of `NewDealer`, in its order."""
    if queues <= 0 or hand_size <= 0:
        return f"queues ({queues}) and hand size ({hand_size}) must be at least 1"
    if hand_size > queues:
        return f"a hand of {hand_size} is larger than the deck of {queues} queues"
    if queues > MAX_DECK:
        return f"{queues} queues are more than the {MAX_DECK} that can be dealt from"
    bits = required_entropy_bits(queues, hand_size)
    if bits > MAX_ENTROPY_BITS:
        return f"a hand of {hand_size} from {queues} queues needs {bits} bits of hash, and there are {MAX_ENTROPY_BITS}"
    return None


def admitted(queues: int, hand_size: int) -> bool:
    """Whether the API admits a level with these values (both as stored, after defaulting)."""
    return queues <= MAX_QUEUES and why_no_dealer(queues, hand_size) is None


def flow_hash(flow_schema: str, distinguisher: str) -> int:
    """The hash of a flow, an unsigned number of 64 bits (`computeFlowHash`)."""
    from hashlib import sha256  # OpenSSL takes 2 ms to load, and only flows are hashed

    return int.from_bytes(sha256(_utf8(flow_schema) + b"\0" + _utf8(distinguisher)).digest()[:8], "little")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # A Go string holds any bytes: argv that is no UTF-8 goes back to its bytes; half of a surrogate pair in JSON is
        # what encoding/json makes of it, U+FFFD.
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text).encode()


def deal(hash_value: int, queues: int, hand_size: int) -> tuple[int, ...]:
    """The hand that a hash is dealt: distinct queue numbers from 0, in the order of dealing (`DealIntoHand`).

    The hash is read as digits of a number whose base falls by one with each card: digit i picks among the cards that
    are left. Raises ValueError where the server has no dealer (see `why_no_dealer`).
    """
    reason = why_no_dealer(queues, hand_size)
    if reason is not None:
        raise ValueError(reason)
    hand: list[int] = []
    taken: list[int] = []
    for left in range(queues, queues - hand_size, -1):
        hash_value, card = divmod(hash_value, left)
        # The card-th of those left: step over each taken card that is not above it, lowest first.
        for place, other in enumerate(taken):
            if card < other:
                taken.insert(place, card)
                break
            card += 1
        else:
            taken.append(card)
        hand.append(card)
    return tuple(hand)


def largest_hand(queues: int) -> int:
    """The largest hand that may be dealt from so many queues; 0 when even a hand of 1 may not."""
    return max((hand for hand in range(1, MAX_HAND + 1) if admitted(queues, hand)), default=0)


def largest_deck(hand_size: int) -> int:
    """The most queues that a hand of this size may be dealt from; 0 for a hand that is too large (or below 1)."""
    if not 1 <= hand_size <= MAX_HAND:
        return 0
    low, high = hand_size, MAX_QUEUES
    while low < high:
        middle = (low + high + 1) // 2
        if required_entropy_bits(middle, hand_size) <= MAX_ENTROPY_BITS:
            low = middle
        else:
            high = middle - 1
    return low


def squish_ratio(hand_size: int, queues: int, elephants: int) -> tuple[int, int]:
    """The probability that elephants squish a mouse, as numerator and denominator (not reduced).

    A mouse is squished when each queue of its hand is also in the hand of one of so many elephants; hands are taken as
    dealt evenly among all there are. By inclusion and exclusion over the mouse's queues that no elephant touches:
    sum over i of (-1)^i C(h, i) C(d - i, h)^n / C(d, h)^n. Exact for every hand that fits its deck, beyond 60 bits too.
    Raises ValueError for values out of range.
    """
    if not 1 <= hand_size <= queues:
        raise ValueError(f"the hand size must be from 1 to the number of queues ({queues}), not {hand_size}")
    if queues > MAX_QUEUES:
        raise ValueError(f"there may be at most {MAX_QUEUES} queues, not {queues}")
    if not 0 <= elephants <= MAX_ELEPHANTS:
        raise ValueError(f"the number of elephants must be from 0 to {MAX_ELEPHANTS}, not {elephants}")
    if hand_size * required_entropy_bits(queues, hand_size) * max(1, elephants) > MAX_SHARDS_WORK:
        raise ValueError(
            f"a hand of {hand_size} from {queues} queues is too large to work out for {elephants} elephants"
        )
    hands = comb(queues, hand_size)
    missing = hands
    squished = 0
    for untouched in range(hand_size + 1):
        squished += (-1) ** untouched * comb(hand_size, untouched) * missing**elephants
        left = max(1, queues - untouched)
        missing = missing * (left - hand_size) // left  # C(left - 1, h) from C(left, h): 0 once it is 0
    return squished, hands**elephants


def squish_probability(hand_size: int, queues: int, elephants: int) -> float:
    """`squish_ratio` as the nearest float, from 0 to 1."""
    squished, hands = squish_ratio(hand_size, queues, elephants)
    return squished / hands


class Sharding(NamedTuple):
    """A row of the table: a hand and a deck, and the probability of being squished by each number of elephants."""

    hand_size: int
    queues: int
    entropy_bits: int
    squish: dict[int, float]
    """Number of elephants → probability."""

    @property
    def problem(self) -> str | None:
        """Why the API server does not admit this pair, in words; None when it does."""
        if self.queues > MAX_QUEUES:
            return f"{self.queues} queues are more than the {MAX_QUEUES} that the API server admits"
        return why_no_dealer(self.queues, self.hand_size)


def sharding(hand_size: int, queues: int, elephants: tuple[int, ...] = DOCUMENTED_ELEPHANTS) -> Sharding:
    """One row of the table. Raises ValueError for values out of range."""
    squish = {count: squish_probability(hand_size, queues, count) for count in elephants}
    return Sharding(hand_size, queues, required_entropy_bits(queues, hand_size), squish)


def documented_table(elephants: tuple[int, ...] = DOCUMENTED_ELEPHANTS) -> tuple[Sharding, ...]:
    """The table of the Kubernetes documentation."""
    return tuple(sharding(hand, deck, elephants) for hand, deck in DOCUMENTED_PAIRS)


def recommend(probability: float, elephants: int, max_queues: int = 1024) -> tuple[Sharding, ...]:
    """The pairs of hand and deck that keep the probability of being squished at or below a wish, the cheapest first.

    For each hand size the fewest queues that suffice, within 60 bits and `max_queues` (each queue costs the server
    memory); a pair is left out when another has no more queues and a smaller hand. Empty when nothing suffices: `best`
    then tells what comes closest. Raises ValueError for a wish outside 0 to 1, or no elephant.
    """
    if not 0 < probability <= 1:
        raise ValueError(f"the probability must be above 0 and at most 1, not {probability:g}")
    if elephants < 1:
        raise ValueError(f"the number of elephants must be at least 1, not {elephants}")
    found: list[Sharding] = []
    for hand in range(1, MAX_HAND + 1):
        deck = _smallest_deck(probability, elephants, hand, min(max_queues, largest_deck(hand)))
        if deck and not any(other.queues <= deck for other in found):
            found.append(sharding(hand, deck, (elephants,)))
    return tuple(sorted(found, key=lambda row: (row.queues, row.hand_size)))


def _smallest_deck(probability: float, elephants: int, hand: int, largest: int) -> int | None:
    """The fewest queues up to `largest` that suffice for a hand, or None. More queues never make it more likely."""
    low, high = hand, largest
    if high < low or squish_probability(hand, high, elephants) > probability:
        return None
    while low < high:
        middle = (low + high) // 2
        if squish_probability(hand, middle, elephants) <= probability:
            high = middle
        else:
            low = middle + 1
    return low


def best(elephants: int, max_queues: int = 1024) -> Sharding:
    """The pair within 60 bits and `max_queues` with the smallest probability of being squished."""
    if max_queues < 1:
        raise ValueError(f"there must be at least 1 queue, not {max_queues}")
    decks = ((hand, min(max_queues, largest_deck(hand))) for hand in range(1, MAX_HAND + 1))
    rows = [sharding(hand, deck, (elephants,)) for hand, deck in decks if hand <= deck]
    return min(rows, key=lambda row: (row.squish[elephants], row.queues, row.hand_size))
