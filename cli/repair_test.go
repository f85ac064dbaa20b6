package cli_test

import (
	"strings"
	"testing"
)

func TestAnotherRepairIsAllowedOnlyIfItsChangeIsValid(t *testing.T) {
	server := discovery.with(deploymentPath+"/web", deployment("A"))
	for flag, want := range map[string]struct {
		requests int // one allows the repair, one releases it
		output   string
		code     int
	}{
		"--image=web=web:2":  {2, "deployment/web changed", 0},
		"--image=typo=web:2": {0, "the pod template has no container typo", 1},
		"--patch=null":       {0, "--patch is empty", 1},
		"--patch={":          {0, "read --patch", 1},
	} {
		requests, output, code := server.run(t, "repair", "deployment/web", "--again", flag)
		if len(requests) != want.requests || !strings.Contains(output, want.output) || code != want.code {
			t.Errorf("%s: code %d, %q, requests %v, want %+v", flag, code, output, requests, want)
		}
	}
}
