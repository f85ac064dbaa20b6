package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestStatusSaysWhatIsWrongWithTheObject(t *testing.T) {
	s := discovery.with("/apis/apps/v1", `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
			{"name":"deployments","namespaced":true,"kind":"Deployment"},{"name":"replicasets","namespaced":true,"kind":"ReplicaSet"}]}`).
		with(deploymentPath+"/web", deployment("A")).
		with("/api/v1/namespaces/shop", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`).
		with("/apis/apps/v1/namespaces/shop/replicasets/web-1", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"shop",
			"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]},"spec":{"template":{}}}`).
		with(deploymentPath+"/shop-1-deployment", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop-1-deployment","namespace":"shop",
			"labels":{"serving.knative.dev/service":"shop","serving.knative.dev/serviceUID":"s"},
			"ownerReferences":[{"apiVersion":"serving.knative.dev/v1","kind":"Revision","name":"shop-1","uid":"r","controller":true}]},"spec":{"template":{}}}`).
		with("/apis/apps/v1/namespaces/shop/replicasets/shop-1-deployment-1", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"shop-1-deployment-1",
			"namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"shop-1-deployment","uid":"u","controller":true}]},"spec":{"template":{}}}`)
	for name, tc := range map[string]struct {
		server apiServer
		object string
		want   string
	}{
		"a name without its kind":           {s, "api", `"api" is not the name of an object: write KIND/NAME, for example deployment/api`},
		"a kind without a name":             {s, "deployment/", `write KIND/NAME, for example deployment/web`},
		"a kind in the plural":              {s, "deployments/api", `deployments "api" is not in namespace shop: select another one with -n`},
		"a kind with a capital":             {s, "Deployment/api", `Deployment "api" is not in namespace shop`},
		"a ReplicaSet of a workload":        {s, "replicaset/web-1", "is a part of deployment/web: write deployment/web\n"},
		"a ReplicaSet of a Knative Service": {s, "replicaset/shop-1-deployment-1", "is a part of ksvc/shop: write ksvc/shop\n"},
		"a Deployment of a Knative Service": {s, "deployment/shop-1-deployment", "is a part of ksvc/shop: write ksvc/shop\n"},
		"Breakwater is not installed":       {s, "deployment/web", "part change is not installed in the cluster: select another cluster with --context, or install it"},
		"a missing right": {s.with(deploymentPath+"/web", failure("Forbidden", http.StatusForbidden)), "deployment/web",
			"select another namespace with -n, or let a cluster admin give you role view: kubectl create rolebinding view-USER -n shop --clusterrole=view --user=USER --kubeconfig /dev/null --server http://127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, output, code := tc.server.run(t, "status", tc.object, "--timeout", "3s"); code != 1 || !strings.Contains(output, tc.want) {
				t.Errorf("code %d: %swant %s", code, output, tc.want)
			}
		})
	}
}

func TestEachCommandSaysWhichRoleHasTheRightToRead(t *testing.T) {
	const change, advice = "/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/shop/", "let a cluster admin give you role view: "
	const releases, batches, revisions = change + "changeworkloads", change + "changepods", "/apis/apps/v1/namespaces/shop/controllerrevisions"
	const none = `{"items":[]}`
	s := discovery.with("/api/v1", `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"secrets","namespaced":true,"kind":"Secret"}]}`).
		with(deploymentPath+"/web", deployment("A")).
		with("/api/v1/namespaces/shop", `{"metadata":{"name":"shop","labels":{"admission-webhook-altershield":"enabled"}}}`).
		with("/api/v1/namespaces/shop/events", none).with(releases, none).with(batches, none).with(revisions, none)
	for _, tc := range []struct {
		command, path string
		advised       int
	}{
		{"get", releases, 1},
		{"get -w", batches, 1},
		{"get deployment/web", batches, 1},
		{"tree", releases, 1},
		{"status deployment/web", "/api/v1/namespaces/shop", 1},
		{"status deployment/web", releases, 1},
		{"explain deployment/web", deploymentPath + "/web", 1},
		{"explain deployment/web", revisions, 1},
		{"rollback deployment/web", releases, 1},
		{"rollback deployment/web", revisions, 1},
		{"budgets", "/apis/policy.kruise.io/v1alpha1/namespaces/shop/podunavailablebudgets", 1},
		{"permissions", "/api/v1/namespaces/shop/pods", 1},
		{"deadletters", "/api/v1/namespaces/shop/events", 1},
		{"deadletters", releases, 1},
		{"deadletters", batches, 1},
		{"explain poddeletionflowcontrol/all", "/apis/policy.kruise.io/v1alpha1/poddeletionflowcontrols/all", 0}, // in no namespace
		{"simulate delete secret/x", "/api/v1/namespaces/shop/secrets/x", 0},                                     // role view has no Secrets
	} {
		_, output, code := s.with(tc.path, failure("Forbidden", http.StatusForbidden)).run(t, strings.Fields(tc.command)...)
		if code != 1 || strings.Count(output, advice) != tc.advised {
			t.Errorf("%s without the right to read %s: code %d: %s", tc.command, tc.path, code, output)
		}
	}
}
