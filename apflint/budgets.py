"""Declared bounds: what an analysis may cost, so that no input keeps a run busy for more than about two seconds.

Beyond a bound an analysis stops or skips an object, and its rule reports what was not analyzed.
"""

from __future__ import annotations

from typing import Self


class Bound(int):
    """A bound with the reason for it, and what is reported beyond it."""

    reason: str
    reported: str

    def __new__(cls, value: int, reason: str, reported: str) -> Self:
        """Create a bound; `value` is what the reason counts."""
        bound = super().__new__(cls, value)
        bound.reason, bound.reported = reason, reported
        return bound


# Files

MAX_FILE_BYTES = Bound(
    32 * 1024 * 1024,
    "bytes of a file that is read as a whole; the largest object that etcd stores has 1.5 MiB",
    "an error, unless the file contains no sign of an APF object",
)
MAX_SEARCHED_BYTES = Bound(
    1024 * 1024 * 1024,
    "bytes of a file that is searched for signs of APF objects; a sparse file may claim more",
    "an error, and the file is not checked",
)
MAX_LINES = Bound(3_000_000, "lines of a file: the start of each takes 40 bytes", "APF004, and the file is not checked")
MAX_DOCUMENTS = Bound(
    1_100_000, "documents of a file, even empty ones", "APF004, and the rest of the file is not checked"
)
MAX_FILE_CONTENT = Bound(
    2_000_000,
    "line ends, commas and colons of the documents in a file that may contain APF objects: about 10,000 FlowSchemas",
    "APF004, and the rest of the file is not checked",
)
MAX_DOCUMENT_CHARACTERS = Bound(
    16 * 1024 * 1024,
    "characters of a document; a kube-apiserver accepts requests of up to 3 MiB (MaxRequestBodyBytes)",
    "APF004, and the document is not checked",
)
MAX_VALUES = Bound(
    500_000,
    "keys, scalars, lists and mappings of a document: about 125 MB of memory",
    "APF004, and the document is not checked",
)
MAX_DEPTH = Bound(
    200,
    "levels of nesting in a document, which need stack; a FlowSchema has ten",
    "APF004, and the document is not checked",
)
MAX_ALIAS_DEPTH = Bound(
    300,
    "levels of values, aliases and merges inside each other, which need stack",
    "APF004, and the document is not checked",
)
MAX_DUPLICATES = Bound(
    2_000,
    "duplicate keys of a document, and infinite numbers: more than the findings in a report",
    "the last finding of the rule states that further ones are left out",
)
MAX_KEPT_TREES = Bound(
    500_000,
    "line ends, commas and colons of the documents in a file whose trees are kept, which takes memory",
    "nothing: the document is parsed again when a position is needed",
)
MAX_HELM_TEMPLATES = Bound(
    10_000,
    "templates in the output of helm template",
    "findings show positions in the whole output instead of the templates",
)
MAX_PROJECT_FILES = Bound(
    20_000,
    "files of a project to read for a finding that they could refute, if a run names only some of them",
    "nothing: findings that other files could refute are left out",
)
MAX_KUSTOMIZATION_DEPTH = Bound(
    16,
    "directories above a file in which to look for a kustomization that lists it as a patch",
    "nothing: the file is checked as a manifest",
)


# Settings, baselines, suppressions

MAX_SETTINGS_BYTES = Bound(
    256 * 1024,
    "bytes of a settings file: Python's parser takes three seconds for 1 MiB",
    "an error, and nothing is checked",
)
MAX_PYPROJECT_BYTES = Bound(
    64 * 1024 * 1024,
    "bytes of a pyproject.toml that are searched for the table of apflint; it may belong to another tool",
    "an error, and nothing is checked",
)
MAX_SETTINGS_KEY_PARTS = Bound(
    100,
    "dots in a line of a settings file, outside of quotes: the memory for a key grows with the square of its parts",
    "an error, and nothing is checked",
)
MAX_PATTERNS = Bound(
    1_000, "patterns of a key in a settings file: each is matched against each path", "an error, and nothing is checked"
)
MAX_PATTERN_LENGTH = Bound(
    4_096, "characters of a pattern: as long as a path can be (PATH_MAX of Linux)", "an error, and nothing is checked"
)
MAX_BASELINE_BYTES = Bound(
    32 * 1024 * 1024,
    "bytes of a baseline: parsing needs ten times the size in memory",
    "an error, and nothing is checked",
)
MAX_SUPPRESSIONS = Bound(
    50_000,
    "suppressions of a file: five for each object of the largest file that is read",
    "APF902, and further suppressions have no effect",
)


# Findings and analyses

MAX_FINDINGS_PER_RULE = Bound(
    1_000,
    "findings of one rule, file and severity in a report: thousands repeat one mistake, or exhaust the reader on purpose",
    "the last of them states how many more findings of the rule there are",
)
MAX_VIOLATIONS = Bound(
    2_000,
    "unknown fields of an object, and other violations of its schema: more than the findings in a report",
    "the last finding of the rule states that further ones are left out",
)
MAX_COMPARED_PAIRS = Bound(
    100_000,
    "pairs of FlowSchemas of one precedence that APF503 compares in a run; each takes microseconds",
    "APF503 states how many pairs were not compared",
)
MAX_TIE_PROOFS = Bound(
    30_000,
    "questions of APF503 to the solver in a run, divided by the number of FlowSchemas: the time of each grows with it",
    "APF503 states how many pairs were not compared",
)
MAX_REACHABILITY_WORK = Bound(
    2_500_000,
    "work of all questions to the solver about unreachable parts in a run: up to half a microsecond for each unit",
    "APF501 states how many FlowSchemas were not analyzed",
)
MAX_EXPLAINED_SHADOWS = Bound(
    100,
    "findings of APF501 and of APF502 for which the FlowSchemas that come first are determined; each takes milliseconds",
    "the finding states that earlier FlowSchemas capture the requests, without their names",
)
MAX_EXPLAINING_WORK = Bound(
    400_000,
    "work to determine the FlowSchemas that come first, in the same units, for APF501 and for APF502",
    "the finding states that earlier FlowSchemas capture the requests, without their names",
)
MAX_MINIMAL_BLOCKERS = Bound(
    24,
    "FlowSchemas that shadow another one together, up to which those that are not needed are left out: a proof for each",
    "the finding names all FlowSchemas that the proof used",
)
MAX_MINIMIZING_PROOFS = Bound(
    1_000_000,
    "proofs that a shadowing FlowSchema is not needed, divided by the number of FlowSchemas: the time of each grows with it",
    "the finding names all FlowSchemas that the proof used",
)
MAX_MISSED_RULES = Bound(
    64,
    "resource rules of a FlowSchema that APF505, APF508 and APF513 analyze",
    "nothing: further resource rules are not analyzed",
)
MAX_MISSED_TRIALS = Bound(
    32,
    "requests that APF505, APF508 and APF513 try for a resource rule",
    "nothing: a missed request may not be found",
)
MAX_MISSED_SUBJECTS = Bound(
    8,
    "subjects of a rule whose requests APF505, APF508 and APF513 try",
    "nothing: a missed request may not be found",
)
MAX_MISSED_VALUES = Bound(
    16,
    "values of a list from which APF505, APF508 and APF513 make requests",
    "nothing: a missed request may not be found",
)
MAX_REDUNDANCY_TRIALS = Bound(
    64,
    "requests that APF516 tries for a rule before it asks the solver",
    "nothing: the solver decides",
)
MAX_REDUNDANCY_PROOFS = Bound(
    20,
    "FlowSchemas about which APF516 asks the solver in a run; each takes milliseconds",
    "APF516 states how many FlowSchemas were not analyzed",
)
MAX_REDUNDANCY_PARTS = Bound(
    1_000,
    "subjects and entries of a FlowSchema that APF516 analyzes",
    "APF516 states how many FlowSchemas were not analyzed",
)
MAX_REDUNDANCY_PROOF_PARTS = Bound(
    10_000,
    "subjects and entries in all proofs of APF516 in a run: a proof about 5,000 rules takes seconds",
    "APF516 states how many FlowSchemas were not analyzed",
)


# Fixes

MAX_COMPARED_FIELDS = Bound(
    200,
    "unknown fields of a mapping up to which APF101 suggests to rename one: each is compared with all others",
    "the findings have no fix",
)
MAX_FIX_ATTEMPTS = Bound(
    1_000,
    "batches of fixes to try in a run: fixes that undo each other would be tried without end",
    "the remaining fixes are refused",
)
MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS = Bound(
    40,
    "batches of fixes to try in a run if more would check over 1 MiB",
    "the remaining fixes are refused",
)
MAX_FIXED_FINDINGS = Bound(
    10_000,
    "findings of one rule and file to fix at once: each takes 30 kB",
    "nothing: further ones are fixed in the next round",
)
MAX_PROVEN_EDIT_CHARACTERS = Bound(
    1_000_000,
    "characters of files with YAML anchors that are read again to prove the edits of fixes in JSON and SARIF",
    "the edits of a fix are null in JSON; the fix is left out of SARIF",
)
MAX_EDIT_NEIGHBORS = Bound(
    1_000_000,
    "entries beside those that the fixes in a JSON or SARIF report edit: to remove one of them, all are compared",
    "the edits of a fix are null in JSON; the fix is left out of SARIF",
)


# Other commands

MAX_MOVES = Bound(
    2_000,
    "pairs of FlowSchemas between which diff finds requests that move; the search takes seconds",
    "diff states that there are more",
)
MAX_ELEPHANTS = Bound(
    10_000,
    "elephants for which shards computes exact probabilities",
    "an error",
)
MAX_SHARDS_WORK = Bound(
    100_000_000,
    "bits of arithmetic for one probability: about a second, and ten times what hands of 60 bits need",
    "an error",
)


# Language server

MAX_WORKSPACE_FILES = Bound(
    20_000,
    "manifests of a directory that the language server checks; a home directory opened by mistake has more",
    "a message, and other manifests are checked while they are open",
)
MAX_DIAGNOSTICS_PER_FILE = Bound(
    1_000,
    "findings of a file in an editor, which becomes slow with more",
    "a message states how many findings are not shown",
)
MAX_FINDINGS_WITH_ACTIONS = Bound(
    50,
    "findings with quick fixes at one place: a longer menu is of no use",
    "nothing: further findings have no quick fix in the menu",
)
MAX_COMPLETION_CHARACTERS = Bound(
    500_000,
    "characters of a document for which the language server completes and explains fields",
    "nothing: there is no completion and no explanation",
)
MAX_NEW_DOCUMENT_CHARACTERS = Bound(
    10_000,
    "characters of a document without a sign of an APF object that the language server completes",
    "nothing: there is no completion",
)
MAX_MESSAGE_BYTES = Bound(
    64 * 1024 * 1024,
    "bytes of a message to the language server, which has a document at most",
    "an error, and the language server ends",
)
