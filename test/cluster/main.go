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

  up [--nodes N]            bring the cluster up, with N simulated nodes (10); also
     [--without-knative]    Kubernetes alone, and no ingress
  down [--cache]            end it and leave nothing behind but the cache; or not even that
  status                    what runs, and where everything is; fails when it is not up
  kubeconfig [user]         path of a kubeconfig that works from here (users: admin, load)
  exec -- command [args]    run a command inside, with KUBECONFIG, kubectl, ko and DNS
  load-images <ref|tar>...  copy images into the cluster's registry
  nodes N                   change the number of simulated nodes

BREAKWATER_CACHE holds builds and images, BREAKWATER_STATE the running cluster;
BREAKWATER_NAME (breakwater) names it: clusters of other names, "bw…", live beside it.
doc.go says what runs, where its logs are and what the limits are.
`

// cluster carries what every part needs.
type cluster struct {
	layout
	*progress
	clientMu sync.Mutex
	client   *http.Client
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
			err = fmt.Errorf("interrupted; \"up\" starts anew, \"down\" removes what is there")
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
	case "registry":
		if len(rest) != 2 {
			return errors.New("registry needs the folder of blobs and the name of that of manifests")
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
		bare := flags.Bool("without-knative", false, "Kubernetes alone")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return c.locked(func() error { return c.up(ctx, *nodes, *bare) })
	case "down":
		flags := flag.NewFlagSet("down", flag.ContinueOnError)
		cache := flags.Bool("cache", false, "remove the cache too")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return c.locked(func() error {
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
			return fmt.Errorf("the cluster is not up: %w", err)
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
		return c.locked(func() error {
			return c.step(fmt.Sprintf("%d simulated nodes", count), func() error { return c.scaleNodes(ctx, count) })
		})
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", command)
}

// canRun says what is possible elsewhere when this is not the place for a cluster.
func canRun() error {
	const instead = `; without it: unit tests ("go test ./..."), or "make apply" on a cluster of your own by KUBECONFIG`
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the embedded cluster needs Linux, this is %s%s", runtime.GOOS, instead)
	}
	if os.Geteuid() != 0 {
		return errors.New("the embedded cluster needs root, for namespaces, mounts and cgroups" + instead)
	}
	return nil
}

// locked lets one change happen at a time. The lock is beside the state, which "down"
// deletes; the kernel drops it when the tool dies, and whoever holds it removes its file.
func (c *cluster) locked(f func() error) error {
	path := c.state + ".lock"
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	busy := func() error {
		owner, _ := os.ReadFile(path)
		return fmt.Errorf("another run of this tool is at work (pid %s, lock %s): wait for it", owner, path)
	}
	if err := tryLock(lock); err != nil {
		return busy()
	}
	if !sameFile(lock, path) { // its former holder has just removed it, and another may have a new one
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
