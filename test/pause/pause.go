// Package pause pauses processes, so requests to them wait and their connections stay open.
package pause

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// timeout bounds the time until all threads of a process have stopped.
	timeout = 10 * time.Second
	// interval is the time between two looks at the threads.
	interval = time.Millisecond
)

// Process stops a process and returns when all its threads have stopped: until then a thread can
// still answer a request, on a machine with much load for a long time. A process that has ended
// is not an error.
func Process(pid int) error {
	if err := signal(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := wait.PollUntilContextTimeout(context.Background(), interval, timeout, true, func(context.Context) (bool, error) {
		return stopped(pid)
	}); err != nil {
		return fmt.Errorf("process %d has not stopped: %w", pid, err)
	}
	return nil
}

// Resume continues a process that was paused. A process that has ended is not an error.
func Resume(pid int) error { return signal(pid, syscall.SIGCONT) }

func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", s, pid, err)
	}
	return nil
}

// stopped reports whether no thread of a process runs.
func stopped(pid int) (bool, error) {
	threads, err := procfs.AllThreads(pid)
	if gone(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := thread.Stat()
		if gone(err) {
			continue
		}
		if err != nil {
			return false, err
		}
		switch stat.State {
		case "T", "t", "Z", "X": // stopped, stopped by a tracer, a zombie, dead
		default:
			return false, nil
		}
	}
	return true, nil
}

func gone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
