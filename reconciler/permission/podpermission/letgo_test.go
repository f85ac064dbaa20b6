package podpermission

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestLetGoPodsAreSentWhenTheCentreAnswers(t *testing.T) {
	l, c := newUnsentLetGoPods(), &fakeCentre{CentreState: CentreState{Err: errors.New("connection refused")}}
	for _, uid := range []types.UID{"a", "b", "b"} {
		l.add(uid)
	}
	l.send(t.Context(), c, "shop")
	if len(c.requests) != 1 || l.count() != 2 {
		t.Errorf("while the centre is unreachable: %d calls, %d pods left", len(c.requests), l.count())
	}
	c.Err, c.requests = nil, nil
	l.send(t.Context(), c, "shop")
	sent := map[string]bool{}
	for _, r := range c.requests {
		sent[r.PodUID] = r.LetGo && r.Cluster == "shop" && r.KeepIPs == nil
	}
	if len(c.requests) != 2 || !sent["a"] || !sent["b"] || l.count() != 0 {
		t.Errorf("when the centre answers: %+v, %d pods left", c.requests, l.count())
	}
	l.send(t.Context(), c, "shop")
	if len(c.requests) != 2 {
		t.Error("a pod is sent twice")
	}
}
