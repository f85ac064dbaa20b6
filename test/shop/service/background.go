// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"syscall"
	"time"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
)

// Background does what a fault does without a request, until the context ends.
// It returns true when the process has to exit with an error.
func Background(ctx context.Context, e fault.Effects) (exit bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	started := time.Now()
	var kept [][]byte
	var burner burner
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			if e.ExitAfter > 0 && now.Sub(started) >= e.ExitAfter {
				return true
			}
			if e.LeakBytes > 0 {
				kept = append(kept, touched(e.LeakBytes))
			}
			for range e.LeakGoroutines {
				go func() { <-ctx.Done() }()
			}
			if e.CPU > 0 {
				burner.burn(e.CPU)
			}
		}
	}
}

// touched returns memory that the kernel has to provide: every page is written.
func touched(size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 1 << 12 {
		b[i] = 1
	}
	return b
}

// burner uses CPU time in proportion to what the rest of the process uses.
type burner struct{ seen, burnt time.Duration }

func (b *burner) burn(share float64) {
	used := cpuTime() - b.burnt
	want := time.Duration(share * float64(used-b.seen))
	b.seen = used
	begin := cpuTime()
	for cpuTime()-begin < want {
		work()
	}
	b.burnt += cpuTime() - begin
}

// cpuTime is the CPU time of this process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
