package perf

import (
	"errors"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnswersToDeletionsAreCountedByKind(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	d := &deletions{Took: 2 * time.Second}
	d.count(nil, 1*time.Millisecond)
	d.count(nil, 2*time.Millisecond)
	d.count(apierrs.NewForbidden(pods, "web", errors.New("no")), 3*time.Millisecond)
	d.count(apierrs.NewInternalError(errors.New("down")), time.Second)
	d.count(errors.New("reset by peer"), time.Second)
	if d.Allowed != 2 || d.Denied != 1 || d.Failed != 1 || d.Others != 1 {
		t.Errorf("%d allowed, %d denied, %d failed, %d others", d.Allowed, d.Denied, d.Failed, d.Others)
	}
	if got := d.rate(); got != 1 {
		t.Errorf("got %v per second, want the rate of allowed deletions", got)
	}
	if got := d.quantile(0.99); got != 3*time.Millisecond {
		t.Errorf("p99 is %s, want the latency of the denial", got)
	}
}

func TestAcceptedConnectionsAreReadFromTheNamedColumn(t *testing.T) {
	got, err := passiveOpens("Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens\nTcp: 200 4 17\n")
	if got != 17 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := passiveOpens("Tcp: RtoMin\nTcp: 200\n"); err == nil {
		t.Error("a missing column is read without an error")
	}
}
