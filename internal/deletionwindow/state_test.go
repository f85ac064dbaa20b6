package deletionwindow

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// zero is the start of a cell of each width.
var zero = time.Unix(1<<30, 0)

func at(seconds float64) time.Time { return zero.Add(time.Duration(seconds * float64(time.Second))) }

func rule(interval time.Duration, limit int64) Rule {
	return Rule{Text: interval.String(), Interval: interval, Limit: limit}
}

// tenMinutes has cells of 16 s.
func tenMinutes(limit int64) Policy {
	return Policy{Rules: []Rule{rule(10*time.Minute, limit)}, Skew: DefaultSkew}
}

func pod(uid string) Deletion { return Deletion{UID: types.UID(uid), Count: 1} }

func namespace(pods int64) Deletion { return Deletion{UID: "ns", Count: pods, IsNamespace: true} }

// deletionsAt returns a state with one deletion at each of the seconds.
func deletionsAt(t Policy, seconds ...float64) State {
	var h State
	for i, s := range seconds {
		h = t.Add(h, at(s), pod(fmt.Sprint(i)))
	}
	return h
}

func cell(start, end, count int64) v1alpha1.DeletionCell {
	return v1alpha1.DeletionCell{Start: zero.Unix() + start, End: zero.Unix() + end, Count: count}
}

func TestAllowedDeletionsAreCounted(t *testing.T) {
	terms := tenMinutes(100)
	for name, tc := range map[string]struct {
		h    State
		want []v1alpha1.DeletionCell
	}{
		"one":                         {deletionsAt(terms, 3.5), []v1alpha1.DeletionCell{cell(3, 4, 1)}},
		"two of one cell":             {deletionsAt(terms, 3.5, 15.9), []v1alpha1.DeletionCell{cell(3, 16, 2)}},
		"two of two cells":            {deletionsAt(terms, 15, 16), []v1alpha1.DeletionCell{cell(15, 16, 1), cell(16, 17, 1)}},
		"an expired cell is kept":     {deletionsAt(terms, 0, 100, 800), []v1alpha1.DeletionCell{cell(0, 101, 2), cell(800, 801, 1)}},
		"an old cell is deleted":      {deletionsAt(terms, 0, 4805), []v1alpha1.DeletionCell{cell(4805, 4806, 1)}},
		"a namespace counts all pods": {terms.Add(State{}, at(0), namespace(40)), []v1alpha1.DeletionCell{cell(0, 1, 40)}},
		"a repeated request counts once, and longer": {
			terms.Add(deletionsAt(terms, 2), at(9), pod("0")), []v1alpha1.DeletionCell{cell(2, 10, 1)}},
		"a repeated request in the next cell counts once, in that cell": {
			terms.Add(deletionsAt(terms, 7, 15.9), at(16), pod("1")), []v1alpha1.DeletionCell{cell(7, 16, 1), cell(16, 17, 1)}},
		"a repeated request after another request began the next cell": {
			terms.Add(deletionsAt(terms, 14, 15.9, 16), at(17), pod("0")), []v1alpha1.DeletionCell{cell(14, 16, 1), cell(16, 18, 2)}},
		"a request repeated twice in the next cell": {
			terms.Add(terms.Add(deletionsAt(terms, 15.9), at(16), pod("0")), at(17), pod("0")), []v1alpha1.DeletionCell{cell(15, 16, 0), cell(16, 18, 1)}},
		"a repeated namespace counts its current pods": {
			terms.Add(terms.Add(State{}, at(14), namespace(40)), at(15), namespace(41)), []v1alpha1.DeletionCell{cell(14, 16, 41)}},
		"a repeated namespace in the next cell counts again, because it may have grown": {
			terms.Add(terms.Add(State{}, at(15), namespace(1)), at(16), namespace(40)), []v1alpha1.DeletionCell{cell(15, 16, 1), cell(16, 17, 40)}},
		"a request repeated long after its cell counts twice": {
			terms.Add(deletionsAt(terms, 2), at(16), pod("0")), []v1alpha1.DeletionCell{cell(2, 3, 1), cell(16, 17, 1)}},
		"a request repeated two cells later counts twice": {
			terms.Add(deletionsAt(terms, 15, 16, 32), at(33), pod("0")), []v1alpha1.DeletionCell{cell(15, 16, 1), cell(16, 17, 1), cell(32, 34, 2)}},
	} {
		if diff := cmp.Diff(tc.want, tc.h.Cells); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHowLongARepeatedDeletionIsRecognized(t *testing.T) {
	for _, tc := range []struct {
		name    string
		let     []float64
		closed  float64
		seconds float64
		want    bool
	}{
		{"in its cell", []float64{1}, 0, 15.9, true},
		{"at the end of its cell", []float64{15.9}, 0, 16, true},
		{"within the limit after its cell", []float64{15.9}, 0, 25.9, true},
		{"beyond the limit after its cell", []float64{15.9}, 0, 26, false},
		{"after another deletion began the next cell", []float64{15.9, 16}, 0, 25.9, true},
		{"beyond the limit with a next cell", []float64{15.9, 16}, 0, 26, false},
		{"two cells later", []float64{15.9, 16, 32}, 0, 32, false},
		{"after a person closed the breaker", []float64{15.9}, 16, 17, false},
		{"after a close and another deletion", []float64{15.9, 17}, 16, 18, false},
	} {
		terms := tenMinutes(9)
		if tc.closed > 0 {
			terms.ClosedTime = at(tc.closed)
		}
		if got := terms.IsCounted(deletionsAt(terms, tc.let...), at(tc.seconds), pod("0")); got != tc.want {
			t.Errorf("%s: got %t", tc.name, got)
		}
	}
}

func TestADeletionCountsForTheIntervalACellAndTwoSkews(t *testing.T) {
	terms := tenMinutes(1)
	h := deletionsAt(terms, 3)
	for _, tc := range []struct {
		seconds float64
		room    bool
	}{
		{3, false},
		{602.9, false}, // no replica may end the window early
		{613.9, false}, // 4 + 600 + 5 + 5
		{614, true},
	} {
		_, when, full := terms.Exceeded(h, at(tc.seconds), 1)
		if full == tc.room {
			t.Errorf("at %v s: full %t", tc.seconds, full)
		}
		if full && !when.Equal(at(614)) {
			t.Errorf("at %v s: room at %s", tc.seconds, when.Sub(zero))
		}
	}
}

func TestTheExceededRuleAndItsRoomTime(t *testing.T) {
	two := func(short, long int64) Policy {
		return Policy{Rules: []Rule{rule(10*time.Minute, short), rule(time.Hour, long)}, Skew: DefaultSkew}
	}
	for name, tc := range map[string]struct {
		terms Policy
		let   []float64
		n     int64
		full  string
		at    float64
	}{
		"within the limits":                      {two(3, 9), []float64{0, 20}, 1, "", 0},
		"the short window is full":               {two(2, 9), []float64{0, 20}, 1, "10m0s", 611},
		"the long window is full":                {two(9, 2), []float64{0, 20}, 1, "1h0m0s", 3611},
		"both full: the one that is full longer": {two(2, 2), []float64{0, 20}, 1, "1h0m0s", 3611},
		"two deletions wait for two to expire":   {two(2, 9), []float64{0, 20}, 2, "10m0s", 631},
		"more deletions than the limit":          {two(2, 9), []float64{0}, 3, "10m0s", -1},
		"a limit of zero":                        {two(0, 9), nil, 1, "10m0s", -1},
		"a limit of zero on the long window":     {two(9, 0), []float64{0}, 1, "1h0m0s", -1},
	} {
		full, when, ok := tc.terms.Exceeded(deletionsAt(tc.terms, tc.let...), at(30), tc.n)
		if ok != (tc.full != "") || ok && full.Rule.Text != tc.full {
			t.Errorf("%s: %v full is %+v", name, ok, full)
		}
		if tc.at > 0 && !when.Equal(at(tc.at)) || tc.at < 0 && !when.IsZero() {
			t.Errorf("%s: room at %s", name, when.Sub(zero))
		}
	}
}

func TestAChangedLimitKeepsTheCounts(t *testing.T) {
	h := deletionsAt(tenMinutes(2), 0, 1)
	for limit, want := range map[int64]int64{5: 3, 2: 0, 1: 0} {
		if got := tenMinutes(limit).Usages(h, at(2))[0]; got.Used != 2 || got.Remaining != want {
			t.Errorf("limit %d: %+v", limit, got)
		}
	}
}

func TestClosingTheBreakerForgetsEarlierDeletions(t *testing.T) {
	terms := tenMinutes(2)
	h := deletionsAt(terms, 0, 1)
	terms.ClosedTime = at(5)
	for _, tc := range []struct {
		seconds float64
		used    int64
	}{{4, 2}, {5.5, 2}, {6, 0}} {
		if got := terms.Usages(h, at(tc.seconds))[0].Used; got != tc.used {
			t.Errorf("at %v s: %d used", tc.seconds, got)
		}
	}
	h = terms.Add(h, at(6), pod("after"))
	if got := terms.Usages(h, at(7))[0].Used; got != 1 {
		t.Errorf("%d used by later deletions", got)
	}
	if len(h.Cells) != 2 {
		t.Errorf("cells are %v", h.Cells)
	}
	terms.ClosedTime = at(1e9) // next year
	if got := terms.Usages(h, at(8))[0].Used; got != 3 {
		t.Errorf("%d used before the time of the close", got)
	}
}

func TestCountTimeNeverGoesBack(t *testing.T) {
	terms := tenMinutes(2)
	h := State{CommittedTime: at(100)}
	for _, tc := range []struct {
		local, want float64
		ahead       bool
	}{{101, 101, false}, {99, 100, false}, {90, 100, false}, {89.9, 100, true}, {0, 100, true}} {
		now, ahead := CountTime(h, at(tc.local)), terms.CommittedAhead(h, at(tc.local))
		if !now.Equal(at(tc.want)) || ahead != tc.ahead {
			t.Errorf("clock %v: %s %t", tc.local, now.Sub(zero), ahead)
		}
	}
}

func TestACorrectionOfTheCommittedTimeKeepsAllCells(t *testing.T) {
	terms := tenMinutes(9)
	h := deletionsAt(terms, 0, 20, 3600, 3700)
	corrected, ok := terms.CorrectCommitted(h, at(30))
	want := []v1alpha1.DeletionCell{cell(0, 21, 2), cell(30, 31, 2)}
	if diff := cmp.Diff(want, corrected.Cells); !ok || diff != "" {
		t.Error(ok, diff)
	}
	if now := CountTime(corrected, at(30)); !now.Equal(at(30)) {
		t.Errorf("time is %s", now.Sub(zero))
	}
	if _, again := terms.CorrectCommitted(corrected, at(30)); again {
		t.Error("the time was corrected again")
	}
}

func TestTheMedianOfSevenWindows(t *testing.T) {
	r := rule(time.Minute, 0)
	var h State
	for k, n := range []int64{50, 1, 2, 3, 4, 5, 60, 70} { // the newest window first
		h.Cells = append([]v1alpha1.DeletionCell{cell(int64(480-60*(k+1)), int64(480-60*k), n)}, h.Cells...)
	}
	if got := Median(h, r, at(480)); got != 4 {
		t.Errorf("usual count is %d", got)
	}
	h.Cells = []v1alpha1.DeletionCell{cell(0, 420, 70)}
	if got := Median(h, r, at(480)); got != 10 {
		t.Errorf("usual count is %d with one cell for all windows", got)
	}
	if got := Median(State{}, r, at(480)); got != 0 {
		t.Errorf("usual count is %d without cells", got)
	}
}

func TestTheStatusIsBounded(t *testing.T) {
	var sets [][]time.Duration
	minute, hour, day := time.Minute, time.Hour, 24*time.Hour
	sets = append(sets,
		[]time.Duration{30 * day},
		[]time.Duration{10 * time.Second, 30 * day},
		[]time.Duration{10 * time.Second, minute, 10 * minute, hour, 6 * hour, day, 7 * day, 30 * day},
		[]time.Duration{48 * time.Second, 96 * time.Second, 4 * minute, 20 * minute, 2 * hour, 10 * hour, 2 * day, 30 * day},
	)
	for _, set := range sets {
		terms := Policy{Skew: DefaultSkew}
		for _, interval := range set {
			terms.Rules = append(terms.Rules, rule(interval, 1<<40))
		}
		var h State
		most, end := 0, zero.Add(keptIntervals*set[len(set)-1])
		// The interval between deletions just fills the cells of each width.
		for now := zero; now.Before(end); now = now.Add(max(time.Second, end.Sub(now)/400)) {
			h = terms.Add(h, now, pod(now.String()))
			most = max(most, len(h.Cells))
		}
		if most > maxCells || len(h.Newest) > maxNewest {
			t.Errorf("%v: %d cells, %d newest", set, most, len(h.Newest))
		}
		if len(set) == 8 && most < 200 {
			t.Errorf("%v: only %d cells were filled", set, most)
		}
		t.Logf("%v: at most %d cells", set, most)
	}
	terms := tenMinutes(1 << 40)
	var h State
	for i := range 3 * maxNewest {
		h = terms.Add(h, at(15), pod(fmt.Sprint(i)))
	}
	if len(h.Newest) != maxNewest || !terms.IsCounted(h, at(15), pod(fmt.Sprint(3*maxNewest-1))) || h.Cells[0].Count != 3*maxNewest {
		t.Errorf("%d newest of %d", len(h.Newest), h.Cells[0].Count)
	}
	h = terms.Add(h, at(16), pod("next"))
	if len(h.Earlier) != maxEarlier || !terms.IsCounted(h, at(16), pod(fmt.Sprint(3*maxNewest-1))) {
		t.Errorf("%d deletions of the previous cell are kept", len(h.Earlier))
	}
	if h = terms.Add(h, at(30), pod("later")); len(h.Earlier) > 0 || len(h.Newest) != 2 {
		t.Errorf("%d earlier deletions are kept for too long, %d newest", len(h.Earlier), len(h.Newest))
	}
}
