package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/fairsemaphore"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

func TestTheCMDBReceivesARecordWithItsOwnKeyForEachAddress(t *testing.T) {
	var got []string
	status := http.StatusOK
	cmdb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var pod api.ApplicationRequest
		if err := json.NewDecoder(r.Body).Decode(&pod); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.EscapedPath(), r.Header.Get("Idempotency-Key"), pod.Pod))
		w.WriteHeader(status)
	}))
	defer cmdb.Close()
	url := ""
	step := NewCMDB(func() settings.Settings { s := settings.Default(); s.CMDBURL = url; return s })
	pod := api.ApplicationRequest{Pod: "web", PodUID: "uid", PodIPs: []string{"10.0.0.1", "fd00::1"}}
	if err := step.Run(t.Context(), pod); err != nil || len(got) > 0 {
		t.Errorf("without a CMDB: %v %v", got, err)
	}
	url = cmdb.URL
	if err := step.Run(t.Context(), pod); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"PUT /v1/records/10.0.0.1 uid/10.0.0.1 web", "PUT /v1/records/fd00::1 uid/fd00::1 web"}, got); diff != "" {
		t.Error(diff)
	}
	status = http.StatusServiceUnavailable
	if err := step.Run(t.Context(), pod); err == nil || strings.Contains(err.Error(), "http://") || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v", err)
	}
}

func TestTheCMDBHasARecordOnlyIfARedirectKeepsTheMethod(t *testing.T) {
	for status, wantErr := range map[int]string{
		http.StatusMovedPermanently: "301", http.StatusFound: "302", http.StatusSeeOther: "303",
		http.StatusTemporaryRedirect: "", http.StatusPermanentRedirect: "",
	} {
		var followed []string
		cmdb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/elsewhere" {
				http.Redirect(w, r, "/elsewhere", status)
				return
			}
			var pod api.ApplicationRequest
			_ = json.NewDecoder(r.Body).Decode(&pod)
			followed = append(followed, r.Method+" "+pod.Pod)
		}))
		step := NewCMDB(func() settings.Settings { s := settings.Default(); s.CMDBURL = cmdb.URL; return s })
		err := step.Run(t.Context(), api.ApplicationRequest{Pod: "web", PodIPs: []string{"10.0.0.1"}})
		cmdb.Close()
		if wantErr == "" && (err != nil || !slices.Equal(followed, []string{"PUT web"})) {
			t.Errorf("%d: %v, %v", status, followed, err)
		}
		if wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr) || len(followed) > 0) {
			t.Errorf("%d: %v, %v", status, followed, err)
		}
	}
}

func TestALeakedGrantDoesNotSayThatItsPodWasDeleted(t *testing.T) {
	const want = "address 10.0.0.1 still has permission orders-db, which was granted to pod shop/web and is not revoked; ask team-db to revoke it"
	leak := api.LeakedGrant{IP: "10.0.0.1", Namespace: "shop", Pod: "web", Permission: "orders-db", Owner: "team-db"}
	if got := leakedGrantMessage(leak); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestACallThatWaitsForAnotherCallOfItsPodSaysSo(t *testing.T) {
	const want = "another call of this pod requests the permissions; this call waits for it, until 2026-01-02T03:04:05Z at the latest"
	for name, applications := range map[string]map[string]api.Application{
		"after a failed attempt":                   {"web": {State: api.Failed}},
		"with a set that was not requested before": {},
	} {
		f := Input{Sets: []string{"web"}, IPs: []string{"10.0.0.1"}, HasFinalizer: true, ApplicationsKnown: true, Applications: applications,
			Breaker: podbreaker.Decision{State: podbreaker.Busy, Next: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
		d := Decide(f)
		if got := waitingMessage(f, d); d.Action != WaitForBreaker || got != want {
			t.Errorf("%s: %s, %q, want %q", name, d.Action, got, want)
		}
	}
}

func TestAllReplicasTogetherObeyTheRateLimit(t *testing.T) {
	s := settings.Default()
	s.CentreCallsPerSecond = 100
	share := NewCentreLimiter(func() settings.Settings { return s })
	for _, tc := range []struct {
		replicas int
		want     float64
	}{{1, 100}, {4, 25}, {0, 100}} {
		share.SetReplicas(tc.replicas)
		if got := float64(share.Limit()); got != tc.want {
			t.Errorf("%d replicas: %g each, want %g", tc.replicas, got, tc.want)
		}
	}
	s.CentreCallsPerSecond = 0.5
	share.Refresh()
	if share.Limit() != 0.5 || share.Burst() != 1 {
		t.Errorf("after a change of the settings: limit %g, burst %d", float64(share.Limit()), share.Burst())
	}
}

func TestReplicasAreTheReadyEndpoints(t *testing.T) {
	slice := func(family discoveryv1.AddressType, ready ...*bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{AddressType: family}
		for _, r := range ready {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: r}})
		}
		return s
	}
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	ready := []*discoveryv1.EndpointSlice{slice(v4, new(true), new(false), nil), slice(v4, new(true))}
	if n := countReady(ready); n != 3 {
		t.Errorf("%d replicas", n)
	}
	if n := countReady(append(ready, slice(v6, new(true), new(false), new(true)))); n != 3 {
		t.Errorf("%d replicas of a Service with two address families, want 3", n)
	}
	if n := countReady(nil); n != 1 {
		t.Errorf("%d replicas without endpoints, want 1", n)
	}
}

// The trimmed pod must give the same results as the whole pod.
func TestATrimmedPodKeepsAllUsedFields(t *testing.T) {
	whole := newPod(func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "A", Value: "large"}}}}
		p.Spec.ServiceAccountName, p.Spec.HostNetwork, p.Status.HostIP = "web", true, "192.0.2.1"
		p.CreationTimestamp = metav1.Now()
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, {Type: podmeta.ConditionAuthorized, Reason: "R"}}
	})
	raw, err := trimPod(settings.NewStore())(whole)
	if err != nil {
		t.Fatal(err)
	}
	p := raw.(*corev1.Pod)
	if len(p.Spec.Containers) > 0 || len(p.Status.Conditions) != 1 {
		t.Errorf("the pod is not trimmed: %+v", p)
	}
	view := func(p *corev1.Pod) []any {
		return []any{podmeta.Sets(p), podmeta.IPs(p), podmeta.HasFinalizer(p), workload.PodActive(p), p.Labels[podmeta.Label],
			p.Spec.NodeName, p.Status.HostIP, p.Spec.HostNetwork, p.Spec.ServiceAccountName, podmeta.Condition(p, podmeta.ConditionAuthorized), p.UID,
			p.CreationTimestamp}
	}
	if diff := cmp.Diff(view(whole), view(p)); diff != "" {
		t.Error(diff)
	}
}

func TestAddressesAreComparedInParsedForm(t *testing.T) {
	for name, tc := range map[string]struct {
		host string
		want bool
	}{
		"the same": {"10.0.0.1", true}, "IPv4-mapped": {"::ffff:10.0.0.1", true}, "IPv6": {"fd00:0::1", true},
		"another address": {"10.0.0.10", false}, "empty": {"", false}, "host name": {"localhost", false},
	} {
		if got := containsIP([]string{"10.0.0.1", "fd00::1"}, tc.host); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A replica that shuts down still answers people for some seconds, who read the status of a pod.
func TestACallToTheCentreThatNeedsNoWaitIsAllowedDuringAShutdown(t *testing.T) {
	draining := make(chan struct{})
	close(draining)
	s := &server{Options: Options{Limit: rate.NewLimiter(rate.Every(time.Hour), 20), Clock: clock.RealClock{}, Draining: draining}, turns: fairsemaphore.New(1)}
	for i := range 20 {
		if !s.awaitLimit(t.Context(), "shop") {
			t.Fatalf("call %d is not allowed", i+1)
		}
	}
	if s.awaitLimit(t.Context(), "shop") {
		t.Error("a call beyond the limit is allowed")
	}
}

func TestTheCallsOfANamespaceKeepTheCentreFromNoOther(t *testing.T) {
	for name, ended := range map[string]bool{"calls that ended": true, "calls that wait": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{Options: Options{Limit: rate.NewLimiter(1, 1), Clock: clock.RealClock{}}, turns: fairsemaphore.New(1)}
				s.awaitLimit(t.Context(), "shop") // the burst
				var ends []context.CancelFunc
				for range 100 {
					ctx, end := context.WithCancel(t.Context())
					ends = append(ends, end)
					go s.awaitLimit(ctx, "mallory")
					synctest.Wait()
				}
				endAll := func() {
					for _, end := range ends {
						end()
						synctest.Wait()
					}
				}
				if ended {
					endAll()
				}
				began := time.Now()
				if !s.awaitLimit(t.Context(), "shop") || time.Since(began) > 2500*time.Millisecond {
					t.Errorf("the next call may call the centre after %v, want after at most one other call", time.Since(began))
				}
				endAll()
			})
		})
	}
}
