package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

func TestTheNextStepOfAGrantFollowsFromItsFacts(t *testing.T) {
	type want struct {
		Call   provider.Op
		Wait   bool
		State  api.State
		Reason string
	}
	for name, tc := range map[string]struct {
		in   Input
		want want
	}{
		"a requested permission is granted":                  {Input{State: api.Requested}, want{Call: provider.Grant, State: api.Applying, Reason: ReasonCallingProvider}},
		"a call without a known result is retried":           {Input{State: api.Applying, MaybeGranted: true}, want{Call: provider.Grant, State: api.Applying}},
		"a pending grant is polled":                          {Input{State: api.Applying, MaybeGranted: true, Pending: true}, want{Call: provider.Poll, State: api.Applying}},
		"a granted permission needs no step":                 {Input{State: api.Granted, MaybeGranted: true}, want{}},
		"a denied permission needs no step":                  {Input{State: api.Denied}, want{}},
		"a failed permission needs no step":                  {Input{State: api.Failed, MaybeGranted: true}, want{}},
		"a grant waits for the revocation of another pod":    {Input{State: api.Requested, Overlap: store.Overlap{Revoking: true}}, want{Wait: true, Reason: ReasonWaitingForRevocation}},
		"a retry precedes a revocation":                      {Input{State: api.Applying, MaybeGranted: true, Overlap: store.Overlap{Revoking: true}}, want{Call: provider.Grant, State: api.Applying}},
		"a retry waits for a call to revoke":                 {Input{State: api.Applying, MaybeGranted: true, Overlap: store.Overlap{Revoking: true, RevokeSent: true}}, want{Wait: true, Reason: ReasonWaitingForRevocation}},
		"a node-scoped grant precedes a revocation":          {Input{State: api.Requested, NodeScoped: true, Overlap: store.Overlap{Revoking: true}}, want{Call: provider.Grant, State: api.Applying, Reason: ReasonCallingProvider}},
		"a node-scoped grant waits for a call to revoke":     {Input{State: api.Requested, NodeScoped: true, Overlap: store.Overlap{Revoking: true, RevokeSent: true}}, want{Wait: true, Reason: ReasonWaitingForRevocation}},
		"a grant waits for an exclusive call":                {Input{State: api.Requested, ExclusiveCallPossible: true}, want{Wait: true, Reason: ReasonCallingProvider}},
		"a pending grant is polled during an exclusive call": {Input{State: api.Applying, MaybeGranted: true, Pending: true, ExclusiveCallPossible: true}, want{Call: provider.Poll, State: api.Applying}},
		"a node-scoped revocation waits for a call to grant": {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, CalledByOtherPod: true}}, want{Wait: true, Reason: ReasonHeldByAnotherPodOnNode}},
		"a leak of another pod does not delay a grant":       {Input{State: api.Requested, Overlap: store.Overlap{UsedByOtherPod: true}}, want{Call: provider.Grant, State: api.Applying, Reason: ReasonCallingProvider}},
		"a grant without calls is revoked without a call":    {Input{State: api.Requested, RevokeRequested: true, CanRevoke: true}, want{State: api.Revoked, Reason: ReasonNeverGranted}},
		"a denied grant is revoked without a call":           {Input{State: api.Denied, RevokeRequested: true, CanRevoke: true}, want{State: api.Revoked, Reason: ReasonNeverGranted}},
		"a granted permission is revoked by a call":          {Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true}, want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},
		"a partly failed grant is revoked by a call":         {Input{State: api.Failed, MaybeGranted: true, RevokeRequested: true, CanRevoke: true}, want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},
		"a provider that cannot revoke leaks":                {Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true}, want{State: api.Leaked, Reason: ReasonProviderCannotRevoke}},
		"a leak is retried":                                  {Input{State: api.Leaked, MaybeGranted: true, RevokeRequested: true, CanRevoke: true}, want{Call: provider.Revoke}},
		"a leak waits while another pod has the grant":       {Input{State: api.Leaked, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedInCluster: true}}, want{Wait: true, State: api.Leaked, Reason: ReasonHeldByAnotherPod}},
		"a node-scoped grant stays while another pod has it": {Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedInCluster: true, CoveredInCluster: true}}, want{State: api.Revoked, Reason: ReasonHeldByAnotherPodOnNode}},
		"a node-scoped revocation waits for a decision":      {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedInCluster: true, UndecidedInCluster: true}}, want{Wait: true, Reason: ReasonHeldByAnotherPodOnNode}},
		"a node-scoped grant that is covered does not wait":  {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedInCluster: true, UndecidedInCluster: true, CoveredInCluster: true}}, want{State: api.Revoked, Reason: ReasonHeldByAnotherPodOnNode}},
		"a node-scoped grant with more addresses leaks":      {Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedInCluster: true}}, want{Wait: true, State: api.Leaked, Reason: ReasonHeldByAnotherPod}},
		"a node-scoped grant is revoked with the last pod":   {Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true}, want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},
		"a revoked grant needs no step":                      {Input{State: api.Revoked, RevokeRequested: true, CanRevoke: true}, want{}},
		"another revocation does not delay a revocation":     {Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{Revoking: true}}, want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},
		"a grant stays while another set of the pod has it":  {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{GrantedToPod: true, CoveredByPod: true}}, want{State: api.Revoked, Reason: ReasonHeldByAnotherSet}},
		"a grant with more addresses than another set leaks": {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{GrantedToPod: true}}, want{Wait: true, State: api.Leaked, Reason: ReasonHeldByAnotherSet}},
		"a pod that ends can revoke its other sets first":    {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, RevocationBegins: true, Overlap: store.Overlap{GrantedToPod: true}}, want{Wait: true, Reason: ReasonHeldByAnotherSet}},
		"a grant that another set may have leaks":            {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{UnknownToPod: true}}, want{Wait: true, State: api.Leaked, Reason: ReasonHeldByAnotherSet}},
		"a pod that ends can revoke a failed set first":      {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, RevocationBegins: true, Overlap: store.Overlap{UnknownToPod: true}}, want{Wait: true, Reason: ReasonHeldByAnotherSet}},
		"a revocation waits for a call for another set":      {Input{State: api.Revoking, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{UndecidedByPod: true}}, want{Wait: true, Reason: ReasonHeldByAnotherSet}},
		"an accepted revocation is repeated":                 {Input{State: api.Revoking, MaybeGranted: true, Pending: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedInCluster: true, CoveredInCluster: true}}, want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},
		"a leak with an accepted revocation is retried":      {Input{State: api.Leaked, MaybeGranted: true, Pending: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{UsedByOtherPod: true}}, want{Call: provider.Revoke}},
		"a pending grant is revoked by a call":               {Input{State: api.Applying, MaybeGranted: true, Pending: true, RevokeRequested: true, CanRevoke: true}, want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},

		"an accepted revocation is repeated after canRevoke is set to false": {
			Input{State: api.Revoking, MaybeGranted: true, Pending: true, RevokeRequested: true},
			want{Call: provider.Revoke, State: api.Revoking, Reason: ReasonRevocationRequested}},
		"a grant does not wait for one under another name of the cluster": {Input{State: api.Requested, Overlap: store.Overlap{UsedByOtherPod: true, UsedByOtherClusterName: true}},
			want{Call: provider.Grant, State: api.Applying, Reason: ReasonCallingProvider}},
		"a grant leaks while one under another name of the cluster exists": {
			Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedByOtherClusterName: true}},
			want{Wait: true, State: api.Leaked, Reason: ReasonHeldUnderOtherCluster}},
		"a node-scoped grant leaks, too": {
			Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true, UsedByOtherClusterName: true}},
			want{Wait: true, State: api.Leaked, Reason: ReasonHeldUnderOtherCluster}},
		"a grant leaks if only a pod of another cluster name has it": {
			Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, Overlap: store.Overlap{UsedByOtherPod: true}},
			want{Wait: true, State: api.Leaked, Reason: ReasonHeldUnderOtherCluster}},
		"a node-scoped grant leaks if only a pod of another cluster name has it": {
			Input{State: api.Granted, MaybeGranted: true, RevokeRequested: true, CanRevoke: true, NodeScoped: true, Overlap: store.Overlap{UsedByOtherPod: true}},
			want{Wait: true, State: api.Leaked, Reason: ReasonHeldUnderOtherCluster}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			if diff := cmp.Diff(tc.want, want{d.Call, d.Wait, d.State, d.Reason}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var t0 = time.Unix(1_700_000_000, 0).UTC()

func TestTheStateOfAGrantFollowsFromTheResultOfACall(t *testing.T) {
	retry := api.Retry{MaxCalls: 3, BackoffSeconds: 2, PollSeconds: 5, PollTimeoutSeconds: 60}
	type want struct {
		State        api.State
		Due          time.Duration // after the call; 0: never
		MaybeGranted bool
		Pending      bool
		Failures     int
		Keys         int
		NewKey       bool
	}
	applying := store.Grant{State: api.Applying, MaybeGranted: true, CallKey: "k", Began: t0}
	revoking := store.Grant{State: api.Revoking, MaybeGranted: true, CallKey: "k", Began: t0}
	with := func(g store.Grant, change func(*store.Grant)) store.Grant { change(&g); return g }
	failed := provider.Result{Outcome: provider.Failed, Sent: true}
	for name, tc := range map[string]struct {
		g      store.Grant
		op     provider.Op
		before bool
		r      provider.Result
		after  time.Duration
		random float64
		want   want
	}{
		"granted":                    {g: applying, op: provider.Grant, r: provider.Result{Outcome: provider.Done, Sent: true}, want: want{State: api.Granted, MaybeGranted: true}},
		"denied: nothing is granted": {g: applying, op: provider.Grant, r: provider.Result{Outcome: provider.Denied, Sent: true}, want: want{State: api.Denied, Keys: 1, NewKey: true}},
		"denied after a lost call: may be granted":   {g: applying, op: provider.Grant, before: true, r: provider.Result{Outcome: provider.Denied, Sent: true}, want: want{State: api.Denied, MaybeGranted: true, Keys: 1, NewKey: true}},
		"denied partly: may be granted":              {g: applying, op: provider.Grant, r: provider.Result{Outcome: provider.Denied, Sent: true, Partial: true}, want: want{State: api.Denied, MaybeGranted: true, Keys: 1, NewKey: true}},
		"failed is retried":                          {g: applying, op: provider.Grant, r: failed, want: want{State: api.Applying, Due: 2 * time.Second, MaybeGranted: true, Failures: 1}},
		"the second failure doubles the delay":       {g: with(applying, func(g *store.Grant) { g.Failures = 1 }), op: provider.Grant, r: failed, random: 1, want: want{State: api.Applying, Due: 8 * time.Second, MaybeGranted: true, Failures: 2}},
		"the last failure ends the attempt":          {g: with(applying, func(g *store.Grant) { g.Failures = 2 }), op: provider.Grant, r: failed, want: want{State: api.Failed, MaybeGranted: true, Failures: 3}},
		"not sent: nothing is granted":               {g: applying, op: provider.Grant, r: provider.Result{Outcome: provider.Failed}, want: want{State: api.Applying, Due: 2 * time.Second, Failures: 1}},
		"not sent after a sent call: may be granted": {g: applying, op: provider.Grant, before: true, r: provider.Result{Outcome: provider.Failed}, want: want{State: api.Applying, Due: 2 * time.Second, MaybeGranted: true, Failures: 1}},
		"Retry-After is respected":                   {g: applying, op: provider.Grant, r: provider.Result{Outcome: provider.Failed, Sent: true, RetryAfter: time.Minute}, want: want{State: api.Applying, Due: time.Minute, MaybeGranted: true, Failures: 1}},
		"pending":                                    {g: applying, op: provider.Grant, r: provider.Result{Outcome: provider.Pending, Sent: true}, want: want{State: api.Applying, Due: 5 * time.Second, MaybeGranted: true, Pending: true}},
		"pending for too long":                       {g: with(applying, func(g *store.Grant) { g.Calls = 1 }), op: provider.Poll, before: true, r: provider.Result{Outcome: provider.Pending, Sent: true}, after: 61 * time.Second, want: want{State: api.Failed, MaybeGranted: true}},
		"denied after pending":                       {g: with(applying, func(g *store.Grant) { g.Pending = true }), op: provider.Poll, before: true, r: provider.Result{Outcome: provider.Denied, Sent: true}, want: want{State: api.Denied, Keys: 1, NewKey: true}},
		"not denied by a poll that was not sent":     {g: with(applying, func(g *store.Grant) { g.Pending = true }), op: provider.Poll, before: true, r: provider.Result{Outcome: provider.Denied}, want: want{State: api.Denied, MaybeGranted: true, Keys: 1, NewKey: true}},
		"revoked":                                    {g: revoking, op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Done, Sent: true}, want: want{State: api.Revoked}},
		"an accepted revocation is repeated":         {g: revoking, op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Pending, Sent: true}, want: want{State: api.Revoking, Due: 5 * time.Second, MaybeGranted: true, Pending: true}},
		"an accepted revocation takes too long":      {g: with(revoking, func(g *store.Grant) { g.Calls, g.Pending = 1, true }), op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Pending, Sent: true}, after: 61 * time.Second, want: want{State: api.Leaked, Due: 5 * time.Second, MaybeGranted: true, Pending: true}},
		"the first accepted answer starts the time":  {g: with(revoking, func(g *store.Grant) { g.Calls = 5 }), op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Pending, Sent: true}, after: 61 * time.Second, want: want{State: api.Revoking, Due: 5 * time.Second, MaybeGranted: true, Pending: true}},
		"a failed revocation is retried":             {g: revoking, op: provider.Revoke, before: true, r: failed, want: want{State: api.Revoking, Due: 2 * time.Second, MaybeGranted: true, Failures: 1}},
		"the last failed revocation leaks":           {g: with(revoking, func(g *store.Grant) { g.Failures = 2 }), op: provider.Revoke, before: true, r: failed, want: want{State: api.Leaked, Due: 8 * time.Second, MaybeGranted: true, Failures: 3}},
		"a leak is retried once an hour":             {g: with(revoking, func(g *store.Grant) { g.State, g.Failures = api.Leaked, 50 }), op: provider.Revoke, before: true, r: failed, random: 1, want: want{State: api.Leaked, Due: time.Hour, MaybeGranted: true, Failures: 51}},
		"a leak is revoked":                          {g: with(revoking, func(g *store.Grant) { g.State, g.Failures = api.Leaked, 50 }), op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Done, Sent: true}, want: want{State: api.Revoked, Failures: 50}},
		"an accepted revocation that fails may end":  {g: with(revoking, func(g *store.Grant) { g.Pending = true }), op: provider.Revoke, before: true, r: failed, want: want{State: api.Revoking, Due: 2 * time.Second, MaybeGranted: true, Pending: true, Failures: 1}},
		"an accepted revocation that is denied":      {g: with(revoking, func(g *store.Grant) { g.Pending = true }), op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Denied, Sent: true}, want: want{State: api.Revoking, Due: 2 * time.Second, MaybeGranted: true, Failures: 1}},
		"a denied revocation is retried":             {g: revoking, op: provider.Revoke, before: true, r: provider.Result{Outcome: provider.Denied, Sent: true}, want: want{State: api.Revoking, Due: 2 * time.Second, MaybeGranted: true, Failures: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			now := t0.Add(tc.after)
			g := ApplyResult(tc.g, CallResult{Now: now, Op: tc.op, MaybeGranted: tc.before, Result: tc.r, Retry: retry, Random: tc.random})
			got := want{State: g.State, MaybeGranted: g.MaybeGranted, Pending: g.Pending, Failures: g.Failures, Keys: g.KeysUsed, NewKey: g.CallKey == ""}
			if !g.Due.IsZero() {
				got.Due = g.Due.Sub(now)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if g.Calls != tc.g.Calls+1 || !g.NextTry.Equal(g.Due) {
				t.Errorf("%d calls, nextTry %s, due %s", g.Calls, g.NextTry, g.Due)
			}
		})
	}
}

func TestTheBackoffDoublesWithJitterUpToAnHour(t *testing.T) {
	r := api.Retry{BackoffSeconds: 2}
	for _, tc := range []struct {
		failures int
		random   float64
		want     time.Duration
	}{
		{1, 0, 2 * time.Second}, {1, 1, 4 * time.Second}, {2, 0, 4 * time.Second}, {2, .5, 6 * time.Second}, {5, 0, 32 * time.Second},
		{11, 0, 2048 * time.Second}, {12, 0, time.Hour}, {1000, 1, time.Hour},
	} {
		if got := Backoff(r, tc.failures, tc.random); got != tc.want {
			t.Errorf("%d failures, random %v: %s, want %s", tc.failures, tc.random, got, tc.want)
		}
	}
}

func TestTheStateOfAnApplicationFollowsFromItsGrants(t *testing.T) {
	for name, tc := range map[string]struct {
		revoke bool
		states []api.State
		want   api.State
	}{
		"no provider was called":              {false, []api.State{api.Requested, api.Requested}, api.Requested},
		"one is called":                       {false, []api.State{api.Applying, api.Requested}, api.Applying},
		"one is granted":                      {false, []api.State{api.Granted, api.Requested}, api.Applying},
		"all are granted":                     {false, []api.State{api.Granted, api.Granted}, api.Granted},
		"one is denied":                       {false, []api.State{api.Granted, api.Denied, api.Requested}, api.Denied},
		"one failed":                          {false, []api.State{api.Granted, api.Failed}, api.Failed},
		"denied overrides failed":             {false, []api.State{api.Failed, api.Denied}, api.Denied},
		"one is being revoked":                {true, []api.State{api.Revoked, api.Revoking}, api.Revoking},
		"one is still being granted":          {true, []api.State{api.Applying, api.Revoked}, api.Revoking},
		"all are revoked":                     {true, []api.State{api.Revoked, api.Revoked}, api.Revoked},
		"one is leaked":                       {true, []api.State{api.Revoked, api.Leaked}, api.Leaked},
		"one is leaked, one is being revoked": {true, []api.State{api.Revoking, api.Leaked}, api.Revoking},
	} {
		t.Run(name, func(t *testing.T) {
			var grants []store.Grant
			for _, s := range tc.states {
				grants = append(grants, store.Grant{Permission: "p", Owner: "team-a", State: s})
			}
			if got := Derive(tc.revoke, grants); got.State != tc.want || got.Reason == "" && tc.want != api.Applying && len(got.Message) == 0 {
				t.Errorf("got %+v, want %s", got, tc.want)
			}
		})
	}
}

func TestARevokedApplicationSaysThatAnotherOneKeepsItsGrant(t *testing.T) {
	grants := []store.Grant{
		{Permission: "p", Owner: "team-a", State: api.Revoked},
		{Permission: "q", Owner: "team-a", State: api.Revoked, Reason: ReasonHeldByAnotherSet, Message: "another set needs it"},
	}
	if got := Derive(true, grants); got.State != api.Revoked || got.Reason != ReasonHeldByAnotherSet || !strings.Contains(got.Message, "permission q is kept: another set needs it") {
		t.Errorf("got %+v", got)
	}
	if got := Derive(true, grants[:1]); got.Reason != string(api.Revoked) {
		t.Errorf("without another one: got %+v", got)
	}
}

func TestAnApplicationIsUnlistedWhenItsPodOrAddressesAreMissing(t *testing.T) {
	existing := map[string][]string{"here": {"10.0.0.1", "fd00::1"}, "starting": nil}
	for name, tc := range map[string]struct {
		uid         string
		ips         []string
		hostNetwork bool
		age         time.Duration
		want        bool
	}{
		"a pod that is not listed":                            {"deleted", []string{"10.0.0.9"}, false, time.Hour, true},
		"a new pod that is not listed":                        {"deleted", []string{"10.0.0.9"}, false, time.Minute, false},
		"a pod with the same addresses":                       {"here", []string{"10.0.0.1", "fd00::1"}, false, time.Hour, false},
		"a pod with another address":                          {"here", []string{"10.0.0.2"}, false, time.Hour, true},
		"a pod that lost one address":                         {"here", []string{"10.0.0.1"}, false, time.Hour, true},
		"a pod without addresses":                             {"starting", []string{"10.0.0.3"}, false, time.Hour, false},
		"a pod with hostNetwork whose node became dual-stack": {"here", []string{"10.0.0.1"}, true, time.Hour, false},
		"a pod with hostNetwork that is not listed":           {"deleted", []string{"10.0.0.9"}, true, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := store.Application{Request: api.ApplicationRequest{PodUID: tc.uid, PodIPs: tc.ips, HostNetwork: tc.hostNetwork}, Created: t0.Add(-tc.age)}
			if got := Unlisted(a, existing, t0); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAStatusSaysWhetherTheProviderIsBeingCalled(t *testing.T) {
	for name, tc := range map[string]struct {
		waiting store.Grant
		want    string
	}{
		"in the queue":   {store.Grant{State: api.Requested}, "1 of 2 permissions are granted; b: the call to the provider waits for its turn"},
		"being called":   {store.Grant{State: api.Applying}, "1 of 2 permissions are granted; b: the provider is being called"},
		"with a message": {store.Grant{State: api.Requested, Message: "waits for p"}, "1 of 2 permissions are granted; b: waits for p"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.waiting.Permission = "b"
			if got := Derive(false, []store.Grant{{Permission: "a", State: api.Granted}, tc.waiting}); got.State != api.Applying || got.Message != tc.want {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}
