"""Declared bounds: what an analysis may cost, so that no input keeps a run busy for more than about two seconds.

Each states what is reported beyond it, and its docstring what it counts and why. docs/bounds.md is made from both.
"""

from __future__ import annotations

from typing import Self


class Bound(int):
    """A bound and what is reported beyond it."""

    reported: str

    def __new__(cls, value: int, reported: str) -> Self:
        """Create a bound."""
        bound = super().__new__(cls, value)
        bound.reported = reported
        return bound


# Files

MAX_FILE_BYTES = Bound(32 * 1024 * 1024, "an error, unless the file contains no sign of an APF object")
"""Bytes of a file that is read as a whole; the largest object that etcd stores has 1.5 MiB."""
MAX_SEARCHED_BYTES = Bound(1024 * 1024 * 1024, "an error, and the file is not checked")
"""Bytes of a file that is searched for signs of APF objects; a sparse file may claim more."""
MAX_LINES = Bound(3_000_000, "APF004, and the file is not checked")
"""Lines of a file: the start of each takes 40 bytes."""
MAX_DOCUMENTS = Bound(1_100_000, "APF004, and the rest of the file is not checked")
"""Documents of a file, even empty ones."""
MAX_FILE_CONTENT = Bound(2_000_000, "APF004, and the rest of the file is not checked")
"""Line ends, commas and colons of the documents in a file that may contain APF objects: about 10,000 FlowSchemas."""
MAX_DOCUMENT_CHARACTERS = Bound(16 * 1024 * 1024, "APF004, and the document is not checked")
"""Characters of a document; a kube-apiserver accepts requests of up to 3 MiB (MaxRequestBodyBytes)."""
MAX_VALUES = Bound(500_000, "APF004, and the document is not checked")
"""Keys, scalars, lists and mappings of a document: about 125 MB of memory."""
MAX_DEPTH = Bound(200, "APF004, and the document is not checked")
"""Levels of nesting in a document, which need stack; a FlowSchema has ten."""
MAX_ALIAS_DEPTH = Bound(300, "APF004, and the document is not checked")
"""Levels of values, aliases and merges inside each other, which need stack."""
MAX_DUPLICATES = Bound(2_000, "the last finding of the rule states that further ones are left out")
"""Duplicate keys of a document, and infinite numbers: more than the findings in a report."""
MAX_KEPT_TREES = Bound(500_000, "nothing: the document is parsed again when a position is needed")
"""Line ends, commas and colons of the documents in a file whose trees are kept, which takes memory."""
MAX_HELM_TEMPLATES = Bound(10_000, "findings show positions in the whole output instead of the templates")
"""Templates in the output of helm template."""
MAX_PROJECT_FILES = Bound(20_000, "nothing: findings that other files could refute are left out")
"""Files of a project to read for a finding that they could refute, if a run names only some of them."""
MAX_KUSTOMIZATION_DEPTH = Bound(16, "nothing: the file is checked as a manifest")
"""Directories above a file in which to look for a kustomization that lists it as a patch."""


# Settings, baselines, suppressions

MAX_SETTINGS_BYTES = Bound(256 * 1024, "an error, and nothing is checked")
"""Bytes of a settings file: Python's parser takes three seconds for 1 MiB."""
MAX_PYPROJECT_BYTES = Bound(64 * 1024 * 1024, "an error, and nothing is checked")
"""Bytes of a pyproject.toml that are searched for the table of apflint; it may belong to another tool."""
MAX_SETTINGS_KEY_PARTS = Bound(100, "an error, and nothing is checked")
"""Dots in a line of a settings file, outside of quotes: the memory for a key grows with the square of its parts."""
MAX_PATTERNS = Bound(1_000, "an error, and nothing is checked")
"""Patterns of a key in a settings file: each is matched against each path."""
MAX_PATTERN_LENGTH = Bound(4_096, "an error, and nothing is checked")
"""Characters of a pattern: as long as a path can be (PATH_MAX of Linux)."""
MAX_BASELINE_BYTES = Bound(32 * 1024 * 1024, "an error, and nothing is checked")
"""Bytes of a baseline: parsing needs ten times the size in memory."""
MAX_SUPPRESSIONS = Bound(50_000, "APF902, and further suppressions have no effect")
"""Suppressions of a file: five for each object of the largest file that is read."""


# Findings and analyses

MAX_FINDINGS_PER_RULE = Bound(1_000, "the last of them states how many more findings of the rule there are")
"""Findings of one rule, file and severity in a report: more repeat one mistake, or exhaust the reader on purpose."""
MAX_VIOLATIONS = Bound(2_000, "the last finding of the rule states that further ones are left out")
"""Unknown fields of an object, and other violations of its schema: more than the findings in a report."""
MAX_COMPARED_PAIRS = Bound(100_000, "APF503 states how many pairs were not compared")
"""Pairs of FlowSchemas of one precedence that APF503 compares in a run; each takes microseconds."""
MAX_TIE_PROOFS = Bound(30_000, "APF503 states how many pairs were not compared")
"""Questions of APF503 to the solver in a run, divided by the number of FlowSchemas: the time of each grows with it."""
MAX_REACHABILITY_WORK = Bound(2_500_000, "APF501 states how many FlowSchemas were not analyzed")
"""Work of all questions to the solver about unreachable parts in a run: up to half a microsecond for each unit."""
MAX_EXPLAINED_SHADOWS = Bound(100, "the finding does not name the earlier FlowSchemas that capture the requests")
"""Findings of APF501 and of APF502 that name the earlier FlowSchemas; each takes milliseconds."""
MAX_EXPLAINING_WORK = Bound(400_000, "the finding does not name the earlier FlowSchemas that capture the requests")
"""Work to determine the earlier FlowSchemas, in the same units, for APF501 and for APF502."""
MAX_MINIMAL_BLOCKERS = Bound(24, "the finding names all FlowSchemas that the proof used")
"""FlowSchemas that shadow another one together, of which those that are not needed are left out: a proof for each."""
MAX_MINIMIZING_PROOFS = Bound(1_000_000, "the finding names all FlowSchemas that the proof used")
"""Proofs that a shadowing FlowSchema is not needed, divided by the number of FlowSchemas, with which the time grows."""
MAX_MISSED_RULES = Bound(64, "nothing: further resource rules are not analyzed")
"""Resource rules of a FlowSchema that APF505, APF508 and APF513 analyze."""
MAX_MISSED_TRIALS = Bound(32, "nothing: a missed request may not be found")
"""Requests that APF505, APF508 and APF513 try for a resource rule."""
MAX_MISSED_SUBJECTS = Bound(8, "nothing: a missed request may not be found")
"""Subjects of a rule whose requests APF505, APF508 and APF513 try."""
MAX_MISSED_VALUES = Bound(16, "nothing: a missed request may not be found")
"""Values of a list from which APF505, APF508 and APF513 make requests."""
MAX_REDUNDANCY_TRIALS = Bound(64, "nothing: the solver decides")
"""Requests that APF516 tries for a rule before it asks the solver."""
MAX_REDUNDANCY_PROOFS = Bound(20, "APF516 states how many FlowSchemas were not analyzed")
"""FlowSchemas about which APF516 asks the solver in a run; each takes milliseconds."""
MAX_REDUNDANCY_PARTS = Bound(1_000, "APF516 states how many FlowSchemas were not analyzed")
"""Subjects and entries of a FlowSchema that APF516 analyzes."""
MAX_REDUNDANCY_PROOF_PARTS = Bound(10_000, "APF516 states how many FlowSchemas were not analyzed")
"""Subjects and entries in all proofs of APF516 in a run: a proof about 5,000 rules takes seconds."""


# Fixes

MAX_COMPARED_FIELDS = Bound(200, "the findings have no fix")
"""Unknown fields of a mapping up to which APF101 suggests to rename one: each is compared with all others."""
MAX_FIX_ATTEMPTS = Bound(1_000, "the remaining fixes are refused")
"""Batches of fixes to try in a run: fixes that undo each other would be tried without end."""
MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS = Bound(40, "the remaining fixes are refused")
"""Batches of fixes to try in a run if more would check over 1 MiB."""
MAX_FIXED_FINDINGS = Bound(10_000, "nothing: further ones are fixed in the next round")
"""Findings of one rule and file to fix at once: each takes 30 kB."""
MAX_PROVEN_EDIT_CHARACTERS = Bound(1_000_000, "the edits of a fix are null in JSON; the fix is left out of SARIF")
"""Characters of files with YAML anchors that are read again to prove the edits of fixes in JSON and SARIF."""
MAX_EDIT_NEIGHBORS = Bound(1_000_000, "the edits of a fix are null in JSON; the fix is left out of SARIF")
"""Entries beside those that the fixes in a JSON or SARIF report edit: to remove one of them, all are compared."""


# Other commands

MAX_MOVES = Bound(2_000, "diff states that more requests may move")
"""Pairs of FlowSchemas between which diff finds requests that move; the search takes seconds."""
MAX_MOVE_PROOFS = Bound(500_000, "diff states that more requests may move")
"""Pairs that diff finds only with the solver, divided by the number of FlowSchemas, with which the time grows."""
MAX_ELEPHANTS = Bound(10_000, "an error")
"""Elephants for which shards computes exact probabilities."""
MAX_SHARDS_WORK = Bound(100_000_000, "an error")
"""Bits of arithmetic for one probability: about a second, and ten times what hands of 60 bits need."""


# Language server

MAX_WORKSPACE_FILES = Bound(20_000, "a message, and other manifests are checked while they are open")
"""Manifests of a directory that the language server checks; a home directory opened by mistake has more."""
MAX_DIAGNOSTICS_PER_FILE = Bound(1_000, "a message states how many findings are not shown")
"""Findings of a file in an editor, which becomes slow with more."""
MAX_FINDINGS_WITH_ACTIONS = Bound(50, "nothing: further findings have no quick fix in the menu")
"""Findings with quick fixes at one place: a longer menu is of no use."""
MAX_COMPLETION_CHARACTERS = Bound(500_000, "nothing: there is no completion and no explanation")
"""Characters of a document for which the language server completes and explains fields."""
MAX_NEW_DOCUMENT_CHARACTERS = Bound(10_000, "nothing: there is no completion")
"""Characters of a document without a sign of an APF object that the language server completes."""
MAX_MESSAGE_BYTES = Bound(64 * 1024 * 1024, "an error, and the language server ends")
"""Bytes of a message to the language server, which has a document at most."""
