package perf

import (
	"strings"
	"testing"
	"time"
)

func TestTheTableShowsTheMeasurements(t *testing.T) {
	m := measuredReleases()
	got := m.markdown()
	for _, want := range []string{
		"| CPU of the whole machine per pod | 200.0 ms | 300.0 ms more, 1.50 × | 50.0 ms more, 0.25 × |  |",
		"| CPU of Breakwater's processes per pod |  | 30.0 ms | 0.0 ms | 77 ms |",
		"| API writes per pod, without Events |  | 5.00 | 1.00 | 10.5 |",
		"| rejected writes (mostly conflicts) per pod |  | 0.30 | 0.00 |  |",
		"| Events per pod |  | 0.50 | 0.00 |  |",
		"| API reads per pod |  | 2.00 | 0.00 |  |",
		"| bytes written to ChangePods and ChangeWorkloads per pod |  | 123 | 0 |  |",
		"| rollout | 20.0 s | 30.0 s, 1.50 × | 25.0 s, 1.00 × | 1.36 × |",
		"| Success after the last verdict |  | 1.5 s | 0.0 s |  |",
		"| submit | patch changepods/status | 4.00 | 0.30 | 0.00 | 0.00 |",
		"| submit | get changepods | 2.00 | 0.00 | 0.00 | 0.00 |",
		"| etcd | 1.0 | 2.0 | 0.0 | 4.0 | 0.0 |",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no line %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "kubelet") {
		t.Error("a component that used little CPU is shown")
	}
}

func measuredReleases() releases {
	bare := func(s int) rollout {
		return rollout{Took: time.Duration(s) * time.Second, Machine: 20 * time.Second, Rolling: map[string]time.Duration{"etcd": time.Second}}
	}
	return releases{
		Machine: "Here.", Pods: 100, Bare: [3]rollout{bare(20), bare(30), bare(10)},
		Single: rollout{
			Took: 30 * time.Second, AfterReady: 2 * time.Second, AfterVerdict: 1500 * time.Millisecond, Bytes: 12345, RSS: 90 * mib,
			Requests: map[call]requests{
				{"controller", "patch", "pods"}:          {Writes: 100},
				{"submit", "patch", "changepods/status"}: {Writes: 400, Rejected: 30},
				{"submit", "get", "changepods"}:          {Reads: 200},
				{"controller", "create", "events"}:       {Events: 50},
			},
			Rolling: map[string]time.Duration{"controller": time.Second, "etcd": 2 * time.Second},
			CPU:     map[string]time.Duration{"controller": 2 * time.Second, "submit": time.Second, "etcd": 4 * time.Second, "kubelet": time.Millisecond},
			Machine: 50 * time.Second, Labeled: 12 * time.Second,
		},
		Batched: rollout{Took: 25 * time.Second, Machine: 25 * time.Second, Requests: map[call]requests{{"controller", "patch", "pods"}: {Writes: 100}}},
	}
}
