package podpermission

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

func applications(states ...api.State) CentreState {
	var p CentreState
	for i, state := range states {
		p.Items = append(p.Items, api.Application{ID: fmt.Sprint(i), State: state})
	}
	return p
}

func TestTheFinalizerIsRemovedAfterRevocationOrAtTheDeadline(t *testing.T) {
	unreachable, lost := CentreState{Err: errors.New("connection refused")}, CentreState{Authorized: true}
	revoked := applications(api.Revoked)
	revoked.Authorized = true
	renamed := func(held bool) CentreState {
		return CentreState{Authorized: true, RevokeResult: api.RevokeResult{OtherNames: []api.OtherName{{Cluster: "c0"}, {Cluster: "c1", HasOrAwaitsGrant: held}}}}
	}
	for name, tc := range map[string]struct {
		state       CentreState
		ended, seen time.Duration
		after       time.Duration
		want        RevocationAction
	}{
		"revoked":             {applications(api.Revoked), 0, 0, 0, RemoveFinalizer},
		"two revoked":         {applications(api.Revoked, api.Revoked), 0, 0, 0, RemoveFinalizer},
		"no applications":     {applications(), 0, 0, 0, RemoveFinalizer},
		"authorized, revoked": {revoked, 0, 0, 0, RemoveFinalizer},
		"authorized, no application before the deadline":         {lost, 0, 0, time.Minute, Retry},
		"authorized, no application at the deadline":             {lost, 0, 0, 5 * time.Minute, GiveUp},
		"held under another name of the cluster":                 {renamed(true), 0, 0, time.Minute, Retry},
		"held under another name of the cluster at the deadline": {renamed(true), 0, 0, 5 * time.Minute, GiveUp},
		"revoked under another name of the cluster":              {renamed(false), 0, 0, 0, RemoveFinalizer},
		"leaked":                    {applications(api.Leaked), 0, 0, 0, RemoveFinalizer},
		"revoking":                  {applications(api.Revoking), 0, 0, time.Minute, Retry},
		"one of two revoking":       {applications(api.Revoked, api.Revoking), 0, 0, time.Minute, Retry},
		"before the deadline":       {applications(api.Revoking), 0, 0, 5*time.Minute - 1, Retry},
		"at the deadline":           {applications(api.Revoking), 0, 0, 5 * time.Minute, GiveUp},
		"the centre is unreachable": {unreachable, 0, 0, time.Minute, Retry},
		"the centre is unreachable at the deadline": {unreachable, 0, 0, 5 * time.Minute, GiveUp},
		"the controller starts after the deadline":  {unreachable, 0, time.Hour, time.Hour, Retry},
		"the controller retried for minRetryPeriod": {unreachable, 0, time.Hour, time.Hour + minRetryPeriod, GiveUp},
		"an end time in the future":                 {unreachable, time.Hour, 0, 5 * time.Minute, GiveUp},
	} {
		t.Run(name, func(t *testing.T) {
			got := DecideRevocation(tc.state, zero.Add(tc.after), Deadline(zero.Add(tc.ended), zero.Add(tc.seen), 5*time.Minute))
			if got.Action != tc.want {
				t.Errorf("%s, want %s", got.Action, tc.want)
			}
		})
	}
}

func TestFindInjectionProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		injected bool
		value    string
		enabled  bool
		want     string
	}{
		"no sets":                     {false, "", true, ""},
		"injected":                    {true, "web", true, ""},
		"not injected":                {false, "web", true, podmeta.ReasonPermissionNotInjected},
		"not injected, invalid value": {false, "Not_A_Name", true, podmeta.ReasonPermissionNotInjected},
		"namespace not enabled":       {false, "web", false, podmeta.ReasonNamespaceNotEnabled},
		"empty value":                 {false, " ,", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod()
			if !tc.injected {
				p = pod(withoutInitContainer)
			}
			if got := FindInjectionProblem(p, tc.value, tc.enabled); got.Reason != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
	p := pod(withoutInitContainer)
	p.Namespace = "kube-system"
	if got := FindInjectionProblem(p, "web", true); got.Reason != "" {
		t.Errorf("kube-system: %+v", got)
	}
}

func TestThePagesOfAReportCoverEveryUID(t *testing.T) {
	var many []api.LivePod
	for i := range reportPage + 1 {
		many = append(many, api.LivePod{UID: fmt.Sprintf("%05d", reportPage-i)})
	}
	for name, tc := range map[string]struct {
		live []api.LivePod
		want []string // after..through: pods
	}{
		"no pods":  {nil, []string{"..: 0 true"}},
		"one page": {[]api.LivePod{{UID: "b"}, {UID: "a"}}, []string{"..: 2 false"}},
		"two pages": {many, []string{
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
