package perf

import (
	"errors"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnswersToDeletionsAreToldApart(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	d := &deletions{Took: 2 * time.Second}
	d.count(nil, 1*time.Millisecond)
	d.count(nil, 2*time.Millisecond)
	d.count(apierrs.NewForbidden(pods, "web", errors.New("no")), 3*time.Millisecond)
	d.count(apierrs.NewInternalError(errors.New("down")), time.Second)
	d.count(errors.New("reset by peer"), time.Second)
	if d.Passed != 2 || d.Refused != 1 || d.Broken != 1 || d.Others != 1 {
		t.Errorf("%d passed, %d refused, %d broken, %d others", d.Passed, d.Refused, d.Broken, d.Others)
	}
	if got := d.rate(); got != 1 {
		t.Errorf("%v a second, want those that passed", got)
	}
	if got := d.quantile(0.99); got != 3*time.Millisecond {
		t.Errorf("p99 is %s, want the slowest that was understood", got)
	}
}

func TestAcceptedConnectionsAreReadByTheirName(t *testing.T) {
	got, err := passiveOpens("Ip: Forwarding\nIp: 1\nTcp: RtoMin ActiveOpens PassiveOpens\nTcp: 200 4 17\n")
	if got != 17 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := passiveOpens("Tcp: RtoMin\nTcp: 200\n"); err == nil {
		t.Error("what is not there was read")
	}
}
