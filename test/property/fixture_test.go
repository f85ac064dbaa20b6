package property

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/logging"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// fixture has all processes and models, and their history.
type fixture struct {
	random *rand.Rand
	// trace has the past actions, draws the random numbers of the current action.
	trace, draws []string

	clock *clocktesting.FakeClock
	api   *api
	// quiet: the faults have ended.
	quiet bool

	// process is the controller that runs: the leader, or a former leader beside it.
	process *process
	// leader is the leader while process is a former one; otherwise it is nil.
	leader *process
	// former is a former leader that does not know yet that it is none, or nil.
	former *process
	// pauses: the leader may be paused longer than its Lease. resumed counts the pauses.
	pauses   bool
	resumed  int
	broker   broker
	server   *fakeServer
	callback http.Handler
	// instances are the running instances of each function. There are two, so
	// that one can overtake the other.
	instances map[string][]functions.Function
	// finishers are the Finishers of function verdict.
	finishers []*submit.Finisher
	// busy counts the running calls by process; depth is the nesting depth of
	// calls.
	busy  map[string]int
	depth int
	// crashIn is the number of writes and calls until a process crashes; 0 is
	// never.
	crashIn int

	// policy is no-verdict, contradicted is no-verdict-contradicted.
	policy, contradicted v1alpha1.NoVerdictPolicy
	percent              int
	history
}

// processCrashed is the panic value of a crash.
type processCrashed struct{ at string }

func newFixture(t *rapid.T) *fixture {
	w := &fixture{
		clock:     clocktesting.NewFakeClock(time.Date(2026, 5, 9, 12, 0, 0, 0, time.UTC)),
		instances: map[string][]functions.Function{}, busy: map[string]int{}, history: newHistory(),
	}
	policies := rapid.SampledFrom([]v1alpha1.NoVerdictPolicy{v1alpha1.NoVerdictPass, v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail})
	w.policy, w.contradicted = policies.Draw(t, "no-verdict"), policies.Draw(t, "no-verdict-contradicted")
	w.percent = rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "percent")
	w.api = newAPI(w.clock)
	w.api.stored = w.checkWrite
	w.server = newFakeServer(w)
	w.createObjects()
	w.functions()
	w.api.beforeWrite = func(by string, of id) {
		w.maybeCrash(by + " before " + of.resource)
		w.interleave()
		w.maybePause(by, of)
	}
	w.api.afterWrite = func(by string, of id) { w.maybeCrash(by + " after " + of.resource) }
	w.process = start(w)
	return w
}

func (w *fixture) close() {
	w.process.stop()
	w.server.Close()
}

// configMap is config-altershield.
func (w *fixture) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: altershield.ConfigMapName},
		Data: map[string]string{
			"base-url": "http://judge", "platform": platform, "tenant-code": "t", "change-scene-key": "s",
			"cluster-name": "c", "qps": "10000", "burst": "10000",
			"breaker-failures": "10000", // never open: the pauses of the breaker use the system clock
		},
	}
}

// signingKey signs verdicts.
const signingKey = "key"

// eventKeys sign and verify the other events of the controller.
func eventKeys() eventsigning.Keys { return eventsigning.Keys{Current: []byte("event key")} }

// createObjects creates the objects that exist before a release.
func (w *fixture) createObjects() {
	put := func(resource string, o object) {
		if _, err := w.api.create("test", resource, o); err != nil {
			panic(err)
		}
	}
	put("configmaps", w.configMap())
	put("secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: altershield.SecretName},
		Data:       map[string][]byte{altershield.TokenKey: []byte(token)},
	})
	put("secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: eventsigning.VerdictSecretName},
		Data:       map[string][]byte{eventsigning.CurrentKey: []byte(signingKey)},
	})
	put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled},
	}})
	config := func(name string, of v1alpha1.ConfigType, content string, enable bool) {
		put("opsconfiginfoes", &v1alpha1.OpsConfigInfo{
			ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name},
			Spec:       v1alpha1.OpsConfigInfoSpec{Type: of, Content: content, Enable: enable},
		})
	}
	config("no-verdict", v1alpha1.ConfigNoVerdict, string(w.policy), true)
	config("contradicted", v1alpha1.ConfigNoVerdictContradicted, string(w.contradicted), true)
	config("branch", v1alpha1.ConfigBatch, fmt.Sprint(w.percent), w.percent > 0)
	put("deployments", firstDeployment())
}

// functions starts two instances of each function, and the callback.
func (w *fixture) functions() {
	kube := &kubefake.Clientset{}
	kube.AddReactor("*", "*", w.api.react("functions"))
	server := functions.NewClientSource(kube, altershield.WithClock(w.clock), altershield.WithTransport(w.server), altershield.WithPause(1))
	meter := noop.Meter{}
	client := func(by string) *fake.Clientset {
		c := &fake.Clientset{}
		c.AddReactor("*", "*", w.api.react(by))
		return c
	}
	keys := eventsigning.Keys{Current: []byte(signingKey)}
	for range 2 {
		submitClient := client("submit")
		w.instances["submit"] = append(w.instances["submit"],
			submit.New(submitClient, server, verdict.NewRecorder(submitClient, w.clock, meter), eventKeys(), w.clock, meter))
		verdictClient := client("verdict")
		recorder, finisher := verdict.NewRecorder(verdictClient, w.clock, meter), submit.NewFinisher(verdictClient, server, w.clock, meter).WaitForCalls()
		recorder.SetFollower(finisher)
		w.finishers = append(w.finishers, finisher)
		w.instances["verdict"] = append(w.instances["verdict"], verdict.New(recorder, server, keys, nil))
		w.instances["deadletter"] = append(w.instances["deadletter"], deadletter.New(client("deadletter"), kube, nil,
			deadletter.Verifiers{Verdicts: keys, Events: eventKeys()}, w.clock, meter))
	}
	w.callback = callback.New(callback.Options{
		Change: client("callback"), Server: server, Broker: w, Signer: keys, Clock: w.clock, Meter: meter, RequestTimeout: 2 * time.Second,
	})
	w.callback.(*echo.Echo).Logger.SetOutput(io.Discard) // it would log every crash
}

// draw returns a random number below n. 0 never causes a fault; after the faults
// have ended, the result is always 0.
func (w *fixture) draw(what string, n int) int {
	if w.quiet || n <= 1 {
		return 0
	}
	out := w.random.IntN(n)
	w.draws = append(w.draws, fmt.Sprintf("%s %d", what, out))
	return out
}

func quietContext() context.Context {
	return logging.WithLogger(context.Background(), zap.NewNop().Sugar())
}

// call calls a function with an event, on an idle instance.
func (w *fixture) call(name string, e event.Event) error {
	if w.busy[name] >= len(w.instances[name]) {
		return errNotAccepted // all instances are busy
	}
	instance := w.instances[name][w.busy[name]]
	return w.activate(name, func() error { return instance(quietContext(), e) })
}

// activate runs run in a process that may crash.
func (w *fixture) activate(name string, run func() error) (err error) {
	w.busy[name]++
	w.depth++
	defer func() {
		w.busy[name]--
		w.depth--
		p := recover()
		if committed, ok := p.(*groupcommit.Panic); ok {
			p = committed.Value
		}
		switch p := p.(type) {
		case nil:
		case processCrashed:
			err = fmt.Errorf("%s crashed at %s", name, p.at)
			if name == controllerName {
				w.restart()
			}
		default:
			panic(p)
		}
	}()
	return run()
}

// maybeCrash is a point at which a process can crash.
func (w *fixture) maybeCrash(at string) {
	if w.crashIn == 0 || w.depth == 0 {
		return
	}
	if w.crashIn--; w.crashIn == 0 {
		panic(processCrashed{at})
	}
}

// restart restarts the controller, which loses its memory.
func (w *fixture) restart() {
	w.process.stop()
	if w.leader != nil {
		w.process, w.leader = w.leader, nil // a former leader crashed
		return
	}
	w.process = start(w)
}

// interleave is a point at which other processes can run.
func (w *fixture) interleave() {
	if w.quiet || w.depth == 0 || w.depth > 2 || w.draw("interleave", 6) != 5 {
		return
	}
	others := []func() bool{w.deliverSome, w.deliverSomeCallback, w.syncOne, w.reconcileSome, w.kubernetesStep, w.personJudges}
	others[w.draw("other", len(others))]()
}

// storeAnswers stores the answers to finishes whose verdicts are late.
func (w *fixture) storeAnswers() bool {
	_ = w.activate("verdict", func() error {
		w.finishers[w.draw("finisher", len(w.finishers))].StoreAnswers(quietContext(), resend.VerdictDelay)
		return nil
	})
	return true
}

// syncOne applies one write to one informer.
func (w *fixture) syncOne() bool {
	behind := w.process.behind()
	if len(behind) == 0 {
		return false
	}
	w.process.sync(behind[w.draw("informer", len(behind))], w.clock.Now())
	return true
}

// reconcileSome reconciles one key that is due.
func (w *fixture) reconcileSome() bool {
	ready := w.process.ready(w.clock.Now())
	if w.busy[controllerName] > 0 || len(ready) == 0 {
		return false
	}
	at := ready[w.draw("work", len(ready))]
	p := w.process
	_ = w.activate(controllerName, func() error {
		p.reconcile(quietContext(), at, w.clock.Now)
		return nil
	})
	w.returnToLeader()
	return true
}

// deliverSomeCallback delivers, duplicates or loses one callback.
func (w *fixture) deliverSomeCallback() bool {
	n := w.server.pendingCallbacks()
	if n == 0 || w.busy["callback"] > 0 {
		return false
	}
	at := w.draw("callback", n)
	switch w.draw("mail", 8) {
	case 7:
		w.server.takeCallback(at, false)
	case 6:
		w.deliverCallback(w.server.takeCallback(at, true))
	default:
		w.deliverCallback(w.server.takeCallback(at, false))
	}
	return true
}
