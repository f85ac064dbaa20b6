package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestWhoMayNotIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		token, body string
		pod         func(*corev1.Pod)
		want        int
		reason      string
	}{
		"no token":                         {"", orders, nil, http.StatusUnauthorized, "Unauthorized"},
		"a token that nobody knows":        {"made-up", orders, nil, http.StatusUnauthorized, "Unauthorized"},
		"a token of no pod":                {"account", orders, nil, http.StatusForbidden, "TokenNotBoundToPod"},
		"the token of another pod":         {"another-pod", orders, nil, http.StatusForbidden, "PodNotFound"},
		"the token of a pod that is gone":  {"former-pod", orders, nil, http.StatusForbidden, "PodNotFound"},
		"sets that the pod does not have":  {"pod", `{"sets":["payroll"]}`, nil, http.StatusForbidden, "PermissionSetMismatch"},
		"sets and more":                    {"pod", `{"sets":["orders","payroll"]}`, nil, http.StatusForbidden, "PermissionSetMismatch"},
		"no sets":                          {"pod", `{}`, nil, http.StatusForbidden, "PermissionSetMismatch"},
		"a body that is none":              {"pod", `{`, nil, http.StatusBadRequest, "BadRequest"},
		"a body that is too long":          {"pod", `{"sets":["` + strings.Repeat("a", 17<<10) + `"]}`, nil, http.StatusRequestEntityTooLarge, ""},
		"another address than the pod's":   {"pod", orders, func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "10.0.0.9" }, http.StatusForbidden, "SourceAddressMismatch"},
		"a pod without the init container": {"pod", orders, func(p *corev1.Pod) { p.Spec.InitContainers = nil }, http.StatusForbidden, "PermissionSetMismatch"},
		"a pod without the label":          {"pod", orders, func(p *corev1.Pod) { p.Labels = nil }, http.StatusForbidden, "PermissionSetMismatch"},
		"a pod that is being deleted":      {"pod", orders, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, http.StatusConflict, podmeta.ReasonPodTerminating},
		"a pod that has ended":             {"pod", orders, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, http.StatusConflict, podmeta.ReasonPodTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, podOf(tc.pod))
			status, answer := w.ask(tc.token, tc.body)
			if status != tc.want || (tc.reason != "" && answer.Reason != tc.reason) || answer.State == protocol.Granted {
				t.Errorf("%d %+v, want %d %s", status, answer, tc.want, tc.reason)
			}
			if w.centre.calls > 0 {
				t.Error("the centre was asked")
			}
		})
	}
}

func TestAPodIsGrantedWhatItAsksForAtTheAddressThatTheAPIServerHas(t *testing.T) {
	w := newWorld(t, podOf(nil))
	status, answer := w.ask("pod", orders)
	if status != http.StatusOK || answer.State != protocol.Granted {
		t.Fatalf("%d %+v", status, answer)
	}
	got := w.centre.asked[0]
	want := api.ApplicationRequest{Cluster: "default", Namespace: "default", Pod: "web", PodUID: "uid", PodIPs: []string{"127.0.0.1"}, Node: "node", NodeIPs: []string{"192.0.2.1"}, Set: "orders"}
	if a, b := asJSON(t, want), asJSON(t, got); a != b {
		t.Errorf("asked %s, want %s", b, a)
	}
	c := w.until(podmeta.ReasonPermissionGranted)
	if c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "granted permission set orders to 127.0.0.1") {
		t.Errorf("%+v", c)
	}
	if w.sent.count("permission.granted") != 1 {
		t.Errorf("sent %v", w.sent.all)
	}
	// The same pod again, as after a restart of the container: nothing is asked for.
	if _, answer := w.ask("pod", orders); answer.State != protocol.Granted || w.centre.attempts() != 1 {
		t.Errorf("%+v after %d attempts", answer, w.centre.attempts())
	}
}

// Each refusal costs the API server a review: the same token is not reviewed
// again for a moment, and an address that goes on with others is not heard.
func TestRefusalsCostAReviewAndAreBounded(t *testing.T) {
	w := newWorldAt(t, clocktest.NewFakeClock(time.Now()), podOf(nil)) // whose clock stands still
	w.settings.RefusalsPerMinute = 40
	reviews := func() (n int) {
		for _, a := range w.kube.Actions() {
			if a.GetResource().Resource == "tokenreviews" {
				n++
			}
		}
		return n
	}
	for range 10 {
		if status, _ := w.ask("made-up", orders); status != http.StatusUnauthorized {
			t.Fatalf("a token that nobody knows: %d", status)
		}
	}
	if n := reviews(); n != 1 {
		t.Errorf("%d reviews of one token", n)
	}
	for n := range 30 {
		if status, _ := w.ask(fmt.Sprintf("made-up-%d", n), orders); status != http.StatusUnauthorized {
			t.Fatalf("refusal %d: %d", 10+n, status)
		}
	}
	if status, _ := w.ask("made-up-too", orders); status != http.StatusTooManyRequests || reviews() != 31 {
		t.Errorf("%d after %d reviews", status, reviews())
	}
}

// A process with its node's network reaches pods of the node by the bridge: its
// address there is the first of their network.
func TestAPodWithItsNodesNetworkAsksFromItsNode(t *testing.T) {
	elsewhere := func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "192.0.2.1" }
	w := newWorld(t, podOf(func(p *corev1.Pod) { elsewhere(p); p.Spec.HostNetwork = true }))
	if status, a := w.ask("pod", orders); a.State != protocol.Granted {
		t.Errorf("with the node's network: %d %+v", status, a)
	}
	w = newWorld(t, podOf(elsewhere))
	if status, a := w.ask("pod", orders); status != http.StatusForbidden || a.Reason != "SourceAddressMismatch" {
		t.Errorf("without: %d %+v", status, a)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestACallWaitsForTheAddressAndTheFinalizerAndTellsWhy(t *testing.T) {
	w := newWorld(t, podOf(func(p *corev1.Pod) { p.Finalizers, p.Status.PodIPs = nil, nil }))
	answers := w.started(t.Context())
	w.show(podOf(func(p *corev1.Pod) { p.Finalizers = nil }))
	if c := w.until(podmeta.ReasonWaitingForFinalizer); c.Status != corev1.ConditionFalse || w.centre.calls > 0 {
		t.Errorf("%+v, %d calls", c, w.centre.calls)
	}
	w.show(podOf(nil))
	if a := answerOf(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
}

func TestWhileItIsAppliedForThePodTellsWhichPermissionAndWhomToAsk(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	answers := w.started(t.Context())
	c := w.until(podmeta.ReasonPermissionApplying)
	for _, words := range []string{"set orders, attempt 1", "permission orders-db is Applying", "ask team-db"} {
		if !strings.Contains(c.Message, words) {
			t.Errorf("%q is not in %q", words, c.Message)
		}
	}
	w.centre.set(api.Granted)
	if a := answerOf(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
}

// Wrong parameters: exactly three applications, however often the container is
// restarted; then none until somebody resets it.
func TestDeniedThreeTimesIsAskedForThreeTimesUntilItIsReset(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Denied, nil }
	for round := range 3 {
		if _, a := w.ask("pod", orders); a.State != protocol.Denied {
			t.Fatalf("round %d: %+v", round, a)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers := w.started(ctx)
	c := w.until(podmeta.ReasonBreakerOpenDenied)
	if !strings.Contains(c.Message, "permissions were denied 3 times; no new attempt begins until the breaker is reset") {
		t.Error(c.Message)
	}
	cancel()
	answerOf(t, answers)
	waiting := w.started(t.Context())
	if n := w.centre.attempts(); n != 3 {
		t.Fatalf("%d applications", n)
	}
	if status, _ := w.send(t.Context(), http.MethodPost, "/v1/pods/default/web/reset", "joe", ""); status != http.StatusForbidden {
		t.Errorf("joe's reset answers %d", status)
	}
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Granted, nil }
	if status, _ := w.send(t.Context(), http.MethodPost, "/v1/pods/default/web/reset", "jane", ""); status != http.StatusOK {
		t.Errorf("jane's reset answers %d", status)
	}
	if a := answerOf(t, waiting); a.State != protocol.Granted || w.centre.attempts() != 4 {
		t.Errorf("%+v after %d applications", a, w.centre.attempts())
	}
	if w.sent.count("breaker.opened") != 1 || w.sent.count("breaker.closed") != 1 || w.sent.count("permission.denied") != 3 {
		t.Errorf("sent %v", w.sent.all)
	}
}

// The owner mends the permission and resets the application at the centre: the
// pod that waits hears of it, although nobody reset its breaker.
func TestAnApplicationThatIsResetAtTheCentreIsHeardOf(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Denied, nil }
	for range 3 {
		w.ask("pod", orders)
	}
	answers := w.started(t.Context())
	w.until(podmeta.ReasonBreakerOpenDenied)
	w.centre.set(api.Granted)
	if a := answerOf(t, answers); a.State != protocol.Granted || w.centre.attempts() != 3 {
		t.Errorf("%+v after %d applications", a, w.centre.attempts())
	}
}

func TestAnUnknownSetIsADenial(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return "", unknownSet() }
	_, a := w.ask("pod", orders)
	if a.State != protocol.Denied || !strings.Contains(a.Message, "there is no permission set orders") {
		t.Errorf("%+v", a)
	}
}

// The provider is down for an hour: three attempts at once, then one an
// interval, and when it is back the pod recovers alone.
func TestAProviderThatIsDownForAnHourIsAskedAtTheBackoffsPaceAndRecoversAlone(t *testing.T) {
	w := newWorld(t, podOf(nil))
	began := time.Now()
	var up time.Time
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) {
		if time.Since(began)*hurry < time.Hour {
			return api.Failed, nil
		}
		up = time.Now()
		return api.Granted, nil
	}
	for {
		_, a := w.ask("pod", orders)
		if a.State == protocol.Granted {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%+v after %d attempts", a, w.centre.attempts())
		}
	}
	// 3, then after 2, 4, 8, 16 and 32 minutes: five in the hour, and the one that succeeds.
	if n := w.centre.attempts(); n < 7 || n > 9 {
		t.Errorf("%d attempts", n)
	}
	if up.IsZero() || w.sent.count("breaker.closed") != 1 {
		t.Errorf("sent %v", w.sent.all)
	}
	cm, err := w.kube.CoreV1().ConfigMaps("sys").Get(t.Context(), podmeta.BreakerName, metav1.GetOptions{})
	if err != nil || len(cm.Data) > 0 {
		t.Errorf("success leaves %v, %v", cm.Data, err)
	}
}

func TestACentreThatIsRestartedIsNoFailureAndOneThatIsDownIs(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.downFor = maxCentreFailures
	answers := w.started(t.Context())
	w.until(podmeta.ReasonPermissionCentreUnreachable)
	if a := answerOf(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
	w = newWorld(t, podOf(nil))
	w.centre.downFor = math.MaxInt
	for range 3 {
		if _, a := w.ask("pod", orders); a.State != protocol.Failed || !strings.Contains(a.Message, errDown.Error()) {
			t.Errorf("%+v", a)
		}
	}
	if w.sent.count("breaker.opened") != 1 {
		t.Errorf("sent %v", w.sent.all)
	}
}

func TestANewSandboxTakesBackWhatTheFormerHadAndAsksAnew(t *testing.T) {
	w := newWorld(t, podOf(nil))
	former := api.ApplicationRequest{Cluster: "default", PodUID: "uid", PodIPs: []string{"10.0.0.7"}, Set: "orders"}
	w.centre.apps["former"] = &api.Application{ID: "former", ApplicationRequest: former, State: api.Granted, Attempt: 1}
	if _, a := w.ask("pod", orders); a.State != protocol.Granted {
		t.Fatalf("%+v", a)
	}
	want := api.RevokeRequest{Cluster: "default", PodUID: "uid", KeepIPs: []string{"127.0.0.1"}}
	if len(w.centre.revoked) != 1 || asJSON(t, w.centre.revoked[0]) != asJSON(t, want) || w.centre.attempts() != 1 {
		t.Errorf("revoked %+v, asked %d times", w.centre.revoked, w.centre.attempts())
	}
}

// The address goes from one to another and back: what the first sandbox had is
// taken back, and the pod is granted it anew.
func TestAnAddressThatComesBackToItsPodIsAskedForAgain(t *testing.T) {
	here := api.ApplicationRequest{Cluster: "default", PodUID: "uid", PodIPs: []string{"127.0.0.1"}, Set: "orders"}
	there := here
	there.PodIPs = []string{"10.0.0.7"}
	const id = "uid.127.0.0.1.orders"
	for name, state := range map[string]api.State{"taken back": api.Revoked, "being taken back": api.Revoking, "leaked": api.Leaked} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, podOf(nil))
			w.centre.apps[id] = &api.Application{ID: id, ApplicationRequest: here, State: state, Attempt: 1, Version: 7,
				Permissions: []api.ApplicationPermission{{Permission: "orders-db", State: state}}}
			w.centre.apps["there"] = &api.Application{ID: "there", ApplicationRequest: there, State: api.Granted, Attempt: 1,
				Permissions: []api.ApplicationPermission{{Permission: "orders-db", State: api.Granted}}}
			answers := w.started(t.Context())
			if state == api.Revoking {
				if c := w.until(podmeta.ReasonPermissionRevoking); c.Status != corev1.ConditionFalse || w.centre.attempts() != 0 {
					t.Errorf("%+v after %d attempts", c, w.centre.attempts())
				}
				w.centre.mu.Lock()
				w.centre.apps[id].State = api.Revoked
				w.centre.apps[id].Version++
				w.centre.mu.Unlock()
			}
			if a := answerOf(t, answers); a.State != protocol.Granted {
				t.Fatalf("%+v", a)
			}
			if app := w.centre.apps[id]; app.Attempt != 2 || w.centre.attempts() != 1 || len(w.centre.revoked) != 1 {
				t.Errorf("%+v, asked %d times, revoked %+v", app, w.centre.attempts(), w.centre.revoked)
			}
		})
	}
}

func TestAPodThatIsDeletedMeanwhileGetsNothing(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Failed, nil }
	w.settings.Breaker.Threshold = 1
	w.settings.Breaker.Backoff.Duration = time.Hour // no attempt comes before the deletion
	w.ask("pod", orders)
	answers := w.started(t.Context())
	w.until(podmeta.ReasonBreakerOpenFailed)
	w.show(podOf(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }))
	if a := answerOf(t, answers); a.Reason != podmeta.ReasonPodTerminating {
		t.Errorf("%+v", a)
	}
}

func TestAReplicaThatEndsSendsItsCallsAway(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	answers := w.started(t.Context())
	w.until(podmeta.ReasonPermissionApplying)
	close(w.draining)
	if a := answerOf(t, answers); a.State != protocol.Waiting {
		t.Errorf("%+v", a)
	}
}

// step is one that fails as often as it is told to.
type step struct {
	fails int
	ran   []string
}

func (s *step) Name() string { return "CMDB" }

func (s *step) Run(_ context.Context, pod api.ApplicationRequest) error {
	s.ran = append(s.ran, pod.PodIPs[0])
	if s.fails--; s.fails >= 0 {
		return errors.New("the CMDB answered 503")
	}
	return nil
}

func TestStepsAreTakenBeforePermissionsAndTheirFailureCounts(t *testing.T) {
	s := &step{fails: 1}
	w := newWorld(t, podOf(nil), s)
	if _, a := w.ask("pod", orders); a.State != protocol.Failed || !strings.Contains(a.Message, "CMDB") || w.centre.attempts() != 0 {
		t.Errorf("%+v after %d applications", a, w.centre.attempts())
	}
	if _, a := w.ask("pod", orders); a.State != protocol.Granted || len(s.ran) != 2 {
		t.Errorf("%+v, taken %v", a, s.ran)
	}
}

func TestAnybodyWhoMayCanReadWhyAPodWaits(t *testing.T) {
	w := newWorld(t, podOf(nil))
	w.centre.verdict = func(api.ApplicationRequest, int) (api.State, error) { return api.Denied, nil }
	w.ask("pod", orders)
	read := func(user string) (int, Status) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/v1/pods/default/web", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+user)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var status Status
		if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, status
	}
	if code, s := read("jane"); code != http.StatusOK || s.Denied != 1 || len(s.Applications) != 1 || s.Applications[0].State != api.Denied || s.Sets[0] != "orders" {
		t.Errorf("%d %+v", code, s)
	}
	if code, _ := read("joe"); code != http.StatusForbidden {
		t.Errorf("joe reads: %d", code)
	}
	if code, _ := read("made-up"); code != http.StatusUnauthorized {
		t.Errorf("nobody reads: %d", code)
	}
}
