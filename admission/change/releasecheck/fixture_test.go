package releasecheck

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// fixture is a webhook with a fake cluster and a double of the AlterShield server.
type fixture struct {
	*Handler
	double   *double.Double
	kube     *kubefake.Clientset
	change   *fake.Clientset
	clock    *clocktesting.FakePassiveClock
	recorder *record.FakeRecorder
	sent     *eventstest.Recorder
	settings settings.Settings
}

const token = "secret"

// newFixture connects a webhook to a double over loopback; data replaces keys of
// config-altershield.
func newFixture(t *testing.T, data map[string]string) *fixture {
	t.Helper()
	w := &fixture{
		clock: clocktesting.NewFakePassiveClock(noon), recorder: record.NewFakeRecorder(100), sent: &eventstest.Recorder{},
		settings: settings.Default(), change: fake.NewSimpleClientset(),
	}
	w.settings.ReleaseCheckTimeout = 4 * time.Second
	w.double = double.NewDouble(double.Options{
		Tokens: map[string]string{"breakwater": token}, Scene: "scene", Generation1Scene: "release",
	})
	server := httptest.NewServer(w.double.Handler())
	t.Cleanup(server.Close)
	t.Cleanup(w.double.Close)
	config := map[string]string{
		"base-url": server.URL, "platform": "breakwater", "tenant-code": "tenant", "change-scene-key": "scene",
		"release-check-scene-key": "release", "cluster-name": "one", "qps": "1000", "burst": "1000",
	}
	for key, value := range data {
		config[key] = value
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}
	}
	w.kube = kubefake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: meta(altershield.ConfigMapName), Data: config},
		&corev1.Secret{ObjectMeta: meta(altershield.SecretName), Data: map[string][]byte{altershield.TokenKey: []byte(token)}})
	w.Handler = w.webhook(t)
	return w
}

// webhook returns another webhook with the same cluster.
func (w *fixture) webhook(t *testing.T) *Handler {
	t.Helper()
	s := NewCheckClient(w.kube.CoreV1(), w.clock, noop.Meter{}, altershield.WithPause(time.Millisecond))
	return &Handler{
		Kinds: workload.BuiltIn, Settings: func() settings.Settings { return w.settings }, History: admissiontest.History{},
		CheckClient: s, Answers: AnswerStore{Client: w.change.AppV1alpha1()}, Recorder: w.recorder, Sender: w.sent, Clock: w.clock,
	}
}

// answer sets the double's answer to release checks.
func (w *fixture) answer(t *testing.T, then string) {
	t.Helper()
	w.script(t, `{"checks":[{"match":{"step":"RELEASE"},"then":`+then+`}]}`)
}

func (w *fixture) script(t *testing.T, script string) {
	t.Helper()
	if err := w.double.LoadScript([]byte(script)); err != nil {
		t.Fatal(err)
	}
}

// checkTimeout returns the timeout of the last release check that the server received.
func (w *fixture) checkTimeout(t *testing.T) time.Duration {
	t.Helper()
	var last struct {
		CheckTimeout int64 `json:"checkTimeout"`
	}
	for _, c := range w.double.Log().Calls {
		if c.Action != "submitAndStartChangeExecOrder" {
			continue
		}
		if err := json.Unmarshal(c.Body, &last); err != nil {
			t.Fatal(err)
		}
	}
	return time.Duration(last.CheckTimeout) * time.Millisecond
}

// checks returns the number of release checks that the server received.
func (w *fixture) checks() int {
	n := 0
	for _, c := range w.double.Log().Calls {
		if c.Action == "submitAndStartChangeExecOrder" {
			n++
		}
	}
	return n
}

// stored returns the only ReleaseCheck, or nil if there is none.
func (w *fixture) stored(t *testing.T) *v1alpha1.ReleaseCheck {
	t.Helper()
	all, err := w.change.AppV1alpha1().ReleaseChecks("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) > 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if len(all.Items) == 0 {
		return nil
	}
	return &all.Items[0]
}

// events returns the Events on the workload since the last call.
func (w *fixture) events() []string {
	var all []string
	for {
		select {
		case e := <-w.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// release returns a request that changes the template.
func release(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	build := builder.StoredDeployment
	return admissiontest.Request(t, build(builder.Versioned(2)), build(builder.Versioned(2), builder.Image("busybox:2")))
}
