package finalizer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func apps(states ...api.State) CentreState {
	var p CentreState
	for i, state := range states {
		p.Applications = append(p.Applications, api.Application{ID: fmt.Sprint(i), State: state})
	}
	return p
}

func TestTheFinalizerGoesOnProofOrWhenTheDeadlineIsOver(t *testing.T) {
	down := CentreState{Err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		proof       CentreState
		ended, seen time.Duration
		after       time.Duration
		want        RevocationAction
	}{
		"revoked":                          {apps(api.Revoked), 0, 0, 0, RemoveFinalizer},
		"two revoked":                      {apps(api.Revoked, api.Revoked), 0, 0, 0, RemoveFinalizer},
		"nothing was ever asked for":       {apps(), 0, 0, 0, RemoveFinalizer},
		"it cannot be revoked":             {apps(api.Leaked), 0, 0, 0, RemoveFinalizer},
		"it is being revoked":              {apps(api.Revoking), 0, 0, time.Minute, Retry},
		"one of two is being revoked":      {apps(api.Revoked, api.Revoking), 0, 0, time.Minute, Retry},
		"not yet at the deadline":          {apps(api.Revoking), 0, 0, 5*time.Minute - 1, Retry},
		"at the deadline":                  {apps(api.Revoking), 0, 0, 5 * time.Minute, GiveUp},
		"the centre is down":               {down, 0, 0, time.Minute, Retry},
		"the centre is down for too long":  {down, 0, 0, 5 * time.Minute, GiveUp},
		"the controller was down for long": {down, 0, time.Hour, time.Hour, Retry},
		"and tried for a moment":           {down, 0, time.Hour, time.Hour + minRetryPeriod, GiveUp},
		"a clock that is ahead":            {down, time.Hour, 0, 5 * time.Minute, GiveUp},
	} {
		t.Run(name, func(t *testing.T) {
			got := DecideRevocation(tc.proof, zero.Add(tc.after), Deadline(zero.Add(tc.ended), zero.Add(tc.seen), 5*time.Minute))
			if got.Action != tc.want {
				t.Errorf("%s, want %s", got.Action, tc.want)
			}
		})
	}
}

func TestASecondLineFindsPodsThatShouldHaveBeenInjected(t *testing.T) {
	for name, tc := range map[string]struct {
		injected bool
		value    string
		enabled  bool
		want     string
	}{
		"it asks for nothing":                {false, "", true, ""},
		"it was injected":                    {true, "web", true, ""},
		"it was not":                         {false, "web", true, podmeta.ReasonPermissionNotInjected},
		"it was not, and the value is wrong": {false, "Not_A_Name", true, podmeta.ReasonPermissionNotInjected},
		"its namespace is not enabled":       {false, "web", false, podmeta.ReasonNamespaceNotEnabled},
		"it asks for none":                   {false, " ,", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod()
			if !tc.injected {
				p = pod(plain)
			}
			if got := FindInjectionProblem(p, tc.value, tc.enabled); got.Reason != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
	p := pod(plain)
	p.Namespace = "kube-system"
	if got := FindInjectionProblem(p, "web", true); got.Reason != "" {
		t.Errorf("kube-system: %+v", got)
	}
}

func TestAReportSpeaksForEveryUIDAndItsPagesForARangeEach(t *testing.T) {
	var many []api.LivePod
	for i := range reportPage + 1 {
		many = append(many, api.LivePod{UID: fmt.Sprintf("%05d", reportPage-i)})
	}
	for name, tc := range map[string]struct {
		live []api.LivePod
		want []string // after..through: pods
	}{
		"nobody lives": {nil, []string{"..: 0 true"}},
		"a few":        {[]api.LivePod{{UID: "b"}, {UID: "a"}}, []string{"..: 2 false"}},
		"more than a page has": {many, []string{
			fmt.Sprintf("..%05d: %d false", reportPage-1, reportPage), fmt.Sprintf("%05d..: 1 false", reportPage-1)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, page := range pages(tc.live, zero) {
				got = append(got, fmt.Sprintf("%s..%s: %d %v", page.After, page.Through, len(page.Pods), page.Empty))
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
