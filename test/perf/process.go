package perf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ticks is the unit of CPU time in /proc, per second: USER_HZ, which is 100 on
// every Linux that Go supports.
const ticks = 100

// usage is the CPU time and memory of a component of the system.
type usage struct {
	CPU time.Duration
	// RSS is the memory of the largest process of the component, in bytes.
	RSS int64
}

// podUID matches the UID in the name of a pod's control group.
var podUID = regexp.MustCompile(`[/-]pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})`)

// processes returns the usage of each component. The component of a pod's process is the
// value of its UID in components; the component of another process is its name, if it is
// one of names. Other processes do not count. All processes of the embedded
// cluster run on this machine, so /proc has them.
func processes(components map[string]string, names []string) (map[string]usage, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	out := map[string]usage{}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended
		}
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil {
			continue
		}
		name, used, err := parseStat(stat)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		component := ""
		if found := podUID.FindSubmatch(groups); found != nil {
			component = components[strings.ReplaceAll(string(found[1]), "_", "-")]
		} else {
			for _, n := range names {
				if strings.HasPrefix(n, name) { // /proc has the first 15 bytes
					component = n
				}
			}
		}
		if component != "" {
			sum := out[component]
			sum.CPU, sum.RSS = sum.CPU+used.CPU, max(sum.RSS, used.RSS)
			out[component] = sum
		}
	}
	return out, nil
}

// parseStat reads the name, the CPU time and the memory of /proc/<pid>/stat.
// The name is in parentheses and may itself contain parentheses.
func parseStat(raw []byte) (string, usage, error) {
	from, to := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if from < 0 || to < from {
		return "", usage{}, fmt.Errorf("parse stat %q: no name or too few fields", raw)
	}
	fields := strings.Fields(string(raw[to+1:])) // begins with field 3
	if len(fields) < 22 {
		return "", usage{}, fmt.Errorf("parse stat %q: no name or too few fields", raw)
	}
	var n [3]int64
	for i, at := range []int{14, 15, 24} { // utime, stime, rss
		var err error
		if n[i], err = strconv.ParseInt(fields[at-3], 10, 64); err != nil {
			return "", usage{}, err
		}
	}
	return string(raw[from+1 : to]), usage{
		CPU: time.Duration(n[0]+n[1]) * time.Second / ticks, RSS: n[2] * int64(os.Getpagesize()),
	}, nil
}

// spent returns the CPU time of each component between two measurements. If its
// processes restarted, the time since then counts; if they ended, none does.
func spent(before, after map[string]usage) map[string]time.Duration {
	out := map[string]time.Duration{}
	for component, now := range after {
		used := now.CPU - before[component].CPU
		if used < 0 {
			used = now.CPU
		}
		out[component] = used
	}
	return out
}

// acceptedBy returns the number of TCP connections that a pod has accepted, from
// the counters of its network namespace.
func acceptedBy(uid string) (int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil {
			continue // it has ended
		}
		found := podUID.FindSubmatch(groups)
		if found == nil || strings.ReplaceAll(string(found[1]), "_", "-") != uid {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "net/snmp"))
		if err != nil {
			return 0, err
		}
		return passiveOpens(string(raw))
	}
	return 0, fmt.Errorf("pod %s has no process", uid)
}

// passiveOpens parses a counter of /proc/net/snmp, which has a line of names and
// a line of values.
func passiveOpens(snmp string) (int, error) {
	var names []string
	for line := range strings.Lines(snmp) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != "Tcp:":
		case names == nil:
			names = fields
		default:
			for i, name := range names {
				if name == "PassiveOpens" && i < len(fields) {
					return strconv.Atoi(fields[i])
				}
			}
		}
	}
	return 0, fmt.Errorf("no PassiveOpens in %q", snmp)
}
