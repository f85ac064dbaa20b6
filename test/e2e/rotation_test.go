//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// Secrets are replaced while they are used. TestRollback woke functions, and none of its releases runs any more.
func TestRotation(t *testing.T) {
	e := newEnvironment(t)
	runSequentially(t, e, []spec{
		{"the webhook answers while its certificate and paths are replaced", replacedCertificate},
	})
	configure(t, e)
	runInParallel(t, e, []spec{
		{"the functions return to zero and start from zero", zeroAndBack},
		// It sends no events, which would keep the functions running.
		{"the API server accepts each object of each overlay", validOverlays},
	})
	runSequentially(t, e, []spec{
		{"a verdict counts that was signed before the key of verdicts was replaced", replacedVerdictKey},
		// The server rejects calls with the new token, so no other release may need it meanwhile.
		{"verdicts count that are signed with the token or with the previous one", replacedToken},
	})
}

// patchSecret patches a Secret of Breakwater.
func (e *environment) patchSecret(ctx context.Context, name, patch string) error {
	_, err := e.kube.CoreV1().Secrets(system).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// waitingRelease is a release whose batch waits for a verdict, which the double does not send.
type waitingRelease struct {
	release *v1alpha1.ChangeWorkload
	batch   *v1alpha1.ChangePod
}

func (n *namespace) waitingForVerdicts(t *testing.T, names ...string) (all []waitingRelease) {
	t.Helper()
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	for _, name := range names {
		n.create(t, builder.Deployment(name, 1, builder.Simulated))
	}
	for _, name := range names {
		p := n.awaitBatch(t, rolloutTimeout, name, 1, "waits for its POST verdict", awaitsPostVerdict)
		c, err := n.current(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, waitingRelease{c, p})
	}
	return all
}

// replacedToken: from the patch on, callbacks with both tokens are accepted; without
// token-previous those with the old token are not.
func replacedToken(t *testing.T, e *environment) {
	const fresh = "altershield-operator-fresh"
	n := e.optedInNamespace(t)
	waiting := n.waitingForVerdicts(t, "old", "fresh")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		restore := fmt.Sprintf(`{"stringData":{%q:%q},"data":{%q:null}}`, altershield.TokenKey, serverdouble.Token, altershield.PreviousTokenKey)
		if err := e.patchSecret(ctx, altershield.SecretName, restore); err != nil {
			t.Errorf("restore the token: %v", err)
		}
	})
	both := fmt.Sprintf(`{"stringData":{%q:%q,%q:%q}}`, altershield.TokenKey, fresh, altershield.PreviousTokenKey, serverdouble.Token)
	if err := e.patchSecret(t.Context(), altershield.SecretName, both); err != nil {
		t.Fatal(err)
	}
	unknown := callback(t, waiting[0].release.Spec.OrderID, "unknown", "pass")
	awaitStatus := func(what, token string, rejected bool) {
		await(t, shortTimeout, what, func(context.Context) error {
			if status := post(t, unknown, token); (status == http.StatusUnauthorized) != rejected {
				return fmt.Errorf("status %d", status)
			}
			return nil
		})
	}
	awaitStatus("the new token is used", fresh, false)
	for i, with := range []struct{ name, token string }{{"old", serverdouble.Token}, {"fresh", fresh}} {
		w := waiting[i]
		if status := post(t, callback(t, w.release.Spec.OrderID, w.batch.Status.ChangePodID, "fail"), with.token); status != http.StatusOK {
			t.Errorf("callback with the %s token: status %d, want 200", with.name, status)
		}
		n.awaitPhase(t, rolloutTimeout, with.name, v1alpha1.ReleaseSuspend)
	}
	if err := e.patchSecret(t.Context(), altershield.SecretName, fmt.Sprintf(`{"data":{%q:null}}`, altershield.PreviousTokenKey)); err != nil {
		t.Fatal(err)
	}
	awaitStatus("the old token is rejected", serverdouble.Token, true)
	if status := post(t, unknown, fresh); status == http.StatusUnauthorized {
		t.Error("callback with the new token: status 401")
	}
}

// replacedVerdictKey: two verdicts are signed before the controller replaces the key, and are
// delivered afterwards: one by the Broker, one as a dead letter.
func replacedVerdictKey(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	var signed []event.Event
	before := e.verdictKeys(t)
	for _, w := range n.waitingForVerdicts(t, "queued", "dead") {
		verdict, err := events.New(events.ChangePodVerdict{
			Namespace: n.name, Name: w.batch.Name, UID: w.batch.UID, ChangeWorkload: w.release.Name, Version: w.release.Spec.Reversion,
			BizExecOrderID: w.release.Spec.OrderID, NodeID: w.batch.Status.ChangePodID, Stage: v1alpha1.StagePost, Verdict: "fail",
			Time: metav1.NewMicroTime(time.Now()),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := before.Sign(t.Context(), &verdict); err != nil {
			t.Fatal(err)
		}
		signed = append(signed, verdict)
	}
	// The controller replaces a key of this age, and keeps it as the previous one.
	old := fmt.Sprintf(`{"stringData":{"time":%q}}`, time.Now().Add(-31*24*time.Hour).UTC().Format(time.RFC3339))
	if err := e.patchSecret(t.Context(), eventsigning.VerdictSecretName, old); err != nil {
		t.Fatal(err)
	}
	await(t, rolloutTimeout, "the key is replaced", func(context.Context) error {
		if now := e.verdictKeys(t); bytes.Equal(now.Current, before.Current) || !bytes.Equal(now.Previous, before.Current) {
			return errors.New("the Secret has the old key")
		}
		return nil
	})
	if err := e.sendToTheBroker(t.Context(), signed[0]); err != nil {
		t.Fatal(err)
	}
	sendToDeadletter(t, signed[1])
	for _, name := range []string{"queued", "dead"} {
		n.awaitPhase(t, rolloutTimeout, name, v1alpha1.ReleaseSuspend)
	}
}

func (e *environment) verdictKeys(t *testing.T) eventsigning.Keys {
	t.Helper()
	secret, err := e.kube.CoreV1().Secrets(system).Get(t.Context(), eventsigning.VerdictSecretName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return eventsigning.Keys{Current: secret.Data[eventsigning.CurrentKey], Previous: secret.Data[eventsigning.PreviousKey]}
}

// headers returns the headers of an event in binary mode.
func headers(of event.Event) map[string]string {
	all := map[string]string{
		"Content-Type": "application/json", "Ce-Specversion": "1.0",
		"Ce-Id": of.ID(), "Ce-Source": of.Source(), "Ce-Type": of.Type(),
	}
	for name, value := range of.Extensions() {
		all["Ce-"+name] = fmt.Sprint(value)
	}
	return all
}

// sendToTheBroker sends an event to the Broker.
func (e *environment) sendToTheBroker(ctx context.Context, sent event.Event) error {
	request := e.kube.CoreV1().RESTClient().Post().AbsPath(brokerPath).Body(sent.Data())
	for name, value := range headers(sent) {
		request.SetHeader(name, value)
	}
	return request.Do(ctx).Error()
}

// sendToDeadletter delivers an event to function deadletter, as the Broker does after its retries.
func sendToDeadletter(t *testing.T, sent event.Event) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://deadletter."+system+".svc.cluster.local/", bytes.NewReader(sent.Data()))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers(sent) {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // only the status counts
	if response.StatusCode >= http.StatusMultipleChoices {
		t.Errorf("function deadletter answered %s", response.Status)
	}
}

// replacedCertificate: the webhook denies an invalid OpsConfigInfo, and the API server accepts
// one if it cannot call the webhook.
func replacedCertificate(t *testing.T, e *environment) {
	const secret, configuration, webhook = "webhook-certs", "breakwater", "vopsconfiginfo.kb.io"
	access := func(ctx context.Context) (path string, ca []byte, err error) {
		c, err := e.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, configuration, metav1.GetOptions{})
		if err != nil {
			return "", nil, err
		}
		for i := range c.Webhooks {
			if c.Webhooks[i].Name == webhook {
				return *c.Webhooks[i].ClientConfig.Service.Path, c.Webhooks[i].ClientConfig.CABundle, nil
			}
		}
		return "", nil, errors.New("no webhook " + webhook)
	}
	oldPath, oldCA, err := access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	invalid := &v1alpha1.OpsConfigInfo{ObjectMeta: metav1.ObjectMeta{GenerateName: "rotation-"}}
	invalid.Spec.Type, invalid.Spec.Content, invalid.Spec.Enable = v1alpha1.ConfigType("isBranch"), "ten", true
	requests := 0
	request := func(ctx context.Context) {
		_, err := e.change.OpsConfigInfoes(system).Create(ctx, invalid, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if requests++; ctx.Err() == nil && (err == nil || !strings.Contains(err.Error(), "spec.content")) {
			t.Errorf("request %d: error %v, want a denial that names spec.content", requests, err)
		}
	}
	request(t.Context())
	if err := e.patchSecret(t.Context(), secret, `{"data":null}`); err != nil {
		t.Fatal(err)
	}
	await(t, shortTimeout, "the webhook has a new path and CA", func(ctx context.Context) error {
		for range 20 {
			request(ctx)
		}
		path, ca, err := access(ctx)
		if err == nil && (path == oldPath || bytes.Equal(ca, oldCA)) {
			err = errors.New("the path or the CA is the old one")
		}
		return err
	})
	for range 200 { // the API server uses the new path with a delay
		request(t.Context())
	}
	t.Logf("%d requests", requests)
}
