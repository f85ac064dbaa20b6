package altershielddouble

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAFinishDoesInEachState(t *testing.T) {
	for state, want := range map[State]finishing{
		PreSubmit:   {Next: PreSubmit},
		PreRuns:     {Next: PreRuns},
		PreFinish:   {Accepted: true, Runs: true, Next: PostSubmit},
		PreFail:     {Accepted: true, Runs: true, Next: PostSubmit},
		PreTimeout:  {Accepted: true, Runs: true, Next: PostSubmit},
		PostSubmit:  {Next: PostSubmit},
		PostRuns:    {Next: PostRuns},
		PostFinish:  {Accepted: true, Next: PostSubmit},
		PostFail:    {Accepted: true, Next: PostSubmit},
		PostTimeout: {Accepted: true, Next: PostSubmit},
	} {
		if diff := cmp.Diff(want, finishIn(state)); diff != "" {
			t.Errorf("%s: %s", state, diff)
		}
	}
}

func TestHowACheckEnds(t *testing.T) {
	for _, tc := range []struct {
		stage      Stage
		how        Ending
		want, late State
	}{
		{Pre, Judged, PreFinish, PreFinish},
		{Pre, TimedOut, PreTimeout, PreTimeout},
		{Pre, Threw, PreFail, PreFail},
		{Post, Judged, PostFinish, PostFinish},
		{Post, TimedOut, PostTimeout, PostFinish},
		{Post, Threw, PostFail, PostFail},
	} {
		got := endOf(tc.stage, tc.how)
		if late := lateEndOf(tc.stage, got); got != tc.want || late != tc.late {
			t.Errorf("%s %s: %s, late %s; want %s, late %s", tc.stage, tc.how, got, late, tc.want, tc.late)
		}
	}
}
