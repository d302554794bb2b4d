"""Python's client through its usual calls, one line of output for each.

Called with a kubeconfig. What differs from server to server (uids, times, versions, chosen names) is not printed.
"""

import base64
import json
import sys
import threading
import time

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

NAMESPACE = "python"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "applied"}, "data": {"a": "YQ=="}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "lamps", "kind": "Lamp"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def tell(what, value):
    print(json.dumps([what, value], sort_keys=True), flush=True)


def refused(what, call, *arguments, **options):
    try:
        call(*arguments, **options)
        tell(what, "let in")
    except ApiException as error:
        status = json.loads(error.body)
        tell(what, [error.status, error.reason, status["reason"], status["message"], sorted(status)])


def eventually(call):
    for _ in range(200):
        try:
            return call()
        except (ApiException, dynamic.exceptions.ResourceNotFoundError):
            time.sleep(0.05)
    return call()


def meta(name=None, **others):
    return client.V1ObjectMeta(name=name, **others)


def secrets(core):
    seen, following = [], watch.Watch()

    def follow():
        for event in following.stream(core.list_namespaced_secret, NAMESPACE, timeout_seconds=30):
            name = event["object"].metadata.name
            seen.append([event["type"], name])
            if name == "last":
                return

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(1)
    made = core.create_namespaced_secret(
        NAMESPACE, client.V1Secret(metadata=meta("a", labels={"x": "1"}), string_data={"k": "v"})
    )
    tell("create", [made.data, made.type, made.kind, made.metadata.labels])
    refused("create again", core.create_namespaced_secret, NAMESPACE, client.V1Secret(metadata=meta("a")))
    core.patch_namespaced_secret("a", NAMESPACE, {"stringData": {"k2": "w"}})
    added = [{"op": "add", "path": "/metadata/labels/y", "value": "2"}]
    patched = core.patch_namespaced_secret("a", NAMESPACE, added)
    tell("patch", [patched.data, patched.metadata.labels])
    patched.data["k"] = base64.b64encode(b"new").decode()
    tell("replace", core.replace_namespaced_secret("a", NAMESPACE, patched).data)
    refused("conflict", core.replace_namespaced_secret, "a", NAMESPACE, patched)
    refused("missing", core.read_namespaced_secret, "none", NAMESPACE)
    wrong = client.V1Secret(metadata=meta("A_"))
    refused("invalid", core.create_namespaced_secret, NAMESPACE, wrong)
    generated = client.V1Secret(metadata=meta(generate_name="g-"))
    generated = core.create_namespaced_secret(NAMESPACE, generated).metadata.name
    core.delete_namespaced_secret(generated, NAMESPACE)
    for number in range(5):
        core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=meta(f"s{number}")))
    names, more = [], None
    while more != "":
        page = core.list_namespaced_secret(NAMESPACE, limit=2, _continue=more)
        names += [item.metadata.name for item in page.items]
        more = page.metadata._continue or ""
    tell("pages", names)
    selected = core.list_namespaced_secret(NAMESPACE, label_selector="x=1", field_selector="type=Opaque")
    tell("selected", [item.metadata.name for item in selected.items])
    core.delete_namespaced_secret("a", NAMESPACE)
    core.delete_collection_namespaced_secret(NAMESPACE)
    core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=meta("last")))
    thread.join()
    known = [[kind, "generated" if name == generated else name] for kind, name in seen]
    tell("watch of what is there no more", sorted(known[8:]))
    tell("watch", known[:8])


def others(core, api):
    resource = dynamic.DynamicClient(api).resources.get(api_version="v1", kind="Secret")
    for _ in range(2):
        applied = resource.server_side_apply(
            body=SECRET, name="applied", namespace=NAMESPACE, field_manager="python"
        )
        managers = [[entry.manager, entry.operation] for entry in applied.metadata.managedFields]
        tell("server-side apply", [applied.data.to_dict(), managers])
    utils.create_from_dict(api, DEPLOYMENT)
    web = client.AppsV1Api().read_namespaced_deployment("web", NAMESPACE)
    tell("deployment", [web.spec.replicas, web.spec.strategy.type, web.spec.template.spec.dns_policy])
    scale = client.AppsV1Api().patch_namespaced_deployment("web", NAMESPACE, {"spec": {"replicas": 3}})
    tell("scaled", scale.spec.replicas)
    utils.create_from_dict(api, DEFINITION)
    custom = client.CustomObjectsApi()
    lamps = ("example.com", "v1", NAMESPACE, "lamps")
    eventually(lambda: custom.list_namespaced_custom_object(*lamps))
    lamp = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "l"}, "spec": {"a": 1}}
    tell("custom", custom.create_namespaced_custom_object(*lamps, lamp)["spec"])
    tell("custom patch", custom.patch_namespaced_custom_object(*lamps, "l", {"spec": {"b": 2}})["spec"])
    found = eventually(
        lambda: dynamic.DynamicClient(api).resources.get(api_version="example.com/v1", kind="Lamp")
    )
    tell("dynamic", found.get(name="l", namespace=NAMESPACE).spec.to_dict())
    asked = client.V1SelfSubjectAccessReviewSpec(
        resource_attributes=client.V1ResourceAttributes(verb="get", resource="secrets")
    )
    review = client.V1SelfSubjectAccessReview(spec=asked)
    review = client.AuthorizationV1Api().create_self_subject_access_review(review)
    tell("access review", review.status.allowed)
    core.create_namespaced_service_account(NAMESPACE, client.V1ServiceAccount(metadata=meta("robot")))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
    token = core.create_namespaced_service_account_token("robot", NAMESPACE, request)
    tell("token", token.status.token.count("."))
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    tell("groups", sorted(groups & {"apps", "batch", "example.com", "rbac.authorization.k8s.io"}))


def main():
    config.load_kube_config(sys.argv[1])
    core, api = client.CoreV1Api(), client.ApiClient()
    tell("namespace", core.create_namespace(client.V1Namespace(metadata=meta(NAMESPACE))).status.phase)
    secrets(core)
    others(core, api)
    tell("gone", core.delete_namespace(NAMESPACE)["status"]["phase"])


main()
