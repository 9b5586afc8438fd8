"""The resources that Kubernetes itself serves, and the names by which kubectl's users call them.

Compiled by hand for about Kubernetes 1.36, alpha resources left out; held against the discovery documents that
kubernetes/kubernetes keeps in api/discovery/ for the core group, networking, storage, resource, certificates and
storagemigration. Not recorded from a server. Also here are resources of older releases that manifests still name (REMOVED).
"""

from __future__ import annotations

from functools import cache

from apflint.record import NamedTuple


class Resource(NamedTuple):
    """One resource. `version` is the one that servers prefer."""

    group: str
    version: str
    name: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def qualified_name(self) -> str:
        """`pods`, `deployments.apps`: as kubectl takes it."""
        return f"{self.name}.{self.group}" if self.group else self.name


# A line for a group: name and preferred version. Below it a line for each resource: name, kind, N(amespaced) or C(luster),
# short names or -, subresources. Singular names are kinds in lower case.
_TABLE = """
core v1
 bindings Binding N -
 componentstatuses ComponentStatus C cs
 configmaps ConfigMap N cm
 endpoints Endpoints N ep
 events Event N ev
 limitranges LimitRange N limits
 namespaces Namespace C ns finalize,status
 nodes Node C no proxy,status
 persistentvolumeclaims PersistentVolumeClaim N pvc status
 persistentvolumes PersistentVolume C pv status
 pods Pod N po attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status
 podtemplates PodTemplate N -
 replicationcontrollers ReplicationController N rc scale,status
 resourcequotas ResourceQuota N quota status
 secrets Secret N -
 serviceaccounts ServiceAccount N sa token
 services Service N svc proxy,status
apps v1
 controllerrevisions ControllerRevision N -
 daemonsets DaemonSet N ds status
 deployments Deployment N deploy scale,status
 replicasets ReplicaSet N rs scale,status
 statefulsets StatefulSet N sts scale,status
batch v1
 cronjobs CronJob N cj status
 jobs Job N - status
autoscaling v2
 horizontalpodautoscalers HorizontalPodAutoscaler N hpa status
networking.k8s.io v1
 ingressclasses IngressClass C -
 ingresses Ingress N ing status
 ipaddresses IPAddress C ip
 networkpolicies NetworkPolicy N netpol
 servicecidrs ServiceCIDR C - status
policy v1
 poddisruptionbudgets PodDisruptionBudget N pdb status
rbac.authorization.k8s.io v1
 clusterrolebindings ClusterRoleBinding C -
 clusterroles ClusterRole C -
 rolebindings RoleBinding N -
 roles Role N -
storage.k8s.io v1
 csidrivers CSIDriver C -
 csinodes CSINode C -
 csistoragecapacities CSIStorageCapacity N -
 storageclasses StorageClass C sc
 volumeattachments VolumeAttachment C - status
 volumeattributesclasses VolumeAttributesClass C vac
coordination.k8s.io v1
 leases Lease N -
coordination.k8s.io v1beta1
 leasecandidates LeaseCandidate N -
discovery.k8s.io v1
 endpointslices EndpointSlice N -
events.k8s.io v1
 events Event N ev
admissionregistration.k8s.io v1
 mutatingadmissionpolicies MutatingAdmissionPolicy C -
 mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding C -
 mutatingwebhookconfigurations MutatingWebhookConfiguration C -
 validatingadmissionpolicies ValidatingAdmissionPolicy C - status
 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding C -
 validatingwebhookconfigurations ValidatingWebhookConfiguration C -
apiextensions.k8s.io v1
 customresourcedefinitions CustomResourceDefinition C crd,crds status
apiregistration.k8s.io v1
 apiservices APIService C - status
authentication.k8s.io v1
 selfsubjectreviews SelfSubjectReview C -
 tokenreviews TokenReview C -
authorization.k8s.io v1
 localsubjectaccessreviews LocalSubjectAccessReview N -
 selfsubjectaccessreviews SelfSubjectAccessReview C -
 selfsubjectrulesreviews SelfSubjectRulesReview C -
 subjectaccessreviews SubjectAccessReview C -
certificates.k8s.io v1
 certificatesigningrequests CertificateSigningRequest C csr approval,status
certificates.k8s.io v1beta1
 clustertrustbundles ClusterTrustBundle C -
 podcertificaterequests PodCertificateRequest N - status
flowcontrol.apiserver.k8s.io v1
 flowschemas FlowSchema C - status
 prioritylevelconfigurations PriorityLevelConfiguration C - status
node.k8s.io v1
 runtimeclasses RuntimeClass C -
resource.k8s.io v1
 deviceclasses DeviceClass C -
 resourceclaims ResourceClaim N - status
 resourceclaimtemplates ResourceClaimTemplate N -
 resourceslices ResourceSlice C -
resource.k8s.io v1beta2
 devicetaintrules DeviceTaintRule C - status
scheduling.k8s.io v1
 priorityclasses PriorityClass C pc
storagemigration.k8s.io v1beta1
 storageversionmigrations StorageVersionMigration C - status
"""

_REMOVED = """
extensions v1beta1
 daemonsets DaemonSet N ds status
 deployments Deployment N deploy scale,status
 ingresses Ingress N ing status
 networkpolicies NetworkPolicy N netpol
 podsecuritypolicies PodSecurityPolicy C psp
 replicasets ReplicaSet N rs scale,status
policy v1beta1
 podsecuritypolicies PodSecurityPolicy C psp
"""


def _read(table: str) -> tuple[Resource, ...]:
    resources = []
    group = version = ""
    for line in table.split("\n"):
        fields = line.split()
        if line[:1] != " " and fields:
            group, version = "" if fields[0] == "core" else fields[0], fields[1]
        elif fields:
            name, kind, scope, short, *subresources = fields
            resources.append(
                Resource(
                    group,
                    version,
                    name,
                    kind.lower(),
                    kind,
                    scope == "N",
                    () if short == "-" else tuple(short.split(",")),
                    tuple(subresources[0].split(",")) if subresources else (),
                )
            )
    return tuple(resources)


RESOURCES = _read(_TABLE)
"""What a kube-apiserver serves; where a name is in several groups, the one that kubectl means by it comes first."""
REMOVED = _read(_REMOVED)
"""What older servers served under groups that are gone."""


def find_resources(text: str) -> tuple[Resource, ...]:
    """The resources that a plural, singular or short name or a kind means to kubectl, in any case; its own choice first."""
    return _by_word().get(text.lower(), ())


@cache
def _by_word() -> dict[str, tuple[Resource, ...]]:
    found: dict[str, tuple[Resource, ...]] = {}
    for resource in RESOURCES:
        for word in dict.fromkeys((resource.name, resource.singular, *resource.short_names)):
            found[word] = (*found.get(word, ()), resource)
    return found


def get_resource(name: str, group: str) -> Resource | None:
    """The resource of exactly this plural name in exactly this group; None if Kubernetes itself serves none."""
    return _by_name().get((name, group))


@cache
def _by_name() -> dict[tuple[str, str], Resource]:
    return {(resource.name, resource.group): resource for resource in reversed(RESOURCES)}
