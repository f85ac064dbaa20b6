//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// verdictAsCloudEvent accepts a verdict as a CloudEvent in binary mode, whose headers pass the proxies of
// Serving. Those of the other modes are in the body: functions/callback tests them.
func verdictAsCloudEvent(t *testing.T, e *environment) {
	const mode = "binary"
	n := e.optedInNamespace(t)
	n.setChecks(t,
		double.CheckRule{
			Match: batch(2, double.Post),
			Then:  double.Behaviour{Verdict: "fail", As: mode, Message: errorRate},
		},
		double.CheckRule{Then: double.Behaviour{As: mode}},
	)
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	n.awaitPassed(t, "web", 2)
	failedPods := c.Status.DefenseCheckFailPods
	if len(failedPods) != 1 || !strings.Contains(failedPods[0].Message, errorRate) {
		t.Errorf("failed pods are %+v, want one with %s", failedPods, errorRate)
	}
}

// facts returns the status fields that a verdict writes. Other fields are
// derived.
func facts(p *v1alpha1.ChangePod) []any { return []any{p.Status.Verdicts, p.Status.PodResults} }

// forgedVerdict: a callback without a valid signature changes nothing.
func forgedVerdict(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	forged := failed()
	forged.BadSignature = true
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: forged})
	n.create(t, builder.Deployment("web", 1, builder.Simulated))
	if sent := n.awaitCallbacks(t, "fail", 1); sent.Status != http.StatusUnauthorized {
		t.Errorf("callback status %d, want 401", sent.Status)
	}
	p := n.awaitBatch(t, shortTimeout, "web", 1, "waits for its POST verdict", awaitsPostVerdict)
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	fail := callback(t, c.Spec.OrderID, p.Status.ChangePodID, "fail")
	for name, token := range map[string]string{"another token": "guessed", "no token": ""} {
		if status := post(t, fail, token); status != http.StatusUnauthorized {
			t.Errorf("callback signed with %s: status %d, want 401", name, status)
		}
	}
	after := n.awaitBatch(t, shortTimeout, "web", 1, "exists", exists)
	if diff := cmp.Diff(facts(p), facts(after)); diff != "" {
		t.Errorf("the status of the batch changed (-before +after):\n%s", diff)
	}
	// The same request with a valid signature is accepted.
	if status := post(t, callback(t, c.Spec.OrderID, p.Status.ChangePodID, "pass"), serverdouble.Token); status != http.StatusOK {
		t.Errorf("callback with a valid signature: status %d, want 200", status)
	}
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// callback returns the body of the server's callback with a verdict.
func callback(t *testing.T, order, node, verdict string) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"callbackRequest": map[string]any{
			"bizExecOrderId": order, "changeSceneKey": "breakwater", "defenseStageEnum": "POST", "nodeId": node,
			"verdict": map[string]any{
				"allFinish": true, "checkPass": verdict == "pass", "verdict": verdict,
				"rules": []any{map[string]any{"name": "by hand", "verdict": strings.ToUpper(verdict), "msg": "by hand"}},
			},
		},
		"changeCheckType": "CHANGE_BATCH",
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// post sends a callback as the server does, signed with a token; an empty token
// means no signature. It returns the HTTP status.
func post(t *testing.T, body []byte, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serverdouble.CallbackURL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json;UTF-8")
	if token != "" {
		timestamp := strconv.FormatInt(time.Now().UnixMilli(), 10)
		request.Header.Set(altershield.DefaultHeaderPrefix+altershield.HeaderPlatform, serverdouble.Platform)
		request.Header.Set(altershield.DefaultHeaderPrefix+altershield.HeaderTimestamp, timestamp)
		request.Header.Set(altershield.DefaultHeaderPrefix+altershield.HeaderSign, altershield.Sign(timestamp, body, token))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}
