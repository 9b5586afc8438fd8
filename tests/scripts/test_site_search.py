"""Search of the documentation site: the page that answers a question is the first result.

The questions are those of users of API Priority and Fairness, in the words that they type into a search box. Users ask them in the
issues of kubernetes/kubernetes, kubernetes/website and kubernetes/enhancements; in the issues of controllers that are throttled
or lose their lease (Cilium, HAMi, prometheus-adapter, the operators of RabbitMQ, NVIDIA and Camel K); in those of projects that
install FlowSchemas (Kueue, Kyverno, Karpenter, Deckhouse, operators of OpenShift); and in articles about the scalability of EKS, about
API storms on OpenShift, and about the error 429.

If a question fails, do not change the question. Use its words on the page, in a heading if the page is about nothing else.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from support.browser import Server, launch_chromium
from support.built_site import build_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

QUESTIONS = {
    "429 too many requests": "guides/slow-or-rejected",
    "client-go 429 too many requests": "guides/throttled-client",
    "the server has received too many requests and has asked us to try again later": "guides/slow-or-rejected",
    "client-side throttling, not priority and fairness": "guides/throttled-client",
    "liveness probe 429": "guides/slow-or-rejected",
    "health-for-strangers": "field-notes/kubernetes-docs-health-checks",
    "system:unauthenticated livez 429": "guides/slow-or-rejected",
    "priority level borrowing": "concepts/borrowing",
    "lendablePercent borrowingLimitPercent": "concepts/borrowing",
    "apiserver_flowcontrol_rejected_requests_total": "rules/APF801",
    "migrate v1beta3 to v1": "commands/migrate",
    'no matches for kind "FlowSchema" in version "flowcontrol.apiserver.k8s.io/v1beta3"': "rules/APF701",
    "leader election lost": "guides/operator-lease",
    "failed to renew lease": "guides/operator-lease",
    "node NotReady lease": "guides/slow-or-rejected",
    "seats of a list request": "concepts/seats",
    "max-requests-inflight": "concepts/shares",
    "webhook deadlock": "guides/recursion",
    "nominalConcurrencyShares 0": "concepts/shares",
    "assuredConcurrencyShares": "rules/APF703",
    "dump_requests": "guides/slow-or-rejected",
    "argo cd out of sync": "guides/argo-cd-and-flux",
    "kyverno flowschema": "field-notes/kyverno",
    "kueue helm chart": "field-notes/kueue-chart",
    "eks audit log": "guides/read-audit-logs",
    "which flowschema matches a request": "concepts/flow-schemas",
    "X-Kubernetes-PF-FlowSchema-UID": "guides/throttled-client",
    "noisy tenant": "guides/new-tenant",
    "matchingPrecedence": "concepts/flow-schemas",
    "distinguisherMethod ByUser": "concepts/flows",
    "handSize queues entropy bits": "rules/APF306",
    "shuffle sharding": "concepts/shuffle-sharding",
    "prometheus alerts": "commands/alerts",
    "grafana dashboard": "commands/dashboard",
    "catch-all 429": "guides/slow-or-rejected",
    "kubernetes upgrade": "guides/upgrade",
    "controller crash loop list": "guides/overloads",
    "audit log top users": "guides/read-audit-logs",
    "default flowschemas": "commands/defaults",
    "autoupdate-spec": "guides/argo-cd-and-flux",
    "MISSINGPL true": "rules/APF401",
    "gke openshift": "guides/platforms",
    "kubectl get flowschemas forbidden": "guides/running-cluster",
    "request_concurrency_limit": "reference/metrics",
    "504 timeout": "guides/slow-or-rejected",
    "system:masters exempt": "concepts/priority-levels",
    "disable priority and fairness": "guides/running-cluster",
    "PodDisruptionBudget eviction 429": "guides/slow-or-rejected",
    "subjectaccessreviews aggregated api server": "guides/recursion",
    "etcd slow": "reference/causes",
    "audit policy level metadata": "guides/read-audit-logs",
    "oc adm node-logs": "guides/read-audit-logs",
    "user agent flowschema": "concepts/flow-schemas",
    "goaway-chance": "reference/causes",
    "list seats watch cache": "concepts/seats",
    "clusterScope all namespaces": "concepts/flow-schemas",
    "queue-full time-out concurrency-limit": "guides/throttled-client",
}
"""Page that answers each question."""

needs_zensical = pytest.mark.skipif(
    find_spec("zensical") is None, reason="Zensical is not installed: pip install -r requirements/dev.txt"
)


class SearchBox:
    """The search box of the site, in a browser."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.results = page.locator("a[href*='?h=']:visible")
        page.goto(url)
        page.locator("label[for=__search]:visible, .md-search__button:visible").first.click()

    def find(self, question: str) -> str:
        """Type a question into the empty box, and return the name of the page of the first result."""
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")
        self.results.first.wait_for(state="hidden")
        self.page.keyboard.insert_text(question)
        address = self.results.first.get_attribute("href") or ""
        return address.partition("?")[0].removeprefix(self.url).strip("/")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launch_chromium()


def test_there_are_questions_about_each_part_of_the_site() -> None:
    assert len(QUESTIONS) >= 40
    parts = {page.partition("/")[0] for page in QUESTIONS.values()}
    assert {"concepts", "commands", "guides", "reference", "rules"} <= parts


@needs_zensical
@pytest.mark.slow
def test_first_result_is_the_page_that_answers(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server(build_once(tmp_path_factory))
    box = SearchBox(browser.new_page(), server.url)
    found = {question: box.find(question) for question in QUESTIONS}
    server.close()
    assert found == QUESTIONS
