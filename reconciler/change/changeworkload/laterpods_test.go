package changeworkload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

func TestWhenARevisionHasEnoughPods(t *testing.T) {
	first, within := settings.RevisionPods{Count: 2}, settings.RevisionPods{Window: 10 * time.Minute}
	for name, tc := range map[string]struct {
		limit   settings.RevisionPods
		pods    firstPodsOf
		created time.Duration
		want    bool
	}{
		"the first 2: none is in a batch":              {first, firstPodsOf{}, 24 * time.Hour, false},
		"the first 2: one is":                          {first, firstPodsOf{1, t0}, 24 * time.Hour, false},
		"the first 2: two are":                         {first, firstPodsOf{2, t0}, 0, true},
		"the first 2: three are, the limit was higher": {first, firstPodsOf{3, t0}, 0, true},
		"in 10m: none is in a batch":                   {within, firstPodsOf{}, 24 * time.Hour, false},
		"in 10m: created before the first batch":       {within, firstPodsOf{1, t0}, -time.Minute, false},
		"in 10m: created at the end":                   {within, firstPodsOf{1, t0}, 10 * time.Minute, false},
		"in 10m: created after it":                     {within, firstPodsOf{1, t0}, 10*time.Minute + time.Second, true},
		"in 10m: any number":                           {within, firstPodsOf{200, t0}, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.pods.enough(tc.limit, t0.Add(tc.created)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// podOfRevision is pod n of a Revision, such as web-00001.
func podOfRevision(revision string, n int) v1alpha1.PodSummary {
	name := fmt.Sprintf("%s-deployment-5d4f8b7c9-%05d", revision, n)
	return v1alpha1.PodSummary{Pod: name, UID: types.UID(name)}
}

// scaledUp adds pod n of a Revision that was created, and Ready if it is finished, at t0 + at.
func scaledUp(revision string, n int, at time.Duration, finished bool) func(*Input) {
	return func(in *Input) {
		p := Pod{PodSummary: podOfRevision(revision, n), Finished: finished, Created: t0.Add(at)}
		if finished {
			p.ReadySince = p.Created
		}
		in.Pods = append(in.Pods, p)
	}
}

// inBatch adds batch n, at t0, of pod n of a Revision; see judged.
func inBatch(revision string, n int, word string) func(*Input) {
	return func(in *Input) {
		judged(n, word)(in)
		in.ChangePods[len(in.ChangePods)-1].Spec.PodInfos[0] = podOfRevision(revision, n)
	}
}

// latest is the latest Revision of the Service.
func latest(revision string) func(*Input) {
	return func(in *Input) { in.LatestReplicaSets = []string{revision + "-deployment-5d4f8b7c9"} }
}

func TestPodsThatComeLaterAreNotJudged(t *testing.T) {
	type options []func(*Input)
	const late = time.Hour
	firstTwo := func(in *Input) { in.Settings.RevisionPods = settings.RevisionPods{Count: 2} }
	otherKind := func(in *Input) { in.Workload.KnativeService = false }
	one := scaledUp("web-00001", 1, 0, true)
	for name, tc := range map[string]struct {
		options options
		// judged are the numbers of the pods that are judged.
		judged string
		later  int
	}{
		"no pod is in a batch: all":               {options{one, scaledUp("web-00001", 2, late, true)}, "1 2", 0},
		"a pod within the window":                 {options{one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, 9*time.Minute, true)}, "1 2", 0},
		"a pod that starts within it":             {options{one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, 9*time.Minute, false)}, "1 2", 0},
		"a pod after it":                          {options{one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, late, true)}, "1", 1},
		"a pod that starts after it":              {options{one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, late, false)}, "1", 1},
		"while the first is checked":              {options{one, inBatch("web-00001", 1, ""), scaledUp("web-00001", 2, late, true)}, "1", 1},
		"when the first has failed":               {options{one, inBatch("web-00001", 1, "fail"), scaledUp("web-00001", 2, late, true)}, "1", 1},
		"when the first was deleted":              {options{inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, late, true)}, "", 1},
		"the first passed unjudged":               {options{one, inBatch("web-00001", 1, "done"), scaledUp("web-00001", 2, late, true)}, "1 2", 0},
		"the first waits for a verdict":           {options{one, inBatch("web-00001", 1, "done"), noVerdict(v1alpha1.NoVerdictHold), scaledUp("web-00001", 2, late, true)}, "1", 1},
		"a pod that is in a batch":                {options{one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, late, true), inBatch("web-00001", 2, "")}, "1 2", 0},
		"the first of another Revision":           {options{one, inBatch("web-00001", 1, "pass"), scaledUp("web-00002", 2, late, true)}, "1 2", 0},
		"another kind":                            {options{otherKind, one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, late, true)}, "1 2", 0},
		"the first 2 by the time of their Ready":  {options{firstTwo, scaledUp("web-00001", 3, 3, true), scaledUp("web-00001", 2, 1, true), scaledUp("web-00001", 1, 2, true)}, "2 1", 1},
		"the first 2: one that starts is not yet": {options{firstTwo, scaledUp("web-00001", 3, 0, false), scaledUp("web-00001", 2, 1, true), scaledUp("web-00001", 1, 2, true)}, "2 1", 1},
		"the first 2: the second one starts":      {options{firstTwo, one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, 0, false), scaledUp("web-00001", 3, 1, false)}, "1 2", 1},
		"the first 2 of each Revision": {options{firstTwo, one, inBatch("web-00001", 1, "pass"), scaledUp("web-00001", 2, 0, true), inBatch("web-00001", 2, "pass"),
			scaledUp("web-00001", 3, 0, true), scaledUp("web-00002", 4, 0, true), scaledUp("web-00002", 5, 0, true), scaledUp("web-00002", 6, 0, true)}, "1 2 4 5", 2},
		"the first 2: unjudged ones do not count": {options{firstTwo, one, inBatch("web-00001", 1, "done"), scaledUp("web-00001", 2, 0, true), inBatch("web-00001", 2, "done"),
			scaledUp("web-00001", 3, 0, true), scaledUp("web-00001", 4, 0, true), scaledUp("web-00001", 5, 0, true)}, "1 2 3 4", 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(1, append(options{func(in *Input) { in.Workload.KnativeService = true }}, tc.options...)...)
			in = withoutLater(in)
			var numbers []string
			for _, p := range in.Pods {
				numbers = append(numbers, p.Pod[len(p.Pod)-1:])
			}
			if got := strings.Join(numbers, " "); got != tc.judged || in.Later != tc.later {
				t.Errorf("judged are %q, and %d are not; want %q and %d", got, in.Later, tc.judged, tc.later)
			}
		})
	}
}

// An autoscaler that always adds pods does not keep a release from its end, and no release ends
// without a pod that was judged.
func TestAReleaseEndsWithItsFirstPods(t *testing.T) {
	rolledOut := func(in *Input) {
		in.Workload.KnativeService, in.Workload.Updated = true, true
		latest("web-00001")(in)
	}
	late := scaledUp("web-00001", 2, time.Hour, true)
	for name, tc := range map[string]struct {
		options []func(*Input)
		want    v1alpha1.ReleasePhase
		batches int
	}{
		"the first pod passed":          {[]func(*Input){inBatch("web-00001", 1, "pass"), late}, v1alpha1.ReleaseSuccess, 0},
		"the first pod is checked":      {[]func(*Input){inBatch("web-00001", 1, ""), late}, v1alpha1.ReleaseRunning, 0},
		"the first pod failed":          {[]func(*Input){inBatch("web-00001", 1, "fail"), late}, v1alpha1.ReleaseSuspend, 0},
		"the first pod passed unjudged": {[]func(*Input){inBatch("web-00001", 1, "done"), late}, v1alpha1.ReleaseRunning, 1},
		"no pod is in a batch":          {[]func(*Input){late}, v1alpha1.ReleaseRunning, 1},
		"a scale change made another Revision": {[]func(*Input){latest("web-00002"), inBatch("web-00001", 1, "pass"), scaledUp("web-00002", 2, time.Hour, true)},
			v1alpha1.ReleaseRunning, 1},
	} {
		t.Run(name, func(t *testing.T) {
			in := withoutLater(release(1, append([]func(*Input){rolledOut, after(time.Hour)}, tc.options...)...))
			if d := Decide(in); d.Phase != tc.want || len(d.Batches) != tc.batches {
				t.Errorf("%s with %d new batches (%s), want %s with %d", d.Phase, len(d.Batches), d.Detail, tc.want, tc.batches)
			}
		})
	}
}

// A change of scale creates a further Revision while the release runs. It gets the traffic, so the
// release does not end by the pods of the earlier one.
func TestAReleaseEndsWithAPodOfItsLatestRevision(t *testing.T) {
	type options []func(*Input)
	const (
		running, success         = v1alpha1.ReleaseRunning, v1alpha1.ReleaseSuccess
		scaledToZero, judging    = v1alpha1.ReasonScaledToZero, v1alpha1.ReasonJudging
		allPassed, verdict, none = v1alpha1.ReasonAllPodsPassed, v1alpha1.ReasonVerdictReceived, v1alpha1.ReasonJudging
	)
	earlier, further := inBatch("web-00001", 1, "pass"), latest("web-00002")
	otherKind := func(in *Input) { in.Workload.KnativeService = false }
	for name, tc := range map[string]struct {
		options options
		phase   v1alpha1.ReleasePhase
		reason  string
		judged  string // the reason of condition Judged
	}{
		"the only one passed":                {options{earlier, latest("web-00001")}, success, allPassed, verdict},
		"its pods are gone":                  {options{earlier, further}, running, scaledToZero, none},
		"its pods are gone for days":         {options{earlier, further, after(48 * time.Hour)}, running, scaledToZero, none},
		"the earlier one still has its pods": {options{earlier, further, scaledUp("web-00001", 1, 0, true)}, running, scaledToZero, none},
		"the earlier one has later pods":     {options{earlier, further, scaledUp("web-00001", 3, time.Hour, true)}, running, scaledToZero, none},
		"its pod starts":                     {options{earlier, further, scaledUp("web-00002", 2, 0, false)}, running, v1alpha1.ReasonRollingOut, none},
		"its pod is Ready":                   {options{earlier, further, scaledUp("web-00002", 2, 0, true)}, running, judging, none},
		"its pod is checked, and gone":       {options{earlier, further, inBatch("web-00002", 2, "")}, running, judging, none},
		"its pod passed, and is gone":        {options{earlier, further, inBatch("web-00002", 2, "pass")}, success, allPassed, verdict},
		"its pod passed unjudged":            {options{earlier, further, inBatch("web-00002", 2, "done")}, success, allPassed, v1alpha1.ReasonPassedUnjudged},
		"its pod failed":                     {options{earlier, further, inBatch("web-00002", 2, "fail")}, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed, verdict},
		"a newer one replaced it":            {options{earlier, latest("web-00003"), inBatch("web-00003", 2, "pass")}, success, allPassed, verdict},
		"only the earlier one has no pod":    {options{further, inBatch("web-00002", 2, "pass")}, success, allPassed, verdict},
		"its ReplicaSet is not cached":       {options{earlier}, running, scaledToZero, none},
		"the release succeeded before it":    {options{earlier, further, was(success)}, success, "", verdict},
		"another kind":                       {options{otherKind, earlier, scaledUp("web-00001", 1, 0, true)}, success, allPassed, verdict},
		"another kind without replicas":      {options{otherKind, func(in *Input) { in.Workload.Replicas = 0 }}, success, v1alpha1.ReasonNoVerdict, v1alpha1.ReasonNoVerdict},
	} {
		t.Run(name, func(t *testing.T) {
			in := withoutLater(release(1, append(options{func(in *Input) { in.Workload.KnativeService, in.Workload.Updated = true, true }}, tc.options...)...))
			d := Decide(in)
			if d.Phase != tc.phase || d.Reason != tc.reason {
				t.Errorf("%s %s (%s), want %s %s", d.Phase, d.Reason, d.Detail, tc.phase, tc.reason)
			}
			if got := derive(in, d).Status.GetCondition(v1alpha1.ReleaseJudged).GetReason(); got != tc.judged {
				t.Errorf("Judged has reason %s, want %s", got, tc.judged)
			}
		})
	}
}

func TestTheStatusSaysHowManyPodsAreNotJudged(t *testing.T) {
	in := release(1, inBatch("web-00001", 1, "pass"))
	in.Later = 3
	outcomes := podOutcomes(in)
	if diff := cmp.Diff("0 pods passed, 0 are being checked, 0 are not in a batch yet; 3 later ones are not judged", outcomes.summary()); diff != "" {
		t.Error(diff)
	}
}

// The pods of Revisions with long names have names that are cut.
func TestThePodsOfTwoRevisionsHaveDifferentNames(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		same bool
	}{
		"two pods":      {"web-00001-deployment-5d4f8b7c9-abcde", "web-00001-deployment-5d4f8b7c9-xyz12", true},
		"two Revisions": {"web-00001-deployment-5d4f8b7c9-abcde", "web-00002-deployment-5d4f8b7c9-abcde", false},
		"a cut name":    {"a-service-with-a-long-name-in-its-namespace-00001-deploymenabcde", "a-service-with-a-long-name-in-its-namespace-00002-deploymenabcde", false},
		"a short name":  {"p1", "p2", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := generatedFrom(tc.a) == generatedFrom(tc.b); got != tc.same {
				t.Errorf("%s and %s: %t, want %t", tc.a, tc.b, got, tc.same)
			}
		})
	}
}

// The names of pods are cut, and those of ReplicaSets are not.
func TestTheBatchesOfTheLatestRevisionAreFoundByItsReplicaSet(t *testing.T) {
	const long = "a-service-with-a-long-name-in-its-namespace-"
	for name, tc := range map[string]struct {
		replicaSets []string
		pod         string
		want        bool
	}{
		"its pod":                    {[]string{"web-00002-deployment-5d4f8b7c9"}, "web-00002-deployment-5d4f8b7c9-abcde", true},
		"a pod of another Revision":  {[]string{"web-00002-deployment-5d4f8b7c9"}, "web-00001-deployment-5d4f8b7c9-abcde", false},
		"a name that begins alike":   {[]string{"web-0000-deployment-5d4f8b7c9"}, "web-00001-deployment-5d4f8b7c9-abcde", false},
		"another ReplicaSet":         {[]string{"web-00002-deployment-5d4f8b7c9"}, "web-00002-deployment-5d4f8b7c-abcde", false},
		"its pod before a change":    {[]string{"web-00002-deployment-5d4f8b7c9", "web-00002-deployment-6c8d4f5b7"}, "web-00002-deployment-5d4f8b7c9-abcde", true},
		"its pod after a change":     {[]string{"web-00002-deployment-5d4f8b7c9", "web-00002-deployment-6c8d4f5b7"}, "web-00002-deployment-6c8d4f5b7-abcde", true},
		"a cut name":                 {[]string{long + "00001-deployment-5d4f8b7c9"}, long + "00001-deploymenabcde", true},
		"a cut name of another one":  {[]string{long + "00002-deployment-5d4f8b7c9"}, long + "00001-deploymenabcde", false},
		"no ReplicaSet is cached":    {nil, "web-00002-deployment-5d4f8b7c9-abcde", false},
		"no ReplicaSet, a long name": {nil, long + "00001-deploymenabcde", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(1, inBatch("web-00001", 1, ""))
			in.LatestReplicaSets, in.ChangePods[0].Spec.PodInfos[0].Pod = tc.replicaSets, tc.pod
			if got := len(batchesOfLatest(in)) == 1; got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
