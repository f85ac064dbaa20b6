package cli_test

import (
	"strings"
	"testing"
)

const suspendedDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop",
	"labels":{"altershield.defense.antgroup.com/suspend":"1700000000"}},"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`

func TestRepairAndRetryChangeOnlyWhatTheyCanRelease(t *testing.T) {
	const repair, retry = "repair deployment/web --image web=web:2", "retry deployment/web"
	running := strings.Replace(suspendedDeployment, "/suspend", "/other", 1)
	namespace := func(label string) string {
		return `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"admission-webhook-altershield":"` + label + `"}}}`
	}
	for name, tc := range map[string]struct {
		command, deployment, namespace string
		requests                       int
		output                         string
		code                           int
	}{
		"repair":                                         {repair, suspendedDeployment, namespace("enabled"), 1, "deployment/web changed, and no release has begun yet: `kubectl breakwater explain deployment/web", 0},
		"repair, frozen without a value":                 {repair, strings.Replace(suspendedDeployment, "1700000000", "", 1), namespace("enabled"), 1, "deployment/web changed", 0},
		"repair, not suspended":                          {repair, running, namespace("enabled"), 0, "the workload is not suspended, so it needs no repair", 1},
		"repair, not opted in":                           {repair, suspendedDeployment, namespace("true"), 0, `deployment/web was not changed, because no release would begin: namespace shop has no label`, 1},
		"retry, not suspended":                           {retry, running, namespace("enabled"), 1, "deployment/web changed", 0},
		"retry, not opted in":                            {retry, running, namespace("true"), 0, "deployment/web was not changed, because no release would begin: namespace shop has no label", 1},
		"retry, without the right to read the namespace": {retry, running, failure("Forbidden", 403), 1, "deployment/web changed", 0},
	} {
		server := discovery.with(deploymentPath+"/web", tc.deployment).with("/api/v1/namespaces/shop", tc.namespace)
		requests, output, code := server.run(t, strings.Fields(tc.command)...)
		if len(requests) != tc.requests || !strings.Contains(output, tc.output) || code != tc.code {
			t.Errorf("%s: code %d, %q, %d requests, want %+v", name, code, output, len(requests), tc)
		}
	}
}

func TestAnotherRepairIsAllowedOnlyIfItsChangeIsValid(t *testing.T) {
	const unchanged = "error: the change leaves the pod template of deployment/web as it is"
	server := discovery.with(deploymentPath+"/web", suspendedDeployment)
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
		with(group+"/namespaces/shop/services/web", `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"name":"web","namespace":"shop","labels":{"altershield.defense.antgroup.com/suspend":"1700000000"}},
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
