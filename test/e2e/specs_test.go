//go:build e2e

package e2e

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// spec is one sentence of the specification and its test.
type spec struct {
	sentence string
	test     func(*testing.T, *environment)
}

// Without a server and a MetricCheck, releases are unjudged. All other functions work, for every
// kind of workload.
func TestWithoutAServer(t *testing.T) {
	e := newEnvironment(t)
	begin := metricSpecs(t, e)
	// This spec counts the requests to the webhook, so no release may begin beside it.
	runSequentially(t, e, []spec{
		{"a namespace that is not opted in is never touched, and its requests never reach the webhook", notOptedIn},
	})
	metrics := begin()
	runSequentially(t, e, []spec{
		{"a change of isBlockingUp takes effect within 2 s and resumes no rollout of a suspended workload", blockingSwitch},
		{"a repair requires the verb bypass when OpsConfigInfo bypass is Authorized", bypassNeedsTheVerb},
		{"a kind of workload is judged while config-workloads lists it", configuredKind},
	})
	withCloneSets(t, e)
	runInParallel(t, e, slices.Concat(metrics, kindSpecs(), []spec{
		{"the two default OpsConfigInfos exist", defaultConfigurations},
		{"the commands of the README work unchanged", walkthrough("PreFailed")},
		{"opting a namespace in does not judge running workloads", optIn},
		{"a template that is applied again is a new attempt", templateAppliedAgain},
		{"the pod template is never changed", unchangedTemplate},
		{"a fact written between the reconciler's read and write is kept", concurrentFact},
		{"scaling, other metadata and deletion of a suspended Deployment are admitted", admittedWhileSuspended},
		{"changes of a suspended StatefulSet are denied as for a Deployment", suspensionOfKind(statefulSets())},
		{"changes of a suspended DaemonSet are denied as for a Deployment", suspensionOfKind(daemonSets())},
		{"releases of a suspended Deployment and changes of its suspension are denied", deniedWhileSuspended},
		{"a held rollout cannot be resumed by hand", heldRollout},
		{"deleting the failed pod does not end the suspension, an explicit pass does", deletedFailedPod},
		{"one repair per suspension is admitted", secondRepair},
		{"a rollback to a version that succeeded is admitted", rollbackAdmitted},
		{"a Deployment without labels is judged, suspended and repaired", unusualDeployment(unlabeledDeployment())},
		{"a Deployment near the size limit is judged, suspended and repaired", unusualDeployment(hugeDeployment())},
		{"a Deployment whose name has 253 characters is judged, suspended and repaired", unusualDeployment(builder.Deployment(longName(), 2, builder.Simulated))},
		{"a dry run changes nothing", dryRun},
		{"a server-side apply does not own the fields of Breakwater", serverSideApply},
		{"a client-side apply sees no drift", clientSideApply},
		{"fields reserved for the webhook cannot be changed by hand", tampering},
		{"an invalid OpsConfigInfo is denied with the name of the field", invalidConfiguration},
		{"the identity of a release, a batch and a release check is immutable", immutableFields},
	}))
}

// With a server each pod is judged. The specs of these groups need no other setting, so they run at once.
func TestWithAServer(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	runInParallel(t, e, slices.Concat(orderSpecs(), []spec{
		{"a failed Revision of a Knative Service loses its traffic, and a repair succeeds", knativeServiceReleases},
		{"kubectl apply and kn service update of a Knative Service are judged, and denied while it is suspended", knativeServiceCommands},
		{"a Revision of a Knative Service gets no traffic until its first batch passed", knativeServiceJudgedBeforeTraffic},
		{"a held release sends one message, and the replay of a refused message sends it", notifications},
		{"the Broker keeps the trace of an event", tracedEvents},
		{"the commands of the README work unchanged", walkthrough("PostFinish")},
		{"a release whose pods pass succeeds and keeps its ChangeWorkload and ChangePods", passingRelease},
		{"a release with a failed pod stops, and a repair completes it", failingRelease},
		{"a fail in stage PRE counts as a fail", failInStagePre},
		{"an unjudged batch passes and is counted as unjudged", unjudgedBatches},
		{"a verdict that arrives before the response of the call counts", earlyVerdict},
		{"a repeated verdict or a verdict for an unknown order node changes nothing", repeatedVerdict},
		{"a verdict counts as a CloudEvent in binary mode", verdictAsCloudEvent},
		{"a verdict with an invalid signature is rejected with 401 and changes nothing", forgedVerdict},
		{"a forged verdict changes nothing", sentToTheBroker},
		{"a forged event is not reported to the server", reportSentToTheBroker},
		{"kubectl rollout undo to a version that succeeded is admitted", rolloutUndo},
	}, faultSpecs()))
}

func orderSpecs() []spec {
	return []spec{
		{"a release scaled by an autoscaler while it runs succeeds", autoscaledRelease},
		{"a release scaled while it runs succeeds, and a pod is judged in place of one without a verdict", scaledRelease},
		{"a fail of the order check in stage PRE holds the release until a person overrules it", orderFailInPre},
		{"a fail of the order check in stage POST holds the release, and a rollback ends it", orderFailInPost},
		{"the order is opened, started, finished and closed, each once", closedOrder},
		{"the order of a superseded release is canceled", supersededOrder},
	}
}

// Settings of the order, of batches and of unjudged releases.
func TestTheOrder(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	t.Run("with a short timeout", func(t *testing.T) {
		e.setConfig(t, v1alpha1.ConfigPostTimeout, "20s")
		runInParallel(t, e, []spec{
			{"a check without a verdict ends by the policy after its timeout", verdictTimeout},
			{"a pass that the server contradicts holds the release until a person judges it", contradictedPass},
		})
	})
	runSequentially(t, e, []spec{
		{"an unjudged check follows the policy of its stage", noVerdictPerStage},
		{"a start that the server forgot and a pass whose callback is lost cost seconds", lostByTheServer},
		{"batches are a percentage of the replicas, and leftover pods are judged", percentageBatches},
		{"releases continue by themselves when the server is reachable again", serverUnreachable},
	})
}

// When components are killed or unreachable, a release ends later and correctly.
func TestReleasesWhileComponentsAreDown(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	// Their first versions become Ready while the other specs run.
	received, byHand, unreachable := e.firstKnativeVersion(t), e.firstKnativeVersion(t), e.firstKnativeVersion(t)
	// None of these components answers the callback of another spec or admits its changes.
	runInParallel(t, e, []spec{
		{"a failed Revision of a Knative Service loses its traffic once when the controller is killed", knativeServiceWithoutController},
		{"a release ends correctly when the channel is killed twice, once before a fail arrives", lostEvents},
		{"a release ends correctly when the controller is killed", killedComponent(component("controller"))},
		{"a release ends correctly when submit is killed", killedComponent(function("submit"))},
		{"a release ends correctly when verdict is killed", killedComponent(function("verdict"))},
	})
	runSequentially(t, e, []spec{
		{"a release ends correctly when the webhook is killed", killedComponent(component("webhook"))},
		{"a release ends correctly when callback is killed", killedComponent(function("callback"))},
		{"verdicts received while the Broker is down are applied, of a Knative Service too", verdictsWithoutBroker(received, byHand)},
		{"verdicts received while function verdict is deleted are applied, also when deadletter is killed or the Broker is down", verdictsWithoutFunction},
		{"while the webhook is unreachable, releases of suspended workloads are denied, and other releases, scaling and labels are not", webhookUnreachable(unreachable)},
	})
	e.awaitFunctions(t)
	for _, name := range []string{"controller", "webhook"} {
		e.awaitDeployed(t, system, name)
	}
}

// installDouble builds and installs the double once: it stays until the next run.
var installDouble = sync.OnceValue(func() error {
	e, err := connect()
	if err != nil {
		return err
	}
	return serverdouble.Install(context.Background(), e.kube, os.Stderr)
})

// configure configures the double as the server until the test ends.
func configure(t *testing.T, e *environment) {
	t.Helper()
	began := time.Now()
	if err := installDouble(); err != nil {
		t.Fatal(err)
	}
	t.Logf("the double was installed in %s", time.Since(began).Round(time.Second))
	if err := e.double.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := serverdouble.Unconfigure(ctx, e.kube); err != nil {
			t.Errorf("remove the configuration of the server: %v", err)
		}
	})
	if err := serverdouble.Configure(t.Context(), e.kube); err != nil {
		t.Fatal(err)
	}
}

// runSequentially runs tests that affect each other.
func runSequentially(t *testing.T, e *environment, specs []spec) {
	for _, s := range specs {
		t.Run(s.sentence, func(t *testing.T) { s.test(t, e) })
	}
}

// runInParallel runs independent tests, at most parallelSpecs at once, and waits for all of them.
// They start in the order of the list, so the longest ones come first.
func runInParallel(t *testing.T, e *environment, specs []spec) {
	t.Run("parallel", func(t *testing.T) {
		running := make(chan struct{}, parallelSpecs)
		var turns []chan struct{} // of the specs that option -run selects
		for _, s := range specs {
			t.Run(s.sentence, func(t *testing.T) {
				turn := make(chan struct{})
				turns = append(turns, turn)
				t.Parallel() // returns when the loop has ended
				<-turn
				defer func() { <-running }()
				s.test(t, e)
			})
		}
		go func() {
			for _, turn := range turns {
				running <- struct{}{}
				close(turn)
			}
		}()
	})
}
