// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

func TestAboutHalfOfTheReleasesAreBadAndTwelveFaultsHaveAllStrengths(t *testing.T) {
	labels, faults := map[string]int{}, map[string]map[string]bool{}
	for _, run := range Runs {
		for _, row := range run.Rows(t, Labels) {
			labels[row["label"]]++
		}
		for _, row := range run.Rows(t, Faults) {
			if row["list"] == "labels" && row["fault"] != "" {
				if faults[row["fault"]] == nil {
					faults[row["fault"]] = map[string]bool{}
				}
				faults[row["fault"]][row["strength"]] = true
			}
		}
	}
	total := labels["good"] + labels["bad"]
	if total < 60 || labels["bad"] < total*45/100 || labels["bad"] > total*55/100 {
		t.Errorf("the set has %v releases", labels)
	}
	complete := 0
	for _, strengths := range faults {
		if len(strengths) == 3 {
			complete++
		}
	}
	if complete < 12 {
		t.Errorf("%d kinds of fault have all strengths: %v", complete, faults)
	}
}

// Releases that leave no old pods to compare with have series of the day before.
func TestAReleaseHasSeriesOfNewAndOldPodsAndOfTheDayBefore(t *testing.T) {
	url := Start(t, Tuning)
	client, err := api.NewClient(api.Config{Address: url})
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]bool{}
	for _, row := range Tuning.Rows(t, Faults) {
		before[row["new"]] = row["day_before"] == "true"
	}
	exists := func(matcher string, at time.Time) bool {
		t.Helper()
		query := fmt.Sprintf("count_over_time(kube_pod_info{%s}[30s])", matcher)
		value, _, err := v1.NewAPI(client).Query(context.Background(), query, at)
		if err != nil {
			t.Fatal(err)
		}
		return len(value.(model.Vector)) > 0
	}
	for _, row := range Tuning.Rows(t, Labels) {
		at, err := time.Parse(time.RFC3339, row["at"])
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]struct {
			matcher string
			at      time.Time
			want    bool
		}{
			"new pods before the release":        {row["new"], at.Add(-time.Minute), false},
			"new pods after the release":         {row["new"], at.Add(5 * time.Minute), true},
			"old pods before the release":        {row["old"], at.Add(-2 * time.Minute), true},
			"old pods of the day before":         {row["old"], at.Add(-24 * time.Hour), before[row["new"]]},
			"old pods late the day before":       {row["old"], at.Add(-24*time.Hour + 5*time.Minute), before[row["new"]]},
			"new pods longer after the analysis": {row["new"], at.Add(10 * time.Minute), false},
		} {
			if got := exists(c.matcher, c.at); got != c.want {
				t.Errorf("%s: %s exist: %v", row["new"], what, got)
			}
		}
	}
}
