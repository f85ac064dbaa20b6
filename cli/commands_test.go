package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

// listOf is a list of objects of a kind.
func listOf(apiVersion, kind, items string) string {
	return `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `List","items":[` + items + `]}`
}

// People paste a printed command, and the current context may be another cluster.
func TestCommandsInAnswersSelectTheCluster(t *testing.T) {
	const change = "app.ops.cloud.alipay.com/v1alpha1"
	const releases = "/apis/" + change + "/namespaces/shop/"
	s := discovery.with(releases+"changeworkloads", listOf(change, "ChangeWorkload", "")).
		with(deploymentPath+"/web", deployment()).
		with("/api/v1/namespaces/shop", `{"metadata":{"name":"shop"}}`).
		with(releases+"changepods", listOf(change, "ChangePod", "")).
		with("/apis/"+change+"/changeworkloads", listOf(change, "ChangeWorkload", "")).
		with("/api/v1/namespaces/shop/events", listOf("v1", "Event", `{"metadata":{"name":"report","namespace":"shop","annotations":{"app.ops.cloud.alipay.com/cloudevent":"{}"}},
			"involvedObject":{"kind":"ChangeWorkload","namespace":"shop"},"reason":"EventUndelivered"}`)).
		with("/version", `{"gitVersion":"v1.35.0"}`).
		with("/api/v1/namespaces/altershieldoperator-system/events", listOf("v1", "Event", "")).
		with("/api/v1/namespaces/altershieldoperator-system/configmaps/config-altershield", `{"data":{"base_url":"x"}}`).
		with("/apis/apps/v1/namespaces/altershieldoperator-system/deployments", listOf("apps/v1", "Deployment", "")).
		with("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", listOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", "")).
		with("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", listOf("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "")).
		with("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", listOf("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", `{"metadata":{"name":"breakwater"}}`))
	printed := regexp.MustCompile("kubectl [^`\n]*")
	for command, want := range map[string][]string{
		"get":                         {"kubectl breakwater explain KIND/NAME -n shop"},
		"get -A":                      {"kubectl breakwater explain KIND/NAME -n NAMESPACE"},
		"get deployment/web":          {"kubectl breakwater explain deployment/web -n shop"},
		"approve deployment/web -m x": {"kubectl breakwater explain deployment/web -n shop"},
		"status deployment/web":       {"kubectl breakwater explain deployment/web -n shop"},
		"status gadget/web":           {"kubectl api-resources"},
		"deadletters":                 {"kubectl breakwater deadletters replay report -n shop"},
		"deadletters replay other":    {"kubectl breakwater deadletters -n shop"},
		"doctor": {"kubectl -n altershieldoperator-system get deployments,pods",
			"kubectl -n altershieldoperator-system get broker,trigger,ksvc,opsconfiginfo -o wide",
			"kubectl -n altershieldoperator-system edit configmap config-altershield"},
	} {
		_, output, _ := s.run(t, strings.Fields(command)...)
		got := printed.FindAllString(output, -1)
		if len(got) != len(want) {
			t.Errorf("%s: %s", command, output)
			continue
		}
		for i, w := range want {
			if !strings.HasPrefix(got[i], w+" --kubeconfig /dev/null --server http://127.0.0.1:") {
				t.Errorf("%s: printed %q, want %s and the flags that select the cluster", command, got[i], w)
			}
		}
	}
}

func TestPermissionsListsAllPagesOfPods(t *testing.T) {
	const path = "/api/v1/namespaces/shop/pods"
	pod := func(name string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"shop"},"status":{"conditions":[{"type":"stke.io/Authorized","status":"True","reason":"PermissionGranted"}]}}`
	}
	_, output, _ := discovery.with(path, strings.Replace(listOf("v1", "Pod", pod("web-0")), `"items"`, `"metadata":{"continue":"next"},"items"`, 1)).
		with(path+"?continue=next", listOf("v1", "Pod", pod("web-1"))).run(t, "permissions", "-o", "name")
	if output != "pod/web-0\npod/web-1\n" {
		t.Errorf("printed %q", output)
	}
}

func TestTextsOfOthersStayOnTheirLineAndHaveNoControlCharacters(t *testing.T) {
	pods := listOf("v1", "Pod", `{"metadata":{"name":"web-0","namespace":"shop"},
		"status":{"conditions":[{"type":"stke.io/Authorized","status":"False","reason":"Denied\u001b[2J","message":"no\nshop   web-1   Granted"}]}}`)
	_, output, _ := discovery.with("/api/v1/namespaces/shop/pods", pods).run(t, "permissions")
	if lines := strings.Split(output, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "shop        web-0   Denied�[2J") || !strings.HasSuffix(lines[1], "   no shop web-1 Granted") {
		t.Errorf("printed\n%q", output)
	}
	_, output, _ = discovery.with("/api/v1/namespaces/shop/pods", `{"kind":"Status","status":"Failure","code":500,"message":"first\nsecond\u001b[2J"}`).run(t, "permissions")
	if output != "error: list the pods: first\nsecond�[2J\n" {
		t.Errorf("printed %q", output)
	}
}
