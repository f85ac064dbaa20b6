package perf

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAProcessWithParenthesesInItsNameIsParsed(t *testing.T) {
	const stat = "4345 (a) b ( c) S 1 4345 4345 0 -1 4194560 61 0 3 0 250 50 0 0 20 0 13 0 1029 1 7 18446744073709551615\n"
	name, used, err := parseStat([]byte(stat))
	if err != nil {
		t.Fatal(err)
	}
	want := usage{CPU: 3 * time.Second, RSS: 7 * int64(os.Getpagesize())}
	if diff := cmp.Diff(want, used); diff != "" || name != "a) b ( c" {
		t.Errorf("%q %s", name, diff)
	}
	if _, _, err := parseStat([]byte("1 (x) S 1")); err == nil {
		t.Error("an incomplete line is parsed")
	}
}

func TestTheUIDOfAPodIsReadFromItsControlGroup(t *testing.T) {
	const uid = "926bcc60-0225-4028-b857-70af0985f488"
	for _, group := range []string{
		"8:pids:/breakwater/kubepods/burstable/pod" + uid + "/b5be",
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod926bcc60_0225_4028_b857_70af0985f488.slice",
	} {
		found := podUID.FindStringSubmatch(group)
		if found == nil || strings.ReplaceAll(found[1], "_", "-") != uid {
			t.Errorf("%s: %v", group, found)
		}
	}
}

func TestSpentIsTheCPUTimeBetweenTwoMeasurements(t *testing.T) {
	before := map[string]usage{"a": {CPU: 3 * time.Second}, "restarted": {CPU: time.Hour}, "ended": {CPU: 1}}
	after := map[string]usage{"a": {CPU: 5 * time.Second}, "restarted": {CPU: time.Second}, "new": {CPU: 4 * time.Second}}
	want := map[string]time.Duration{"a": 2 * time.Second, "restarted": time.Second, "new": 4 * time.Second}
	if diff := cmp.Diff(want, spent(before, after)); diff != "" {
		t.Error(diff)
	}
}
