package rollback

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// at fails the test unless the Deployment has the version and attempt.
func (w *fixture) at(version string, attempt int64) {
	w.t.Helper()
	release, _ := v1alpha1.ReleaseOf(w.now().GetAnnotations())
	if want := (v1alpha1.Release{Version: version, Attempt: attempt}); release != want {
		w.t.Errorf("the Deployment is at %+v, want %+v", release, want)
	}
}

// event returns the next Event, or an empty one.
func (w *fixture) event() string {
	select {
	case e := <-w.recorder.Events:
		return e
	default:
		return ""
	}
}

func TestTheStateOfPodsOnANodeThatIsNotReadyIsNoReasonToRollBack(t *testing.T) {
	w := newFixture(t).stuck()
	if err := w.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
		t.Fatal(err)
	}
	w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
	w.at(w.bad, 2)
}

func TestTheStateOfPodsOnANodeThatIsNotReadyDoesNotPreventARollback(t *testing.T) {
	onLostNode := func(p *corev1.Pod) {
		isReady(p)
		p.Spec.NodeName, p.Status.Conditions[0].Status = "lost", corev1.ConditionFalse
	}
	lost := func(t *testing.T) *fixture {
		w := newFixture(t)
		if err := w.nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "lost"}}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	t.Run("of one of the pods", func(t *testing.T) {
		w := lost(t).stuck()
		w.pod("web-1-c", "web-1", onLostNode)
		w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
		w.at(w.good, 3)
		if r := v1alpha1.RollbackOf(w.now().GetAnnotations()); r == nil || !strings.Contains(r.Message, "its 2 pods are Ready") {
			t.Errorf("the rollback is %+v", r)
		}
	})
	// The former version is not proven: it is a target only because it succeeded, while nothing can get worse.
	for name, ready := range map[string]bool{"of each pod, and one of the release is Ready": true, "of each pod, and none of the release is Ready": false} {
		t.Run(name, func(t *testing.T) {
			w := lost(t)
			w.pod("web-2-a", "web-2", failsToPull)
			w.pod("web-1-a", "web-1", onLostNode)
			if ready {
				w.pod("web-2-b", "web-2", isReady)
			}
			w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
			if ready {
				w.at(w.bad, 2)
			} else {
				w.at(w.good, 3)
			}
		})
	}
}

// A pod that was evicted stays as an object of phase Failed, and its ReplicaSet replaces it.
func TestAPodThatWasEvictedSaysNothingAboutAVersion(t *testing.T) {
	t.Run("the former one is a target", func(t *testing.T) {
		w := newFixture(t).stuck()
		w.pod("web-1-evicted", "web-1", isEvicted)
		w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
		w.at(w.good, 3)
	})
	t.Run("the new one is not rolled back", func(t *testing.T) {
		w := newFixture(t)
		w.pod("web-2-evicted", "web-2", isEvicted)
		w.pod("web-2-a", "web-2", isReady)
		w.pod("web-1-a", "web-1", isReady)
		w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
		w.at(w.bad, 2)
	})
}

func TestARestartBeforeTheReleaseIsNoReasonToRollBackAPodThatIsUpdatedInPlace(t *testing.T) {
	w := newFixture(t)
	c := w.release(w.bad, 2, v1alpha1.ReleaseRunning, "")
	c.CreationTimestamp = metav1.NewTime(ago(time.Minute))
	cloneSet := workload.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "apps.kruise.io", Kind: "CloneSet"}, Revisions: workload.ControllerRevisions}
	for kind, want := range map[*workload.Kind]time.Time{&cloneSet: ago(time.Minute), &workload.StatefulSet: {}} {
		in, err := w.gather(c, &workload.Workload{Kind: *kind})
		if err != nil || !in.Began.Equal(want) {
			t.Errorf("a release of a %s began at %s, want %s; %v", kind.Kind, in.Began, want, err)
		}
	}
}

func TestAStuckReleaseIsRolledBackOnce(t *testing.T) {
	w := newFixture(t).stuck()
	c := w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut)
	w.reconcile(c)
	w.at(w.good, 3)
	want := &v1alpha1.Rollback{Kind: v1alpha1.RollbackSelfHealing, FromVersion: w.bad, FromAttempt: 2, ToVersion: w.good, Attempt: 3, Times: 1}
	rollback := v1alpha1.RollbackOf(w.now().GetAnnotations())
	if diff := cmp.Diff(want, rollback, cmpopts.IgnoreFields(v1alpha1.Rollback{}, "Time", "Message")); diff != "" {
		t.Error(diff)
	}
	for _, words := range []string{"web-2-a (ImagePullBackOff)", "its 2 pods are Ready"} {
		if !strings.Contains(rollback.Message, words) {
			t.Errorf("message of the rollback is %q", rollback.Message)
		}
	}
	if e := w.event(); !strings.HasPrefix(e, "Warning "+v1alpha1.ReasonSelfHealed) || !strings.HasSuffix(e, "; revert your manifest, too") {
		t.Errorf("the Event is %q", e)
	}

	// The status of the failed ChangeWorkload records it, and announces one CloudEvent.
	w.reconcile(c)
	left, err := w.change.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), c.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rollback, left.Status.Rollback); diff != "" {
		t.Error(diff)
	}
	w.reconcile(left)
	if left, err = w.change.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), c.Name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	announced := []v1alpha1.Announcement{{Verb: string(events.VerbRolledBack), Phase: c.Status.Phase, EntryTimeUnix: c.Status.EntryTimeUnix,
		Reason: v1alpha1.ReasonSelfHealed, Message: rollback.Message}}
	if diff := cmp.Diff(announced, left.Status.Announcements); diff != "" {
		t.Error(diff)
	}
	w.at(w.good, 3)
}

func TestTheStatusHasTheLengthsThatTheAPIServerAccepts(t *testing.T) {
	w := newFixture(t)
	c := w.release(w.bad, 1, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut)
	w.annotate(v1alpha1.RollbackAnnotation, string(builder.JSON(t, v1alpha1.Rollback{
		FromVersion: w.bad, FromAttempt: 1, Attempt: 2, User: strings.Repeat("u", maxUser+1), Message: strings.Repeat("m", maxMessage+1)})))
	w.reconcile(c)
	left, err := w.change.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), c.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := left.Status.Rollback; r == nil || len(r.User) > maxUser || len(r.Message) > maxMessage {
		t.Errorf("the status has %+v", r)
	}
}

func TestARollbackNeverOverwritesANewerTemplate(t *testing.T) {
	for name, newer := range map[string]func(*unstructured.Unstructured){
		"with a release of the webhook": func(u *unstructured.Unstructured) { u.SetAnnotations(releaseAnnotations("newer", 3)) },
		"that the webhook missed": func(u *unstructured.Unstructured) {
			u.SetGeneration(3)
			_ = unstructured.SetNestedField(u.Object, "v3", "spec", "template", "metadata", "annotations", "test.breakwater.dev/release")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).stuck()
			w.cached = w.Find("", v1alpha1.WorkloadRef{})
			w.edit(newer)
			before := w.now()
			if again := w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut)); !again {
				t.Error("it does not wait for the cache")
			}
			if diff := cmp.Diff(before, w.now()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The annotations are those of the release before, or the versions differ because of a new default of Kubernetes.
func TestAVersionThatIsNotThatOfTheTemplateDoesNotStopRollbacks(t *testing.T) {
	const request = `{"user":"ann","attempt":2}`
	template := func(u *unstructured.Unstructured, value string, path ...string) {
		if err := unstructured.SetNestedField(u.Object, value, append([]string{"spec", "template"}, path...)...); err != nil {
			t.Fatal(err)
		}
	}
	missed := func(w *fixture) {
		w.answers = false
		w.edit(func(u *unstructured.Unstructured) { template(u, "v3", "metadata", "annotations", builder.Marker) })
	}
	defaulted := func(w *fixture) {
		add := func(u *unstructured.Unstructured) { template(u, "ClusterFirst", "spec", "dnsPolicy") }
		w.edit(add)
		w.editReplicaSets(add)
	}
	for name, tc := range map[string]struct {
		change  func(*fixture)
		request string
		// rolledBack and removed: the rollback is executed, and the request removed.
		rolledBack, removed bool
		again               time.Duration
		event               string
	}{
		"a request, the webhook missed a template":    {missed, request, false, true, 0, "dropped the rollback request of ann: a newer template was applied"},
		"self-healing, the webhook missed a template": {missed, "", false, false, webhookRetry, v1alpha1.ReasonRollbackImpossible},
		"a request, a new default":                    {defaulted, request, true, true, 0, "ann requested it"},
		"self-healing, a new default":                 {defaulted, "", true, false, 0, v1alpha1.ReasonSelfHealed},
		"a request, only the ReplicaSet of the missed template exists": {func(w *fixture) {
			missed(w)
			w.editReplicaSets(func(u *unstructured.Unstructured) {
				if u.GetName() == "web-1" {
					u.SetOwnerReferences(nil)
				}
				template(u, "v3", "metadata", "annotations", builder.Marker)
			})
		}, request, false, false, webhookRetry, ""},
		"a request, no ReplicaSet has the release": {func(w *fixture) {
			missed(w)
			w.editReplicaSets(func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		}, request, false, false, webhookRetry, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).stuck()
			if tc.request != "" {
				w.annotate(v1alpha1.RollbackRequestAnnotation, tc.request)
			}
			tc.change(w)
			c := w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut)
			err := w.ReconcileKind(controller.WithEventRecorder(t.Context(), w.recorder), c)
			if _, after := controller.IsRequeueKey(err); after != tc.again || err != nil && tc.again == 0 {
				t.Errorf("next check after %s, want %s: %v", after, tc.again, err)
			}
			if tc.rolledBack {
				w.at(w.good, 3)
			} else {
				w.at(w.bad, 2)
			}
			if _, requested := w.now().GetAnnotations()[v1alpha1.RollbackRequestAnnotation]; requested != (tc.request != "" && !tc.removed) {
				t.Errorf("the request is there: %t", requested)
			}
			if e := w.event(); !strings.Contains(e, tc.event) || (tc.event == "") != (e == "") {
				t.Errorf("the Event is %q", e)
			}
			if tc.again > 0 {
				w.reconcile(c)
				if e := w.event(); e != "" {
					t.Errorf("reported twice: %q", e)
				}
			}
		})
	}
}

// The API server sets no defaults in a ControllerRevision.
func TestTheRevisionsOfAStatefulSetShowWhetherTheWebhookMissedItsTemplate(t *testing.T) {
	w := &liveworkload.Workload{Release: v1alpha1.Release{Version: "b", Attempt: 2}}
	for name, tc := range map[string]struct {
		templates []savedtemplate.Template
		want      templateState
	}{
		"a new default of Kubernetes":        {[]savedtemplate.Template{{Revision: 2, Version: "b", Recorded: "b"}, {Revision: 1, Version: "a", Recorded: "a"}}, templateRecorded},
		"a revision from before the opt-in":  {[]savedtemplate.Template{{Revision: 1, Version: "b"}}, templateRecorded},
		"a missed template":                  {[]savedtemplate.Template{{Revision: 2, Version: "b", Recorded: "b"}, {Revision: 3, Version: "c", Recorded: "b"}}, templateMissed},
		"a former template, applied again":   {[]savedtemplate.Template{{Revision: 3, Version: "a", Recorded: "a"}, {Revision: 2, Version: "b", Recorded: "b"}}, templateMissed},
		"a missed template, history is gone": {[]savedtemplate.Template{{Revision: 3, Version: "c", Recorded: "b"}}, templateMissed},
		"no revision of the release":         {[]savedtemplate.Template{{Revision: 1, Version: "a", Recorded: "a"}}, templateUnknown},
	} {
		if got := inControllerRevisions(w, tc.templates); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestARollbackFailsIfTheTemplateChangedAfterTheRead(t *testing.T) {
	w := newFixture(t).stuck()
	read, err := w.live.Read(t.Context(), w.release(w.bad, 2, v1alpha1.ReleaseRunning, ""))
	if err != nil {
		t.Fatal(err)
	}
	w.edit(func(u *unstructured.Unstructured) { u.SetGeneration(3) })
	if _, err := w.write(t.Context(), read, v1alpha1.Rollback{Attempt: 3}, Target{Version: w.good, Template: []byte(`{}`)}); err == nil {
		t.Error("written")
	}
	w.at(w.bad, 2)
}

// A policy denies the write, as with its default reason Invalid. A failed test of the patch has the same status.
func TestARollbackThatIsDeniedIsTriedAgainWithBackoff(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*unstructured.Unstructured)
		again     bool
	}{
		"the workload is the same":    {func(*unstructured.Unstructured) {}, false},
		"the workload changed, too":   {func(u *unstructured.Unstructured) { u.SetResourceVersion("1000") }, true},
		"the workload does not exist": {func(u *unstructured.Unstructured) { u.SetUID("another") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).stuck()
			w.dynamic.PrependReactor("patch", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
				w.edit(tc.meanwhile)
				return true, nil, apierrs.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
			})
			err := w.ReconcileKind(controller.WithEventRecorder(t.Context(), w.recorder), w.release(w.bad, 2, v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut))
			if again, _ := controller.IsRequeueKey(err); err == nil || again != tc.again {
				t.Errorf("requeued is %t, want %t: %v", again, tc.again, err)
			}
		})
	}
}

func TestARollbackWaitsForTheWebhook(t *testing.T) {
	w := newFixture(t).stuck()
	w.answers = false
	if again := w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, "")); !again {
		t.Error("it is not retried")
	}
	if u := w.now(); u.GetAnnotations()[v1alpha1.RollbackAnnotation] != "" {
		t.Errorf("written: %v", u.GetAnnotations())
	}
}

func TestWithoutAProvenVersionNothingIsRolledBack(t *testing.T) {
	w := newFixture(t)
	w.pod("web-2-a", "web-2", failsToPull)
	w.pod("web-1-a", "web-1", isReady)
	w.pod("web-1-b", "web-1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	c := w.release(w.bad, 2, v1alpha1.ReleaseRunning, "")
	for range 2 {
		if again := w.reconcile(c); !again {
			t.Error("it is not requeued")
		}
	}
	w.at(w.bad, 2)
	if e := w.event(); !strings.Contains(e, v1alpha1.ReasonRollbackImpossible) {
		t.Errorf("the Event is %q", e)
	}
	if e := w.event(); e != "" {
		t.Errorf("reported twice: %q", e)
	}
}

func TestAFailedReleaseIsRolledBackIfEnabled(t *testing.T) {
	for name, on := range map[string]bool{"on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.settings.AutomaticRollback = on
			w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed))
			if !on {
				w.at(w.bad, 2)
				return
			}
			w.at(w.good, 3)
			if e := w.event(); !strings.HasPrefix(e, "Warning "+v1alpha1.ReasonRolledBack) {
				t.Errorf("the Event is %q", e)
			}
		})
	}
}

func TestARollbackRequestIsExecutedAndRemoved(t *testing.T) {
	w := newFixture(t)
	w.annotate(v1alpha1.RollbackRequestAnnotation, `{"user":"ann","time":null,"attempt":2}`)
	w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed))
	w.at(w.good, 3)
	annotations := w.now().GetAnnotations()
	if r := v1alpha1.RollbackOf(annotations); r == nil || r.User != "ann" || r.Kind != v1alpha1.RollbackRequested || r.Times != 0 {
		t.Errorf("the rollback is %+v", r)
	}
	if raw, ok := annotations[v1alpha1.RollbackRequestAnnotation]; ok {
		t.Errorf("the request is still there: %s", raw)
	}
	if e := w.event(); !strings.Contains(e, "ann requested it") {
		t.Errorf("the Event is %q", e)
	}
}

func TestAnImpossibleRollbackRequestIsRemovedWithAReason(t *testing.T) {
	for name, tc := range map[string]struct{ request, message string }{
		"for an earlier attempt": {`{"user":"ann","attempt":1}`, "names attempt 1"},
		"for an unknown version": {`{"user":"ann","attempt":2,"version":"none"}`, "version none is not saved: it has not succeeded"},
		"malformed":              {`ann`, "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.annotate(v1alpha1.RollbackRequestAnnotation, tc.request)
			w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed))
			w.at(w.bad, 2)
			if raw, ok := w.now().GetAnnotations()[v1alpha1.RollbackRequestAnnotation]; ok {
				t.Errorf("the request is still there: %s", raw)
			}
			if e := w.event(); !strings.Contains(e, tc.message) || !strings.Contains(e, v1alpha1.ReasonRollbackDropped) {
				t.Errorf("the Event is %q", e)
			}
		})
	}
}

func TestAVersionThatFailedItsCheckIsNeverATarget(t *testing.T) {
	for _, phase := range []v1alpha1.ReleasePhase{
		v1alpha1.ReleaseSuspend,
		v1alpha1.ReleaseFailed, // the fail came after it was replaced
	} {
		t.Run(string(phase), func(t *testing.T) {
			w := newFixture(t).stuck()
			w.release(w.good, 1, phase, v1alpha1.ReasonCheckFailed)
			w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, ""))
			w.at(w.bad, 2)
		})
	}
}

func TestAFailOfADeletedWorkloadOfTheSameNameDoesNotCount(t *testing.T) {
	w := newFixture(t).stuck()
	w.release(w.good, 1, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed).Spec.WorkloadRef.UID = "u0"
	w.reconcile(w.release(w.bad, 2, v1alpha1.ReleaseRunning, ""))
	w.at(w.good, 3)
}

func TestAWorkloadThatIsNotOptedInIsNotChanged(t *testing.T) {
	w := newFixture(t).stuck()
	c := w.release(w.bad, 2, v1alpha1.ReleaseRunning, "")
	c.Namespace = "elsewhere"
	w.reconcile(c)
	w.at(w.bad, 2)
}
