//go:build controlplane

package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// The policies compare each label and annotation of a workload before and after a hold.
func TestTheMetadataOfAWorkloadPreventsNoHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	useRollouts(t)
	metadata := func(n int, field string) string { return `{"metadata":{"` + field + `":{` + entries(n) + `}}}` }
	for _, manifest := range []string{marked, strings.Replace(marked, "apps/v1, kind: Deployment", "argoproj.io/v1alpha1, kind: Rollout", 1)} {
		kubectl(t, manifest, "create", "-n", f.namespace, "-f", "-")
	}
	for _, field := range []string{"labels", "annotations"} {
		const limit = ": at most 1000 are allowed"
		tooMany := strings.Replace(marked, field+": {team: a}", field+": {"+entries(1001)+"}", 1)
		impersonation.ExpectBy(t, attacker, limit, tooMany, "create", "-n", f.namespace, "-f", "-")
		impersonation.ExpectBy(t, attacker, limit, "", "patch", "-n", f.namespace, "deployment/marked", "--type", "merge", "-p", metadata(1001, field))
		for _, workload := range []string{"deployment/marked", "rollouts.argoproj.io/marked"} {
			kubectl(t, "", "patch", "-n", f.namespace, workload, "--type", "merge", "-p", metadata(990, field))
		}
	}
	for _, workload := range []string{"deployment/marked", "rollouts.argoproj.io/marked"} {
		impersonation.Expect(t, "controller", "", "patch", "-n", f.namespace, workload, "--type", "merge", "-p",
			`{"metadata":{"labels":{"altershield.defense.antgroup.com/suspend":"1"}},"spec":{"paused":true}}`)
	}
}

// A rollback deletes pods that are not Ready. The number of labels of pods is not limited, but the controller labels none
// with more than 1000.
func TestTheLabelsOfAPodDoNotPreventItsDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubectl(t, controllerWorkloads, "apply", "-n", f.namespace, "-f", "-")
	kubectl(t, "", "wait", "-n", f.namespace, "--for=create", "--timeout=60s", "pod/set-0")
	kubectl(t, `{"metadata":{"managedFields":[{}],"labels":{`+entries(120_000)+`}}}`, "patch", "-n", f.namespace, "pod/set-0", "--type", "merge", "--patch-file", "/dev/stdin")
	impersonation.Expect(t, "controller", "at most 1000 labels", "patch", "-n", f.namespace, "pod", "set-0", "--type", "merge", "-p",
		`{"metadata":{"labels":{"altershield.defense.antgroup.com/operate-finished":"true"}}}`)
	impersonation.Expect(t, "controller", "", "delete", "-n", f.namespace, "pod", "set-0")
}

// entries returns n entries of a map in JSON, at most 138,000. Each has a key of three bytes and an empty value. No key is app,
// a label of the pods.
func entries(n int) string {
	const characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"%c%c%c":""`, characters[i/62/62], characters[i/62%62], characters[i%62])
	}
	return strings.Join(all, ",")
}
