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
			"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"u","controller":true}]},"spec":{"template":{}}}`)
	for name, tc := range map[string]struct {
		server apiServer
		object string
		want   string
	}{
		"a name without its kind":     {s, "web", `"web" is not the name of an object: write KIND/NAME, for example deployment/web`},
		"a kind without a name":       {s, "deployment/", `write KIND/NAME, for example deployment/web`},
		"a kind in the plural":        {s, "deployments/api", `deployments "api" is not in namespace shop: select another one with -n`},
		"a kind with a capital":       {s, "Deployment/api", `Deployment "api" is not in namespace shop`},
		"a ReplicaSet of a workload":  {s, "replicaset/web-1", "replicaset/web-1 is a part of deployment/web: name that"},
		"Breakwater is not installed": {s, "deployment/web", "part change is not installed in the cluster: select another cluster with --context, or install it"},
		"a missing right": {s.with(deploymentPath+"/web", failure("Forbidden", http.StatusForbidden)), "deployment/web",
			"kubectl create rolebinding viewers -n shop --clusterrole=view --user=USER --kubeconfig /dev/null --server http://127.0.0.1:"},
		"a missing right to list releases": {s.with("/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/shop/changeworkloads", failure("Forbidden", http.StatusForbidden)), "deployment/web",
			"kubectl create rolebinding viewers -n shop --clusterrole=view --user=USER --kubeconfig /dev/null --server http://127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, output, code := tc.server.run(t, "status", tc.object, "--timeout", "0"); code != 1 || !strings.Contains(output, tc.want) {
				t.Errorf("code %d: %swant %s", code, output, tc.want)
			}
		})
	}
}
