"""Bounds on the size of inputs and the cost of analyses, as docs/security.md promises for each command.

The docstring of a bound says what it limits and why. docs/reference/bounds.md is generated from this module.
"""

from __future__ import annotations

from typing import Self


class Bound(int):
    """A maximum, and what apflint reports or does if an input exceeds the maximum."""

    reported: str

    def __new__(cls, value: int, reported: str) -> Self:
        """Create a bound with the maximum `value`.

        `reported` is a phrase that states what apflint reports or does if an input exceeds the maximum. The
        page docs/reference/bounds.md shows this phrase.
        """
        bound = super().__new__(cls, value)
        bound.reported = reported
        return bound


# Files

MAX_FILE_BYTES = Bound(32 * 1024 * 1024, "an error, unless the file contains no sign of an APF object")
"""Maximum number of bytes in a file that apflint parses. For comparison: etcd stores objects of up to 1.5 MiB."""
MAX_SEARCHED_BYTES = Bound(1024 * 1024 * 1024, "an error, and the file is not checked")
"""Maximum number of bytes in a file that apflint only searches for signs of APF objects, because the file is too large to parse. The empty parts of a sparse file count, too."""
MAX_LINES = Bound(3_000_000, "APF004, and the file is not checked")
"""Maximum number of lines in a file. Storing the start of a line takes 40 bytes of memory."""
MAX_DOCUMENTS = Bound(1_100_000, "apflint reports APF004, and does not check the rest of the file")
"""Maximum number of documents in a file, including empty documents."""
MAX_FILE_CONTENT = Bound(2_000_000, "apflint reports APF004, and does not check the rest of the file")
"""Maximum number of line ends, commas and colons in a file. Documents without APF objects do not count. About 10,000 FlowSchemas reach the maximum."""
MAX_DOCUMENT_CHARACTERS = Bound(16 * 1024 * 1024, "APF004, and the document is not checked")
"""Maximum number of characters in a document. For comparison: a kube-apiserver accepts requests of up to 3 MiB (MaxRequestBodyBytes)."""
MAX_VALUES = Bound(500_000, "APF004, and the document is not checked")
"""Maximum number of keys, scalars, lists and mappings in a document. A document with this maximum takes about 125 MB of memory."""
MAX_DEPTH = Bound(200, "APF004, and the document is not checked")
"""Maximum number of levels of nesting in a document. Each level takes stack space. A FlowSchema has ten levels."""
MAX_ALIAS_DEPTH = Bound(300, "APF004, and the document is not checked")
"""Maximum number of levels of nesting after aliases and merge keys are expanded. Each level takes stack space."""
MAX_DUPLICATES = Bound(2_000, "the last finding states that the report leaves out more findings of the rule")
"""Maximum number of duplicate keys in a document. The same maximum applies to infinite numbers and NaN together. Reports show fewer findings anyway (MAX_FINDINGS_PER_RULE)."""
MAX_KEPT_TREES = Bound(500_000, "nothing: the document is parsed again when a position is needed")
"""Maximum size of the documents of a file whose parsed trees stay in memory. The size counts line ends, commas and colons."""
MAX_HELM_TEMPLATES = Bound(10_000, "findings show positions in the whole output instead of positions in the templates")
"""Maximum number of template files in the output of `helm template`."""
MAX_PROJECT_FILES = Bound(20_000, "nothing: apflint omits all findings that other project files could disprove")
"""Maximum number of project files that apflint reads in addition to the files that a command names. These project files may disprove a finding."""
MAX_KUSTOMIZATION_DEPTH = Bound(16, "nothing: apflint checks the file as a manifest instead of a patch")
"""Maximum number of parent directories of a file in which apflint searches for a kustomization that lists the file as a patch."""
MAX_KUSTOMIZATIONS = Bound(1_000, "an error, unless --render builds it anyway")
"""Maximum number of directories in a kustomization and all kustomizations that it includes. apflint searches these directories for references to files outside of the project, and for the file that defines an object."""


# Other programs

MAX_KUBECTL_SECONDS = Bound(30, "an error")
"""Maximum number of seconds that one request of kubectl takes, including the user's login."""
MAX_RENDER_SECONDS = Bound(60, "an error")
"""Maximum number of seconds that the program of `render` in a table [[cluster]] takes."""
MAX_GIT_SECONDS = Bound(30, "an error")
"""Maximum number of seconds that one git command takes."""
MAX_REVISION_FILES = Bound(20_000, "an error")
"""Maximum number of files in a git revision from which apflint renders a cluster. Together, the files have at most `MAX_FILE_BYTES`."""
MAX_KUSTOMIZE_SECONDS = Bound(60, "an error")
"""Maximum number of seconds that kustomize takes to build a kustomization, including downloads of remote bases."""


# Running servers

MAX_METRICS_BYTES = Bound(64 * 1024 * 1024, "an error")
"""Maximum number of bytes of metrics or of a dump, uncompressed. For comparison: 60,000 lines of metrics have 10 MB."""


MAX_PROMETHEUS_SECONDS = Bound(60, "an error")
"""Maximum number of seconds that one query of Prometheus takes, from the connection to the end of the response."""
MAX_PROMETHEUS_BYTES = Bound(32 * 1024 * 1024, "an error")
"""Maximum number of bytes of an answer of Prometheus, uncompressed. The metrics of a server have about 2 MB. Parsing an answer takes up to ten times its size in memory."""
MAX_PROMETHEUS_SERIES = Bound(150_000, "an error")
"""Maximum number of series in an answer of Prometheus. A server has about 5,000 series that the diagnosis reads."""
MAX_PROMETHEUS_POINTS = Bound(
    2_000, "nothing: apflint queries longer steps, and then the worst of these steps again, in shorter steps"
)
"""Maximum number of steps of a query of Prometheus. Prometheus itself rejects more than 11,000."""
MAX_PROMETHEUS_SERVERS = Bound(100, "an error")
"""Maximum number of API servers whose metrics one run reads from Prometheus. An API server takes about four queries."""
MAX_PROMETHEUS_INTERVALS = Bound(5, "nothing: other intervals are not diagnosed")
"""Maximum number of time intervals that are diagnosed for a cluster, the worst first. The diagnosis ends at the first interval with a cause."""
MAX_CREDENTIAL_BYTES = Bound(64 * 1024, "an error")
"""Maximum number of bytes in the file with the bearer token for Prometheus."""
MAX_SERVER_LEVELS = Bound(10_000, "an error")
"""Maximum number of priority levels of a running server. Clusters have about ten."""
MAX_SHOWN_CAUSES = Bound(
    20, "the report states how many more causes there are, and the JSON output contains all causes"
)
"""Maximum number of causes in a report for people. Causes are sorted, the worst first."""
MAX_LABEL_CHARACTERS = Bound(1_024, "an error with the line")
"""Maximum number of characters in a label of metrics, and in a name in a dump. Names of objects have at most 253 characters."""
MAX_AMBIGUOUS_ROW_CHARACTERS = Bound(8_192, "an error with the line")
"""Maximum number of characters in a row of a dump that has more commas than cells. Splitting such a row into cells may take cubic time."""
MAX_LIVE_SERVERS = Bound(16, "the report states how many API servers were not asked")
"""Maximum number of API servers that `apflint doctor --live` asks at their own addresses. Clusters usually have three or five."""
MAX_LIVE_PROCESSES = Bound(8, "nothing: further requests wait")
"""Maximum number of processes of kubectl that read the API servers at the same time."""
MAX_CONNECT_SECONDS = Bound(4, "the report names the API server and the reason")
"""Maximum number of seconds until an API server answers at its own address, after the login of the user. Often, the load balancer is reachable, but the individual API servers are not."""
MAX_REPEATED_REQUESTS = Bound(4, "the report states that there may be further API servers")
"""Maximum number of repeated requests to a load balancer, which may pass each request to another API server."""
MAX_LIVE_PAGES = Bound(100, "an error")
"""Maximum number of pages in which an API server returns the objects of a kind. apflint requests all objects in a single page."""


# Settings, baselines, suppressions

MAX_SETTINGS_BYTES = Bound(256 * 1024, "an error, and nothing is checked")
"""Maximum number of bytes in a settings file. Python's TOML parser may take three seconds for 1 MiB."""
MAX_CLUSTERS = Bound(1_000, "an error, and nothing is checked")
"""Maximum number of clusters in a settings file. Each cluster is analyzed separately."""
MAX_RELATED_OF_CLUSTERS = Bound(20, "counted in a note")
"""Maximum number of related places of a finding that several clusters have. The places may differ between clusters."""
MAX_PYPROJECT_BYTES = Bound(64 * 1024 * 1024, "an error, and nothing is checked")
"""Maximum number of bytes in a pyproject.toml that apflint searches for its own table. Settings of other tools can make the file large."""
MAX_SETTINGS_KEY_PARTS = Bound(100, "an error, and nothing is checked")
"""Maximum number of dots in a line of a settings file, outside of quotes. The memory for a dotted key grows with the square of its dots."""
MAX_PATTERNS = Bound(1_000, "an error, and nothing is checked")
"""Maximum number of path patterns of one key in a settings file. Every pattern is matched against every path."""
MAX_PATTERN_WORK = Bound(100_000_000, "an error, and nothing is checked")
"""Maximum number of characters of path patterns and paths in all comparisons of a run. A comparison counts only if the path contains the longest part of the pattern without wildcards. The maximum takes a few seconds."""
MAX_PATTERN_LENGTH = Bound(4_096, "an error, and nothing is checked")
"""Maximum number of characters in a path pattern. A path has at most this length (PATH_MAX of Linux)."""
MAX_BASELINE_BYTES = Bound(32 * 1024 * 1024, "an error, and nothing is checked")
"""Maximum number of bytes in a baseline. Parsing a baseline takes ten times its size in memory."""
MAX_SUPPRESSIONS = Bound(50_000, "APF902, and further suppressions have no effect")
"""Maximum number of suppressions in a file. In the largest file that apflint checks, this is five suppressions for each object."""


# Findings and analyses

MAX_FINDINGS_PER_RULE = Bound(1_000, "the last finding states how many more findings of the rule there are")
"""Maximum number of findings with the same rule, file and severity in a report. More findings usually repeat one mistake."""
MAX_EXAMPLE_CHARACTERS = Bound(4_000, "nothing: the finding has no example")
"""Maximum number of characters in the example command of a finding. Names and paths of requests may be megabytes long."""
MAX_DIRECTORY_PAIRS = Bound(10, "the last finding states how many more pairs of directories there are")
"""Maximum number of findings of APF402 about two directories that define the same objects. 200 clusters have 199 pairs with the first cluster."""
MAX_VIOLATIONS = Bound(2_000, "the last finding of the rule states that further ones are left out")
"""Maximum number of unknown fields in an object. The same maximum applies to all other schema violations of the object together. Reports show fewer findings anyway (MAX_FINDINGS_PER_RULE)."""
MAX_COMPARED_PAIRS = Bound(100_000, "APF503 states how many pairs were not compared")
"""Maximum number of pairs of FlowSchemas with the same precedence that APF503 compares in a run. A pair takes microseconds."""
MAX_TIE_PROOFS = Bound(30_000, "APF503 states how many pairs were not compared")
"""Maximum number of solver calls of APF503 in a run, multiplied by the number of FlowSchemas. A call takes longer if there are more FlowSchemas."""
MAX_COMPARISON_WORK = Bound(
    1_000_000,
    "findings about further unknown words suggest no spelling, and APF512 counts the names that were not compared",
)
"""Maximum estimated cost of comparing distinct unknown words of a run with known ones. A unit takes about a microsecond."""
MAX_REACHABILITY_WORK = Bound(2_500_000, "APF501 states how many FlowSchemas were not analyzed")
"""Maximum estimated cost of the solver calls that search for unreachable rules in a run. A unit takes up to half a microsecond."""
MAX_EXPLAINED_SHADOWS = Bound(100, "the finding does not name the earlier FlowSchemas that capture the requests")
"""Maximum number of findings of APF501 that name the earlier FlowSchemas. The same maximum applies to APF502. Finding these names takes milliseconds per finding."""
MAX_EXPLAINING_WORK = Bound(400_000, "the finding does not name the earlier FlowSchemas that capture the requests")
"""Maximum estimated cost of finding the earlier FlowSchemas for APF501. The same maximum applies to APF502. The unit is that of MAX_REACHABILITY_WORK."""
MAX_MINIMAL_BLOCKERS = Bound(24, "the finding names all FlowSchemas that the proof used")
"""Maximum number of earlier FlowSchemas in a finding that apflint reduces to the necessary FlowSchemas. The reduction takes one proof for each FlowSchema."""
MAX_MINIMIZING_PROOFS = Bound(1_000_000, "the finding may also name FlowSchemas that do not contribute to the problem")
"""Maximum number of proofs that show whether a shadowing FlowSchema is necessary, multiplied by the number of FlowSchemas. A proof takes longer if there are more FlowSchemas."""
MAX_ORDINARY_WITNESSES = Bound(
    100, "further findings show the first example that the search found, which may be an unusual request"
)
"""Maximum number of findings of APF518 and APF601 whose example is replaced by a more ordinary request. Finding an ordinary request takes about 100 classifications."""
MAX_MISSED_RULES = Bound(64, "nothing: further resource rules are not analyzed")
"""Maximum number of resource rules of a FlowSchema that APF505, APF508 and APF513 analyze."""
MAX_MISSED_TRIALS = Bound(32, "apflint prints no message, and may overlook requests that the rule does not match")
"""Maximum number of example requests that APF505, APF508 and APF513 try for a resource rule."""
MAX_MISSED_SUBJECTS = Bound(8, "nothing: apflint may overlook that the rule does not match an intended request")
"""Maximum number of subjects of a rule for which APF505, APF508 and APF513 try example requests."""
MAX_MISSED_VALUES = Bound(16, "nothing: apflint may not find a request that the rule misses")
"""Maximum number of items of a list from which APF505, APF508 and APF513 make example requests."""
MAX_REDUNDANCY_TRIALS = Bound(64, "nothing: the solver decides")
"""Maximum number of example requests that APF516 tries for a rule before it calls the solver."""
MAX_REDUNDANCY_PROOFS = Bound(20, "APF516 states how many FlowSchemas were not analyzed")
"""Maximum number of FlowSchemas for which APF516 calls the solver in a run. A call takes milliseconds."""
MAX_REDUNDANCY_PARTS = Bound(1_000, "APF516 states how many FlowSchemas were not analyzed")
"""Maximum number of subjects, resource rules and non-resource rules in a FlowSchema that APF516 analyzes."""
MAX_REDUNDANCY_PROOF_PARTS = Bound(10_000, "APF516 states how many FlowSchemas were not analyzed")
"""Maximum number of subjects, resource rules and non-resource rules in all proofs of APF516 together. A proof about 5,000 rules takes seconds."""


# Fixes

MAX_COMPARED_FIELDS = Bound(200, "the findings have no fix")
"""Maximum number of unknown fields in a mapping for which APF101 can suggest another name. Each unknown field is compared with all unknown fields."""
MAX_FIX_ATTEMPTS = Bound(1_000, "the remaining fixes are refused")
"""Maximum number of batches of fixes that a run tries. Without this bound, fixes that undo each other would never end."""
MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS = Bound(40, "the remaining fixes are refused")
"""Maximum number of batches of fixes that a run tries if the input is large, because the whole input is checked after each batch."""
MAX_FIXED_FINDINGS = Bound(10_000, "nothing: the next round of the same run fixes the remaining findings")
"""Maximum number of findings with the same rule, file and severity that are fixed in one round. A finding takes 30 kB of memory."""
MAX_PROVEN_EDIT_CHARACTERS = Bound(1_000_000, "JSON has null instead of the edits of a fix, and SARIF omits the fix")
"""Maximum number of characters that are parsed again for a JSON or SARIF report. Files with YAML anchors are parsed again for each fix, to verify its edits."""
MAX_EDIT_NEIGHBORS = Bound(1_000_000, "JSON has null instead of the edits of a fix, and SARIF omits the fix")
"""Maximum number of siblings of the entries that all fixes in a JSON or SARIF report edit. Removing an entry compares it with all siblings."""


# Commands such as diff, replay, simulate and propose

MAX_MOVES = Bound(2_000, "diff states that more requests may move")
"""Maximum number of pairs of FlowSchemas between which `apflint diff` finds moved requests. A search for more pairs takes seconds."""
MAX_MOVE_PROOFS = Bound(500_000, "diff states that more requests may move")
"""Maximum number of solver calls with which `apflint diff` finds moved requests, multiplied by the number of FlowSchemas. A call takes longer if there are more FlowSchemas."""
MAX_AUDIT_VALUE_BYTES = Bound(64 * 1024 * 1024, "every line of the file counts as unreadable")
"""Maximum number of bytes in an audit log that is one JSON value over several lines, such as the result of `gcloud logging read`. Logs with one value per line may be larger."""
MAX_AUDIT_VALUE_PARTS = Bound(3_000_000, "the report counts every line of this JSON value as unreadable")
"""Maximum number of commas, colons and opening brackets in a JSON value of an audit log. Each takes up to 80 bytes of memory."""
MAX_LINES_WITHOUT_EVENTS = Bound(100_000, "the rest of the file is not read, and the report says so")
"""Maximum number of consecutive lines, and items of lists, in an audit log that are not log records. Such a file is probably not an audit log."""
MAX_EXPANSION = Bound(1_000, "the rest of the file is not read, and the report says so")
"""Maximum size of the text of a compressed audit log, as a multiple of its compressed size. Real logs reach about 100, because the ID and the times of each event are different."""
MAX_EXPANDED_BYTES = Bound(256 * 1024 * 1024, "MAX_EXPANSION applies")
"""Maximum size of the text of a compressed audit log to which MAX_EXPANSION does not apply."""
MAX_SIMULATED_REQUESTS = Bound(100_000_000, "an error with the number")
"""Maximum number of requests in a load of `apflint simulate`, without retries. The maximum takes about 20 minutes."""
MAX_REQUESTS_IN_FLIGHT = Bound(2_000_000, "an error with the number")
"""Maximum number of requests of a simulation that wait, execute or await their next attempt at the same time. Each takes about 700 bytes of memory."""
MAX_FURTHER_REQUESTS = Bound(100_000_000, "an error that names the simulated second at which the simulation stopped")
"""Maximum number of retries and of later requests of closed-loop clients in a simulation. Their number depends on the rejections, so it is not known before the simulation."""
MAX_DIFFERENT_CLIENTS = Bound(100_000, "an error with the number")
"""Maximum number of clients of a simulation whose user or request contains `{n}`, so that each client is different. Each client is classified before the simulation, and takes about 1 kB of memory."""
MAX_SIMULATED_QUEUES = Bound(500_000, "an error with the number")
"""Maximum number of queues and priority levels of all API servers of a simulation. Each queue takes about 850 bytes of memory."""
MAX_ADJUSTMENTS = Bound(1_000_000, "an error with the number")
"""Maximum number of times that the API servers of a simulation adjust their limits, every 10 seconds. A simulation of one server reaches the maximum after 115 days."""
MAX_TRIALS = Bound(120, "the report says that the search ended early, and lists the tried changes")
"""Maximum number of changes that `apflint propose` simulates."""
MAX_TRIED_REQUESTS = Bound(6_000_000, "the report says that the search ended early, and what was tried")
"""Maximum number of requests in all simulations with which `apflint propose` searches. The maximum takes about 5 minutes."""
MAX_EVIDENCE_REQUESTS = Bound(
    200_000, "the part of the incident with the most rejections and waits is simulated, and the report says so"
)
"""Maximum number of requests around an incident that `apflint propose` simulates."""
MAX_SEAT_SEARCH_REQUESTS = Bound(20_000, "the report says that apflint did not search for a number of seats")
"""Maximum number of requests in a log for which `apflint propose` and `apflint simulate` search a number of seats that reproduces the log. The search takes up to ten simulations."""
MAX_ELEPHANTS = Bound(10_000, "an error")
"""Maximum number of elephants for which `apflint shards` computes exact probabilities. An elephant is a busy flow that fills its hand: all queues that shuffle sharding assigns to the flow."""
MAX_SHARDS_WORK = Bound(100_000_000, "an error")
"""Maximum cost of computing one probability, in bits of large integers. The maximum takes about a second. Hands that Kubernetes allows (at most 60 bits) need a tenth of the maximum."""


# Language server

MAX_WORKSPACE_FILES = Bound(
    20_000, "a message, and manifests beyond this number are checked only while they are open in the editor"
)
"""Maximum number of manifests in a directory that the language server checks. A home directory, opened by mistake, has more manifests."""
MAX_DIAGNOSTICS_PER_FILE = Bound(1_000, "a message states how many findings are not shown")
"""Maximum number of findings that an editor receives for a file. Editors become slow with more findings."""
MAX_FINDINGS_WITH_ACTIONS = Bound(50, "nothing: further findings have no quick fix in the menu")
"""Maximum number of findings in a selection for which the editor offers quick fixes. A longer menu would be useless."""
MAX_COMPLETION_CHARACTERS = Bound(500_000, "nothing: the editor shows no completions and no explanations")
"""Maximum number of characters in a document in which the language server completes and explains fields."""
MAX_NEW_DOCUMENT_CHARACTERS = Bound(10_000, "nothing: the editor shows no completions")
"""Maximum number of characters in a document in which the language server completes fields although the document contains no sign of an APF object."""
MAX_MESSAGE_BYTES = Bound(64 * 1024 * 1024, "an error, and the language server ends")
"""Maximum number of bytes in a message to the language server. The largest valid messages contain one document."""
