package networkpolicy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// settle is how long changes are gathered before the rules are replaced.
const settle = 100 * time.Millisecond

// Run runs tests while the NetworkPolicies of a cluster are enforced, and returns the exit
// code.
func Run(tests interface{ Run() int }, kube kubernetes.Interface) int {
	stop, err := Enforce(kube)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "enforce NetworkPolicies:", err)
		return 1
	}
	code := tests.Run()
	if err := stop(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "enforce NetworkPolicies:", err)
		return 1
	}
	return code
}

// Enforce enforces the NetworkPolicies of a cluster until stop is called. This process has
// to run in the network namespace of the node. A later failure is printed, and stop
// returns it.
func Enforce(kube kubernetes.Interface) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(kube, 0)
	changed := make(chan struct{}, 1)
	notify := func(o any) {
		if pod, ok := o.(*corev1.Pod); ok && isSimulated(pod) {
			return
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	policies, pods, namespaces := factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	for _, informer := range []cache.SharedIndexInformer{policies.Informer(), pods.Informer(), namespaces.Informer()} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notify, UpdateFunc: func(_, o any) { notify(o) }, DeleteFunc: notify,
		})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			cancel()
			return nil, fmt.Errorf("the cache of %s is not filled", kind)
		}
	}
	e := &enforcer{state: func() (s State, err error) {
		if s.Policies, err = policies.Lister().List(labels.Everything()); err != nil {
			return s, err
		}
		if s.Pods, err = pods.Lister().List(labels.Everything()); err != nil {
			return s, err
		}
		s.Namespaces, err = namespaces.Lister().List(labels.Everything())
		return s, err
	}}
	remove, err := removeAtEnd(table())
	if err == nil {
		err = e.apply(ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- e.run(ctx, changed) }()
	return func() error {
		cancel()
		failed := <-done
		factory.Shutdown()
		return errors.Join(failed, remove())
	}, nil
}

// table is the table of this process.
func table() string { return fmt.Sprintf("inet breakwater-networkpolicy-%d", os.Getpid()) }

// removeAtEnd starts a process that removes the table when remove is called, or when this
// process ends in any way. Otherwise rules would stay for addresses that other pods get later.
func removeAtEnd(table string) (remove func() error, err error) {
	command := exec.CommandContext(context.Background(), "sh", "-c", `cat >/dev/null; printf 'table %s\ndelete table %s\n' "$0" "$0" | nft -f -`, table)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the tests
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		return nil, err
	}
	return func() error {
		err := errors.Join(alive.Close(), command.Wait())
		if err != nil {
			err = fmt.Errorf("remove the rules: %w\n%s", err, out.Bytes())
		}
		return err
	}, nil
}

// enforcer replaces the rules when they change.
type enforcer struct {
	state   func() (State, error)
	applied string
}

func (e *enforcer) run(ctx context.Context, changed <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
		if err := e.apply(ctx); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(os.Stderr, "enforce NetworkPolicies:", err)
			return err
		}
	}
}

func (e *enforcer) apply(ctx context.Context) error {
	state, err := e.state()
	if err != nil {
		return err
	}
	isolated, err := state.Isolate()
	if err != nil {
		return err
	}
	rules := Ruleset(table(), isolated)
	if rules == e.applied {
		return nil
	}
	if err := nft(ctx, rules); err != nil {
		return err
	}
	e.applied = rules
	return nil
}

func nft(ctx context.Context, input string) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w\n%s", err, out)
	}
	return nil
}
