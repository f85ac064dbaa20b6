//go:build controlplane

package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// broker delivers each event before it answers, as the in-memory Broker does, with the
// retries of config/core/300-broker.yaml. Undeliverable wake-ups are sent again by their
// reconcilers; the tests kill no function, so no verdict is undeliverable.
type broker struct {
	submit, verdict, report http.Handler
	fault                   atomic.Int32
}

// The faults of the Broker.
const (
	noFault int32 = iota
	// refusesEvents: each event is answered with 503.
	refusesEvents
	// losesWakeUps: function submit is away. Its events are accepted, and not delivered.
	losesWakeUps
)

func (b *broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := b.fault.Load()
	if fault == refusesEvents {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	to := b.report
	switch r.Header.Get("Ce-Type") {
	case events.TypeOrderReady, events.TypeChangePodReady:
		if to = b.submit; fault == losesWakeUps {
			w.WriteHeader(http.StatusAccepted)
			return
		}
	case events.TypeOrderVerdict, events.TypeChangePodVerdict:
		to = b.verdict
	}
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval = 200 * time.Millisecond
	_, err = backoff.Retry(r.Context(), func() (int, error) {
		again := r.Clone(quiet(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		if to.ServeHTTP(answer, again); answer.Code >= http.StatusInternalServerError || answer.Code == http.StatusTooManyRequests {
			return answer.Code, fmt.Errorf("answer %d", answer.Code)
		}
		return answer.Code, nil
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(6))
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// quiet has a logger that logs nothing: each call is several lines.
func quiet(ctx context.Context) context.Context { return logging.WithLogger(ctx, zap.NewNop().Sugar()) }

// brokerCRD is what the senders need of Knative Eventing: the address in the status.
const brokerCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: brokers.eventing.knative.dev}
spec:
  group: eventing.knative.dev
  scope: Namespaced
  names: {plural: brokers, singular: broker, kind: Broker}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

const brokerObject = `
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: default, namespace: %s}
status: {address: {url: %q}, conditions: [{type: Ready, status: "True"}]}
`

// configure makes the Broker and the server known.
func configure(ctx context.Context, kube kubernetes.Interface, brokerURL, serverURL string) error {
	for _, step := range []struct {
		manifest string
		args     []string
	}{
		{brokerCRD, []string{"apply", "-f", "-"}},
		{"", []string{"wait", "--for=condition=Established", "crd", "brokers.eventing.knative.dev", "--timeout=60s"}},
		{fmt.Sprintf(brokerObject, v1alpha1.SystemNamespace, brokerURL), []string{"apply", "-f", "-"}},
	} {
		if _, err := (kubectl.Kubectl{}).Output(ctx, step.manifest, step.args...); err != nil {
			return err
		}
	}
	core := kube.CoreV1()
	if _, err := core.Secrets(v1alpha1.SystemNamespace).Patch(ctx, altershield.SecretName, types.MergePatchType,
		fmt.Appendf(nil, `{"stringData":{%q:%q}}`, altershield.TokenKey, token), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("set the token: %w", err)
	}
	_, err := core.ConfigMaps(v1alpha1.SystemNamespace).Patch(ctx, altershield.ConfigMapName, types.MergePatchType, fmt.Appendf(nil,
		`{"data":{"base-url":%q,"platform":%q,"tenant-code":"t","change-scene-key":"s","cluster-name":"load"}}`, serverURL, platform), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	return nil
}
