//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// brokerAudience is the audience of the tokens that our Broker accepts.
const brokerAudience = "eventing.knative.dev/broker/" + v1alpha1.SystemNamespace + "/default"

// TestTheBrokerAcceptsOnlyNamedSendersWithOIDC enables Knative's authentication with the
// policies of overlay oidc. A release is judged as before, and events of other senders are rejected.
func TestTheBrokerAcceptsOnlyNamedSendersWithOIDC(t *testing.T) {
	e := newEnvironment(t)
	configure(t, e)
	defer e.enableOIDC(t)()

	t.Run("a release is judged", func(t *testing.T) {
		n := e.optedInNamespace(t)
		n.create(t, builder.Deployment("web", 2, builder.Simulated))
		c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
		if cond := c.Status.GetCondition(v1alpha1.ReleaseJudged); !cond.IsTrue() {
			t.Errorf("condition Judged is %+v", cond)
		}
	})
	t.Run("an event of any other sender is refused", func(t *testing.T) {
		n := e.notOptedInNamespace(t)
		for _, tc := range []struct {
			name string
			send func() int
			want int
		}{
			{"without a token", func() int { return e.sendToBroker(t, "") }, http.StatusUnauthorized},
			{"a token for another audience", func() int { return e.sendToBroker(t, e.token(t, v1alpha1.SystemNamespace, "controller", "other")) }, http.StatusUnauthorized},
			{"an account of another namespace", func() int { return e.sendToBroker(t, e.token(t, n.name, "default", brokerAudience)) }, http.StatusForbidden},
			{"an account of a function that sends nothing", func() int { return e.sendToBroker(t, e.token(t, v1alpha1.SystemNamespace, "report", brokerAudience)) }, http.StatusForbidden},
			{"a sender of other types", func() int { return e.sendToBroker(t, e.token(t, v1alpha1.SystemNamespace, "callback", brokerAudience)) }, http.StatusForbidden},
			{"the controller", func() int {
				return e.sendToBroker(t, e.token(t, v1alpha1.SystemNamespace, "controller", brokerAudience))
			}, http.StatusAccepted},
		} {
			if got := tc.send(); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.name, got, tc.want)
			}
		}
	})
}

// enableOIDC enables authentication of senders until undo is called.
func (e *environment) enableOIDC(t *testing.T) (undo func()) {
	t.Helper()
	n := e.notOptedInNamespace(t)
	policies := filepath.Join("..", "..", "config", "overlays", "oidc", "event-policies.yaml")
	t.Cleanup(func() { e.setEventingFeature(context.Background(), t, "authentication-oidc", "disabled") }) // also after a failure
	e.setEventingFeature(t.Context(), t, "authentication-oidc", "enabled")
	e.recreateBroker(t)
	e.awaitAudience(t, brokerAudience)
	await(t, recoveryTimeout, "Knative accepts the policies", func(ctx context.Context) error {
		_, err := n.kubectl.Output(ctx, "", "apply", "-f", policies)
		return err
	})
	await(t, recoveryTimeout, "Knative enforces the policies", func(context.Context) error {
		for account, want := range map[string]int{"controller": http.StatusAccepted, "report": http.StatusForbidden} {
			if got := e.sendToBroker(t, e.token(t, v1alpha1.SystemNamespace, account, brokerAudience)); got != want {
				return fmt.Errorf("%s got %d, want %d", account, got, want)
			}
		}
		return nil
	})
	e.awaitFunctions(t)
	return func() {
		n.run(t, "delete", "-f", policies)
		e.setEventingFeature(t.Context(), t, "authentication-oidc", "disabled")
		e.recreateBroker(t)
		e.awaitAudience(t, "")
		e.awaitFunctions(t)
	}
}

func (e *environment) setEventingFeature(ctx context.Context, t *testing.T, name, value string) {
	t.Helper()
	_, err := e.kube.CoreV1().ConfigMaps("knative-eventing").Patch(ctx, "config-features", types.MergePatchType,
		fmt.Appendf(nil, `{"data":{%q:%q}}`, name, value), metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

// recreateBroker deletes the Broker and its Triggers and creates them again. When the feature
// changes, Knative replaces the Subscriptions but leaves the old ones in the channel. The
// dispatcher of such a channel serves nothing after a restart.
func (e *environment) recreateBroker(t *testing.T) {
	t.Helper()
	n, system := e.notOptedInNamespace(t), v1alpha1.SystemNamespace
	var objects unstructured.UnstructuredList
	if err := json.Unmarshal([]byte(n.run(t, "get", "broker,trigger", "-n", system, "-o", "json")), &objects); err != nil {
		t.Fatal(err)
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		metadata := map[string]any{"name": o.GetName(), "namespace": system}
		for key, value := range map[string]map[string]string{"labels": o.GetLabels(), "annotations": o.GetAnnotations()} {
			delete(value, "eventing.knative.dev/creator") // Knative sets both
			delete(value, "eventing.knative.dev/lastModifier")
			metadata[key] = value
		}
		delete(o.Object, "status")
		o.Object["metadata"] = metadata
	}
	manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects.Items})
	if err != nil {
		t.Fatal(err)
	}
	n.run(t, "delete", "brokers,triggers", "--all", "-n", system)
	await(t, recoveryTimeout, "the channel of the Broker is deleted", func(ctx context.Context) error {
		r, err := n.kubectl.Run(ctx, "get", "inmemorychannels,subscriptions", "-n", system, "-o", "name")
		if err == nil && r.Stdout != "" {
			err = fmt.Errorf("left: %s", r.Stdout)
		}
		return err
	})
	n.kubectl.Require(t, string(manifest), "apply", "-f", "-")
	n.run(t, "wait", "--for=condition=Ready", "broker,trigger", "--all", "-n", system, "--timeout=60s")
}

// awaitAudience waits until the address of the Broker has the audience.
func (e *environment) awaitAudience(t *testing.T, want string) {
	t.Helper()
	n := e.notOptedInNamespace(t)
	await(t, recoveryTimeout, "the Broker has audience "+want, func(ctx context.Context) error {
		r, err := n.kubectl.Run(ctx, "get", "broker", "default", "-n", v1alpha1.SystemNamespace, "-o", "jsonpath={.status.address.audience}")
		if err == nil && r.Stdout != want {
			err = fmt.Errorf("got %q", r.Stdout)
		}
		return err
	})
}

// token returns a token of a ServiceAccount for the audience.
func (e *environment) token(t *testing.T, namespace, account, audience string) string {
	t.Helper()
	r, err := e.kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Token
}

// sendToBroker posts an event about a pod that does not exist, and returns the status. It
// does not use the API server's proxy, which removes tokens.
func (e *environment) sendToBroker(t *testing.T, token string) int {
	t.Helper()
	ingress, err := e.kube.CoreV1().Services("knative-eventing").Get(t.Context(), "broker-ingress", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	event, err := events.New(events.PodFinished{Namespace: "none", Pod: "none", PodUID: "none",
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "none"}, Version: "none", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + ingress.Spec.ClusterIP + "/" + v1alpha1.SystemNamespace + "/default"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(event.Data()))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Ce-Specversion": "1.0",
		"Ce-Id": event.ID(), "Ce-Source": event.Source(), "Ce-Type": event.Type(), "Ce-Subject": event.Subject()} {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Log(err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}
