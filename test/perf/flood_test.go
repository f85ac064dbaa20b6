//go:build bench

package perf

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/manifest"
)

// The processes of a flood are this test binary, run again with the role in floodRole.
const (
	floodRole = "FLOOD_ROLE"
	// floodAddress is the address that strangers flood, floodKind what they send.
	floodAddress, floodKind = "FLOOD_ADDRESS", "FLOOD_KIND"
	// floodNice is the niceness of the strangers. The attacker has a machine of its own, so by
	// default it takes no CPU time from the process that it attacks, except by what it sends.
	floodNice, defaultNice = "FLOOD_NICE", "10"
	// strangers is the number of connections of the attacker.
	strangers = 1000
	// bursts is the number of bursts of genuine requests, which begin burstInterval apart.
	bursts        = 5
	burstInterval = 2 * time.Second
	// largeBurst is the number of large requests of a burst.
	largeBurst = 4
)

// flooded is what one flood did to a process.
type flooded struct {
	kind string
	// took are those of the small genuine requests, large those of the large ones.
	took, large timings
	// memory is the largest resident memory of the process.
	memory int64
}

// timings are the durations of requests, and the number of those that were not answered 200.
type timings struct {
	mu      sync.Mutex
	took    []time.Duration
	refused int
}

// measure sends a request.
func (d *timings) measure(t *testing.T, send func() (int, error)) {
	began := time.Now()
	status, err := send()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.took = append(d.took, time.Since(began))
	if err != nil || status != http.StatusOK {
		d.refused++
		t.Logf("status %d, %v", status, err)
	}
}

// at returns the duration that some percent of the requests took at most.
func (d *timings) at(percent int) string {
	slices.Sort(d.took)
	return fmt.Sprintf("%.2f s", d.took[(len(d.took)-1)*percent/100].Seconds())
}

func (d *timings) refusals() string { return fmt.Sprintf("%d of %d", d.refused, len(d.took)) }

func (f *flooded) row() string {
	return "| " + strings.Join([]string{f.kind, fmt.Sprintf("%d MiB", f.memory/mib), f.took.at(50), f.took.at(99), f.took.at(100), f.took.refusals(),
		f.large.at(50), f.large.at(100), f.large.refusals()}, " | ") + " |"
}

// floodTable renders the results. where is the machine before the run, limit is the memory limit of the manifest.
func floodTable(where, requests, size string, limit int64, results []*flooded) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s Strangers at nice %s.\n\n", where, niceness())
	fmt.Fprintf(&s, "| what strangers send | largest memory (limit %d MiB) | %s, p50 | p99 | longest | refused | of %s, p50 | longest | refused |\n|---|---|---|---|---|---|---|---|---|\n", limit/mib, requests, size)
	for _, f := range results {
		s.WriteString(f.row() + "\n")
	}
	return s.String()
}

func niceness() string {
	if n := os.Getenv(floodNice); n != "" {
		return n
	}
	return defaultNice
}

// floodProcess starts a process of one role and returns it with the first line of its output, which it prints
// when it is ready.
func floodProcess(ctx context.Context, t *testing.T, nice, test string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	c := exec.CommandContext(ctx, "nice", "-n", nice, os.Args[0], "-test.run=^"+test+"$", "-test.v=false")
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not become ready: %v", test, err)
	}
	return c, strings.TrimSpace(line)
}

// flood runs a process within the resources of its manifest, floods it, and sends it genuine requests.
// send sends one genuine request to an address and returns the status.
func flood(t *testing.T, server string, resources manifest.Resources, kind string, burst int, send func(address string, large bool) (int, error)) *flooded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	process, address := floodProcess(ctx, t, "0", server, floodRole+"="+server, "GOMEMLIMIT="+strconv.FormatInt(resources.SoftMemory, 10))
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	if status, err := send(address, false); err != nil || status != http.StatusOK {
		t.Fatalf("before the flood: %d %v", status, err)
	}
	attacker, _ := floodProcess(ctx, t, niceness(), "TestProcessOfTheStrangers", floodRole+"=strangers", floodAddress+"="+address, floodKind+"="+kind)
	defer func() { _ = attacker.Process.Kill(); _ = attacker.Wait() }()
	result := &flooded{kind: kind}
	var sent sync.WaitGroup
	for range bursts {
		for range burst {
			sent.Go(func() { result.took.measure(t, func() (int, error) { return send(address, false) }) })
		}
		for range largeBurst {
			sent.Go(func() { result.large.measure(t, func() (int, error) { return send(address, true) }) })
		}
		time.Sleep(burstInterval)
	}
	sent.Wait()
	result.memory = largestMemory(t, process.Process.Pid)
	if err := process.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("%s: the process ended: %v", kind, err)
	}
	t.Log(result.row())
	return result
}

// largestMemory returns the largest resident memory of a process.
func largestMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^VmHWM:\s*(\d+) kB$`).FindSubmatch(status)
	if found == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// TestProcessOfTheStrangers is no test: it is the main function of the process of the attacker.
func TestProcessOfTheStrangers(t *testing.T) {
	if os.Getenv(floodRole) != "strangers" {
		t.Skip("a process of a flood")
	}
	kind := floods()[os.Getenv(floodKind)]
	var opened atomic.Int64
	var all sync.WaitGroup
	number := strangers
	if kind.connections > 0 {
		number = kind.connections
	}
	for range number {
		all.Go(func() {
			for {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", os.Getenv(floodAddress))
				if err != nil {
					time.Sleep(10 * time.Millisecond) // a local port is not free yet
					continue
				}
				if opened.Add(1) == int64(number) {
					fmt.Println("flooding")
				}
				_ = c.SetDeadline(time.Now().Add(15 * time.Second))
				kind.send(c)
				_ = c.Close()
			}
		})
	}
	all.Wait()
}

// floodOf is a kind of flood: send sends on one of the connections; 0 connections are strangers.
type floodOf struct {
	connections int
	send        func(net.Conn)
}

var megabyte = bytes.Repeat([]byte("x"), 1000000)

// floods are all kinds.
func floods() map[string]floodOf { return callbackFloods() }

func hold(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
