package changeworkload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// churning is a release whose pods come and go. Its first batch has a verdict after 5 minutes, and each other one after 10.
type churning struct {
	in   Input
	pods int
}

// never is how long a pod takes that does not become Ready.
const never = 1000 * time.Hour

// start starts a pod, which becomes Ready in a time.
func (c *churning) start(readyIn time.Duration) {
	c.pods++
	name := fmt.Sprintf("web-%d", c.pods)
	c.in.Pods = append(c.in.Pods, Pod{PodSummary: v1alpha1.PodSummary{Pod: name, UID: types.UID(name)}, ReadySince: c.in.Now.Add(readyIn), Created: c.in.Now})
}

// remove removes a pod.
func (c *churning) remove(i int) { c.in.Pods = slices.Delete(slices.Clone(c.in.Pods), i, i+1) }

// reconcile decides, writes the status, and creates the batches.
func (c *churning) reconcile() Decision {
	c.in.Workload.Unavailable = c.in.Workload.Replicas
	for i := range c.in.Pods {
		p := &c.in.Pods[i]
		if p.Finished = !c.in.Now.Before(p.ReadySince); p.Finished {
			c.in.Workload.Unavailable--
		}
	}
	for i, b := range c.in.ChangePods {
		if age := c.in.Now.Sub(b.CreationTimestamp.Time); age >= 10*time.Minute || i == 0 && age >= 5*time.Minute {
			b.Status.Phase = v1alpha1.BatchExecuteDone
			b.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: "pass"}}
		}
	}
	in := withoutLater(c.in)
	d := Decide(in)
	c.in.ChangeWorkload = derive(in, d)
	for _, pods := range d.Batches {
		b := newChangePod(in.ChangeWorkload, position{n: nextIndex(c.in.ChangePods)}, pods, in.Now)
		b.CreationTimestamp = metav1.NewTime(in.Now)
		c.in.ChangePods = append(c.in.ChangePods, b)
	}
	return d
}

// Pods are replaced, added or removed each minute, sooner than a verdict arrives.
func TestAReleaseEndsAlthoughPodsComeAndGo(t *testing.T) {
	const replicas = 50
	add := func(c *churning, readyIn time.Duration) { c.in.Workload.Replicas++; c.start(readyIn) }
	for name, each := range map[string]func(c *churning, minute int, readyIn time.Duration){
		"the oldest pod is replaced": func(c *churning, _ int, readyIn time.Duration) { c.remove(0); c.start(readyIn) },
		"another pod is replaced": func(c *churning, minute int, readyIn time.Duration) {
			c.remove(7 * minute % replicas)
			c.start(readyIn)
		},
		"a pod is added every other minute": func(c *churning, minute int, readyIn time.Duration) {
			if minute%2 == 0 {
				add(c, readyIn)
			}
		},
		"the newest pod is removed and added again": func(c *churning, minute int, readyIn time.Duration) {
			if minute%2 == 0 {
				c.in.Workload.Replicas--
				c.remove(replicas - 1)
			} else if minute > 1 {
				add(c, readyIn)
			}
		},
		"one pod is added after a pass, and does not become Ready": func(c *churning, minute int, _ time.Duration) {
			if minute == 7 {
				add(c, never)
			}
		},
	} {
		for _, readyIn := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprintf("%s, Ready after %s", name, readyIn), func(t *testing.T) {
				c := churning{in: release(replicas, complete1)}
				for range replicas - 1 {
					c.start(0)
				}
				c.start(readyIn)
				for minute := 1; c.reconcile().Phase != v1alpha1.ReleaseSuccess; minute++ {
					c.reconcile() // the events of the batches
					if minute > 60 {
						t.Fatalf("not a Success after an hour, with %d batches: %+v", len(c.in.ChangePods), c.in.ChangeWorkload.Status.Counts)
					}
					c.in.Now = c.in.Now.Add(time.Minute)
					each(&c, minute, readyIn)
				}
				if n := len(c.in.ChangePods); n > 2*replicas {
					t.Errorf("%d batches", n)
				}
			})
		}
	}
}

// An autoscaler scales a workload of 2 pods to 20 while the first ones are judged.
func TestPodsThatAnAutoscalerAddsBeforeTheFirstPassAreJudged(t *testing.T) {
	c := churning{in: release(2, complete1)}
	c.start(0)
	c.start(0)
	c.reconcile()
	c.reconcile()
	c.in.Now, c.in.Workload.Replicas = c.in.Now.Add(time.Minute), 20
	for range 18 {
		c.start(time.Minute)
	}
	for range 10 {
		c.reconcile()
		c.in.Now = c.in.Now.Add(time.Minute)
	}
	if got := c.in.ChangeWorkload.Status; got.RolledOutPods != 20 || got.Counts.Pods != 20 {
		t.Errorf("%d pods decide the release, counts are %+v", got.RolledOutPods, got.Counts)
	}
}

func TestWhenARolloutWasComplete(t *testing.T) {
	type options []func(*Input)
	before := func(n int32) func(*Input) {
		return func(in *Input) { in.ChangeWorkload.Status.RolledOutPods = n }
	}
	onNotReadyNode := func(in *Input) {
		starting(3)(in)
		in.Pods[len(in.Pods)-1].OnNotReadyNode = true
	}
	oneOf := options{finished(1, 1), judged(1, "")}
	two := options{finished(1, 2), judged(1, "pass"), judged(2, ""), complete1}
	for name, tc := range map[string]struct {
		replicas int32
		options  []options
		want     int32
	}{
		"pods are still replaced":                               {2, []options{oneOf, {finished(2, 2), judged(2, "pass")}}, 0},
		"a partition, a canary or OnDelete leaves old pods":     {2, []options{oneOf}, 0},
		"each pod is in a batch":                                {2, []options{two}, 2},
		"a pod is in no batch":                                  {2, []options{oneOf, {finished(2, 2), complete1}}, 0},
		"a newer pod is in no batch":                            {2, []options{two, {starting(3)}}, 2},
		"a newer pod is not available":                          {2, []options{two, {judged(3, "pass"), unavailable(1)}}, 3},
		"no pod has passed":                                     {2, []options{{finished(1, 2), judged(1, ""), judged(2, ""), complete1}}, 0},
		"a pod has passed unjudged":                             {2, []options{{finished(1, 2), judged(1, "done"), judged(2, ""), complete1}}, 2},
		"the only pod that passed was deleted":                  {2, []options{{judged(1, "pass"), finished(2, 3), judged(2, ""), judged(3, ""), complete1}}, 3},
		"a pod that passed was replaced, and that starts":       {2, []options{{judged(1, "pass"), finished(2, 2), judged(2, ""), starting(3), complete1}}, 2},
		"a pod is not in the cache yet":                         {2, []options{oneOf, {complete1}}, 0},
		"a pod was deleted after it passed":                     {2, []options{two, {judged(3, "pass")}}, 3},
		"a pod was deleted without a verdict":                   {2, []options{two, {judged(3, "")}}, 2},
		"a pod was deleted after it passed unjudged":            {2, []options{two, {judged(3, "done")}}, 2},
		"a pod waits on a node that is not Ready":               {2, []options{two, {onNotReadyNode}}, 2},
		"the node of a pod in a batch is not Ready":             {1, []options{two, {nodeOfFirstNotReady}}, 2},
		"the node of a pod in a batch is not Ready, one starts": {3, []options{{finished(1, 3), judged(1, "pass"), judged(2, "pass"), judged(3, "pass"), nodeOfFirstNotReady, starting(4), complete1}}, 0},
		"a node is Ready again, the status lags, one starts":    {2, []options{two, {starting(3), func(in *Input) { in.Workload.Misscheduled = 1 }}}, 0},
		"no pod is wanted":                                      {0, []options{{complete1}}, 0},
		"no pod is wanted any more":                             {0, []options{{judged(1, "pass"), complete1}}, 1},
		"a pod failed":                                          {2, []options{{finished(1, 2), judged(1, "pass"), judged(2, "fail"), complete1}}, 2},
		"a person passed it":                                    {2, []options{{finished(1, 2), judged(1, "pass"), judged(2, "fail"), person("pass"), complete1}}, 2},
		"the rollout was complete, more pods are wanted":        {3, []options{two, {starting(3), before(2)}}, 2},
		"the rollout was complete, a pod was deleted":           {1, []options{two, {before(3)}}, 3},
		"the rollout was complete, scaled to 0 before a pass":   {0, []options{{judged(1, ""), complete1, before(1)}}, 0},
		"the rollout was complete, scaled to 0 after a pass":    {0, []options{{judged(1, "pass"), complete1, before(1)}}, 1},
		"the workload in the cache is older than the release":   {2, []options{two, {behind}}, 0},
		"a newer release replaced it":                           {2, []options{two, {newer, before(2), was(v1alpha1.ReleaseSuccess)}}, 2},
		"it succeeded before an upgrade":                        {2, []options{two, {was(v1alpha1.ReleaseSuccess)}}, 0},
		"a baseline":                                            {1, []options{{finished(1, 1), complete1, func(in *Input) { in.ChangeWorkload.Spec.Attempt, in.Workload.Attempt = 0, 0 }}}, 0},
		"a Knative Service":                                     {2, []options{two, {func(in *Input) { in.Workload.KnativeService = true }}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := withoutLater(release(tc.replicas, slices.Concat(tc.options...)...))
			if got := derive(in, Decide(in)).Status.RolledOutPods; got != tc.want {
				t.Errorf("%d pods, want %d", got, tc.want)
			}
		})
	}
}

func TestPodsThatStartAfterTheRolloutAreNotJudged(t *testing.T) {
	type options []func(*Input)
	deleted := func(numbers ...string) func(*Input) {
		return func(in *Input) {
			in.Pods = slices.DeleteFunc(in.Pods, func(p Pod) bool { return slices.Contains(numbers, p.Pod[1:]) })
		}
	}
	changePodDeleted := func(in *Input) { in.ChangePods = in.ChangePods[1:] }
	forgotten := func(in *Input) { in.ChangeWorkload.Status.RolledOutPods = 0 }
	wanted := func(n int32) func(*Input) { return func(in *Input) { in.Workload.Replicas = n } }
	firstNotReady := func(in *Input) { in.Pods[0].ReadySince = time.Time{} }
	nodeOfLastNotReady := func(in *Input) { in.Pods[len(in.Pods)-1].OnNotReadyNode = true }
	const running, success = v1alpha1.ReleaseRunning, v1alpha1.ReleaseSuccess
	for name, tc := range map[string]struct {
		// verdicts are those of the pods 1 and 2, whose rollout was complete.
		verdicts [2]string
		then     options
		judged   string
		later    int
		phase    v1alpha1.ReleasePhase
	}{
		"nothing":                                                         {[2]string{"pass", ""}, nil, "1 2", 0, running},
		"one more is wanted":                                              {[2]string{"pass", ""}, options{wanted(3), finished(3, 3)}, "1 2", 1, running},
		"one more, and both have passed":                                  {[2]string{"pass", "pass"}, options{wanted(3), finished(3, 3), was(running)}, "1 2", 1, success},
		"one more, which is not Ready":                                    {[2]string{"pass", "pass"}, options{wanted(3), starting(3), unavailable(1), was(running)}, "1 2", 1, success},
		"one that passed is replaced, and that starts":                    {[2]string{"pass", "pass"}, options{deleted("1"), starting(3), unavailable(1), was(running)}, "2", 1, success},
		"one more starts, one passed and is not Ready":                    {[2]string{"pass", "pass"}, options{wanted(3), starting(3), unavailable(2), firstNotReady, was(running)}, "1 2", 1, running},
		"one that passed is not Ready any more":                           {[2]string{"pass", "pass"}, options{unavailable(1), was(running)}, "1 2", 0, running},
		"one more, which is Ready, one passed and is not Ready":           {[2]string{"pass", "pass"}, options{wanted(3), finished(3, 3), unavailable(1), firstNotReady, was(running)}, "1 2", 1, running},
		"one more starts, the node of one that passed is not Ready":       {[2]string{"pass", "pass"}, options{starting(3), unavailable(1), firstNotReady, nodeOfFirstNotReady, was(running)}, "1 2", 1, success},
		"one more, which is not in the cache yet":                         {[2]string{"pass", "pass"}, options{wanted(3), was(running)}, "1 2", 0, running},
		"one that passed is replaced":                                     {[2]string{"pass", ""}, options{deleted("1"), finished(3, 3)}, "2", 1, running},
		"both passed, and are replaced":                                   {[2]string{"pass", "pass"}, options{was(running), deleted("1", "2"), finished(3, 4)}, "", 2, success},
		"one that a person passed is replaced":                            {[2]string{"pass", ""}, options{judgedByPerson(2, "pass"), deleted("2"), finished(3, 3)}, "1", 1, success},
		"one without a verdict is replaced":                               {[2]string{"pass", ""}, options{deleted("2"), finished(3, 3)}, "1 3", 0, running},
		"the replacement of one without a verdict starts":                 {[2]string{"pass", ""}, options{deleted("2"), starting(3), unavailable(1)}, "1 3", 0, running},
		"the replacement of one without a verdict is not cached yet":      {[2]string{"pass", ""}, options{deleted("2")}, "1", 0, running},
		"the replacement of one without a verdict is replaced, too":       {[2]string{"pass", ""}, options{deleted("2"), judged(3, ""), finished(4, 4)}, "1 4", 0, running},
		"the replacement of one without a verdict passed":                 {[2]string{"pass", ""}, options{deleted("2"), finished(3, 4), judged(3, "pass"), wanted(3)}, "1 3", 1, success},
		"one without a verdict is not replaced":                           {[2]string{"pass", ""}, options{deleted("2"), wanted(1)}, "1", 0, success},
		"both are replaced, one passed unjudged":                          {[2]string{"done", ""}, options{deleted("1", "2"), finished(3, 4)}, "3 4", 0, running},
		"both are replaced, one passed unjudged, and one more is wanted":  {[2]string{"done", ""}, options{deleted("1", "2"), wanted(3), finished(3, 5)}, "3 4", 1, running},
		"a verdict arrives after the deletion":                            {[2]string{"pass", ""}, options{deleted("2"), finished(3, 3), judgedByPerson(2, "pass")}, "1", 1, success},
		"one that passed unjudged is replaced":                            {[2]string{"", "done"}, options{deleted("2"), finished(3, 3)}, "1 3", 0, running},
		"one that is held unjudged is replaced":                           {[2]string{"pass", "done"}, options{was(running), noVerdict("Hold"), deleted("2"), finished(3, 3)}, "1 3", 0, running},
		"the Ready one of two is judged":                                  {[2]string{"pass", ""}, options{deleted("2"), wanted(3), starting(3), finished(4, 4)}, "1 4", 1, running},
		"the ChangePod of one is deleted":                                 {[2]string{"pass", ""}, options{changePodDeleted}, "1 2", 0, running},
		"a node that was not Ready comes back":                            {[2]string{"pass", ""}, options{wanted(3), finished(3, 3)}, "1 2", 1, running},
		"a node that is not Ready has a later pod":                        {[2]string{"pass", ""}, options{starting(3), nodeOfLastNotReady}, "1 2", 0, running},
		"the node of a later pod is not Ready any more":                   {[2]string{"pass", "pass"}, options{finished(3, 3), nodeOfLastNotReady, was(running)}, "1 2", 0, success},
		"the node of a judged pod is not Ready any more":                  {[2]string{"pass", ""}, options{nodeOfLastNotReady}, "1 2", 0, running},
		"one is replaced, and a later one is on a node that is not Ready": {[2]string{"pass", ""}, options{deleted("2"), finished(3, 4), nodeOfLastNotReady}, "1 3", 0, running},
		"the rollout was not complete":                                    {[2]string{"pass", ""}, options{forgotten, wanted(3), finished(3, 3)}, "1 2 3", 0, running},
		"the release has succeeded":                                       {[2]string{"pass", "pass"}, options{wanted(3), finished(3, 3)}, "1 2 3", 0, success},
		"the release has succeeded, and fails":                            {[2]string{"pass", "pass"}, options{wanted(3), finished(3, 3), judgedByPerson(1, "fail"), recorded}, "1 2", 1, v1alpha1.ReleaseSuspend},
		"the first one fails":                                             {[2]string{"pass", ""}, options{wanted(3), finished(3, 3), judgedByPerson(1, "fail")}, "1 2", 1, v1alpha1.ReleaseSuspend},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(2, finished(1, 2), judged(1, tc.verdicts[0]), judged(2, tc.verdicts[1]), complete1, recorded)
			for _, o := range tc.then {
				o(&in)
			}
			in = withoutLater(in)
			var numbers []string
			for _, p := range in.Pods {
				numbers = append(numbers, p.Pod[1:])
			}
			d := Decide(in)
			if got := strings.Join(numbers, " "); got != tc.judged || in.Later != tc.later || d.Phase != tc.phase {
				t.Errorf("judged are %q, %d are not, %s (%s); want %q, %d, %s", got, in.Later, d.Phase, d.Detail, tc.judged, tc.later, tc.phase)
			}
		})
	}
}

// Otherwise the status would be written some seconds later, when a further pod may be in no batch yet.
func TestTheEndOfARolloutIsWrittenAtOnce(t *testing.T) {
	in := release(2, finished(1, 2), judged(1, "pass"), judged(2, ""), recorded, complete1)
	if next := derive(in, Decide(in)); compare(in.ChangeWorkload, next) != transition || next.Status.RolledOutPods != 2 {
		t.Errorf("got %d with %d pods", compare(in.ChangeWorkload, next), next.Status.RolledOutPods)
	}
}

// A pod that starts later is in no count, so no batch that replaces one seems to leave pods.
func TestABatchAfterTheRolloutIsTheLast(t *testing.T) {
	in := release(2, finished(1, 2), judged(1, "pass"), judged(2, ""), complete1, recorded)
	in.Workload.Replicas, in.Pods = 3, slices.Delete(in.Pods, 1, 2)
	finished(3, 4)(&in)
	in = withoutLater(in)
	if at := positions(in, Decide(in).Batches); len(at) != 1 || !at[0].last || at[0].total != 3 {
		t.Errorf("got %+v", at)
	}
}
