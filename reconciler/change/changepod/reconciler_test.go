package changepod

import (
	"context"
	"testing"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

func TestABatchWhoseReleaseIsNotCachedIsReconciledAgain(t *testing.T) {
	r := &Reconciler{namespaces: namespaces(t, "", true), changeWorkloads: listers.NewChangeWorkloadLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))}
	c := batch()
	if err := r.ReconcileKind(context.Background(), c); err != nil {
		t.Errorf("a batch without an owner: %v", err)
	}
	c.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: new(true)}}
	if again, _ := controller.IsRequeueKey(r.ReconcileKind(context.Background(), c)); !again {
		t.Error("a batch with an owner is not reconciled again")
	}
}

// namespaces returns a lister of one namespace.
func namespaces(t *testing.T, name string, optedIn bool) corelisters.NamespaceLister {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if optedIn {
		ns.Labels = map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}
	}
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := all.Add(ns); err != nil {
		t.Fatal(err)
	}
	return corelisters.NewNamespaceLister(all)
}

// An opted-out namespace is not judged: its batches wait until it is opted in again.
func TestNoCallIsMadeForABatchOfANamespaceThatIsOptedOut(t *testing.T) {
	f := newFlood(t, 1, 1)
	f.r.namespaces = namespaces(t, floodNamespace, false)
	f.run(20, time.Minute)
	if got := f.get("r00--0").Status; len(got.Submissions) > 0 || got.Phase != v1alpha1.BatchInit {
		t.Errorf("phase %q, calls %v of an opted-out namespace", got.Phase, got.Submissions)
	}
	f.r.namespaces = namespaces(t, floodNamespace, true)
	f.enqueue("r00--0", 0)
	f.run(20, 2*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonVerdictReceived] != 1 {
		t.Errorf("batches by reason after the opt-in: %v", got)
	}
}

// optIn opts the namespace in or out, and reconciles its batches.
func (f *flood) optIn(optedIn bool) {
	f.r.namespaces = namespaces(f.t, floodNamespace, optedIn)
	for _, c := range f.list() {
		f.enqueue(c.Name, 0)
	}
}

// The timeout of the stage passes during the opt-out, and the callback is lost.
func TestAfterAnOptInTheServerIsAskedBeforeABatchIsUnjudged(t *testing.T) {
	f := newFlood(t, 1, 1)
	f.run(20, time.Minute) // other namespaces have decisions before
	c := batch(submission(v1alpha1.StagePre, true))
	c.Namespace, c.Name, c.UID, c.ResourceVersion, c.Spec.ChangeWorkloadID = floodNamespace, "r00--0", "lost", "1", "r00"
	c.Status.Submissions[0].IntentTime = metav1.NewMicroTime(f.clock.Now())
	f.write(c)
	f.optIn(false)
	f.run(20, 10*time.Minute)
	f.retrieves = true
	f.optIn(true)
	f.run(20, 11*time.Minute)
	if got := f.count(); got[v1alpha1.ReasonVerdictReceived] != 1 {
		t.Errorf("batches by reason: %v, want one that is judged", got)
	}
}

func TestAfterAnOptInAJudgeHasTimeToAnswer(t *testing.T) {
	for _, policy := range []v1alpha1.NoVerdictPolicy{v1alpha1.NoVerdictPass, v1alpha1.NoVerdictFail} {
		t.Run(string(policy), func(t *testing.T) {
			f := newFlood(t, 1, 1)
			c := judgedBy([]v1alpha1.Judge{silent(byMetric, policy)})
			c.Namespace, c.Name, c.UID, c.ResourceVersion, c.Spec.ChangeWorkloadID = floodNamespace, "r00--0", "judged", "1", "r00"
			f.write(c)
			f.run(20, time.Minute)
			f.optIn(false)
			f.run(20, 10*time.Minute)
			f.woken = nil
			f.optIn(true)
			f.run(20, 10*time.Minute+judgeGrace-time.Second)
			if got := f.get(c.Name).Status.Phase; got == v1alpha1.BatchExecuteDone || f.woken[v1alpha1.JudgeMetrics] == 0 {
				t.Errorf("phase %q just before the end of the grace, the judge was woken %d times", got, f.woken[v1alpha1.JudgeMetrics])
			}
			f.run(20, 10*time.Minute+judgeGrace+time.Second)
			if got := f.get(c.Name).Status.Phase; got != v1alpha1.BatchExecuteDone {
				t.Errorf("phase %q after the grace", got)
			}
		})
	}
}

func TestABatchSaysWhyItsOrderIsNotAccepted(t *testing.T) {
	f := newFlood(t, 1, 1)
	const why = "the server was not called to open the order"
	f.owners.List()[0].(*v1alpha1.ChangeWorkload).Status.Conditions = []apis.Condition{{
		Type: v1alpha1.ReleaseOrderAccepted, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonOrderNotAccepted, Message: why,
	}}
	f.run(20, time.Minute)
	cond := f.get("r00--0").Status.GetCondition(v1alpha1.BatchJudged)
	if cond.GetReason() != v1alpha1.ReasonOrderNotAccepted || cond.GetMessage() != "unjudged: "+why {
		t.Errorf("condition Judged is %+v", cond)
	}
}

func TestTheTransitionTimeOfAConditionChangesOnlyWithIt(t *testing.T) {
	c := batch(verdict(v1alpha1.StagePost, "pass"))
	d := Decide(Input{Now: t0, Settings: settings.Default(), ServerConfigured: true, ChangePod: c})
	c, _ = derive(c, d, settings.Default(), t0)
	for i := range c.Status.Conditions {
		c.Status.Conditions[i].LastTransitionTime = apis.VolatileTime{Inner: metav1.NewTime(t0)}
	}
	next, changed := derive(c, d, settings.Default(), t0.Add(time.Hour))
	if changed {
		t.Error("the status changed")
	}
	for _, cond := range next.Status.Conditions {
		if !cond.LastTransitionTime.Inner.Time.Equal(t0) {
			t.Errorf("the transition time of %s is %s", cond.Type, cond.LastTransitionTime.Inner)
		}
	}
}

func TestAnUnjudgedBatchNeverLooksJudged(t *testing.T) {
	const pre, post = v1alpha1.StagePre, v1alpha1.StagePost
	unconfirmed := func(s *v1alpha1.ChangePodStatus) {
		s.Verdicts = append(s.Verdicts, v1alpha1.StageVerdict{Stage: post, Verdict: "pass", UnconfirmedPass: true, Time: metav1.NewMicroTime(t0)})
	}
	for name, c := range map[string]*v1alpha1.ChangePod{
		"POST is inconclusive":          batch(verdict(pre, "pass"), verdict(post, "inconc")),
		"an unconfirmed pass":           batch(verdict(pre, "pass"), submission(post, true), unconfirmed),
		"no PRE verdict":                batch(submission(pre, true)),
		"no POST verdict":               batch(verdict(pre, "pass"), submission(post, true)),
		"the server rejected the start": batch(submission(pre, false)),
		"a person gives no verdict":     batch(verdict(pre, "pass"), verdict(post, "none"), person("maybe")),
	} {
		for policy, succeeded := range map[v1alpha1.NoVerdictPolicy]string{"Pass": "True", "Hold": "Unknown", "Fail": "False"} {
			t.Run(name+", policy "+string(policy), func(t *testing.T) {
				s := settings.Default()
				s.NoVerdict = policy
				now := t0.Add(time.Hour)
				d := Decide(Input{Now: now, Settings: s, ServerConfigured: true, ChangePod: c})
				next, _ := derive(c, d, s, now)
				if cond := next.Status.GetCondition(v1alpha1.BatchJudged); !cond.IsFalse() {
					t.Errorf("condition Judged is %+v", cond)
				}
				if cond := next.Status.GetCondition(apis.ConditionSucceeded); string(cond.Status) != succeeded {
					t.Errorf("condition Succeeded is %+v, want %s", cond, succeeded)
				}
			})
		}
	}
}

func TestWritesOfInterimPhasesAreLimited(t *testing.T) {
	r := &Reconciler{interimWrites: rate.NewLimiter(rate.Every(interimWritePeriod), 1)}
	waits := Decision{Phase: v1alpha1.BatchPreWait, Since: t0}
	for _, tc := range []struct {
		name string
		d    Decision
		at   time.Duration
		want time.Duration
	}{
		{"new interim phase", waits, 0, minPhaseAge},
		{"interim phase of the minimum age", waits, minPhaseAge, 0},
		{"interim phase above the limit", waits, minPhaseAge, interimWriteRetry},
		{"end", Decision{Phase: v1alpha1.BatchExecuteDone, Since: t0}, 0, 0},
		{"held unjudged batch", Decision{Phase: v1alpha1.BatchPreWait, HeldUnjudged: true, Since: t0}, 0, 0},
		{"interim phase after the write period", waits, minPhaseAge + interimWritePeriod, 0},
	} {
		if got := r.writeDelay(tc.d, t0.Add(tc.at)); got != tc.want {
			t.Errorf("%s: the delay is %s, want %s", tc.name, got, tc.want)
		}
	}
}
