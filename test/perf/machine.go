package perf

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// machineComponent is the component of all processes of this machine, also those that have ended.
const machineComponent = "machine"

// machineCPU returns the CPU time that this machine has used, of all its processes and the kernel.
func machineCPU() (time.Duration, error) {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseMachineCPU(string(raw))
}

// parseMachineCPU reads the first line of /proc/stat: the time in user, nice, system,
// idle, iowait, irq, softirq and other states. Idle time, and time in which a hypervisor ran
// another machine, do not count.
func parseMachineCPU(stat string) (time.Duration, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("parse /proc/stat: its first line is %q", line)
	}
	var sum int64
	for _, at := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("parse /proc/stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks, nil
}
