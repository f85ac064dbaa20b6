package cli_test

import (
	"strings"
	"testing"
)

func TestAnotherRepairIsAllowedOnlyIfItsChangeIsValid(t *testing.T) {
	const unchanged = "error: the change leaves the pod template of deployment/web as it is"
	server := discovery.with(deploymentPath+"/web", strings.Replace(deployment(), `"name":"web"}]`, `"name":"web","image":"web:1"}]`, 1))
	for flag, want := range map[string]struct {
		requests int // one allows the repair, one releases it
		output   string
		code     int
	}{
		"--image=web=web:2":                               {2, "deployment/web changed", 0},
		"--image=typo=web:2":                              {0, "the pod template has no container typo", 1},
		"--image=web=web:1":                               {0, unchanged, 1},
		"--patch=null":                                    {0, unchanged, 1},
		`--patch={"spec":{}}`:                             {0, unchanged, 1},
		`--patch={"metadata":{"labels":{"a":"b"}}}`:       {0, unchanged, 1},
		`--patch={"spec":{"replicas":3}}`:                 {0, unchanged, 1},
		`--patch={"spec":{"template":{"metadata":null}}}`: {0, unchanged, 1},
		"--patch={":                                       {0, "read --patch", 1},
	} {
		requests, output, code := server.run(t, "repair", "deployment/web", "--again", flag)
		if len(requests) != want.requests || !strings.Contains(output, want.output) || code != want.code {
			t.Errorf("%s: code %d, %q, requests %v, want %+v", flag, code, output, requests, want)
		}
	}
}

// The name of a Revision and its scale are no part of a release.
func TestAnotherRepairOfAKnativeServiceIsAllowedOnlyIfItReleases(t *testing.T) {
	const group, name = "/apis/serving.knative.dev/v1", "services.serving.knative.dev/web"
	const unchanged = "error: the change leaves the pod template of " + name + " as it is, except for its name or scale"
	server := discovery.with("/apis", `{"kind":"APIGroupList","groups":[{"name":"serving.knative.dev","versions":[{"groupVersion":"serving.knative.dev/v1","version":"v1"}]}]}`).
		with(group, `{"kind":"APIResourceList","groupVersion":"serving.knative.dev/v1","resources":[{"name":"services","namespaced":true,"kind":"Service","shortNames":["ksvc"]}]}`).
		with(group+"/namespaces/shop/services/web", `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},
			"spec":{"template":{"metadata":{"name":"web-1"},"spec":{"containers":[{"image":"web:1"}]}}}}`)
	for template, want := range map[string]struct {
		requests int // one allows the repair, one releases it
		output   string
		code     int
	}{
		`{"metadata":{"annotations":{"autoscaling.knative.dev/min-scale":"2"}}}`: {0, unchanged, 1},
		`{"metadata":{"name":"web-2"}}`:                                          {0, unchanged, 1},
		`{"spec":{"containers":[{"image":"web:2"}]}}`:                            {2, name + " changed", 0},
		`{"spec":{"containerConcurrency":3}}`:                                    {2, name + " changed", 0},
		`5`:                                                                      {0, "error: apply the merge patch to " + name + ": decode template", 1},
	} {
		requests, output, code := server.run(t, "repair", "ksvc/web", "--again", `--patch={"spec":{"template":`+template+`}}`)
		if len(requests) != want.requests || !strings.Contains(output, want.output) || code != want.code {
			t.Errorf("%s: code %d, %q, requests %v, want %+v", template, code, output, requests, want)
		}
	}
}
