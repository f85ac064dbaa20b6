//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// samples is the folder of the manifests in the README.
const samples = "../../config/samples"

const (
	system = v1alpha1.SystemNamespace
	// templatePatch is the change of the pod template in the walkthrough of README.md.
	templatePatch = `{"spec":{"template":{"metadata":{"labels":{"test":"test"}}}}}`
)

// releaseColumns are the columns of ChangeWorkloads: those of the AlterShield Operator,
// then ours.
var releaseColumns = []string{"NAME", "STATUS", "CREATETIME", "KIND", "WORKLOAD", "REASON", "AGE"}

// walkthrough runs the commands of the walkthrough of README.md and compares their output.
// message is the message of a batch before manual changes; it differs with and
// without a server.
func walkthrough(message string) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		n := e.optedInNamespace(t)
		n.run(t, "apply", "-f", filepath.Join(samples, "sleep-first.yaml"))
		first := n.awaitPhase(t, rolloutTimeout, "sleep", v1alpha1.ReleaseSuccess)
		batch := n.batchesAsPrinted(t, first, message)
		n.failByPatch(t, first, batch)
		n.checkStdout(t, "deployment.apps/sleep labeled\n", "label", "deployment", "sleep", "team=a") // other metadata is admitted
		n.checkDenied(t, "sleep", "patch", "deployment", "sleep", "-p", templatePatch, "--type", "merge")

		n.checkStdout(t, "deployment.apps/sleep configured\n", "apply", "-f", filepath.Join(samples, "sleep.yaml"))
		n.awaitStatuses(t, "the failed release and the repair exist", map[string]string{first.Name: "Suspend", "": "Running"})
		second := n.awaitPhase(t, rolloutTimeout, "sleep", v1alpha1.ReleaseSuccess)
		n.awaitStatuses(t, "only the ChangeWorkload of the repair exists", map[string]string{second.Name: "Success"})
		n.awaitDeployment(t, shortTimeout, "sleep", "is not suspended", isNotSuspended)
		n.checkStdout(t, "deployment.apps/sleep patched\n", "patch", "deployment", "sleep", "-p", templatePatch, "--type", "merge")
	}
}

// checkStdout runs a command that must succeed with exactly this stdout.
func (n *namespace) checkStdout(t *testing.T, want string, args ...string) {
	t.Helper()
	if diff := cmp.Diff(want, n.run(t, args...)); diff != "" {
		t.Errorf("kubectl %v (-want +got):\n%s", args, diff)
	}
}

// table runs a `kubectl get` and checks the names of its columns.
func (n *namespace) table(t *testing.T, columns []string, args ...string) kubectl.Table {
	t.Helper()
	table := kubectl.ParseTable(n.run(t, args...))
	if diff := cmp.Diff(columns, table.Header); diff != "" {
		t.Errorf("the columns of kubectl %v (-want +got):\n%s", args, diff)
	}
	return table
}

// batchesAsPrinted checks the output of `kubectl get` for a completed release
// of sleep, and returns the name of its first batch.
func (n *namespace) batchesAsPrinted(t *testing.T, c *v1alpha1.ChangeWorkload, message string) string {
	t.Helper()
	d := n.deployment(t, "sleep")
	version := d.Labels[v1alpha1.VersionKey]
	if len(version) != 32 || c.Name != "sleep--x--"+version {
		t.Errorf("version label %q does not match ChangeWorkload %q", version, c.Name)
	}
	workloads := n.table(t, releaseColumns, "get", "changeworkloads")
	checkTimes(t, workloads)
	var want []map[string]string
	for i := range 5 {
		want = append(want, map[string]string{
			"NAME": c.Name + "--x--" + strconv.Itoa(i+1), "STATUS": "ExecuteDone", "MESSAGE": message,
		})
	}
	ignoreTime := cmpopts.IgnoreMapEntries(func(column, _ string) bool { return column == "CREATETIME" || column == "AGE" })
	await(t, shortTimeout, "each batch has ended", func(context.Context) error {
		pods := n.table(t, []string{"NAME", "STATUS", "MESSAGE", "CREATETIME"}, "get", "changepods")
		checkTimes(t, pods)
		if diff := cmp.Diff(want, pods.Rows, ignoreTime); diff != "" {
			return fmt.Errorf("kubectl get changepods (-want +got):\n%s", diff)
		}
		return nil
	})
	if diff := cmp.Diff([]map[string]string{
		{"NAME": c.Name, "STATUS": "Success", "KIND": "Deployment", "WORKLOAD": "sleep", "REASON": v1alpha1.ReasonAllPodsPassed},
	}, workloads.Rows, ignoreTime); diff != "" {
		t.Errorf("kubectl get changeworkloads (-want +got):\n%s", diff)
	}
	return c.Name + "--x--1"
}

func checkTimes(t *testing.T, table kubectl.Table) {
	t.Helper()
	for _, cell := range table.Column("CREATETIME") {
		if _, err := time.Parse(v1alpha1.TimeLayout, cell); err != nil {
			t.Errorf("CREATETIME: %v", err)
		}
	}
}

// failByPatch fails the pod of a batch with the command of the walkthrough, and
// checks the effects that README.md shows.
func (n *namespace) failByPatch(t *testing.T, c *v1alpha1.ChangeWorkload, batch string) {
	t.Helper()
	var p v1alpha1.ChangePod
	if err := yaml.Unmarshal([]byte(n.run(t, "get", "changepods", batch, "-o", "yaml")), &p); err != nil {
		t.Fatal(err)
	}
	info := p.Spec.PodInfos[0]
	if info.App != "sleep" || info.HostName != info.Pod || info.Namespace != n.name || info.WorkSpace != n.name || info.IP == "" {
		t.Errorf("spec.podInfos of %s is %+v", batch, info)
	}
	patch := fmt.Sprintf(`{"status":{"podResults":[{"app":"sleep","hostName":%[1]q,"ip":%[2]q,"namespace":%[3]q,"pod":%[1]q,`+
		`"workSpace":%[3]q,"verdict":"unpass","message":"find error"}], "message": "PostFinish"}}`, info.Pod, info.IP, n.name)
	began := time.Now()
	n.checkStdout(t, "changepod.app.ops.cloud.alipay.com/"+batch+" patched\n",
		"patch", "changepod", "--subresource=status", batch, "--type", "merge", "-p", patch)

	n.awaitStatuses(t, "the release is suspended", map[string]string{c.Name: "Suspend"})
	await(t, shortTimeout, "the message of the batch is PostFinish", func(context.Context) error {
		for _, row := range n.table(t, []string{"NAME", "STATUS", "MESSAGE", "CREATETIME"}, "get", "changepods").Rows {
			if row["NAME"] == batch && (row["STATUS"] != "ExecuteDone" || row["MESSAGE"] != "PostFinish") {
				return fmt.Errorf("%v", row)
			}
		}
		return nil
	})
	n.failedPodsAsPrinted(t, v1alpha1.PodSummary{
		App: "sleep", HostName: info.Pod, IP: info.IP, Namespace: n.name, Pod: info.Pod, WorkSpace: n.name,
		Verdict: "unpass", Message: "find error",
	})
	d := n.awaitDeployment(t, shortTimeout, "sleep", "is suspended", isSuspended)
	if got := d.Labels[v1alpha1.DefenseStatusLabel]; got != "processed" {
		t.Errorf("label %s is %q, want processed", v1alpha1.DefenseStatusLabel, got)
	}
	checkSuspendTime(t, d, began)
}

// failedPodsAsPrinted checks .status.defenseCheckFailPods of the only
// ChangeWorkload.
func (n *namespace) failedPodsAsPrinted(t *testing.T, want ...v1alpha1.PodSummary) {
	t.Helper()
	var list v1alpha1.ChangeWorkloadList
	if err := yaml.Unmarshal([]byte(n.run(t, "get", "changeworkloads", "-o", "yaml")), &list); err != nil {
		t.Fatal(err)
	}
	ignoreUID := cmpopts.IgnoreFields(v1alpha1.PodSummary{}, "UID")
	if len(list.Items) != 1 {
		t.Fatalf("%d ChangeWorkloads, want 1", len(list.Items))
	}
	if diff := cmp.Diff(want, list.Items[0].Status.DefenseCheckFailPods, ignoreUID); diff != "" {
		t.Errorf(".status.defenseCheckFailPods (-want +got):\n%s", diff)
	}
}

// checkSuspendTime checks the time in the suspend label, which has whole
// seconds.
func checkSuspendTime(t *testing.T, d *appsv1.Deployment, began time.Time) {
	t.Helper()
	seconds, err := strconv.ParseInt(d.Labels[v1alpha1.SuspendLabel], 10, 64)
	if err != nil {
		t.Errorf("label %s: %v", v1alpha1.SuspendLabel, err)
		return
	}
	if at := time.Unix(seconds, 0); at.Before(began.Add(-time.Second)) || at.After(time.Now()) {
		t.Errorf("label %s is %s, the suspension began at %s", v1alpha1.SuspendLabel, at, began)
	}
}

// awaitStatuses waits until `kubectl get changeworkloads` prints exactly these
// names and states; an empty name matches any other name.
func (n *namespace) awaitStatuses(t *testing.T, what string, want map[string]string) {
	t.Helper()
	await(t, rolloutTimeout, what, func(context.Context) error {
		rows := n.table(t, releaseColumns, "get", "changeworkloads").Rows
		got := map[string]string{}
		for _, row := range rows {
			name := row["NAME"]
			if _, named := want[name]; !named {
				name = ""
			}
			got[name] = row["STATUS"]
		}
		if len(rows) != len(want) || cmp.Diff(want, got) != "" {
			return fmt.Errorf("%v", rows)
		}
		return nil
	})
}

// defaultConfigurations are the two OpsConfigInfos of step 1 of README.md. They exist after an
// installation, and kubectl prints the columns that the README shows.
func defaultConfigurations(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	table := n.table(t, []string{"NAME", "AGE"}, "get", "opsconfiginfo", "-n", system)
	for _, name := range []string{"blocking", "branch"} {
		if !slices.Contains(table.Column("NAME"), name) {
			t.Errorf("OpsConfigInfo %s is missing:\n%v", name, table)
		}
	}
	for name, want := range map[string]v1alpha1.OpsConfigInfoSpec{
		"blocking": {Type: "isBlockingUp", Enable: true},
		"branch":   {Type: "isBranch", Enable: false, Content: "10"},
	} {
		var got v1alpha1.OpsConfigInfo
		if err := yaml.Unmarshal([]byte(n.run(t, "get", "opsconfiginfo", name, "-n", system, "-o", "yaml")), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Spec, cmpopts.IgnoreFields(v1alpha1.OpsConfigInfoSpec{}, "Remark")); diff != "" {
			t.Errorf("opsconfiginfo %s (-want +got):\n%s", name, diff)
		}
	}
}
