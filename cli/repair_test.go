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
