package verdict_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// judgedBy is an edit: the batch has these judges.
func judgedBy(names ...string) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		for _, name := range names {
			p.Spec.Judges = append(p.Spec.Judges, v1alpha1.Judge{Name: name})
		}
	}
}

// said is an edit: a judge other than the server has given a verdict.
func said(judge, word string) func(*v1alpha1.ChangePod) {
	return func(p *v1alpha1.ChangePod) {
		p.Status.Judges = append(p.Status.Judges, v1alpha1.JudgeVerdict{Judge: judge, Stage: v1alpha1.StagePost, Verdict: word, Time: metav1.NewMicroTime(ft.Now())})
	}
}

// judgeVerdict returns the data of a verdict of a judge on the first batch.
func judgeVerdict(judge, word string) events.JudgeVerdict {
	return events.JudgeVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", Version: ft.Version, Attempt: 1,
		Judge: judge, Stage: v1alpha1.StagePost, Verdict: word, Reason: "R", Message: "m", Time: metav1.NewMicroTime(ft.Now()),
	}
}

func TestAVerdictOfAJudgeReplacesOnlyOneOfLowerPrecedence(t *testing.T) {
	for name, tc := range map[string]struct {
		batch  *v1alpha1.ChangePod
		said   string
		action verdict.Action
		want   string // the stored verdict of judge canary
	}{
		"the first verdict":                {ft.NewBatch(1, []string{"a"}, judgedBy("canary")), "pass", verdict.Store, "pass"},
		"a late pass replaces none":        {ft.NewBatch(1, []string{"a"}, judgedBy("canary"), said("canary", "none")), "pass", verdict.Store, "pass"},
		"a late fail replaces a pass":      {ft.NewBatch(1, []string{"a"}, judgedBy("canary"), said("canary", "pass")), "fail", verdict.Store, "fail"},
		"a pass does not replace a fail":   {ft.NewBatch(1, []string{"a"}, judgedBy("canary"), said("canary", "fail")), "pass", verdict.Unchanged, "fail"},
		"a verdict that is sent again":     {ft.NewBatch(1, []string{"a"}, judgedBy("canary"), said("canary", "pass")), "pass", verdict.Unchanged, "pass"},
		"the verdict of another judge":     {ft.NewBatch(1, []string{"a"}, judgedBy("canary", "metrics"), said("metrics", "fail")), "pass", verdict.Store, "pass"},
		"a judge that the batch has not":   {ft.NewBatch(1, []string{"a"}, judgedBy("metrics")), "fail", verdict.NotAsked, ""},
		"a batch without judges":           {ft.NewBatch(1, []string{"a"}), "fail", verdict.NotAsked, ""},
		"a later batch with the same name": {ft.NewBatch(1, []string{"a"}, judgedBy("canary"), func(p *v1alpha1.ChangePod) { p.UID = "later" }), "fail", verdict.OtherObject, ""},
	} {
		t.Run(name, func(t *testing.T) {
			action, stored := verdict.DecideJudge(tc.batch, judgeVerdict("canary", tc.said))
			after := v1alpha1.ChangePodStatus{Judges: stored}
			got := ""
			if v := after.JudgeVerdictOf("canary"); v != nil {
				got = v.Verdict
			}
			if action != tc.action || got != tc.want {
				t.Errorf("action %s, stored %q, want %s, %q", action, got, tc.action, tc.want)
			}
			if other := tc.batch.Status.JudgeVerdictOf("metrics"); other != nil && after.JudgeVerdictOf("metrics") == nil {
				t.Error("the verdict of another judge is lost")
			}
		})
	}
}

// A judge must not be able to answer for the server or for another judge.
func TestAVerdictOfAJudgeCountsOnlyWithItsOwnKey(t *testing.T) {
	short := eventsigning.Keys{Current: []byte("short")}
	for name, tc := range map[string]struct {
		judge  string
		signer eventsigning.Keys
		change func(*event.Event)
		stored bool
	}{
		"its own key":                         {judge: "canary", signer: ft.JudgeKey("canary"), stored: true},
		"its previous key":                    {judge: "canary", signer: ft.JudgeKey("canary of last year"), stored: true},
		"function judge":                      {judge: "metrics", signer: ft.JudgeKey("metrics"), stored: true},
		"the key of another judge":            {judge: "canary", signer: ft.JudgeKey("synthetic")},
		"the key of function judge":           {judge: "canary", signer: ft.JudgeKey("metrics")},
		"the key of another judge as metrics": {judge: "metrics", signer: ft.JudgeKey("canary")},
		"the key of the server":               {judge: "canary", signer: ft.Keys()},
		"no key in the Secret":                {judge: "unknown", signer: ft.JudgeKey("unknown")},
		"a short key":                         {judge: "short", signer: short},
		"the extension of another judge does not count": {judge: "canary", signer: ft.JudgeKey("synthetic"), change: func(e *event.Event) {
			e.SetExtension(events.JudgeExtension, "synthetic")
		}},
		"a key that two judges share": {judge: "twin", signer: ft.JudgeKey("twins")},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, judgedBy("canary", "metrics", "unknown", "short", "twin")))
			for name, data := range map[string]map[string][]byte{
				eventsigning.JudgeSecretName: {eventsigning.CurrentKey: ft.JudgeKey("metrics").Current},
				eventsigning.ExternalJudgesSecretName: {
					"canary": ft.JudgeKey("canary").Current, "canary.previous": ft.JudgeKey("canary of last year").Current,
					"synthetic": ft.JudgeKey("synthetic").Current, "short": short.Current,
					"twin": ft.JudgeKey("twins").Current, "other-twin": ft.JudgeKey("twins").Current,
				},
			} {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}, Data: data}
				if err := c.Kube.Tracker().Add(secret); err != nil {
					t.Fatal(err)
				}
			}
			e, err := events.New(judgeVerdict(tc.judge, "pass"))
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.signer.Sign(t.Context(), &e); err != nil {
				t.Fatal(err)
			}
			if tc.change != nil {
				tc.change(&e)
			}
			want := functions.ResultPermanent
			if tc.stored {
				want = functions.ResultDone
			}
			if err := function(t.Context(), e); functions.ResultOf(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if got := c.ChangePod(ft.BatchName(1)).Status.JudgeVerdictOf(tc.judge); (got != nil) != tc.stored {
				t.Errorf("stored %+v", got)
			}
		})
	}
}

// The judge of a verdict is in its signed data: the server's verdict needs an order node.
func TestTheKeyOfAJudgeSignsNoVerdictOfTheServer(t *testing.T) {
	c, _, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0), judgedBy("canary")))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: eventsigning.ExternalJudgesSecretName},
		Data:       map[string][]byte{"canary": ft.JudgeKey("canary").Current},
	}
	if err := c.Kube.Tracker().Add(secret); err != nil {
		t.Fatal(err)
	}
	e := verdictOf(t, v1alpha1.StagePost, "pass", "n")
	if err := ft.JudgeKey("canary").Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	if got := functions.ResultOf(function(t.Context(), e)); got != functions.ResultPermanent || c.Patches() != 0 {
		t.Errorf("result %s, %d writes", got, c.Patches())
	}
}
