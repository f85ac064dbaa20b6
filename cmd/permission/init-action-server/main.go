// The init-action-server requests the permissions of pods before their app
// containers start. Package permission/initaction/server says how.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/server"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
)

const (
	name = "init-action-server"
	// tokenFile is where the manifest mounts the token for the permission centre.
	tokenFile = "/var/run/secrets/stke.io/permission-centre/token"
	// certFile and keyFile are where the manifest mounts the certificate.
	certFile, keyFile = "/etc/init-action-server/tls/tls.crt", "/etc/init-action-server/tls/tls.key"
	// qps and burst are far above what is needed: client-side throttling would delay
	// pods. The API server protects itself.
	qps, burst = 1000, 2000
	// maxUnauthenticated limits the open connections without a valid token, each of which needs about 40 KiB of the
	// memory. Many pods may start at once.
	maxUnauthenticated = 1000
	// requestTimeout limits the request for the UID of the cluster.
	requestTimeout = 10 * time.Second
)

func main() {
	version.ExitIfAsked()
	if err := process.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(ctx context.Context, clients process.Clients) (process.Program, error) {
	kube, err := client(clients.Config)
	if err != nil {
		return process.Program{}, err
	}
	var share *server.CentreLimiter
	watch, err := server.NewWatch(ctx, kube, v1alpha1.SystemNamespace, func(n int) { share.SetReplicas(n) })
	if err != nil {
		return process.Program{}, err
	}
	share = server.NewCentreLimiter(watch.Settings.Get)
	sender, follow, err := broker.NewStandaloneSender(ctx, clients.Config)
	if err != nil {
		return process.Program{}, err
	}
	if err := watch.Start(ctx); err != nil {
		return process.Program{}, err
	}
	uid, err := clusterUID(ctx, kube)
	if err != nil {
		return process.Program{}, err
	}
	handler := server.New(server.Options{
		Kube: kube, Pods: watch.Pods, Notifier: watch.Notifier, Settings: watch.Settings.Get,
		Centre: centreclient.New(centreclient.Options{
			URL: func() string { return watch.Settings.Get().CentreURL }, TokenFile: tokenFile, ClusterUID: uid, Trust: watch.Trust,
		}),
		Limit: share.Limiter,
		Breaker: podbreaker.New(v1alpha1.SystemNamespace, kube.CoreV1(), watch.ConfigMaps,
			func() podbreaker.Policy { return watch.Settings.Get().Breaker }),
		Preparations: []server.Preparation{server.NewCMDB(watch.Settings.Get)},
		Clock:        clock.RealClock{},
		Random:       rand.Float64, Recorder: eventrecorder.New(ctx, kube, name), Events: sender,
		Meter: metrics.Meter(), Draining: ctx.Done(),
	})
	refresh := func(ctx context.Context) error {
		wait.UntilWithContext(ctx, func(context.Context) { share.Refresh() }, time.Second)
		return nil
	}
	config := servingcert.ServerConfig(certFile, keyFile)
	servingcert.ObserveExpiry(metrics.Meter(), name, config)
	return process.Program{Handler: handler, TLS: config, Endpoint: true, MaxUnauthenticated: maxUnauthenticated,
		Background: []func(context.Context) error{follow, sender.Run, refresh}}, nil
}

// clusterUID returns the UID of namespace kube-system, which identifies the cluster.
func clusterUID(ctx context.Context, kube kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace, err := kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the UID of the cluster: %w", err)
	}
	return string(namespace.UID), nil
}

// client returns a client without a timeout, so that watches last, and with a high
// rate limit.
func client(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.Timeout = qps, burst, 0
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return kube, nil
}
