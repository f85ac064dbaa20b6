//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// slack is a webhook that accepts the messages of Slack.
type slack struct {
	mu sync.Mutex
	// refused is the namespace whose messages are answered with 404.
	refused string
	// accepted are the texts of the messages that were answered with 200.
	accepted []string
}

func (s *slack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct{ Text string }
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "invalid_payload", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused != "" && strings.Contains(message.Text, s.refused) {
		http.Error(w, "no_service", http.StatusNotFound)
		return
	}
	s.accepted = append(s.accepted, message.Text)
}

func (s *slack) refuse(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = namespace
}

// about returns the accepted messages about a namespace.
func (s *slack) about(namespace string) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.accepted {
		if strings.Contains(text, namespace) {
			texts = append(texts, text)
		}
	}
	return texts
}

// notifications: a held release sends one message. A message that the webhook refuses becomes a dead
// letter, and its replay sends it.
func notifications(t *testing.T, e *environment) {
	webhook := &slack{}
	e.installNotify(t, "http://"+serve(t, e.nodeAddress(t), webhook))
	sent, refused := e.optedInNamespace(t), e.optedInNamespace(t)
	webhook.refuse(refused.name)
	for _, n := range []*namespace{sent, refused} {
		n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: failed()})
		n.create(t, builder.Deployment("web", 1, builder.Simulated))
	}
	refused.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	letter := refused.awaitDeadLetter(t, diagnosis.ReplayPossible)
	if listed := refused.plugin(t, "deadletters"); !strings.Contains(listed, letter.Name) || !strings.Contains(listed, letter.Object) {
		t.Errorf("deadletters prints\n%s", listed)
	}
	if got := webhook.about(refused.name); len(got) > 0 {
		t.Errorf("the refused messages were accepted: %q", got)
	}

	webhook.refuse("")
	if printed := refused.plugin(t, "deadletters", "replay", letter.Name); !strings.Contains(printed, letter.Name+": replay requested") {
		t.Errorf("replay prints\n%s", printed)
	}
	refused.awaitDeadLetter(t, diagnosis.Replayed)
	for _, n := range []*namespace{sent, refused} {
		await(t, rolloutTimeout, "a message about the release arrives", func(context.Context) error {
			if got := webhook.about(n.name); len(got) == 0 {
				return fmt.Errorf("the messages are %q", webhook.about("web"))
			}
			return nil
		})
	}
	for _, n := range []*namespace{sent, refused} {
		want := "Deployment " + n.name + "/web: release suspended (CheckFailed)"
		if got := webhook.about(n.name); len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], errorRate) {
			t.Errorf("messages are %q, want one that begins with %q", got, want)
		}
	}
}

// installNotify installs function notify with the address of a webhook, until the test ends.
func (e *environment) installNotify(t *testing.T, url string) {
	t.Helper()
	root := filepath.Join("..", "..")
	n := e.notOptedInNamespace(t)
	t.Cleanup(func() {
		r, err := n.kubectl.Run(context.Background(), "delete", "-Rf", filepath.Join(root, "config", "notify"), "--ignore-not-found")
		if err != nil || r.Code != 0 {
			t.Errorf("delete function notify: %v\n%s", err, r)
		}
	})
	apply := exec.CommandContext(t.Context(), "hack/apply.sh", "config/notify")
	apply.Dir = root
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("install function notify: %v\n%s", err, out)
	}
	in := []string{"-n", system}
	n.run(t, append(in, "patch", "secret", "notify-webhook", "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"url":%q}}`, url))...)
	// Releases of other tests are held, too.
	n.run(t, append(in, "patch", "configmap", "config-notify", "--type=merge", "-p", `{"data":{"messages-per-minute":"600"}}`)...)
	// One process handles all events: it recognizes one that is sent twice.
	n.run(t, append(in, "patch", "services.serving.knative.dev", "notify", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/min-scale":"1"}}}}}`)...)
	n.run(t, append(in, "wait", "--for=condition=Ready", "services.serving.knative.dev/notify", "trigger/notify", "--timeout=120s")...)
}

// plugin runs `kubectl breakwater` in the namespace, which must exit with 0, and returns its stdout.
func (n *namespace) plugin(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	args = append([]string{"-n", n.name}, args...)
	if code := cli.Run(t.Context(), "test", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}); code != 0 {
		t.Fatalf("%v ended with %d\n%s%s", args, code, out.String(), errOut.String())
	}
	return out.String()
}

// awaitDeadLetter waits until the plugin lists the suspension of a release as a dead letter.
func (n *namespace) awaitDeadLetter(t *testing.T, replay diagnosis.Replay) (found diagnosis.DeadLetter) {
	t.Helper()
	await(t, rolloutTimeout, "a dead letter whose replay is "+string(replay), func(context.Context) error {
		var listed struct{ DeadLetters []diagnosis.DeadLetter }
		printed := n.plugin(t, "deadletters", "-o", "json")
		if err := json.Unmarshal([]byte(printed), &listed); err != nil {
			return err
		}
		for _, letter := range listed.DeadLetters {
			if letter.Replay == replay && strings.Contains(letter.Message, "changeworkload.suspended") {
				found = letter
				return nil
			}
		}
		return fmt.Errorf("listed are %s", printed)
	})
	return found
}
