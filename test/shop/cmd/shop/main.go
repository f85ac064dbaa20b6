// SPDX-License-Identifier: Apache-2.0

// Shop runs one service of the sample shop, or the load on it. Each flag can
// also be set by the environment: --fault-strength by SHOP_FAULT_STRENGTH.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
	"github.com/breakwater-dev/breakwater/test/shop/load"
	"github.com/breakwater-dev/breakwater/test/shop/service"
)

// drain is how long requests may take to end after SIGTERM.
const drain = 5 * time.Second

type options struct {
	service, listen                 string
	namespace, pod, node            string
	fault, strength                 string
	errors, speed, rate             float64
	front, catalogue, cart, payment string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		if o.service == "load" {
			err = runLoad(ctx, o)
		} else {
			err = runService(ctx, o)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	hostname, _ := os.Hostname()
	flags := flag.NewFlagSet("shop", flag.ContinueOnError)
	flags.StringVar(&o.service, "service", "front", "front, catalogue, cart, payment, or load")
	flags.StringVar(&o.listen, "listen", ":8080", "address to listen on")
	flags.StringVar(&o.pod, "pod", hostname, "name of the pod, for the metrics of callers")
	flags.StringVar(&o.namespace, "namespace", "", "label namespace of all metrics; with it they also have pod and node. Empty: Prometheus adds these labels")
	flags.StringVar(&o.node, "node", "", "label node of all metrics, if --namespace is set")
	flags.StringVar(&o.fault, "fault", "", "kind of fault; empty for none")
	flags.StringVar(&o.strength, "fault-strength", string(fault.Weak), "weak, medium or strong")
	flags.Float64Var(&o.errors, "errors", 0, "share of requests that fail without a fault, 0 to 1")
	flags.Float64Var(&o.speed, "speed", 1, "divides the time of service, 0.1 to 10")
	flags.Float64Var(&o.rate, "rate", 20, "load: requests per second, 0.2 to 200")
	flags.StringVar(&o.front, "front", "", "load: http:// address of front, or file:// and a file of endpoints")
	flags.StringVar(&o.catalogue, "catalogue", "", "address of catalogue; empty: is not called")
	flags.StringVar(&o.cart, "cart", "", "address of cart; empty: is not called")
	flags.StringVar(&o.payment, "payment", "", "address of payment; empty: is not called")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var bad error
	flags.VisitAll(func(f *flag.Flag) {
		name := "SHOP_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && !given[f.Name] {
			if err := flags.Set(f.Name, value); err != nil {
				bad = errors.Join(bad, fmt.Errorf("%s: %w", name, err))
			}
		}
	})
	switch {
	case o.errors < 0 || o.errors > 1:
		bad = errors.Join(bad, fmt.Errorf("--errors is %v, use 0 to 1", o.errors))
	case o.speed < 0.1 || o.speed > 10:
		bad = errors.Join(bad, fmt.Errorf("--speed is %v, use 0.1 to 10", o.speed))
	}
	return o, bad
}

// labels are the labels that Prometheus would get from its Kubernetes discovery,
// which Debian's package does not have.
func (o options) labels() map[string]string {
	if o.namespace == "" {
		return nil
	}
	return map[string]string{"namespace": o.namespace, "pod": o.pod, "node": o.node}
}

func runService(ctx context.Context, o options) error {
	spec, err := service.SpecOf(o.service)
	if err != nil {
		return err
	}
	effects, err := fault.EffectsOf(fault.Kind(o.fault), fault.Strength(o.strength))
	if err != nil {
		return err
	}
	meters, metrics, err := service.Telemetry(o.labels())
	if err != nil {
		return err
	}
	s := &service.Service{Spec: spec, Pod: o.pod, Effects: effects, Errors: o.errors, Speed: o.speed, Started: time.Now()}
	targets := map[string]string{"catalogue": o.catalogue, "cart": o.cart, "payment": o.payment}
	for _, name := range spec.Calls {
		if targets[name] == "" {
			continue
		}
		client, err := service.NewClient(meters, o.service, name, targets[name])
		if err != nil {
			return err
		}
		s.Dependencies = append(s.Dependencies, client)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.Handler(meters, metrics), ReadHeaderTimeout: drain, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	exit := make(chan bool, 1)
	go func() { exit <- service.Background(ctx, effects) }()
	select {
	case err := <-served:
		return err
	case crash := <-exit:
		if crash {
			return errors.New("exit because of fault crash-loop")
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := server.Shutdown(ending); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// runLoad calls front until it is stopped. It shows the metrics of these calls, as
// the caller.
func runLoad(ctx context.Context, o options) error {
	meters, metrics, err := service.Telemetry(o.labels())
	if err != nil {
		return err
	}
	if err := load.Allowed(ctx, o.front); err != nil {
		return err
	}
	client, err := service.NewClient(meters, "load", "front", o.front)
	if err != nil {
		return err
	}
	generator, err := load.New(client, load.Constant(o.rate), uint64(time.Now().UnixNano()))
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: drain}
	go func() { _ = server.Serve(listener) }()
	generator.Run(ctx)
	return server.Close()
}
