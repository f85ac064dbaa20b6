package ownjudge_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/test/ownjudge"
)

func TestTheReplyOfTheExampleIsTheVerdictOfItsJudge(t *testing.T) {
	key := []byte("0123456789abcdef0123456789abcdef")
	ready, err := events.New(events.ChangePodReady{
		Namespace: "shop", Name: "cart--x--1", UID: "u", ChangeWorkload: "cart", Version: "v", Attempt: 2, Stage: v1alpha1.StagePost, Judge: "canary",
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := ownjudge.Judge(key, func(namespace, name string) (string, string) { return "fail", namespace + "/" + name + " has <errors>" })
	reply, err := answer(t.Context(), ready)
	if err != nil {
		t.Fatal(err)
	}
	keys := eventsigning.NewJudgeKeys(fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: eventsigning.ExternalJudgesSecretName},
		Data:       map[string][]byte{"canary": key, "other": []byte("another key of at least 32 bytes!!!")},
	}).CoreV1(), clock.RealClock{})
	if err := keys.VerifyJudge(t.Context(), events.JudgeOf(*reply), *reply); err != nil {
		t.Error(err)
	}
	got, err := events.ParseJudgeVerdict(*reply)
	if err != nil {
		t.Fatal(err)
	}
	if got.Judge != "canary" || got.Verdict != "fail" || got.UID != "u" || got.Message != "shop/cart--x--1 has <errors>" || got.ID() != reply.ID() {
		t.Errorf("verdict is %+v, id %s", got, reply.ID())
	}
}

func TestThePageShowsTheExample(t *testing.T) {
	code, err := os.ReadFile("judge.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/judge/your-own.md")
	if err != nil {
		t.Fatal(err)
	}
	_, function, _ := strings.Cut(string(code), "\nfunc ")
	if !strings.Contains(string(page), "func "+strings.TrimSpace(function)) {
		t.Error("docs/judge/your-own.md does not show the function Judge of judge.go")
	}
}
