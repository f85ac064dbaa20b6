package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func TestUnauthorizedRequestsAreRejected(t *testing.T) {
	for name, tc := range map[string]struct {
		token, body string
		pod         func(*corev1.Pod)
		want        int
		reason      string
	}{
		"no token":                         {"", orders, nil, http.StatusUnauthorized, "Unauthorized"},
		"an invalid token":                 {"made-up", orders, nil, http.StatusUnauthorized, "Unauthorized"},
		"a token without a pod":            {"account", orders, nil, http.StatusForbidden, "TokenNotBoundToPod"},
		"the token of another pod":         {"another-pod", orders, nil, http.StatusForbidden, "PodNotFound"},
		"the token of a deleted pod":       {"former-pod", orders, nil, http.StatusForbidden, "PodNotFound"},
		"a set of another pod":             {"pod", `{"sets":["payroll"]}`, nil, http.StatusForbidden, "PermissionSetMismatch"},
		"an additional set":                {"pod", `{"sets":["orders","payroll"]}`, nil, http.StatusForbidden, "PermissionSetMismatch"},
		"no sets":                          {"pod", `{}`, nil, http.StatusForbidden, "PermissionSetMismatch"},
		"an invalid body":                  {"pod", `{`, nil, http.StatusBadRequest, "BadRequest"},
		"a body above the size limit":      {"pod", `{"sets":["` + strings.Repeat("a", 17<<10) + `"]}`, nil, http.StatusRequestEntityTooLarge, ""},
		"another source address":           {"pod", orders, func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "10.0.0.9" }, http.StatusForbidden, reasonSourceAddressMismatch},
		"a pod without the init container": {"pod", orders, func(p *corev1.Pod) { p.Spec.InitContainers = nil }, http.StatusForbidden, "PermissionSetMismatch"},
		"a pod without the label":          {"pod", orders, func(p *corev1.Pod) { p.Labels = nil }, http.StatusForbidden, "PermissionSetMismatch"},
		"a pod that is being deleted":      {"pod", orders, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, http.StatusConflict, podmeta.ReasonPodTerminating},
		"a completed pod":                  {"pod", orders, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, http.StatusConflict, podmeta.ReasonPodTerminating},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newPod(tc.pod))
			status, answer := w.authorize(tc.token, tc.body)
			if status != tc.want || (tc.reason != "" && answer.Reason != tc.reason) || answer.State == protocol.Granted {
				t.Errorf("%d %+v, want %d %s", status, answer, tc.want, tc.reason)
			}
			if w.centre.calls > 0 {
				t.Error("the centre was called")
			}
		})
	}
}

func TestARejectionSaysWhatIsWrongWithThePod(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  func(*corev1.Pod)
		want string
	}{
		"a copy by kubectl debug, without its label": {func(p *corev1.Pod) { p.Labels = nil },
			"pod default/web does not have label stke.io/permission=required; if it is a copy by kubectl debug, create it with --keep-annotations, " +
				"or without permissions, with --keep-init-containers=false"},
		"the address of the request was translated": {func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.9"}, {IP: "fd00::9"}} },
			"the request comes from 127.0.0.1 and not from an address of pod default/web: 10.0.0.9, fd00::9"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newPod(tc.pod))
			if status, a := w.authorize("pod", orders); status != http.StatusForbidden || a.Message != tc.want {
				t.Errorf("%d %+v, want 403 %s", status, a, tc.want)
			}
		})
	}
}

func TestAPodIsGrantedItsSetsForItsAddressInTheAPIServer(t *testing.T) {
	w := newFixture(t, newPod(nil))
	status, answer := w.authorize("pod", orders)
	if status != http.StatusOK || answer.State != protocol.Granted {
		t.Fatalf("%d %+v", status, answer)
	}
	got := w.centre.requests[0]
	want := api.ApplicationRequest{Cluster: "default", Namespace: "default", Pod: "web", PodUID: "uid", PodIPs: []string{"127.0.0.1"}, Node: "node", NodeIPs: []string{"192.0.2.1"}, Set: "orders"}
	if a, b := asJSON(t, want), asJSON(t, got); a != b {
		t.Errorf("requested %s, want %s", b, a)
	}
	c := w.waitForReason(podmeta.ReasonPermissionGranted)
	if c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "granted permission set orders to 127.0.0.1") {
		t.Errorf("%+v", c)
	}
	if w.sent.count("permission.granted") != 1 {
		t.Errorf("sent %v", w.sent.events)
	}
	// A restart of the container requests nothing.
	if _, answer := w.authorize("pod", orders); answer.State != protocol.Granted || w.centre.attempts() != 1 {
		t.Errorf("%+v after %d attempts", answer, w.centre.attempts())
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

func TestACallWaitsForTheAddressAndTheFinalizerAndReportsTheReason(t *testing.T) {
	w := newFixture(t, newPod(func(p *corev1.Pod) { p.Finalizers, p.Status.PodIPs = nil, nil }))
	answers := w.authorizeAsync(t.Context())
	w.updatePod(newPod(func(p *corev1.Pod) { p.Finalizers = nil }))
	if c := w.waitForReason(podmeta.ReasonWaitingForFinalizer); c.Status != corev1.ConditionFalse || w.centre.calls > 0 {
		t.Errorf("%+v, %d calls", c, w.centre.calls)
	}
	w.updatePod(newPod(nil))
	if a := waitForAnswer(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
}

func TestATokenOfAUserForTheAPIServerIsRejected(t *testing.T) {
	w := newFixture(t, newPod(nil))
	status, answer := w.send(t.Context(), http.MethodGet, "/v1/pods/default/web", "api-server", "")
	if status != http.StatusUnauthorized || !strings.Contains(answer.Message, "its audience must be "+protocol.TokenAudience) {
		t.Errorf("%d %+v, want 401 with the audience", status, answer)
	}
}

func TestTheConditionOfAWaitingPodNamesThePermissionAndItsOwner(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	answers := w.authorizeAsync(t.Context())
	c := w.waitForReason(podmeta.ReasonPermissionApplying)
	for _, words := range []string{"set orders, attempt 1", "permission orders-db is Applying", "ask team-db"} {
		if !strings.Contains(c.Message, words) {
			t.Errorf("%q is not in %q", words, c.Message)
		}
	}
	w.centre.set(api.Granted)
	if a := waitForAnswer(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
}

// Only one application is polled at a time. That of an asynchronous provider changes often.
func TestADenialOfAnySetEndsTheCallWhileTheOthersAreNotDecided(t *testing.T) {
	for name, step := range map[string]time.Duration{"the polled one does not change": pollTimeout, "it changes every 2 s": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			now := clocktest.NewFakeClock(time.Now())
			w := newFixtureAt(t, now, newPod(func(p *corev1.Pod) { p.Spec.InitContainers[0].Env[0].Value = "orders,audit" }))
			w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
			answers := make(chan protocol.Answer, 1)
			go func() {
				_, a := w.authorize("pod", `{"sets":["orders","audit"]}`)
				answers <- a
			}()
			w.await("the call polls", func() bool { return w.centre.waiting() == 1 })
			w.centre.update("uid.127.0.0.1.audit", api.Denied)
			for passed := time.Duration(0); passed < pollTimeout; passed += step {
				before := w.centre.called()
				now.Step(step)
				if step < pollTimeout {
					w.centre.update("uid.127.0.0.1.orders", api.Applying)
				}
				w.await("the centre is called again", func() bool { return w.centre.called() > before })
			}
			if a := waitForAnswer(t, answers); a.State != protocol.Denied || !strings.Contains(a.Message, "audit") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// With invalid parameters there are exactly three attempts, even if the container
// restarts more often, and none until a reset.
func TestAfterThreeDenialsNoAttemptBeginsUntilAReset(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Denied, nil }
	for round := range 3 {
		if _, a := w.authorize("pod", orders); a.State != protocol.Denied {
			t.Fatalf("round %d: %+v", round, a)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers := w.authorizeAsync(ctx)
	c := w.waitForReason(podmeta.ReasonBreakerOpenDenied)
	if !strings.Contains(c.Message, "permissions were denied 3 times; no new attempt begins until the breaker is reset") {
		t.Error(c.Message)
	}
	cancel()
	waitForAnswer(t, answers)
	waiting := w.authorizeAsync(t.Context())
	if n := w.centre.attempts(); n != 3 {
		t.Fatalf("%d applications", n)
	}
	if status, _ := w.send(t.Context(), http.MethodPost, "/v1/pods/default/web/reset", "joe", ""); status != http.StatusForbidden {
		t.Errorf("reset by an unauthorized user: status %d", status)
	}
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Granted, nil }
	if status, _ := w.send(t.Context(), http.MethodPost, "/v1/pods/default/web/reset", "jane", ""); status != http.StatusOK {
		t.Errorf("reset by an authorized user: status %d", status)
	}
	if a := waitForAnswer(t, waiting); a.State != protocol.Granted || w.centre.attempts() != 4 {
		t.Errorf("%+v after %d applications", a, w.centre.attempts())
	}
	if w.sent.count("breaker.opened") != 1 || w.sent.count("breaker.closed") != 1 || w.sent.count("permission.denied") != 3 {
		t.Errorf("sent %v", w.sent.events)
	}
}

// The owner corrects the permission and resets the application at the centre. The
// waiting pod continues without a reset of its breaker.
func TestAResetAtTheCentreEndsTheWaitOfAPod(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Denied, nil }
	for range 3 {
		w.authorize("pod", orders)
	}
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonBreakerOpenDenied)
	w.centre.set(api.Granted)
	if a := waitForAnswer(t, answers); a.State != protocol.Granted || w.centre.attempts() != 3 {
		t.Errorf("%+v after %d applications", a, w.centre.attempts())
	}
}

// The status of a pod may have its IPv6 address first; the centre sorts the addresses.
func TestAPodWithTwoAddressesFindsItsApplications(t *testing.T) {
	w := newFixture(t, newPod(func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "fd00::1"}, {IP: "127.0.0.1"}} }))
	for range 2 {
		if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
			t.Errorf("%+v", a)
		}
	}
	if n := w.centre.attempts(); n != 1 || len(w.centre.revoked) > 0 {
		t.Errorf("%d applications, revoked %+v; want one application and no revocation", n, w.centre.revoked)
	}
}

// The pod has a new sandbox, and the cache has the address of the previous one, for which the
// centre has a grant.
func TestAGrantForThePreviousAddressInAStaleCacheIsNoGrant(t *testing.T) {
	w := newFixture(t, newPod(func(p *corev1.Pod) { p.ResourceVersion = "11" }))
	w.updatePod(newPod(func(p *corev1.Pod) { p.ResourceVersion, p.Status.PodIPs = "10", []corev1.PodIP{{IP: "10.0.0.7"}} }))
	if _, err := w.centre.Apply(t.Context(), api.ApplicationRequest{PodUID: "uid", PodIPs: []string{"10.0.0.7"}, Set: "orders", Cluster: w.settings.Cluster}); err != nil {
		t.Fatal(err)
	}
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
	if last := w.centre.requests[len(w.centre.requests)-1]; !slices.Equal(last.PodIPs, []string{"127.0.0.1"}) {
		t.Errorf("the last request is for %v, want 127.0.0.1", last.PodIPs)
	}
}

// The pod cannot be granted a set that does not exist or that does not allow it. Only a
// person can change that.
func TestASetThatThePodCannotRequestIsADenial(t *testing.T) {
	for status, detail := range map[int]string{
		http.StatusNotFound:  "there is no permission set orders",
		http.StatusForbidden: "permission set orders does not allow pods of namespace default",
	} {
		w := newFixture(t, newPod(nil))
		w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) {
			return "", &centreclient.StatusError{Status: status, Detail: api.Error{Message: detail, Field: "set"}}
		}
		for n := range 3 {
			if _, a := w.authorize("pod", orders); a.State != protocol.Denied || !strings.Contains(a.Message, detail) {
				t.Errorf("status %d: request %d: %+v", status, n+1, a)
			}
		}
		if w.centre.calls != 6 { // one list and one request each
			t.Errorf("status %d: %d calls to the centre, want 6", status, w.centre.calls)
		}
		if c := w.waitForReason(podmeta.ReasonPermissionDenied); !strings.Contains(c.Message, detail) {
			t.Errorf("status %d: condition %+v", status, c)
		}
		if w.sent.count("breaker.opened") != 1 {
			t.Errorf("status %d: sent %v", status, w.sent.events)
		}
	}
}

// The server may not act for its cluster. Its pods are not denied for that, and continue
// without a reset when the platform team has corrected it.
func TestAServerWithoutARightAtTheCentreDeniesNoPod(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) {
		return "", &centreclient.StatusError{Status: http.StatusForbidden, Detail: api.Error{Message: "the user is not listed under cluster c1 in ACCESS_FILE"}}
	}
	if _, a := w.authorize("pod", orders); a.State != protocol.Failed || !strings.Contains(a.Message, "ACCESS_FILE") {
		t.Errorf("%+v, want Failed", a)
	}
}

// Pods that share an address must not be answered 429 because one of them may not do what
// it requests.
func TestOnlyFailedAuthenticationCountsAgainstAnAddress(t *testing.T) {
	w := newFixtureAt(t, clocktest.NewFakeClock(time.Now()), newPod(nil)) // with a constant clock
	w.settings.UnauthenticatedRequestsPerMinute = 5
	for n := range 20 {
		if status, _ := w.authorize("another-pod", orders); status != http.StatusForbidden {
			t.Fatalf("request %d: status %d, want 403", n+1, status)
		}
	}
	if status, _ := w.authorize("made-up", orders); status != http.StatusUnauthorized {
		t.Errorf("an invalid token: status %d, want 401", status)
	}
}

// The provider is down for an hour: three attempts without delay, then one per
// interval. The pod recovers when the provider is up.
func TestAPodRecoversAfterAnOutageOfItsProviderWithOneAttemptPerInterval(t *testing.T) {
	w := newFixture(t, newPod(nil))
	began := time.Now()
	var up time.Time
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) {
		if time.Since(began)*speedup < time.Hour {
			return api.Failed, nil
		}
		up = time.Now()
		return api.Granted, nil
	}
	for {
		_, a := w.authorize("pod", orders)
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
		t.Errorf("sent %v", w.sent.events)
	}
	cm, err := w.kube.CoreV1().ConfigMaps("sys").Get(t.Context(), podmeta.BreakerName, metav1.GetOptions{})
	if err != nil || len(cm.Data) > 0 {
		t.Errorf("entries after success: %v, %v", cm.Data, err)
	}
}

func TestAShortOutageOfTheCentreIsNoFailureAndALongOneIs(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.failures = maxCentreFailures
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonPermissionCentreUnreachable)
	if a := waitForAnswer(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
	w = newFixture(t, newPod(nil))
	w.centre.failures = math.MaxInt
	for range 3 {
		if _, a := w.authorize("pod", orders); a.State != protocol.Failed || !strings.Contains(a.Message, errUnreachable.Error()) {
			t.Errorf("%+v", a)
		}
	}
	if w.sent.count("breaker.opened") != 1 {
		t.Errorf("sent %v", w.sent.events)
	}
}

// The breakers of other pods are written while the pod waits. A notification must not use up a call of
// the rate limit that all pods share.
func TestChangesOfOtherPodsCauseNoCallOfTheCentre(t *testing.T) {
	for name, tc := range map[string]struct {
		state  api.State
		rounds int
		reason string
	}{
		"while a provider is called": {api.Applying, 0, podmeta.ReasonPermissionApplying},
		"while its breaker is open":  {api.Denied, 3, podmeta.ReasonBreakerOpenDenied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureAt(t, clock.RealClock{}, newPod(nil))
			w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return tc.state, nil }
			for range tc.rounds {
				w.authorize("pod", orders)
			}
			w.authorizeAsync(t.Context())
			w.waitForReason(tc.reason)
			if tc.state == api.Applying {
				w.await("the call polls", func() bool { return w.centre.waiting() == 1 })
			}
			before := w.centre.called()
			w.notifyAll(50)
			if got := w.centre.called(); got != before {
				t.Errorf("%d calls of the centre after changes of other pods, %d before", got, before)
			}
		})
	}
}

func TestChangesOfOtherPodsShortenNoPauseBeforeARetry(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.outage = 7 * time.Second // the calls are retried after 0.5, 1, 2 and 4 seconds
	answers := w.authorizeAsync(t.Context())
	for len(answers) == 0 {
		w.notifyAll(1)
	}
	if a := waitForAnswer(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
}

func TestANewSandboxRevokesTheGrantsOfThePreviousOne(t *testing.T) {
	w := newFixture(t, newPod(nil))
	former := api.ApplicationRequest{Cluster: "default", PodUID: "uid", PodIPs: []string{"10.0.0.7"}, Set: "orders"}
	w.centre.apps["former"] = &api.Application{ID: "former", ApplicationRequest: former, State: api.Granted, Attempt: 1}
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Fatalf("%+v", a)
	}
	want := api.RevokeRequest{Cluster: "default", PodUID: "uid", KeepIPs: []string{"127.0.0.1"}}
	if len(w.centre.revoked) != 1 || asJSON(t, w.centre.revoked[0]) != asJSON(t, want) || w.centre.attempts() != 1 {
		t.Errorf("revoked %+v, %d attempts", w.centre.revoked, w.centre.attempts())
	}
}

// The call of the previous sandbox may stay open when its node has crashed, and the watch of its replica may be late.
func TestACallWithAFormerAddressRevokesNoGrantOfThePresentOne(t *testing.T) {
	present := newPod(func(p *corev1.Pod) { p.ResourceVersion, p.Status.PodIPs = "11", []corev1.PodIP{{IP: "10.0.0.7"}} })
	w := newFixture(t, present)
	w.updatePod(newPod(func(p *corev1.Pod) { p.ResourceVersion = "10" }))
	if _, err := w.centre.Apply(t.Context(), api.ApplicationRequest{Cluster: w.settings.Cluster, PodUID: "uid", PodIPs: []string{"10.0.0.7"}, Set: "orders"}); err != nil {
		t.Fatal(err)
	}
	if _, a := w.authorize("pod", orders); a.State != protocol.Waiting || w.centre.attempts() != 1 || len(w.centre.revoked) > 0 {
		t.Errorf("%+v, %d attempts, revoked %+v; want no request and no revocation", a, w.centre.attempts(), w.centre.revoked)
	}
}

// A kubelet writes the status of the pods of its node. The centre revokes the grants of other pods at a requested address.
func TestAnAddressInTheStatusFromWhichThePodDoesNotCallIsNotRequested(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonPermissionApplying)
	victim := newPod(func(p *corev1.Pod) { p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.9"}} })
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), victim, "default"); err != nil {
		t.Fatal(err)
	}
	w.updatePod(victim)
	if a := waitForAnswer(t, answers); a.State != protocol.Waiting || a.Reason != reasonSourceAddressMismatch {
		t.Errorf("%+v", a)
	}
	if status, a := w.authorize("pod", orders); status != http.StatusForbidden || a.Reason != reasonSourceAddressMismatch {
		t.Errorf("the next call: %d %+v", status, a)
	}
	if r := w.centre.requests; len(r) != 1 || !slices.Equal(r[0].PodIPs, []string{"127.0.0.1"}) || len(w.centre.revoked) > 0 {
		t.Errorf("requested %+v, revoked %+v; want one request, for the address of the call", r, w.centre.revoked)
	}
}

// Another pod may get the former address, whether the pod in its new sandbox may request permissions or not.
func TestTheGrantsOfThePreviousSandboxAreRevokedAlthoughTheNewOneCanRequestNone(t *testing.T) {
	for name, tc := range map[string]struct {
		preparations []Preparation
		decide       api.State
		want         protocol.State
	}{
		"the CMDB is down":                 {[]Preparation{&failingPreparation{failures: math.MaxInt}}, api.Granted, protocol.Failed},
		"denied until the breaker is open": {nil, api.Denied, protocol.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newPod(nil), tc.preparations...)
			w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return tc.decide, nil }
			for range w.settings.Breaker.Threshold {
				if _, a := w.authorize("pod", orders); a.State != tc.want {
					t.Fatalf("%+v, want %s", a, tc.want)
				}
			}
			former := api.ApplicationRequest{Cluster: "default", PodUID: "uid", PodIPs: []string{"10.0.0.7"}, Set: "orders"}
			w.centre.mu.Lock()
			w.centre.apps["former"] = &api.Application{ID: "former", ApplicationRequest: former, State: api.Granted, Attempt: 1}
			w.centre.mu.Unlock()
			w.authorizeAsync(t.Context())
			w.await("the grants of the previous sandbox are revoked", func() bool {
				w.centre.mu.Lock()
				defer w.centre.mu.Unlock()
				return len(w.centre.revoked) == 1 && w.centre.apps["former"].State == api.Revoking
			})
		})
	}
}

// The pod gets another address and then the first one again. The grants to the
// first address were revoked, so they are requested again.
func TestAnAddressThatReturnsToItsPodIsRequestedAgain(t *testing.T) {
	here := api.ApplicationRequest{Cluster: "default", PodUID: "uid", PodIPs: []string{"127.0.0.1"}, Set: "orders"}
	there := here
	there.PodIPs = []string{"10.0.0.7"}
	const id = "uid.127.0.0.1.orders"
	for name, state := range map[string]api.State{"revoked": api.Revoked, "revoking": api.Revoking, "leaked": api.Leaked} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, newPod(nil))
			w.centre.apps[id] = &api.Application{ID: id, ApplicationRequest: here, State: state, Attempt: 1, Version: 7,
				Permissions: []api.ApplicationPermission{{Permission: "orders-db", State: state}}}
			w.centre.apps["there"] = &api.Application{ID: "there", ApplicationRequest: there, State: api.Granted, Attempt: 1,
				Permissions: []api.ApplicationPermission{{Permission: "orders-db", State: api.Granted}}}
			answers := w.authorizeAsync(t.Context())
			if state == api.Revoking {
				if c := w.waitForReason(podmeta.ReasonPermissionRevoking); c.Status != corev1.ConditionFalse || w.centre.attempts() != 0 {
					t.Errorf("%+v after %d attempts", c, w.centre.attempts())
				}
				w.centre.mu.Lock()
				w.centre.apps[id].State = api.Revoked
				w.centre.apps[id].Version++
				w.centre.mu.Unlock()
			}
			if a := waitForAnswer(t, answers); a.State != protocol.Granted {
				t.Fatalf("%+v", a)
			}
			if app := w.centre.apps[id]; app.Attempt != 2 || w.centre.attempts() != 1 || len(w.centre.revoked) != 1 {
				t.Errorf("%+v, %d attempts, revoked %+v", app, w.centre.attempts(), w.centre.revoked)
			}
		})
	}
}

func TestAPodThatIsDeletedWhileItWaitsIsNotGranted(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Failed, nil }
	w.settings.Breaker.Threshold = 1
	w.settings.Breaker.Backoff.Duration = time.Hour // no attempt begins before the deletion
	w.authorize("pod", orders)
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonBreakerOpenFailed)
	w.updatePod(newPod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }))
	if a := waitForAnswer(t, answers); a.Reason != podmeta.ReasonPodTerminating {
		t.Errorf("%+v", a)
	}
}

// The pod was deleted with force, and the connection of its container stays open.
func TestTheCallOfAPodThatIsGoneEnds(t *testing.T) {
	for name, successor := range map[string]*corev1.Pod{
		"no pod has its name":      nil,
		"another pod has its name": newPod(func(p *corev1.Pod) { p.UID = "successor" }),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureAt(t, clock.RealClock{}, newPod(nil))
			w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
			answers := w.authorizeAsync(t.Context())
			w.waitForReason(podmeta.ReasonPermissionApplying)
			pods := corev1.SchemeGroupVersion.WithResource("pods")
			if err := w.kube.Tracker().Delete(pods, "default", "web"); err != nil {
				t.Fatal(err)
			}
			_ = w.pods.Delete(newPod(nil))
			if successor != nil {
				if err := w.kube.Tracker().Add(successor); err != nil {
					t.Fatal(err)
				}
				w.updatePod(successor)
			}
			w.hub.Notify("uid")
			if a := waitForAnswer(t, answers); a.Reason != podmeta.ReasonPodTerminating {
				t.Errorf("%+v", a)
			}
		})
	}
}

// The watch may be late, or the API server unreachable.
func TestTheCallOfAPodThatIsOnlyMissingInTheCacheContinues(t *testing.T) {
	for name, broken := range map[string]bool{"the API server has the pod": false, "the API server is unreachable": true} {
		t.Run(name, func(t *testing.T) {
			w := newFixtureAt(t, clock.RealClock{}, newPod(nil))
			w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
			answers := w.authorizeAsync(t.Context())
			w.waitForReason(podmeta.ReasonPermissionApplying)
			reads := make(chan struct{}, 100)
			w.kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				reads <- struct{}{}
				return broken, nil, errUnreachable
			})
			_ = w.pods.Delete(newPod(nil))
			w.hub.Notify("uid")
			w.await("the pod is read", func() bool { return len(reads) > 0 })
			w.centre.set(api.Granted)
			if a := waitForAnswer(t, answers); a.State != protocol.Granted {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestAReplicaThatShutsDownEndsItsCalls(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonPermissionApplying)
	close(w.draining)
	if a := waitForAnswer(t, answers); a.State != protocol.Waiting {
		t.Errorf("%+v", a)
	}
	// The client repeats an error after a pause that grows, but Waiting at once. All calls reach this replica while
	// its Service has no other endpoint.
	if status, a := w.authorize("pod", orders); status != http.StatusServiceUnavailable || a.Reason != "Draining" {
		t.Errorf("a further call: %d %+v", status, a)
	}
}

// The senders of Events have ended, so nobody would learn of the reset.
func TestAReplicaThatShutsDownResetsNoBreaker(t *testing.T) {
	w := newFixture(t, newPod(nil))
	close(w.draining)
	status, a := w.send(t.Context(), http.MethodPost, "/v1/pods/default/web/reset", "jane", "")
	if n := w.requests("configmaps"); status != http.StatusServiceUnavailable || a.Reason != "Draining" || n != 0 {
		t.Errorf("%d %+v, %d requests for the breaker", status, a, n)
	}
}

// failingPreparation is a preparation that fails a given number of times.
type failingPreparation struct {
	failures int
	ran      []string
}

func (s *failingPreparation) Name() string { return "CMDB" }

func (s *failingPreparation) Run(_ context.Context, pod api.ApplicationRequest) error {
	s.ran = append(s.ran, pod.PodIPs[0])
	if s.failures--; s.failures >= 0 {
		return errors.New("the CMDB answered 503")
	}
	return nil
}

func TestPreparationsRunBeforePermissionsAndTheirFailuresCount(t *testing.T) {
	s := &failingPreparation{failures: 1}
	w := newFixture(t, newPod(nil), s)
	if _, a := w.authorize("pod", orders); a.State != protocol.Failed || !strings.Contains(a.Message, "CMDB") || w.centre.attempts() != 0 {
		t.Errorf("%+v after %d applications", a, w.centre.attempts())
	}
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted || len(s.ran) != 2 {
		t.Errorf("%+v, runs %v", a, s.ran)
	}
}

func TestAuthorizedUsersCanReadTheStatusOfAPod(t *testing.T) {
	w := newFixture(t, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Denied, nil }
	w.authorize("pod", orders)
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
		t.Errorf("an unauthorized user: status %d", code)
	}
	if code, _ := read("made-up"); code != http.StatusUnauthorized {
		t.Errorf("an invalid token: status %d", code)
	}
}

// A rejection may cost the API server a TokenReview. A rejected token is cached, and
// an address that sends other invalid tokens is rate-limited.
func TestRejectedTokensAreCachedAndRateLimited(t *testing.T) {
	w := newFixtureAt(t, clocktest.NewFakeClock(time.Now()), newPod(nil)) // with a constant clock
	w.settings.UnauthenticatedRequestsPerMinute = 40
	reviews := func() int { return w.requests("tokenreviews") }
	for range 10 {
		if status, _ := w.authorize("made-up", orders); status != http.StatusUnauthorized {
			t.Fatalf("an invalid token: status %d", status)
		}
	}
	if n := reviews(); n != 1 {
		t.Errorf("%d reviews of one token", n)
	}
	for n := range 30 {
		if status, _ := w.authorize(fmt.Sprintf("made-up-%d", n), orders); status != http.StatusUnauthorized {
			t.Fatalf("rejection %d: status %d", 10+n, status)
		}
	}
	if status, _ := w.authorize("made-up-too", orders); status != http.StatusTooManyRequests || reviews() != 31 {
		t.Errorf("status %d after %d reviews", status, reviews())
	}
}

// A pod without permission sets may have a valid token. Each of its requests costs the API server a TokenReview and a
// read of the pod.
func TestATokenWithTooManyRequestsIsLimited(t *testing.T) {
	w := newFixtureAt(t, clocktest.NewFakeClock(time.Now()), newPod(nil)) // with a constant clock
	for range requestsPerMinute {
		if status, _ := w.authorize("another-pod", orders); status != http.StatusForbidden {
			t.Fatalf("status %d, want 403", status)
		}
	}
	before := w.requests("")
	if status, a := w.authorize("another-pod", orders); status != http.StatusTooManyRequests || w.requests("") != before {
		t.Errorf("above the limit: status %d, %+v after %d requests to the API server", status, a, w.requests("")-before)
	}
	if status, _ := w.send(t.Context(), http.MethodGet, "/v1/pods/default/web", "another-pod", ""); status != http.StatusTooManyRequests {
		t.Errorf("a request for the status above the limit: status %d", status)
	}
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Errorf("another token of the address: %+v", a)
	}
}

// A user with role edit may request any number of tokens that are bound to a pod.
func TestAPodWithTooManyRequestsIsLimitedAlsoWithManyTokens(t *testing.T) {
	w := newFixtureAt(t, clocktest.NewFakeClock(time.Now()), newPod(nil)) // with a constant clock
	token := func(n int) string { return fmt.Sprintf("another-pod-%d", n) }
	for n := range requestsPerMinute + 1 {
		w.tokens[token(n)] = w.tokens["another-pod"]
	}
	for n := range requestsPerMinute {
		if status, _ := w.authorize(token(n), orders); status != http.StatusForbidden {
			t.Fatalf("status %d, want 403", status)
		}
	}
	before := w.requests("pods")
	if status, a := w.authorize(token(requestsPerMinute), orders); status != http.StatusTooManyRequests || w.requests("pods") != before {
		t.Errorf("above the limit: status %d, %+v after %d reads of the pod", status, a, w.requests("pods")-before)
	}
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Errorf("another pod: %+v", a)
	}
}

// Strangers open connections that send nothing while a pod waits for its permission.
func TestTheConnectionOfAWaitingPodIsAuthenticated(t *testing.T) {
	w := newFixtureAt(t, clock.RealClock{}, newPod(nil))
	w.centre.decide = func(api.ApplicationRequest, int) (api.State, error) { return api.Applying, nil }
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonPermissionApplying)
	var oldest net.Conn
	for range maxConnections + 1 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		oldest = cmp.Or(oldest, c)
	}
	if _, err := io.Copy(io.Discard, oldest); err != nil { // until the server closes it
		t.Fatal(err)
	}
	w.centre.set(api.Granted)
	if a := waitForAnswer(t, answers); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
}
