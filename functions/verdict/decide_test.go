package verdict

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

const (
	pre  = v1alpha1.StagePre
	post = v1alpha1.StagePost
)

// received returns a verdict for node n of the first batch.
func received(stage v1alpha1.Stage, verdict string, edit ...func(*events.ChangePodVerdict)) events.ChangePodVerdict {
	v := events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: "n", Stage: stage, Verdict: verdict, Message: verdict + " because",
		Time: metav1.NewMicroTime(ft.Now()),
	}
	for _, e := range edit {
		e(&v)
	}
	return v
}

func withoutRules(v *events.ChangePodVerdict) { v.WithoutRules = true }

func TestAVerdictReplacesOnlyOneOfLowerPrecedence(t *testing.T) {
	const missing, unconfirmed = "missing", "unconfirmed pass"
	ranks := [][]string{{missing}, {"none", "inconc", "", "unknown"}, {unconfirmed}, {"pass"}, {"fail", "unpass"}}
	for oldRank, olds := range ranks {
		for newRank, news := range ranks[1:] {
			newRank++
			for _, old := range olds {
				for _, verdict := range news {
					t.Run(fmt.Sprintf("%q after %q", verdict, old), func(t *testing.T) {
						batch := ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))
						if old != missing {
							ft.Judged(post, strings.TrimPrefix(old, "unconfirmed "))(batch)
							batch.Status.Verdicts[0].UnconfirmedPass = old == unconfirmed
						}
						v := received(post, strings.TrimPrefix(verdict, "unconfirmed "))
						v.WithoutRules = verdict == unconfirmed
						got := Decide(Input{Batch: batch, Received: v, Retrieved: RetrievedNothing, Now: ft.Now()})
						if replaced := !cmp.Equal(batch.Status.Verdicts, got.Verdicts); replaced != (newRank > oldRank) {
							t.Errorf("verdicts are %v", got.Verdicts)
						}
					})
				}
			}
		}
	}
}

func TestDecideForAVerdictOfABatch(t *testing.T) {
	type change = func(*v1alpha1.ChangePod)
	for name, tc := range map[string]struct {
		batch        []change
		received     events.ChangePodVerdict
		retrieved    Retrieved
		want         Action
		unconfirmed  bool
		contradicted bool
	}{
		"first of its stage":                   {received: received(pre, "pass"), want: Store},
		"unknown value":                        {received: received(post, "hm"), want: Store},
		"after a pass of the other stage":      {batch: []change{ft.Judged(pre, "pass")}, received: received(post, "fail"), want: Store},
		"duplicate":                            {batch: []change{ft.Judged(pre, "pass")}, received: received(pre, "pass"), want: Unchanged},
		"fail of an earlier node":              {batch: []change{ft.StartedAgain("n", "m")}, received: received(pre, "fail"), want: Store},
		"fail of an earlier node after a pass": {batch: []change{ft.StartedAgain("n", "m"), ft.Judged(pre, "pass")}, received: received(pre, "fail"), want: Store},
		"pass of an earlier node":              {batch: []change{ft.StartedAgain("n", "m")}, received: received(pre, "pass"), want: Store},
		"fail while the start is repeated":     {batch: []change{ft.StartedAgain("n", "")}, received: received(pre, "fail"), want: Store},
		"for another node":                     {received: received(pre, "fail", func(v *events.ChangePodVerdict) { v.NodeID = "m" }), want: UnknownNode},
		"batch not started":                    {batch: []change{func(p *v1alpha1.ChangePod) { p.Status.ChangePodID = "" }}, received: received(pre, "fail"), want: UnknownNode},
		"ChangePod replaced":                   {received: received(pre, "fail", func(v *events.ChangePodVerdict) { v.UID = "x" }), want: OtherObject},
		"pass without rules":                   {received: received(post, "pass", withoutRules), want: AskRetrieve},
		"pass without rules, confirmed":        {received: received(post, "pass", withoutRules), retrieved: RetrievedPass, want: Store},
		"pass without rules, no answer":        {received: received(post, "pass", withoutRules), retrieved: RetrievedNothing, want: Store, unconfirmed: true},
		"pass without rules, contradicted":     {received: received(post, "pass", withoutRules), retrieved: RetrievedOther, want: Store, unconfirmed: true, contradicted: true},
		"pass without rules again":             {batch: []change{ft.Unconfirmed(post, false)}, received: received(post, "pass", withoutRules), want: AskRetrieve, unconfirmed: true},
		"contradicted by a later answer":       {batch: []change{ft.Unconfirmed(post, false)}, received: received(post, "pass", withoutRules), retrieved: RetrievedOther, want: Store, unconfirmed: true, contradicted: true},
		"contradicted again":                   {batch: []change{ft.Unconfirmed(post, true)}, received: received(post, "pass", withoutRules), retrieved: RetrievedOther, want: Unchanged, unconfirmed: true, contradicted: true},
		"no answer after a contradiction":      {batch: []change{ft.Unconfirmed(post, true)}, received: received(post, "pass", withoutRules), retrieved: RetrievedNothing, want: Unchanged, unconfirmed: true, contradicted: true},
		"confirmed after a contradiction":      {batch: []change{ft.Unconfirmed(post, true)}, received: received(post, "pass", withoutRules), retrieved: RetrievedPass, want: Store},
		"pass with rules, contradicted before": {batch: []change{ft.Unconfirmed(post, true)}, received: received(post, "pass"), want: Store},
		"fail, contradicted before":            {batch: []change{ft.Unconfirmed(post, true)}, received: received(post, "fail"), want: Store},
		"pass without rules after a pass":      {batch: []change{ft.Judged(post, "pass")}, received: received(post, "pass", withoutRules), want: Unchanged},
		"pass without rules after a fail":      {batch: []change{ft.Judged(post, "fail")}, received: received(post, "pass", withoutRules), want: Unchanged},
		"no verdict without rules":             {received: received(post, "none", withoutRules), want: Store},
		"late fail of a batch that is over":    {batch: []change{ft.Judged(post, "pass"), func(p *v1alpha1.ChangePod) { p.Status.Phase = v1alpha1.BatchExecuteDone }}, received: received(post, "fail"), want: Store},
		"fail of a pod in a batch that passed": {batch: []change{ft.Judged(post, "pass")}, received: received(post, "pass", pods("a=fail")), want: Store},
	} {
		t.Run(name, func(t *testing.T) {
			batch := ft.NewBatch(1, []string{"a"}, append([]change{ft.Started("n", 0)}, tc.batch...)...)
			got := Decide(Input{Batch: batch, Received: tc.received, Retrieved: tc.retrieved, Now: ft.Now()})
			if got.Action != tc.want {
				t.Errorf("action is %s, want %s", got.Action, tc.want)
			}
			status := v1alpha1.ChangePodStatus{Verdicts: got.Verdicts}
			if v := status.VerdictOf(tc.received.Stage); v != nil && (v.UnconfirmedPass != tc.unconfirmed || v.Contradicted != tc.contradicted) {
				t.Errorf("UnconfirmedPass is %v and Contradicted %v, want %v and %v", v.UnconfirmedPass, v.Contradicted, tc.unconfirmed, tc.contradicted)
			}
		})
	}
}

// pods adds results such as a=fail.
func pods(results ...string) func(*events.ChangePodVerdict) {
	return func(v *events.ChangePodVerdict) {
		for _, r := range results {
			name, verdict, _ := strings.Cut(r, "=")
			v.PodResults = append(v.PodResults, v1alpha1.PodSummary{Pod: name, Verdict: verdict, Message: verdict + " of " + name})
		}
	}
}

func TestResultsOfPods(t *testing.T) {
	results := func(results ...v1alpha1.PodSummary) []v1alpha1.PodSummary { return results }
	server := func(pod, verdict string) v1alpha1.PodSummary {
		return v1alpha1.PodSummary{Pod: pod, Verdict: verdict, Source: v1alpha1.SourceServer}
	}
	for name, tc := range map[string]struct {
		before   []v1alpha1.PodSummary
		received events.ChangePodVerdict
		// want has pod=verdict, with a star for a result of a person.
		want string
	}{
		"pass of the stage":                           {received: received(post, "pass"), want: ""},
		"no verdict of the stage":                     {received: received(post, "none"), want: ""},
		"fail of the stage":                           {received: received(post, "fail"), want: "a=fail b=fail"},
		"fail of stage PRE":                           {received: received(pre, "unpass"), want: "a=unpass b=unpass"},
		"results of pods":                             {received: received(post, "pass", pods("a=fail", "b=pass")), want: "a=fail b=pass"},
		"fail of the stage, results of all pods":      {received: received(post, "fail", pods("a=pass", "b=fail")), want: "a=pass b=fail"},
		"fail of the stage, result of one pod":        {received: received(post, "fail", pods("a=fail")), want: "a=fail b=fail"},
		"fail of the stage, all pods passed":          {received: received(post, "fail", pods("a=pass", "b=pass")), want: "a=fail b=fail"},
		"stage PRE, pod passed":                       {received: received(pre, "pass", pods("a=pass", "b=none")), want: ""},
		"stage PRE, pod failed":                       {received: received(pre, "pass", pods("a=pass", "b=fail")), want: "b=fail"},
		"pod of another batch":                        {received: received(post, "pass", pods("z=fail")), want: ""},
		"earlier pod of the same name":                {received: received(post, "pass", pods("a=fail"), func(v *events.ChangePodVerdict) { v.PodResults[0].UID = "old" }), want: ""},
		"fail of the stage, pod passed by a person":   {before: results(v1alpha1.PodSummary{Pod: "a", Verdict: "pass"}), received: received(post, "fail"), want: "a=pass* b=fail"},
		"pass of a pod after the server's fail":       {before: results(server("a", "fail")), received: received(post, "pass", pods("a=pass")), want: "a=fail"},
		"fail of the stage after the server's pass":   {before: results(server("a", "pass")), received: received(post, "fail"), want: "a=fail b=fail"},
		"pass of a pod after the server's no verdict": {before: results(server("a", "none")), received: received(post, "pass", pods("a=pass")), want: "a=pass"},
	} {
		t.Run(name, func(t *testing.T) {
			batch := ft.NewBatch(1, []string{"a", "b"}, ft.Started("n", 0))
			batch.Status.PodResults = tc.before
			got := Decide(Input{Batch: batch, Received: tc.received, Now: ft.Now()})
			var pairs []string
			for _, r := range got.PodResults {
				pair := r.Pod + "=" + r.Verdict
				if r.Source == "" {
					pair += "*"
				}
				pairs = append(pairs, pair)
			}
			if diff := cmp.Diff(tc.want, strings.Join(pairs, " ")); diff != "" {
				t.Error(diff)
			}
			batch.Status.Verdicts, batch.Status.PodResults = got.Verdicts, got.PodResults
			if again := Decide(Input{Batch: batch, Received: tc.received, Now: ft.Now()}); again.Action != Unchanged {
				t.Errorf("action for the duplicate is %s", again.Action)
			}
		})
	}
}

func TestADerivedResultHasMessageAndAddressOfThePod(t *testing.T) {
	batch := ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))
	got := Decide(Input{Batch: batch, Received: received(post, "fail"), Now: ft.Now()})
	want := []v1alpha1.PodSummary{{
		Pod: "a", UID: "uid-a", Namespace: ft.Namespace, IP: "10.0.0.1",
		Verdict: "fail", Message: "fail because", Source: v1alpha1.SourceServer,
	}}
	if diff := cmp.Diff(want, got.PodResults); diff != "" {
		t.Error(diff)
	}
}

func TestDerivedResultsAreLimited(t *testing.T) {
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("pod-%d", i))
	}
	batch := ft.NewBatch(1, names, ft.Started("n", 0))
	v := received(post, "fail")
	v.Message = strings.Repeat("é", 512)
	got := Decide(Input{Batch: batch, Received: v, Now: ft.Now()})
	size := 0
	for _, r := range got.PodResults {
		size += len(r.Message)
	}
	if len(got.PodResults) != maxDerived || size > maxMessageBytes {
		t.Errorf("%d results with %d bytes of messages", len(got.PodResults), size)
	}
	if got.Action != Store || got.Verdicts[0].Verdict != "fail" {
		t.Error("the verdict of the batch is missing")
	}
}

func TestDecideDoesNotModifyItsInput(t *testing.T) {
	batch := ft.NewBatch(1, []string{"a", "b"}, ft.Started("n", 0), ft.Judged(post, "pass"))
	batch.Status.PodResults = []v1alpha1.PodSummary{{Pod: "a", Verdict: "pass", Source: v1alpha1.SourceServer}}
	before := batch.DeepCopy()
	Decide(Input{Batch: batch, Received: received(post, "fail"), Now: ft.Now()})
	if diff := cmp.Diff(before, batch); diff != "" {
		t.Error(diff)
	}
}
