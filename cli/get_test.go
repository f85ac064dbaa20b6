package cli_test

import (
	"strings"
	"testing"
)

func TestGetOfAWorkloadInAllNamespacesIsAnError(t *testing.T) {
	_, output, code := discovery.run(t, "get", "deployment/web", "-A")
	if code != 1 || !strings.Contains(output, "-A lists the releases of all namespaces: leave it or deployment/web out") {
		t.Errorf("code %d: %s", code, output)
	}
}

func TestAnEmptyAnswerOfGetNamesWhereItLooked(t *testing.T) {
	const change = "app.ops.cloud.alipay.com/v1alpha1"
	const none = "No releases found"
	s := discovery.with("/apis/"+change+"/namespaces/shop/changeworkloads", listOf(change, "ChangeWorkload", "")).
		with("/apis/"+change+"/namespaces/shop/changepods", listOf(change, "ChangePod", "")).
		with("/apis/"+change+"/changeworkloads", listOf(change, "ChangeWorkload", "")).
		with("/api/v1/namespaces/shop", `{"metadata":{"name":"shop"}}`).
		with(deploymentPath+"/web", deployment())
	for command, want := range map[string]string{
		"get":                none + " in namespace shop; -A lists all namespaces. `kubectl breakwater explain KIND/NAME -n shop",
		"get -A":             none + ". `kubectl breakwater explain KIND/NAME -n NAMESPACE",
		"get deployment/web": none + ". `kubectl breakwater explain deployment/web -n shop",
	} {
		if _, output, code := s.run(t, strings.Fields(command)...); code != 0 || !strings.HasPrefix(output, want) {
			t.Errorf("%s: code %d: %swant %s", command, code, output, want)
		}
	}
}
