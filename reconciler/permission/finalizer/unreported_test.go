package finalizer

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTheCentreHearsOfPodsThatWereLetGoAsSoonAsItAnswers(t *testing.T) {
	l, c := newUnreportedPods(), &centre{CentreState: CentreState{Err: errors.New("connection refused")}}
	for _, uid := range []types.UID{"a", "b", "b"} {
		l.add("shop", uid)
	}
	l.report(t.Context(), c)
	if len(c.asked) != 1 || l.count() != 2 {
		t.Errorf("while it is away: told %d times, %d are left", len(c.asked), l.count())
	}
	c.Err, c.asked = nil, nil
	l.report(t.Context(), c)
	told := map[string]bool{}
	for _, r := range c.asked {
		told[r.PodUID] = r.LetGo && r.Cluster == "shop" && r.KeepIPs == nil
	}
	if len(c.asked) != 2 || !told["a"] || !told["b"] || l.count() != 0 {
		t.Errorf("when it is back: %+v, %d are left", c.asked, l.count())
	}
	l.report(t.Context(), c)
	if len(c.asked) != 2 {
		t.Error("it is told twice")
	}
}
