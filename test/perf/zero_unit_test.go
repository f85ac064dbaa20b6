package perf

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestTheTableOfColdStartsShowsTheMedianAndTheParts(t *testing.T) {
	start := func(post int) coldStart {
		return newColdStart(second(1), judgedPod{Ready: second(2), Batch: second(3), Pre: second(4), Post: second(2 + post)},
			map[string]time.Time{"submit": second(4), "verdict": second(post)})
	}
	m := fromZero{Machine: "Here.", Starts: []coldStart{start(9), start(3), start(5)}}
	want := `| measure | median | each |
|---|---|---|
| from the Ready pod to the stored POST verdict | 5.00 s | 9.00 s, 3.00 s, 5.00 s |
| ... to its ChangePod | 1.00 s | 1.00 s, 1.00 s, 1.00 s |
| ... to the stored PRE verdict | 2.00 s | 2.00 s, 2.00 s, 2.00 s |
| from the beginning of the release to the Ready pod | 1.00 s | 1.00 s, 1.00 s, 1.00 s |
| ... to the first Ready pod of function submit | 3.00 s | 3.00 s, 3.00 s, 3.00 s |
| ... to the first Ready pod of function verdict | 4.00 s | 8.00 s, 2.00 s, 4.00 s |
`
	if got := m.markdown(); !strings.HasSuffix(got, "\n\n"+want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := m.figures(); len(got) != 1 || got[0].Value != 5 || got[0].Goal.met(got[0].Value) {
		t.Errorf("got %+v", got)
	}
}

func TestTheFirstReadyPodOfAFunctionCounts(t *testing.T) {
	r := readyFunctions{first: map[string]time.Time{}}
	for i, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionTrue} {
		p := podIn("uid", ready)
		p.Labels = map[string]string{functionLabel: "submit"}
		r.see(watch.Modified, p, second(i))
	}
	if got := r.times(); len(got) != 1 || got["submit"] != second(1) {
		t.Errorf("got %v", got)
	}
}
