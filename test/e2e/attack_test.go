//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// brokerPath is the path of our Broker at the API server's proxy of services.
const brokerPath = "/api/v1/namespaces/knative-eventing/services/http:broker-ingress:80/proxy/" + v1alpha1.SystemNamespace + "/default"

// postToBroker sends an event to the Broker, as any pod can.
func (e *environment) postToBroker(t *testing.T, d events.Data) {
	t.Helper()
	forged, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.sendToTheBroker(t.Context(), forged); err != nil {
		t.Fatalf("the Broker did not accept the event: %v", err)
	}
}

// sentToTheBroker: a verdict that is correct in every field, from a sender that can
// reach the Broker and read ChangePods, changes nothing. The in-memory Broker answers
// only after function verdict has answered.
func sentToTheBroker(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	p := n.awaitBatch(t, rolloutTimeout, "web", 1, "waits for its POST verdict", awaitsPostVerdict)
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	for _, verdict := range []string{"pass", "fail"} {
		e.postToBroker(t, events.ChangePodVerdict{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ChangeWorkload: c.Name, Version: c.Spec.Reversion,
			BizExecOrderID: c.Spec.OrderID, NodeID: p.Status.ChangePodID, Stage: v1alpha1.StagePost, Verdict: verdict,
			Time: metav1.NewMicroTime(time.Now()),
		})
	}
	after := n.awaitBatch(t, shortTimeout, "web", 1, "exists", exists)
	if diff := cmp.Diff(facts(p), facts(after)); diff != "" {
		t.Errorf("the status of the batch changed (-before +after):\n%s", diff)
	}
	if c, err = n.current(t.Context(), "web"); err != nil || len(c.Status.Inbox) > 0 {
		t.Errorf("the inbox has %v (%v)", c.Status.Inbox, err)
	}
	post(t, callback(t, c.Spec.OrderID, p.Status.ChangePodID, "pass"), serverdouble.Token)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// reportSentToTheBroker: an event about a release that exists, from a sender that can reach the
// Broker and read ChangeWorkloads, causes no record at the server. The events of the controller
// do.
func reportSentToTheBroker(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	p := n.awaitBatch(t, rolloutTimeout, "web", 1, "waits for its POST verdict", awaitsPostVerdict)
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	of := events.Workload{APIVersion: c.Spec.WorkloadRef.APIVersion, Kind: c.Spec.WorkloadRef.Kind, Name: c.Spec.WorkloadRef.Name}
	for _, d := range []events.Data{
		events.ChangeWorkload{
			Verb: events.VerbSuspended, Namespace: c.Namespace, Name: c.Name, UID: c.UID, Workload: of, Version: c.Spec.Reversion,
			Attempt: c.Spec.Attempt, EntryTimeUnix: time.Now().Unix(), Reason: v1alpha1.ReasonCheckFailed, Message: "approved by the security team",
		},
		events.PodFinished{
			Namespace: c.Namespace, Pod: "approved", PodUID: "approved", Workload: of, Version: c.Spec.Reversion, Attempt: c.Spec.Attempt,
		},
	} {
		e.postToBroker(t, d)
	}
	post(t, callback(t, c.Spec.OrderID, p.Status.ChangePodID, "pass"), serverdouble.Token)
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	var log double.Log
	await(t, shortTimeout, "the server has the report of the success", func(ctx context.Context) error {
		if log, err = n.double.Log(ctx, n.name); err != nil {
			return err
		}
		for _, call := range log.Calls {
			if bytes.Contains(call.Body, []byte(": "+string(events.VerbSucceeded))) {
				return nil
			}
		}
		return errors.New("no report")
	})
	for _, call := range log.Calls {
		if bytes.Contains(call.Body, []byte("approved")) {
			t.Errorf("the server got %s", call.Body)
		}
	}
}
