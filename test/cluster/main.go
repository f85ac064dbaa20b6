// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const goarch = runtime.GOARCH

const usage = `usage: go -C test/cluster run . <command>

  up [--nodes N]            start the cluster with N simulated nodes (default 10)
     [--without-knative]    without Knative and its ingress
  down [--cache]            remove the cluster; --cache also removes builds and images
  status                    print processes and paths; fails if the cluster is not up
  kubeconfig [user]         print the path of a kubeconfig (users: admin, load)
  exec -- command [args]    run a command in the cluster's network, with KUBECONFIG,
                            kubectl, ko and the cluster's DNS
  load-images <ref|tar>...  copy images into the cluster's registry
  nodes N                   set the number of simulated nodes
  controlplane <folder>     run only a control plane and simulated nodes, without root,
                            until stdin ends; the folder has its state
  build <family>            build the programs of a folder of modules/ and print where
                            they are

Environment:

  BREAKWATER_CACHE  folder of builds and images (default ~/.cache/breakwater)
  BREAKWATER_STATE  folder of the running cluster (default /var/lib/<name>-cluster)
  BREAKWATER_NAME   name of the cluster (default breakwater); clusters with other
                    names ("bw...") can run at the same time

doc.go describes the processes, log files and limits.
`

// cluster is the state of one command of the tool.
type cluster struct {
	layout
	*progress
	clientMu sync.Mutex
	client   *http.Client
	// controlPlaneOnly means: no namespace, no cgroup, no kubelet; see runControlPlane.
	controlPlaneOnly bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := newLayout()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	c := &cluster{layout: l, progress: newProgress(os.Stderr, time.Now)}
	if err := c.dispatch(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = errors.New("interrupted; run make up to start again or make down to clean up")
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func (c *cluster) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	command, rest := args[0], args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	switch command {
	case "controlplane":
		if len(rest) != 1 {
			return errors.New("controlplane needs a folder")
		}
		return c.runControlPlane(ctx, rest[0])
	case "build":
		if len(rest) != 1 {
			return errors.New("build needs the name of a family")
		}
		return c.printBuilt(ctx, rest[0])
	case "registry":
		if len(rest) != 2 {
			return errors.New("registry needs the blob folder and the name of the manifest folder")
		}
		return serveRegistry(rest[0], rest[1])
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	if err := canRun(); err != nil {
		return err
	}
	switch command {
	case "up":
		flags := flag.NewFlagSet("up", flag.ContinueOnError)
		nodes := flags.Int("nodes", 10, "number of simulated nodes")
		bare := flags.Bool("without-knative", false, "Kubernetes without Knative")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return c.locked(ctx, func() error { return c.up(ctx, *nodes, *bare) })
	case "down":
		flags := flag.NewFlagSet("down", flag.ContinueOnError)
		cache := flags.Bool("cache", false, "also remove cached builds and images")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return c.locked(ctx, func() error {
			if err := c.down(ctx); err != nil || !*cache {
				return err
			}
			return c.step("remove cache", c.removeCache)
		})
	case "status":
		return c.status(ctx, os.Stdout)
	case "kubeconfig":
		user := "admin"
		if len(rest) > 0 {
			user = rest[0]
		}
		if _, err := os.Stat(c.kubeconfig(user)); err != nil {
			return fmt.Errorf("%w: %w", errNotUp, err)
		}
		fmt.Println(c.kubeconfig(user))
		return nil
	case "exec":
		return c.execInside(rest)
	case "load-images":
		return c.loadImages(ctx, rest)
	case "nodes":
		if len(rest) != 1 {
			return errors.New("nodes needs a number")
		}
		count, err := strconv.Atoi(rest[0])
		if err != nil || count < 0 {
			return fmt.Errorf("nodes needs a number, not %q", rest[0])
		}
		return c.locked(ctx, func() error {
			return c.step(fmt.Sprintf("%d simulated nodes", count), func() error { return c.scaleNodes(ctx, count) })
		})
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", command)
}

// canRun returns an error with the alternatives if the cluster cannot run here.
func canRun() error {
	const instead = `; alternatives: unit tests ("go test ./..."), or "make apply" on the cluster of KUBECONFIG`
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the embedded cluster needs Linux, not %s%s", runtime.GOOS, instead)
	}
	if os.Geteuid() != 0 {
		return errors.New("the embedded cluster needs root, for namespaces, mounts and cgroups: run sudo env PATH=\"$PATH\" make …" + instead)
	}
	return nil
}

// locked runs f while it holds the lock, so that only one command changes the
// cluster. The lock file is not in the state, which "down" deletes. The kernel
// releases the lock of a killed command as soon as each process that it was
// starting has called exec.
func (c *cluster) locked(ctx context.Context, f func() error) error {
	path := c.state + ".lock"
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	var owner string
	take := func(context.Context) error {
		err := tryLock(lock)
		if err != nil {
			data, _ := os.ReadFile(path)
			owner = string(data)
		}
		return err
	}
	release := waiting{what: "the lock " + path, deadline: 10 * time.Second, every: 10 * time.Millisecond, alive: func() error {
		if pid, err := strconv.Atoi(owner); err == nil && processGone(pid) {
			return nil
		}
		return errors.New("its owner is running")
	}}
	busy := func() error {
		return fmt.Errorf("another command of this tool is running (pid %s, lock %s): wait until it ends", owner, path)
	}
	if err := release.until(ctx, take); err != nil {
		return busy()
	}
	if !sameFile(lock, path) { // the previous holder removed the file, and another process may have a new one
		return busy()
	}
	defer func() { _ = os.Remove(path) }()
	if err := lock.Truncate(0); err != nil {
		return err
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return err
	}
	return f()
}

func sameFile(open *os.File, path string) bool {
	a, err := open.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
