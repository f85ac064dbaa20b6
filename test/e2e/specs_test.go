//go:build e2e

package e2e

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/e2e/judge"
	"github.com/breakwater-dev/breakwater/test/gen"
)

// spec is one sentence of the specification and its proof.
type spec struct {
	sentence string
	test     func(*testing.T, *environment)
}

// Without a server nothing is judged, and everything else works.
func TestWithoutAServer(t *testing.T) {
	e := newEnvironment(t)
	runSequentially(t, e, []spec{
		{"a namespace that is not opted in is never touched, and its requests never reach the webhook", notOptedIn},
		{"a change of isBlockingUp counts within 2 s, and does not resume what is held", blockingSwitch},
		{"a repair needs the right to bypass where it is asked for", bypassPermission},
		{"a kind of workload is guarded from when it is named until it is not", configuredKind},
	})
	runInParallel(t, e, []spec{
		{"the two configurations of the original are there", defaultConfigurations},
		{"what people type works as it stands", walkthrough("PreFailed")},
		{"opting a namespace in judges nothing that runs", optIn},
		{"a template that is applied again is a new attempt", templateAppliedAgain},
		{"the pod template is never changed", unchangedTemplate},
		{"a fact that is written between the reconciler's read and its write survives", concurrentFact},
		{"scaling, other metadata and deletion of a suspended Deployment pass", admittedWhileSuspended},
		{"a suspended StatefulSet is guarded like a Deployment", suspensionOfKind(statefulSets())},
		{"a suspended DaemonSet is guarded like a Deployment", suspensionOfKind(daemonSets())},
		{"releases of a suspended Deployment, and the end of its suspension, are refused", deniedWhileSuspended},
		{"a held roll-out cannot be resumed by hand", heldRollout},
		{"deleting the pod that failed does not end the suspension, an explicit pass does", deletedFailedPod},
		{"a suspension is repaired once", secondRepair},
		{"the way back to a version that succeeded is admitted", rollbackAdmitted},
		{"a Deployment without labels is guarded", unusualDeployment(unlabeledDeployment())},
		{"a huge Deployment is guarded", unusualDeployment(hugeDeployment())},
		{"a Deployment whose name has 253 characters is guarded", unusualDeployment(gen.Deployment(longName(), 2, gen.Simulated))},
		{"a dry run leaves no trace", dryRun},
		{"a server-side apply owns its fields and not ours", serverSideApply},
		{"a client-side apply sees no drift", clientSideApply},
		{"what only the webhook writes cannot be written by hand", tampering},
		{"a configuration that is wrong is refused with the name of the field", invalidConfiguration},
		{"what a release, a batch and a release check are about never changes", immutableFields},
	})
}

// With a server every pod is judged.
func TestWithAServer(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runSequentially(t, e, []spec{
		{"the functions start from zero and go back to zero", fromZeroAndBack},
	})
	runInParallel(t, e, []spec{
		{"what people type works as it stands", walkthrough("PostFinish")},
		{"a release whose pods pass is a Success and leaves its ChangeWorkload and ChangePods", passingRelease},
		{"a release one of whose pods fails is stopped, and goes on when it is repaired", failingRelease},
		{"a fail before the change of a batch counts as a fail", failInStagePre},
		{"a batch that nobody judged passes, and says so", unjudgedBatches},
		{"a verdict that comes before the server's answer counts", earlyVerdict},
		{"a verdict that comes again or for an unknown node changes nothing", repeatedVerdict},
		{"a verdict counts as a CloudEvent in binary mode", verdictAsCloudEvent("binary")},
		{"a verdict counts as a CloudEvent in structured mode", verdictAsCloudEvent("structured")},
		{"a verdict counts as a CloudEvent in batched mode", verdictAsCloudEvent("batched")},
		{"a verdict that is not signed well is refused with 401 and changes nothing", forgedVerdict},
		{"kubectl rollout undo to a version that succeeded is admitted", rolloutUndo},
	})
}

// The order as a whole, batches, and what nobody judged.
func TestTheOrder(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runInParallel(t, e, []spec{
		{"the order is opened, started, finished and closed, each once", closedOrder},
		{"a fail of the order before the change holds the release until a person says pass", orderFailInPre},
		{"a fail of the order after the change holds the release, and a way back rolls it back", orderFailInPost},
		{"the order of a release that is replaced is cancelled", supersededOrder},
		{"a release that is scaled while it runs is a Success, and a pod that is replaced is judged anew", scaledRelease},
		{"a release that an autoscaler scales while it runs is a Success", autoscaledRelease},
	})
	runSequentially(t, e, []spec{
		{"what nobody judged follows the policy of its stage", noVerdictPerStage},
		{"a verdict that never comes ends by the policy, and says so", verdictTimeout},
		{"batches are a per cent of the replicas, and what is left over is judged", percentageBatches},
		{"releases go on without a person when the server is back", serverUnreachable},
	})
}

// When parts die or are away, a release ends later, and right.
func TestThroughFailures(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runSequentially(t, e, []spec{
		{"a release ends right when the channel dies twice, once with a fail on its way", lostEvents},
		{"a release ends right when the controller is killed", killedPart(component("controller"))},
		{"a release ends right when the webhook is killed", killedPart(component("webhook"))},
		{"a release ends right when submit is killed", killedPart(function("submit"))},
		{"a release ends right when verdict is killed", killedPart(function("verdict"))},
		{"a release ends right when report is killed", killedPart(function("report"))},
		{"a release ends right when callback is killed", killedPart(function("callback"))},
		{"a verdict that comes while the Broker is down is applied", verdictDuringOutage(nil, stopBroker)},
		{"a verdict that comes while verdict is down, and deadletter is killed, is applied", verdictDuringOutage(killDeadletter, removeVerdictFunction)},
		{"a verdict that comes while Broker and verdict are down is applied", verdictDuringOutage(nil, stopBroker, removeVerdictFunction)},
		{"while the webhook is away only releases of what is suspended wait for it", webhookUnreachable},
	})
	e.awaitFunctions(t)
	for _, name := range []string{"controller", "webhook"} {
		e.awaitDeployed(t, system, name)
	}
}

// configure has Breakwater ask the double for the time of the test.
func configure(t *testing.T, e *environment) {
	t.Helper()
	began := time.Now()
	if err := judge.Install(t.Context(), e.kube, os.Stderr); err != nil {
		t.Fatal(err)
	}
	t.Logf("the double was installed in %s", time.Since(began).Round(time.Second))
	if err := e.judge.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := judge.Unconfigure(ctx, e.kube); err != nil {
			t.Errorf("leave the cluster without a server: %v", err)
		}
	})
	if err := judge.Configure(t.Context(), e.kube); err != nil {
		t.Fatal(err)
	}
}

// runSequentially is for tests that others would disturb, or that disturb others.
func runSequentially(t *testing.T, e *environment, specs []spec) {
	for _, s := range specs {
		t.Run(s.sentence, func(t *testing.T) { s.test(t, e) })
	}
}

// runInParallel returns when all of them are over.
func runInParallel(t *testing.T, e *environment, specs []spec) {
	t.Run("side by side", func(t *testing.T) {
		for _, s := range specs {
			t.Run(s.sentence, func(t *testing.T) {
				t.Parallel()
				s.test(t, e)
			})
		}
	})
}
