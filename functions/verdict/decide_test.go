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

// said is a verdict for node n of the first batch.
func said(stage v1alpha1.Stage, word string, edit ...func(*events.ChangePodVerdict)) events.ChangePodVerdict {
	v := events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: "n", Stage: stage, Verdict: word, Message: word + " because",
		Time: metav1.NewMicroTime(ft.Now()),
	}
	for _, e := range edit {
		e(&v)
	}
	return v
}

func withoutRules(v *events.ChangePodVerdict) { v.Unjudged = true }

func TestAWordReplacesOnlyALowerOne(t *testing.T) {
	const nothing, unjudged = "nothing", "unjudged pass"
	// The words by rank; a word replaces exactly those before it.
	ranks := [][]string{{nothing}, {"none", "inconc", "", "a new word"}, {unjudged}, {"pass"}, {"fail", "unpass"}}
	for oldRank, olds := range ranks {
		for newRank, news := range ranks[1:] {
			newRank++
			for _, old := range olds {
				for _, word := range news {
					t.Run(fmt.Sprintf("%q after %q", word, old), func(t *testing.T) {
						batch := ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))
						if old != nothing {
							ft.Judged(post, strings.TrimPrefix(old, "unjudged "))(batch)
							batch.Status.Verdicts[0].Unjudged = old == unjudged
						}
						v := said(post, strings.TrimPrefix(word, "unjudged "))
						v.Unjudged = word == unjudged
						got := Decide(Input{Pod: batch, Said: v, Asked: true, Now: ft.Now()})
						if replaced := !cmp.Equal(batch.Status.Verdicts, got.Verdicts); replaced != (newRank > oldRank) {
							t.Errorf("the verdict became %v", got.Verdicts)
						}
					})
				}
			}
		}
	}
}

func TestWhatBecomesOfAVerdict(t *testing.T) {
	type change = func(*v1alpha1.ChangePod)
	for name, tc := range map[string]struct {
		batch            []change
		said             events.ChangePodVerdict
		asked, confirmed bool
		want             Outcome
		unjudged         bool
	}{
		"the first of its stage is stored":                 {said: said(pre, "pass"), want: Store},
		"an unknown word is stored too":                    {said: said(post, "hm"), want: Store},
		"the other stage does not matter":                  {batch: []change{ft.Judged(pre, "pass")}, said: said(post, "fail"), want: Store},
		"the same again changes nothing":                   {batch: []change{ft.Judged(pre, "pass")}, said: said(pre, "pass"), want: Unchanged},
		"another node is an old one":                       {said: said(pre, "fail", func(v *events.ChangePodVerdict) { v.NodeID = "m" }), want: OldNode},
		"a batch that was not started has no node":         {batch: []change{func(p *v1alpha1.ChangePod) { p.Status.ChangePodID = "" }}, said: said(pre, "fail"), want: OldNode},
		"a later ChangePod of the name is another one":     {said: said(pre, "fail", func(v *events.ChangePodVerdict) { v.UID = "x" }), want: OtherObject},
		"a pass without rules is asked about":              {said: said(post, "pass", withoutRules), want: AskRetrieve},
		"a pass without rules that retrieve confirms":      {said: said(post, "pass", withoutRules), asked: true, confirmed: true, want: Store},
		"a pass without rules that nobody confirms":        {said: said(post, "pass", withoutRules), asked: true, want: Store, unjudged: true},
		"a pass without rules after a pass is not asked":   {batch: []change{ft.Judged(post, "pass")}, said: said(post, "pass", withoutRules), want: Unchanged},
		"a pass without rules after a fail is not asked":   {batch: []change{ft.Judged(post, "fail")}, said: said(post, "pass", withoutRules), want: Unchanged},
		"only a pass can be without rules":                 {said: said(post, "none", withoutRules), want: Store},
		"a late fail of a batch that is done is stored":    {batch: []change{ft.Judged(post, "pass"), func(p *v1alpha1.ChangePod) { p.Status.Phase = v1alpha1.PodExecuteDone }}, said: said(post, "fail"), want: Store},
		"a fail of a pod in a batch that passed is stored": {batch: []change{ft.Judged(post, "pass")}, said: said(post, "pass", pods("a=fail")), want: Store},
	} {
		t.Run(name, func(t *testing.T) {
			batch := ft.NewBatch(1, []string{"a"}, append([]change{ft.Started("n", 0)}, tc.batch...)...)
			got := Decide(Input{Pod: batch, Said: tc.said, Asked: tc.asked, Confirmed: tc.confirmed, Now: ft.Now()})
			if got.Outcome != tc.want {
				t.Errorf("outcome is %s, want %s", got.Outcome, tc.want)
			}
			status := v1alpha1.ChangePodStatus{Verdicts: got.Verdicts}
			if v := status.VerdictOf(tc.said.Stage); v != nil && v.Unjudged != tc.unjudged {
				t.Errorf("unjudged is %v", v.Unjudged)
			}
		})
	}
}

// pods adds results such as a=fail.
func pods(results ...string) func(*events.ChangePodVerdict) {
	return func(v *events.ChangePodVerdict) {
		for _, r := range results {
			name, word, _ := strings.Cut(r, "=")
			v.PodResults = append(v.PodResults, v1alpha1.PodSummary{Pod: name, Verdict: word, Message: word + " of " + name})
		}
	}
}

func TestWhatIsSaidOfSinglePods(t *testing.T) {
	person := func(results ...v1alpha1.PodSummary) []v1alpha1.PodSummary { return results }
	server := func(pod, word string) v1alpha1.PodSummary {
		return v1alpha1.PodSummary{Pod: pod, Verdict: word, Source: v1alpha1.SourceServer}
	}
	for name, tc := range map[string]struct {
		before []v1alpha1.PodSummary
		said   events.ChangePodVerdict
		// want is pod=word, with a star for a person's.
		want string
	}{
		"a pass of the stage names nobody":                      {said: said(post, "pass"), want: ""},
		"no verdict of the stage names nobody":                  {said: said(post, "none"), want: ""},
		"a fail of the stage fails every pod":                   {said: said(post, "fail"), want: "a=fail b=fail"},
		"a fail before the change fails every pod":              {said: said(pre, "unpass"), want: "a=unpass b=unpass"},
		"pods that are named are judged by name":                {said: said(post, "pass", pods("a=fail", "b=pass")), want: "a=fail b=pass"},
		"a pod that is not named is meant by the stage":         {said: said(post, "fail", pods("a=pass", "b=fail")), want: "a=pass b=fail"},
		"a pod that is not named fails with the stage":          {said: said(post, "fail", pods("a=fail")), want: "a=fail b=fail"},
		"a fail of the stage is not talked away by its details": {said: said(post, "fail", pods("a=pass", "b=pass")), want: "a=fail b=fail"},
		"before the change no pod can have passed":              {said: said(pre, "pass", pods("a=pass", "b=none")), want: ""},
		"before the change a pod can have failed":               {said: said(pre, "pass", pods("a=pass", "b=fail")), want: "b=fail"},
		"a pod of another batch is nobody":                      {said: said(post, "pass", pods("z=fail")), want: ""},
		"an earlier pod of the name is nobody":                  {said: said(post, "pass", pods("a=fail"), func(v *events.ChangePodVerdict) { v.PodResults[0].UID = "old" }), want: ""},
		"a person's word stays":                                 {before: person(v1alpha1.PodSummary{Pod: "a", Verdict: "pass"}), said: said(post, "fail"), want: "a=pass* b=fail"},
		"a server's fail stays":                                 {before: person(server("a", "fail")), said: said(post, "pass", pods("a=pass")), want: "a=fail"},
		"a server's pass gives way to a fail":                   {before: person(server("a", "pass")), said: said(post, "fail"), want: "a=fail b=fail"},
		"a server's no verdict gives way to a pass":             {before: person(server("a", "none")), said: said(post, "pass", pods("a=pass")), want: "a=pass"},
	} {
		t.Run(name, func(t *testing.T) {
			batch := ft.NewBatch(1, []string{"a", "b"}, ft.Started("n", 0))
			batch.Status.PodResults = tc.before
			got := Decide(Input{Pod: batch, Said: tc.said, Now: ft.Now()})
			var words []string
			for _, r := range got.PodResults {
				word := r.Pod + "=" + r.Verdict
				if r.Source == "" {
					word += "*"
				}
				words = append(words, word)
			}
			if diff := cmp.Diff(tc.want, strings.Join(words, " ")); diff != "" {
				t.Error(diff)
			}
			batch.Status.Verdicts, batch.Status.PodResults = got.Verdicts, got.PodResults
			if again := Decide(Input{Pod: batch, Said: tc.said, Now: ft.Now()}); again.Outcome != Unchanged {
				t.Errorf("the same again is %s", again.Outcome)
			}
		})
	}
}

func TestAFailedPodIsNamedWithItsReasonAndItsPlace(t *testing.T) {
	batch := ft.NewBatch(1, []string{"a"}, ft.Started("n", 0))
	got := Decide(Input{Pod: batch, Said: said(post, "fail"), Now: ft.Now()})
	want := []v1alpha1.PodSummary{{
		Pod: "a", UID: "uid-a", Namespace: ft.Namespace, IP: "10.0.0.1",
		Verdict: "fail", Message: "fail because", Source: v1alpha1.SourceServer,
	}}
	if diff := cmp.Diff(want, got.PodResults); diff != "" {
		t.Error(diff)
	}
}

func TestAHugeBatchDoesNotOutgrowItsObject(t *testing.T) {
	var names []string
	for i := range 5000 {
		names = append(names, fmt.Sprintf("pod-%d", i))
	}
	batch := ft.NewBatch(1, names, ft.Started("n", 0))
	v := said(post, "fail")
	v.Message = strings.Repeat("é", 512)
	got := Decide(Input{Pod: batch, Said: v, Now: ft.Now()})
	size := 0
	for _, r := range got.PodResults {
		size += len(r.Message)
	}
	if len(got.PodResults) != maxDerived || size > messageBudget {
		t.Errorf("%d results with %d bytes of messages", len(got.PodResults), size)
	}
	if got.Outcome != Store || got.Verdicts[0].Verdict != "fail" {
		t.Error("the verdict of the whole batch is missing")
	}
}

func TestDecideChangesNothingOfItsInput(t *testing.T) {
	batch := ft.NewBatch(1, []string{"a", "b"}, ft.Started("n", 0), ft.Judged(post, "pass"))
	batch.Status.PodResults = []v1alpha1.PodSummary{{Pod: "a", Verdict: "pass", Source: v1alpha1.SourceServer}}
	before := batch.DeepCopy()
	Decide(Input{Pod: batch, Said: said(post, "fail"), Now: ft.Now()})
	if diff := cmp.Diff(before, batch); diff != "" {
		t.Error(diff)
	}
}
