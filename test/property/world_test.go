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
)

// world is everything, and what has happened in it.
type world struct {
	random *rand.Rand
	// story is what happened, told what is drawn for what happens now.
	story, told []string

	clock *clocktesting.FakeClock
	api   *api
	// quiet: there are no faults any more.
	quiet bool

	process  *process
	broker   broker
	judge    *judge
	callback http.Handler
	// instances are the running functions, by name: what one does, another
	// may overtake.
	instances map[string][]functions.Function
	// busy counts what runs, by process; depth how deep it is nested.
	busy  map[string]int
	depth int
	// dieIn counts down to the death of a process.
	dieIn int

	policy  v1alpha1.NoVerdictPolicy
	percent int
	history
}

// died ends the process that panics with it.
type died struct{ at string }

func newWorld(t *rapid.T) *world {
	w := &world{
		clock:     clocktesting.NewFakeClock(time.Date(2026, 5, 9, 12, 0, 0, 0, time.UTC)),
		instances: map[string][]functions.Function{}, busy: map[string]int{}, history: newHistory(),
	}
	w.policy = rapid.SampledFrom([]v1alpha1.NoVerdictPolicy{
		v1alpha1.NoVerdictPass, v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail}).Draw(t, "no-verdict")
	w.percent = rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "percent")
	w.api = newAPI(w.clock)
	w.api.written = w.note
	w.judge = newJudge(w)
	w.furnish()
	w.functions()
	w.api.writing = func(by string, of id) { w.mayDie(by + " before " + of.resource); w.interleave() }
	w.api.wrote = func(by string, of id) { w.mayDie(by + " after " + of.resource) }
	w.process = start(w)
	return w
}

func (w *world) close() {
	w.process.stop()
	w.judge.Close()
}

// configMap is config-altershield.
func (w *world) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: altershield.ConfigMapName},
		Data: map[string]string{
			"base-url": "http://judge", "platform": platform, "tenant-code": "t", "change-scene-key": "s",
			"cluster-name": "c", "qps": "10000", "burst": "10000",
			"breaker-failures": "10000", // its pauses are of the machine's clock
		},
	}
}

// furnish puts into the cluster what is there before a release.
func (w *world) furnish() {
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
	config("branch", v1alpha1.ConfigBatch, fmt.Sprint(w.percent), w.percent > 0)
	put("deployments", firstDeployment())
}

// functions makes two instances of each function, and the callback.
func (w *world) functions() {
	kube := &kubefake.Clientset{}
	kube.AddReactor("*", "*", w.api.react("functions"))
	server := functions.NewServer(kube, altershield.WithClock(w.clock), altershield.WithTransport(w.judge), altershield.WithPause(1))
	meter := noop.Meter{}
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	client := func(by string) *fake.Clientset {
		c := &fake.Clientset{}
		c.AddReactor("*", "*", w.api.react(by))
		return c
	}
	for range 2 {
		submitClient := client("submit")
		recorder, err := verdict.NewRecorder(submitClient, w.clock, meter)
		must(err)
		s, err := submit.New(submitClient, server, recorder, w.clock, meter)
		must(err)
		recorder, err = verdict.NewRecorder(client("verdict"), w.clock, meter)
		must(err)
		d, err := deadletter.New(client("deadletter"), kube, nil, w.clock, meter)
		must(err)
		w.instances["submit"] = append(w.instances["submit"], s)
		w.instances["verdict"] = append(w.instances["verdict"], verdict.New(recorder, server))
		w.instances["deadletter"] = append(w.instances["deadletter"], d)
	}
	var err error
	w.callback, err = callback.New(callback.Options{
		Change: client("callback"), Server: server, Broker: w, Clock: w.clock, Meter: meter, StoreTimeout: 2 * time.Second,
	})
	must(err)
	w.callback.(*echo.Echo).Logger.SetOutput(io.Discard) // it would tell of every death
}

// draw returns a number below n; 0 is always the harmless one, and the only one
// when the world is quiet.
func (w *world) draw(what string, n int) int {
	if w.quiet || n <= 1 {
		return 0
	}
	out := w.random.IntN(n)
	w.told = append(w.told, fmt.Sprintf("%s %d", what, out))
	return out
}

func quietContext() context.Context {
	return logging.WithLogger(context.Background(), zap.NewNop().Sugar())
}

// call has a function handle an event, on an instance that has nothing to do.
func (w *world) call(name string, e event.Event) error {
	if w.busy[name] >= len(w.instances[name]) {
		return errNotAccepted // all instances are busy
	}
	instance := w.instances[name][w.busy[name]]
	return w.activate(name, func() error { return instance(quietContext(), e) })
}

// activate runs something in a process, which may die of it.
func (w *world) activate(name string, run func() error) (err error) {
	w.busy[name]++
	w.depth++
	defer func() {
		w.busy[name]--
		w.depth--
		switch p := recover().(type) {
		case nil:
		case died:
			err = fmt.Errorf("%s died at %s", name, p.at)
			if name == controllerName {
				w.restart()
			}
		default:
			panic(p)
		}
	}()
	return run()
}

// mayDie is a point at which a process can die.
func (w *world) mayDie(at string) {
	if w.dieIn == 0 || w.depth == 0 {
		return
	}
	if w.dieIn--; w.dieIn == 0 {
		panic(died{at})
	}
}

// restart makes the controller's process anew: what it knew is gone.
func (w *world) restart() {
	w.process.stop()
	w.process = start(w)
}

// interleave is a point at which others can be faster.
func (w *world) interleave() {
	if w.quiet || w.depth == 0 || w.depth > 2 || w.draw("interleave", 6) != 5 {
		return
	}
	others := []func() bool{w.deliverSome, w.deliverMail, w.see, w.reconcileSome, w.kubernetesStep, w.personJudges}
	others[w.draw("other", len(others))]()
}

// see lets one informer see one write.
func (w *world) see() bool {
	behind := w.process.behind()
	if len(behind) == 0 {
		return false
	}
	w.process.sync(behind[w.draw("informer", len(behind))], w.clock.Now())
	return true
}

// reconcileSome does some work that is due.
func (w *world) reconcileSome() bool {
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
	return true
}

// deliverMail delivers, doubles or loses one callback.
func (w *world) deliverMail() bool {
	n := w.judge.letters()
	if n == 0 || w.busy["callback"] > 0 {
		return false
	}
	at := w.draw("callback", n)
	switch w.draw("mail", 8) {
	case 7:
		w.judge.take(at, false)
	case 6:
		w.deliverCallback(w.judge.take(at, true))
	default:
		w.deliverCallback(w.judge.take(at, false))
	}
	return true
}
