package events

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestACopyIsPartOfAnEventOnlyIfItIsSmall(t *testing.T) {
	for name, tc := range map[string]struct {
		pods    int
		message string
		want    bool
	}{
		"one pod":                     {1, "", true},
		"one pod and a long message":  {1, strings.Repeat("a", MaxText), true},
		"many pods":                   {100, "", false},
		"many pods, long message":     {100, strings.Repeat("a", MaxText), false},
		"one pod, message is escaped": {1, strings.Repeat("\x01", MaxText), false},
	} {
		t.Run(name, func(t *testing.T) {
			ready, judged := samples()[1].(ChangePodReady), verdict()
			batch := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{
				Namespace: ready.Namespace, Name: ready.Name, UID: ready.UID, ResourceVersion: "7",
			}}
			for range tc.pods {
				batch.Spec.PodInfos = append(batch.Spec.PodInfos, v1alpha1.PodSummary{Pod: "sleep-7d9c5b4f5d-x2k9q", HostName: "sleep-7d9c5b4f5d-x2k9q"})
			}
			ready.ChangePod = batch
			judged.Name, judged.UID, judged.Message, judged.ChangePod = batch.Name, batch.UID, tc.message, batch
			e, err := New(judged)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ParseChangePodVerdict(e); err != nil || (got.ChangePod != nil) != tc.want || got.Verdict != judged.Verdict {
				t.Errorf("verdict is %+v, %v", got, err)
			} else if !strings.Contains(tc.message, "\x01") && got.Message != tc.message {
				t.Errorf("the message has %d of %d bytes", len(got.Message), len(tc.message))
			}
			if tc.message != "" {
				return // a wake-up has none
			}
			if e, err = New(ready); err != nil {
				t.Fatal(err)
			}
			got, err := ParseChangePodReady(e)
			if err != nil || (got.ChangePod != nil) != tc.want {
				t.Fatalf("wake-up is %+v, %v", got, err)
			}
			if tc.want && (got.ChangePod.ResourceVersion != "7" || len(got.ChangePod.Spec.PodInfos) != tc.pods) {
				t.Errorf("copy is %+v", got.ChangePod)
			}
		})
	}
}

func TestOnlyAWholeChangePodOfFewPodsIsCopied(t *testing.T) {
	for pods, want := range map[int]bool{0: false, 1: true, MaxCopiedPods: true, MaxCopiedPods + 1: false} {
		p := &v1alpha1.ChangePod{Spec: v1alpha1.ChangePodSpec{PodInfos: make([]v1alpha1.PodSummary, pods)}}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "controller"}}
		got := CopyOf(p)
		if (got != nil) != want || want && len(got.ManagedFields) > 0 || len(p.ManagedFields) == 0 {
			t.Errorf("%d pods: %+v", pods, got)
		}
	}
}
