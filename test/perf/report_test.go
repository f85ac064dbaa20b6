package perf

import (
	"strings"
	"testing"
	"time"
)

func TestTheTableShowsTheMeasurements(t *testing.T) {
	bare := func(s int) rollout {
		return rollout{Took: time.Duration(s) * time.Second, Rolling: map[string]time.Duration{"etcd": time.Second}}
	}
	m := releases{
		Machine: "Here.", Pods: 100, Bare: [3]rollout{bare(10), bare(30), bare(20)},
		Single: rollout{
			Took: 30 * time.Second, AfterReady: 2 * time.Second, AfterVerdict: 1500 * time.Millisecond, Bytes: 12345, RSS: 90 * mib,
			Writes: map[call]writes{
				{"controller", "patch", "pods"}:          {Objects: 100},
				{"submit", "patch", "changepods/status"}: {Objects: 400, Rejected: 30},
				{"controller", "create", "events"}:       {Events: 50},
			},
			Rolling: map[string]time.Duration{"controller": time.Second, "etcd": 2 * time.Second},
			CPU:     map[string]time.Duration{"controller": 2 * time.Second, "submit": time.Second, "etcd": 4 * time.Second, "kubelet": time.Millisecond},
		},
		Batched: rollout{Took: 25 * time.Second, Writes: map[call]writes{{"controller", "patch", "pods"}: {Objects: 100}}},
	}
	got := m.markdown()
	for _, want := range []string{
		"| API writes per pod, without Events | 8; 1.3 |  | 5.00 | 1.00 | 10.5 |",
		"| rejected writes (mostly conflicts) per pod |  |  | 0.30 | 0.00 |  |",
		"| Events per pod |  |  | 0.50 | 0.00 |  |",
		"| bytes written to ChangePods and ChangeWorkloads per pod |  |  | 123 | 0 |  |",
		"| rollout | 1.5; 1.10 × bare | 20.0 s | 30.0 s, 1.50 × | 25.0 s, 1.00 × | 1.36 × |",
		"| Success after the last verdict | 3 s |  | 1.5 s | 0.0 s |  |",
		"| CPU of the controller per pod |  |  | 20.0 ms | 0.0 ms | 77 ms |",
		"| CPU of all of Breakwater per pod |  |  | 30.0 ms | 0.0 ms | 77 ms |",
		"| submit | patch changepods/status | 4.00 | 0.30 | 0.00 | 0.00 |",
		"| all | 1.0 | 3.0 | 0.0 | 7.0 | 0.0 |",
		"| etcd | 1.0 | 2.0 | 0.0 | 4.0 | 0.0 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "kubelet") {
		t.Error("a component that used little CPU is shown")
	}
}

func TestASectionIsKeptUntilItIsMeasuredAgain(t *testing.T) {
	document := replaceSection("# Performance\n\nold\n", sectionIdle, idle{Machine: "Here.", Pods: 10, RSS: 5 * mib}.markdown())
	document = replaceSection(document, sectionReleases, "one")
	document = replaceSection(document, sectionReleases, "two\n")
	want := head + "\n## A release\n\ntwo\n\n## Idle\n\nHere. 10 pods run in opted-in namespaces without a release.\n\n" +
		"| measure | target | Breakwater | AlterShield Operator, 5000 pods |\n|---|---|---|---|\n" +
		"| memory of the larger of two controllers | 150 MiB | 5 MiB | 162 MiB |\n| its CPU per minute | | 0.0 s | 3.4 s |\n| API writes per minute, mostly of Leases | | 0 | |\n"
	if document != want {
		t.Errorf("got\n%s\nwant\n%s", document, want)
	}
}
