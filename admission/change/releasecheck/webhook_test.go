package releasecheck

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const (
	passes = `{"verdict":"pass"}`
	fails  = `{"verdict":"fail","rules":[{"name":"freeze","verdict":"FAIL","msg":"not on Friday","url":"http://rules/1"}]}`
)

func TestTheAnswerOfTheServerAdmitsOrDeniesARelease(t *testing.T) {
	const (
		short = 500 * time.Millisecond
		// timesOut: the server gives up, long before the webhook does.
		timesOut    = `{"checkTimeout":"10ms"}`
		unconfirmed = "retrieve did not confirm it"
	)
	for name, tc := range map[string]struct {
		script  string
		data    map[string]string
		timeout time.Duration // 0: that of the fixture
		policy  v1alpha1.NoVerdictPolicy
		shadow  bool
		allowed bool
		reason  string
		message string // part of the warning or denial; empty if there is none
		stored  string // the stored reason
		detail  string // part of the stored message
	}{
		"a pass is admitted": {
			script: `{"checks":[{"match":{"step":"RELEASE"},"then":` + passes + `}]}`,
			policy: "Fail", allowed: true, reason: "ReleaseCheckPassed", stored: "ReleaseCheckPassed",
		},
		"a pass without rules is retrieved again": {
			script: `{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"pass","noRules":true}}]}`,
			policy: "Fail", allowed: true, reason: "ReleaseCheckPassed", stored: "ReleaseCheckPassed",
		},
		"a fail is denied": {
			script: `{"checks":[{"match":{"step":"RELEASE"},"then":` + fails + `}]}`,
			policy: "Pass", reason: "ReleaseCheckFailed", message: "freeze: not on Friday (http://rules/1)", stored: "ReleaseCheckFailed",
		},
		"a fail is admitted in shadow mode": {
			script: `{"checks":[{"match":{"step":"RELEASE"},"then":` + fails + `}]}`,
			policy: "Pass", shadow: true, allowed: true, reason: "ReleaseCheckFailed", message: "admitted in shadow mode, otherwise denied", stored: "ReleaseCheckFailed",
		},
		"a timeout of the published server is admitted by policy Pass": {
			script: timesOut, policy: "Pass", allowed: true, reason: "ReleaseCheckNoVerdict", message: "admitted unchecked", stored: "VerdictTimedOut", detail: unconfirmed,
		},
		"a timeout of the published server is denied by policy Fail": {
			script: timesOut, policy: "Fail", reason: "ReleaseCheckNoVerdict", message: unconfirmed, stored: "VerdictTimedOut", detail: unconfirmed,
		},
		"a timeout is admitted in shadow mode, and the warning says that policy Fail would deny it": {
			script: timesOut, policy: "Fail", shadow: true, allowed: true, reason: "ReleaseCheckNoVerdict", message: "admitted in shadow mode, otherwise denied", stored: "VerdictTimedOut", detail: unconfirmed,
		},
		"an exception is no verdict": {
			script: `{"checks":[{"match":{"step":"RELEASE"},"then":{"ending":"exception"}}]}`,
			policy: "Fail", reason: "ReleaseCheckNoVerdict", message: unconfirmed, stored: "VerdictTimedOut",
		},
		"an unknown verdict is no verdict": {
			script: `{"checks":[{"match":{"step":"RELEASE"},"then":{"verdict":"xyz"}}]}`,
			policy: "Fail", reason: "ReleaseCheckNoVerdict", message: `the server returned verdict "xyz"`, stored: "NoVerdict",
		},
		"no answer is no verdict": {
			script:  `{"faults":[{"action":"submitAndStartChangeExecOrder","fault":"slow","delay":"1m"}]}`,
			timeout: short, policy: "Pass", allowed: true, reason: "ReleaseCheckNoVerdict", message: "timeout", stored: "VerdictTimedOut",
		},
		"an internal error is no verdict": {
			script: `{"faults":[{"action":"submitAndStartChangeExecOrder","fault":"901"}]}`,
			policy: "Fail", reason: "ReleaseCheckNoVerdict", message: "901", stored: "ServerRejected",
		},
		"a bad gateway is no verdict": {
			script: `{"faults":[{"action":"submitAndStartChangeExecOrder","fault":"502"}]}`,
			policy: "Pass", allowed: true, reason: "ReleaseCheckNoVerdict", message: "502", stored: "ServerUnreachable",
		},
		"a scene of another generation is no verdict": {
			data:   map[string]string{"release-check-scene-key": "scene"},
			script: `{}`, policy: "Pass", allowed: true, reason: "ReleaseCheckNoVerdict", message: "generation 1", stored: "ServerRejected",
		},
		"a missing scene is no verdict, and the message names its key": {
			data:   map[string]string{"release-check-scene-key": ""},
			script: `{}`, policy: "Fail", reason: "ReleaseCheckNoVerdict", message: "release-check-scene-key is missing", stored: "ServerMisconfigured",
		},
		"an invalid configuration is no verdict": {
			data:   map[string]string{"qps": "many"},
			script: `{}`, policy: "Pass", allowed: true, reason: "ReleaseCheckNoVerdict", message: "qps", stored: "ServerMisconfigured",
		},
		"a missing base-url is no verdict": {
			data:   map[string]string{"base-url": ""},
			script: `{}`, policy: "Pass", allowed: true, reason: "ReleaseCheckNoVerdict", message: "base-url", stored: "NoServerConfigured",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, tc.data)
			w.script(t, tc.script)
			w.settings.ReleaseCheckNoVerdict, w.settings.Shadow = tc.policy, tc.shadow
			if tc.timeout > 0 {
				w.settings.ReleaseCheckTimeout = tc.timeout
			}
			got := w.Admit(t.Context(), release(t))
			if got.Response.Allowed != tc.allowed || got.Decision != tc.reason {
				t.Errorf("allowed %v, decision %s", got.Response.Allowed, got.Decision)
			}
			message := strings.Join(got.Response.Warnings, "\n")
			if !tc.allowed {
				message = got.Response.Result.Message
			}
			if !strings.Contains(message, tc.message) || tc.message == "" && message != "" {
				t.Errorf("message is %q", message)
			}
			onWorkload := w.events()
			if tc.message == "" && len(onWorkload) > 0 || tc.message != "" && (len(onWorkload) != 1 || !strings.Contains(onWorkload[0], "Warning "+tc.reason)) {
				t.Errorf("Events: %q", onWorkload)
			}
			if denied := w.sent.Sent(events.TypeReleaseDenied); (len(denied) == 1) == tc.allowed {
				t.Errorf("CloudEvents: %v", denied)
			}
			if r := w.stored(t); r == nil || r.Status.Reason != tc.stored || !strings.Contains(r.Status.Message, tc.detail) || r.Status.Attempt != 3 {
				t.Errorf("stored %+v", r)
			}
			if strings.Contains(message+strings.Join(onWorkload, ""), token) {
				t.Error("the token is in a message or an Event")
			}
		})
	}
}

func TestADenialNamesItsReasonAndTheAlternatives(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	got := w.Admit(t.Context(), release(t)).Response.Result
	r := w.stored(t)
	want := "release check of deployment sleep, version " + r.Spec.Version + " failed: freeze: not on Friday (http://rules/1) (" + r.Status.URL +
		"); change the pod template, or apply it again after 12:00:30Z, when the server is asked again"
	if diff := cmp.Diff(want, got.Message); diff != "" {
		t.Error(diff)
	}
	if got.Code != 403 || got.Reason != "ReleaseCheckFailed" || got.Details.RetryAfterSeconds != 0 || got.Details.Kind != "deployments" {
		t.Errorf("%+v", got)
	}
	var causes []metav1.CauseType
	for _, c := range got.Details.Causes {
		causes = append(causes, c.Type)
		if c.Message == "" {
			t.Errorf("cause %s has no message", c.Type)
		}
		// The verb is that of ClusterRole breakwater-judge, and of the command.
		const who = "users who may patch releasechecks in namespace default can pass this version: kubectl patch releasecheck "
		if c.Type == CauseJudge && !strings.HasPrefix(c.Message, who) {
			t.Errorf("%q does not begin with %q", c.Message, who)
		}
	}
	if diff := cmp.Diff([]metav1.CauseType{CauseVerdict, CauseChange, CauseRetry, CauseJudge, CauseAsk}, causes); diff != "" {
		t.Error(diff)
	}
	e := w.sent.Sent(events.TypeReleaseDenied)[0]
	data, err := events.ParseReleaseDenied(e)
	if err != nil || data.Reason != "ReleaseCheckFailed" || data.User != admissiontest.User || !strings.Contains(data.Message, "not on Friday") {
		t.Errorf("%+v, %v", data, err)
	}
}

func TestTheWarningsOfADenialHaveItsCommandUncut(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	build, long := builder.StoredDeployment, strings.Repeat("n", 63)
	placed := func(d *appsv1.Deployment) { d.Namespace = long }
	warnings := w.Admit(t.Context(), admissiontest.Request(t, build(builder.Name(long), placed, builder.Versioned(2)),
		build(builder.Name(long), placed, builder.Versioned(2), builder.Image("busybox:2")))).Response.Warnings
	if len(warnings) == 0 || !strings.HasSuffix(warnings[0], ` --type merge -p '{"status":{"outcome":"Pass"}}'`) {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestAVersionThatPassedIsNotCheckedAgain(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, passes)
	w.Admit(t.Context(), release(t))
	w.answer(t, fails)
	w.clock.SetTime(noon.Add(24 * time.Hour))
	// Another webhook with an empty cache, and another attempt.
	build := builder.StoredDeployment
	again := admissiontest.Request(t, build(builder.Versioned(7)), build(builder.Versioned(7), builder.Image("busybox:2")))
	if got := w.webhook(t).Admit(t.Context(), again); !got.Response.Allowed || got.Decision != PassedBefore {
		t.Errorf("%+v", got)
	}
	if n := w.checks(); n != 1 {
		t.Errorf("%d release checks", n)
	}
}

func TestARepeatedRequestHasOneAnswerAndOneOrder(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	first := w.Admit(t.Context(), release(t))
	w.answer(t, passes)
	second := w.webhook(t).Admit(t.Context(), release(t))
	if first.Response.Allowed || second.Response.Allowed || second.Decision != "ReleaseCheckFailed" {
		t.Errorf("%+v, then %+v", first, second)
	}
	w.clock.SetTime(noon.Add(AnswerTTL))
	if third := w.webhook(t).Admit(t.Context(), release(t)); !third.Response.Allowed {
		t.Errorf("%+v", third.Response.Result)
	}
	if n, orders := w.checks(), len(w.double.Orders()); n != 2 || orders != 1 {
		t.Errorf("%d release checks in %d orders", n, orders)
	}
}

func TestConcurrentRequestsHaveOneAnswer(t *testing.T) {
	w := newFixture(t, nil)
	w.script(t, `{"checks":[{"match":{"step":"RELEASE"},"nth":1,"then":{"verdict":"fail","delay":"100ms"}},
		{"match":{"step":"RELEASE"},"then":{"verdict":"pass","delay":"100ms"}}]}`)
	webhooks := []*Handler{w.Handler, w.Handler, w.webhook(t), w.webhook(t)}
	allowed := make([]bool, len(webhooks))
	var all sync.WaitGroup
	for i, webhook := range webhooks {
		all.Add(1)
		req := release(t)
		go func() {
			defer all.Done()
			allowed[i] = webhook.Admit(t.Context(), req).Response.Allowed
		}()
	}
	all.Wait()
	for i := range allowed {
		if allowed[i] != allowed[0] {
			t.Fatalf("allowed: %v", allowed)
		}
	}
	if orders := len(w.double.Orders()); orders != 1 {
		t.Errorf("%d orders", orders)
	}
}

func TestAUserCanPassAVersion(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	w.Admit(t.Context(), release(t))
	r := w.stored(t)
	r.Status.Outcome = v1alpha1.OutcomePass
	if _, err := w.change.AppV1alpha1().ReleaseChecks(r.Namespace).Update(t.Context(), r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := w.Admit(t.Context(), release(t)); !got.Response.Allowed || got.Decision != PassedBefore {
		t.Errorf("%+v", got)
	}
}

func TestADryRunDoesNotAskTheServerAndWarns(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	req := release(t)
	req.DryRun = new(true)
	got := w.Admit(t.Context(), req)
	if !got.Response.Allowed || got.Decision != DryRun || len(got.Response.Warnings) != 1 || !strings.Contains(got.Response.Warnings[0], "not asked") {
		t.Errorf("%+v", got)
	}
	expectNoEffect(t, w)
}

// expectNoEffect fails the test if the server was called, or a ReleaseCheck, an Event
// or a CloudEvent was written.
func expectNoEffect(t *testing.T, w *fixture) {
	t.Helper()
	if n := len(w.double.Log().Calls); n > 0 {
		t.Errorf("%d calls to the server", n)
	}
	for _, a := range w.change.Actions() {
		if a.GetVerb() != "get" {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
	if onWorkload := w.events(); len(onWorkload) > 0 {
		t.Errorf("Events: %q", onWorkload)
	}
	if sent := w.sent.Sent(); len(sent) > 0 {
		t.Errorf("CloudEvents: %v", sent)
	}
}

func TestOnlyReleasesOfUsersAreChecked(t *testing.T) {
	build, versioned, image, held := builder.StoredDeployment, builder.Versioned, builder.Image, builder.Held
	good := builder.Version(build(image("busybox:0")))
	repair := builder.Label(v1alpha1.IgnoredSuspendLabel, "true")
	repaired := builder.Bypassed(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: admissiontest.User, Suspend: builder.SuspendedAt, Attempt: 3})
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		by       string
		off      bool
		want     string
	}{
		"check is disabled":              {old: build(versioned(2)), new: build(image("busybox:2")), off: true, want: Disabled},
		"change of metadata":             {old: build(versioned(2)), new: build(versioned(2), builder.Label("team", "a")), want: NotARelease},
		"first update after opt-in":      {old: build(), new: build(builder.Label("team", "a")), want: NotARelease},
		"readmission":                    {old: build(), new: build(), by: v1alpha1.ControllerUser, want: NotARelease},
		"rollback by the controller":     {old: build(versioned(2)), new: build(versioned(2), image("busybox:2")), by: v1alpha1.ControllerUser, want: ByController},
		"version succeeded":              {old: build(versioned(2)), new: build(versioned(2), image("busybox:0")), want: Rollback},
		"denied because of a suspension": {old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:2")), want: Suspended},
		"repair without its annotation":  {old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:2"), repair), want: Suspended},
		"repair":                         {old: build(versioned(2), held), new: build(versioned(2), held, image("busybox:2"), repaired), want: Repair},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.History = admissiontest.History{Successes: []string{good}}
			w.answer(t, fails)
			if tc.off {
				w.settings.ReleaseCheckTimeout = 0
			}
			req := admissiontest.Request(t, tc.old, tc.new)
			if tc.by != "" {
				req.UserInfo.Username = tc.by
			}
			if got := w.Admit(t.Context(), req); !got.Response.Allowed || got.Decision != tc.want || len(got.Response.Warnings) > 0 {
				t.Errorf("%+v", got)
			}
			expectNoEffect(t, w)
		})
	}
}

func TestAReleaseIsChecked(t *testing.T) {
	build, versioned, image := builder.StoredDeployment, builder.Versioned, builder.Image
	for name, tc := range map[string]struct {
		old, new *appsv1.Deployment
		kind     string
		unknown  bool
		attempt  int64
	}{
		"Deployment is created":                   {new: build(), attempt: 1},
		"StatefulSet is created":                  {new: build(), kind: "StatefulSet", attempt: 1},
		"DaemonSet is updated":                    {old: build(versioned(4)), new: build(versioned(4), image("busybox:2")), kind: "DaemonSet", attempt: 5},
		"Deployment is updated":                   {old: build(versioned(4)), new: build(versioned(4), image("busybox:2")), attempt: 5},
		"Deployment without a version is updated": {old: build(), new: build(image("busybox:2")), attempt: 1},
		"history is unknown":                      {old: build(versioned(1)), new: build(versioned(1), image("busybox:2")), unknown: true, attempt: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, nil)
			w.answer(t, passes)
			w.History = admissiontest.History{Unknown: tc.unknown}
			req := admissiontest.Request(t, tc.old, tc.new)
			kind := "Deployment"
			if tc.kind != "" {
				kind = tc.kind
			}
			req.Kind.Kind = kind
			if got := w.Admit(t.Context(), req); !got.Response.Allowed || got.Decision != "ReleaseCheckPassed" {
				t.Errorf("%+v", got)
			}
			r := w.stored(t)
			if r == nil || r.Status.Attempt != tc.attempt || r.Spec.Kind != kind || r.Spec.Name != "sleep" || r.Labels[v1alpha1.VersionKey] != r.Spec.Version {
				t.Fatalf("%+v", r)
			}
			if want := altershield.ReleaseCheckOrderID("one", "default", kind, "sleep", r.Spec.Version, tc.attempt); r.Status.OrderID != want {
				t.Errorf("order is %s", r.Status.OrderID)
			}
		})
	}
}

func TestAWorkloadNameOf253CharactersIsChecked(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, fails)
	long := builder.Name(strings.Repeat("n", 253))
	got := w.Admit(t.Context(), admissiontest.Request(t, nil, builder.StoredDeployment(long)))
	if r := w.stored(t); got.Response.Allowed || r == nil || len(r.Name) > 253 || len(r.Labels[v1alpha1.DeploymentNameLabel]) > 63 {
		t.Errorf("%+v", r)
	}
}

func TestRequestsForOtherObjectsAreAdmitted(t *testing.T) {
	w := newFixture(t, nil)
	req := release(t)
	req.Kind.Kind = "CronJob"
	scale := release(t)
	scale.SubResource = "scale"
	for _, r := range []*admissionv1.AdmissionRequest{req, scale} {
		if got := w.Admit(t.Context(), r); !got.Response.Allowed || got.Decision != NotARelease {
			t.Errorf("%+v", got)
		}
	}
	expectNoEffect(t, w)
}

func TestAMalformedRequestIsDenied(t *testing.T) {
	w := newFixture(t, nil)
	req := release(t)
	req.Object = runtime.RawExtension{Raw: []byte("{")}
	if got := w.Admit(t.Context(), req); got.Response.Allowed || got.Decision != admission.DecisionError {
		t.Errorf("%+v", got)
	}
}

func TestTheAnswerToACanceledRequestIsStored(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, passes)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	w.Admit(canceled, release(t))
	if r := w.stored(t); r == nil || r.Status.Outcome != v1alpha1.OutcomePass {
		t.Errorf("%+v", r)
	}
}

func TestTheServerHasLessTimeThanTheWebhook(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, passes)
	w.settings.ReleaseCheckTimeout = time.Minute
	w.Admit(t.Context(), release(t))
	if got, most := w.checkTimeout(t), responseTimeout-storeReserve-timeoutMargin; got <= 0 || got > most {
		t.Errorf("the server has %s, want at most %s", got, most)
	}
}

func TestASlowServerDoesNotExceedTheWebhooksTimeout(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.script(t, `{"checks":[{"match":{"step":"RELEASE"},"then":`+passes+`}],"faults":[{"fault":"slow","delay":"1m"}]}`)
	got := w.CheckClient.Ask(t.Context(), Query{Namespace: "default", Kind: "Deployment", Name: "sleep", Timeout: time.Second})
	if got.Outcome != v1alpha1.OutcomeNoVerdict {
		t.Errorf("an answer that came after a minute counts: %+v", got)
	}
}

func TestTheServerTimesOutBeforeTheClient(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, passes)
	w.CheckClient.Ask(t.Context(), Query{Namespace: "default", Kind: "Deployment", Name: "sleep", Timeout: 4 * time.Second})
	if got, want := w.checkTimeout(t), 4*time.Second-timeoutMargin; got != want {
		t.Errorf("the server has %s, want %s", got, want)
	}
}

func TestTheServerHasTheTimeThatSlowReadsLeave(t *testing.T) {
	t.Parallel()
	const reads = time.Second
	w := newFixture(t, nil)
	w.answer(t, passes)
	w.settings.ReleaseCheckTimeout = responseTimeout
	w.change.PrependReactor("get", "releasechecks", func(clienttesting.Action) (bool, runtime.Object, error) {
		time.Sleep(reads)
		return false, nil, nil
	})
	w.Admit(t.Context(), release(t))
	if got, most := w.checkTimeout(t), responseTimeout-reads-storeReserve-timeoutMargin; got <= 0 || got > most {
		t.Errorf("the server has %s, want at most %s", got, most)
	}
}

func TestConcurrentReleaseChecksAreLimited(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, passes)
	for i := range maxConcurrent {
		if err := w.CheckClient.places.Acquire(t.Context(), strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	q := Query{Namespace: "default", Kind: "Deployment", Name: "sleep", Timeout: 50 * time.Millisecond}
	if got := w.CheckClient.Ask(t.Context(), q); got.Outcome != v1alpha1.OutcomeNoVerdict || got.Reason != v1alpha1.ReasonReleaseCheckThrottled || w.checks() > 0 {
		t.Errorf("%+v", got)
	}
	w.CheckClient.places.Release("0")
	q.Timeout = 5 * time.Second
	if got := w.CheckClient.Ask(t.Context(), q); got.Outcome != v1alpha1.OutcomePass {
		t.Errorf("%+v", got)
	}
}

func TestReleaseChecksOfOneNamespaceDoNotDelayThoseOfOthers(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nil)
	w.script(t, `{"checks":[{"match":{"step":"RELEASE","namespace":"busy"},"then":{"delay":"1m"}},{"match":{"step":"RELEASE"},"then":`+passes+`}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	for range 2 * maxConcurrent {
		busy.Go(func() {
			w.CheckClient.Ask(ctx, Query{Namespace: "busy", Kind: "Deployment", Name: "sleep", Timeout: time.Minute})
		})
	}
	// Each query first reads a ConfigMap and a Secret.
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return len(w.kube.Actions()) == 2*2*maxConcurrent, nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := w.CheckClient.Ask(t.Context(), Query{Namespace: "other", Kind: "Deployment", Name: "sleep", Timeout: 5 * time.Second}); got.Outcome != v1alpha1.OutcomePass {
		t.Errorf("%+v", got)
	}
	cancel()
	busy.Wait()
}

func TestAChangedTokenIsUsedAtOnce(t *testing.T) {
	w := newFixture(t, nil)
	w.answer(t, passes)
	secrets := w.kube.CoreV1().Secrets(v1alpha1.SystemNamespace)
	set := func(value string) {
		s, err := secrets.Get(t.Context(), altershield.SecretName, metav1.GetOptions{})
		if err == nil {
			s.Data[altershield.TokenKey] = []byte(value)
			_, err = secrets.Update(t.Context(), s, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ask := func() v1alpha1.ReleaseCheckStatus {
		return w.CheckClient.Ask(t.Context(), Query{Namespace: "default", Kind: "Deployment", Name: "sleep", Timeout: w.settings.ReleaseCheckTimeout})
	}
	set("wrong")
	if got := ask(); got.Reason != v1alpha1.ReasonServerRejected || strings.Contains(got.Message, "wrong") {
		t.Errorf("%+v", got)
	}
	set(token)
	if got := ask(); got.Outcome != v1alpha1.OutcomePass {
		t.Errorf("%+v", got)
	}
}
