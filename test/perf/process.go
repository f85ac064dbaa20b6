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

// ticks are how many a second /proc counts CPU time in: USER_HZ, 100 on every
// Linux that Go runs on.
const ticks = 100

// usage is what a part of the system has used and uses.
type usage struct {
	CPU time.Duration
	// RSS is the memory of its largest process, in bytes.
	RSS int64
}

// podUID finds the UID in the name of a pod's control group.
var podUID = regexp.MustCompile(`[/-]pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})`)

// processes returns what each part uses: a pod's processes under the name that
// parts has for its UID, and the processes with one of the names under their
// own. Others are left out. The processes of the embedded cluster are this
// machine's, so that nothing has to be asked.
func processes(parts map[string]string, names []string) (map[string]usage, error) {
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
		part := ""
		if found := podUID.FindSubmatch(groups); found != nil {
			part = parts[strings.ReplaceAll(string(found[1]), "_", "-")]
		} else {
			for _, n := range names {
				if strings.HasPrefix(n, name) { // a name is cut after 15 bytes
					part = n
				}
			}
		}
		if part != "" {
			sum := out[part]
			sum.CPU, sum.RSS = sum.CPU+used.CPU, max(sum.RSS, used.RSS)
			out[part] = sum
		}
	}
	return out, nil
}

// parseStat reads the name, the CPU time and the memory of /proc/<pid>/stat.
// The name stands in brackets and may have any of them in it.
func parseStat(raw []byte) (string, usage, error) {
	from, to := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if from < 0 || to < from {
		return "", usage{}, fmt.Errorf("not understood: %q", raw)
	}
	fields := strings.Fields(string(raw[to+1:])) // from the third one on
	if len(fields) < 22 {
		return "", usage{}, fmt.Errorf("not understood: %q", raw)
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

// spent returns what each part has spent between two looks. A process that has
// begun or ended between them is counted from its beginning, or not at all.
func spent(before, after map[string]usage) map[string]time.Duration {
	out := map[string]time.Duration{}
	for part, now := range after {
		used := now.CPU - before[part].CPU
		if used < 0 {
			used = now.CPU
		}
		out[part] = used
	}
	return out
}

// acceptedBy returns how many TCP connections were accepted in a pod since it
// began: its network namespace counts them.
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

// passiveOpens reads a counter of /proc/net/snmp: a line of names, and one of values.
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
