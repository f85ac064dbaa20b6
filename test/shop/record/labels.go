// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// maxLagGrowth is the maximum growth of the machine's median lag during a good release
// that leaves no old pods. The new pods of such a release are compared with an earlier
// time, and would look slow. The shortest time of service is 20 ms, so 1 ms is a sixth of
// the weakest latency fault. If old pods stay, the lag is the same for both versions. A
// release with a fault is bad whatever the machine does.
const maxLagGrowth = time.Millisecond

// result is a release that was made.
type result struct {
	release             Release
	at                  time.Time
	lagBefore, lagAfter time.Duration
	restarts            int
}

// disturbed reports whether other programs of the machine make the label false.
func (r result) disturbed() bool {
	return r.release.Good() && r.release.Keep == 0 && r.lagAfter-r.lagBefore > maxLagGrowth
}

func (r result) label() string {
	if r.release.Good() {
		return "good"
	}
	return "bad"
}

func (r result) matcher(version string) string {
	return fmt.Sprintf("namespace=%q,pod=~\"%s-%s-.+\"", r.release.Namespace, r.release.Service, hash(version))
}

// writeLabels writes the lists of releases: labels.csv and no-traffic.csv as
// judge calibrate reads them, and faults.csv with the properties of each release.
func writeLabels(folder, run string, results []result) error {
	head := []string{"new", "old", "at", "check", "label"}
	labels, without := [][]string{head}, [][]string{head}
	faults := [][]string{{"new", "list", "fault", "strength", "variant", "load", "profile", "service", "old_pods", "new_pods", "kept_old_pods", "errors_before",
		"day_before", "restarts", "lag_before_ms", "lag_after_ms", "run", "at"}}
	for _, r := range results {
		// The next whole second after the first Ready.
		at := r.at.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)
		row := []string{r.matcher("v2"), r.matcher("v1"), at, "", r.label()}
		list := "labels"
		switch {
		case r.release.NoTraffic:
			without, list = append(without, row), "no-traffic"
		case r.disturbed():
			list = "disturbed"
		default:
			labels = append(labels, row)
		}
		faults = append(faults, append(append([]string{row[0], list}, r.facts(run)...), at))
	}
	for name, rows := range map[string][][]string{"labels.csv": labels, "no-traffic.csv": without, "faults.csv": faults} {
		if err := writeCSV(filepath.Join(folder, name), rows); err != nil {
			return err
		}
	}
	return nil
}

func (r result) facts(run string) []string {
	ms := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds()*1000, 'f', 2, 64) }
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	l := r.release
	return []string{string(l.Fault), string(l.Strength), l.Variant, number(l.Rate), l.Profile, l.Service, strconv.Itoa(l.Old), strconv.Itoa(l.New), strconv.Itoa(l.Keep),
		number(l.Errors), strconv.FormatBool(l.DayBefore), strconv.Itoa(r.restarts), ms(r.lagBefore), ms(r.lagAfter), run}
}

func writeCSV(path string, rows [][]string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return csv.NewWriter(file).WriteAll(rows)
}
