package admission_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// These tests evaluate the matchConditions of the manifests as the API server of
// Kubernetes 1.30 does.

const (
	mutatingManifest   = "../config/core/430-webhook-mutating.yaml"
	validatingManifest = "../config/core/431-webhook-validating.yaml"
)

type object = map[string]any

// kinds has, by kind, the changes that stop a rollout, those that resume it, and those
// that do neither (free).
var kinds = map[string]struct{ stops, resumes, free []func(object, object) }{
	"deployment": {
		stops:   []func(object, object){set("paused", true)},
		resumes: []func(object, object){drop("paused"), set("paused", false)},
		free:    []func(object, object){set("replicas", int64(5)), set("minReadySeconds", int64(1)), set("strategy", object{"type": "Recreate"})},
	},
	"statefulset": {
		stops:   []func(object, object){partition(2147483647), strategy("OnDelete")},
		resumes: []func(object, object){partition(0), partition(2147483646), strategy("RollingUpdate"), drop("updateStrategy"), set("updateStrategy", object{})},
		free:    []func(object, object){set("replicas", int64(5)), set("podManagementPolicy", "Parallel")},
	},
	"daemonset": {
		stops:   []func(object, object){strategy("OnDelete")},
		resumes: []func(object, object){strategy("RollingUpdate"), drop("updateStrategy")},
		free:    []func(object, object){set("minReadySeconds", int64(1))},
	},
}

func set(key string, value any) func(object, object) {
	return func(_, spec object) { spec[key] = value }
}

func drop(key string) func(object, object) { return func(_, spec object) { delete(spec, key) } }

func partition(n int64) func(object, object) {
	return set("updateStrategy", object{"type": "RollingUpdate", "rollingUpdate": object{"partition": n}})
}

func strategy(name string) func(object, object) {
	return set("updateStrategy", object{"type": name})
}

// workload is an object as CEL expressions of the API server see it.
func workload(change func(metadata, spec object)) object {
	metadata := object{
		"name": "sleep", "namespace": "default",
		"labels":      object{v1alpha1.VersionKey: "v1", "app": "sleep"},
		"annotations": object{v1alpha1.VersionKey: "v1", v1alpha1.AttemptAnnotation: "1"},
	}
	spec := object{
		"replicas": int64(3),
		"template": object{"spec": object{"containers": []any{object{"name": "a", "image": "busybox"}}}},
	}
	if change != nil {
		change(metadata, spec)
	}
	return object{"metadata": metadata, "spec": spec}
}

func request(operation, user string) object {
	return object{"operation": operation, "namespace": "default", "userInfo": object{"username": user}}
}

func releases(_, spec object) {
	spec["template"] = object{"spec": object{"containers": []any{object{"name": "a", "image": "busybox:2"}}}}
}

func suspended(metadata, _ object) {
	metadata["labels"].(object)[v1alpha1.SuspendLabel] = "1700000000"
}

// recorded suspends a workload and adds the record of a hold.
func recorded(metadata, spec object) {
	suspended(metadata, spec)
	metadata["annotations"].(object)[v1alpha1.HoldAnnotation] = `{"attempt":1}`
}

func owner(uid string) func(object, object) {
	return func(metadata, _ object) {
		metadata["ownerReferences"] = []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}}
	}
}

func label(key, value string) func(object, object) {
	return func(metadata, _ object) { metadata["labels"].(object)[key] = value }
}

func annotation(key, value string) func(object, object) {
	return func(metadata, _ object) { metadata["annotations"].(object)[key] = value }
}

func without(in, key string) func(object, object) {
	return func(metadata, _ object) { delete(metadata[in].(object), key) }
}

func all(changes ...func(object, object)) func(object, object) {
	return func(metadata, spec object) {
		for _, change := range changes {
			change(metadata, spec)
		}
	}
}

func bare(metadata, _ object) {
	delete(metadata, "labels")
	delete(metadata, "annotations")
}

func TestWhichRequestsReachTheVersionWebhook(t *testing.T) {
	bypass, rollback := annotation(v1alpha1.BypassAnnotation, "{}"), annotation(v1alpha1.RollbackAnnotation, "{}")
	for name, tc := range map[string]struct {
		create   bool
		user     string
		old, new func(object, object)
		want     bool
	}{
		"when a Deployment is created":                              {create: true, want: true},
		"when one without labels and annotations is created":        {create: true, new: bare, want: true},
		"when the template changes":                                 {new: releases, want: true},
		"when one without labels and annotations is updated":        {old: bare, new: bare, want: true},
		"when one loses its labels and annotations":                 {new: bare, want: true},
		"when the version label is missing":                         {old: without("labels", v1alpha1.VersionKey), new: without("labels", v1alpha1.VersionKey), want: true},
		"when the version label is removed":                         {new: without("labels", v1alpha1.VersionKey), want: true},
		"when the version label is changed":                         {new: label(v1alpha1.VersionKey, "mine"), want: true},
		"when the version annotation is removed":                    {new: without("annotations", v1alpha1.VersionKey), want: true},
		"when the version annotation is changed":                    {new: annotation(v1alpha1.VersionKey, "mine"), want: true},
		"when the attempt is removed":                               {new: without("annotations", v1alpha1.AttemptAnnotation), want: true},
		"when the attempt is changed":                               {new: annotation(v1alpha1.AttemptAnnotation, "9"), want: true},
		"when the record of a bypass is made":                       {new: bypass, want: true},
		"when the record of a bypass is changed":                    {old: bypass, new: annotation(v1alpha1.BypassAnnotation, "{ }"), want: true},
		"when the record of a bypass is removed":                    {old: bypass, want: true},
		"when the suspension of a bypass ends":                      {old: all(suspended, bypass), new: bypass, want: true},
		"when one with a bypass is suspended again":                 {old: bypass, new: all(suspended, bypass), want: true},
		"not when one with a bypass stays suspended":                {old: all(suspended, bypass), new: all(suspended, bypass)},
		"when the record of a rollback is made":                     {new: rollback, want: true},
		"when the record of a rollback is changed":                  {old: rollback, new: annotation(v1alpha1.RollbackAnnotation, "{ }"), want: true},
		"when the record of a rollback is removed":                  {old: rollback, want: true},
		"not when the record of a rollback stays":                   {old: rollback, new: rollback},
		"not when the record of a hold is removed":                  {old: annotation(v1alpha1.HoldAnnotation, "{}")},
		"not when the record of a bypass stays":                     {old: bypass, new: bypass},
		"when the record of a hold is made":                         {new: annotation(v1alpha1.HoldAnnotation, "{}"), want: true},
		"when a repair is asked for":                                {new: label(v1alpha1.IgnoredSuspendLabel, "true"), want: true},
		"when a request for a repair was left over":                 {old: label(v1alpha1.IgnoredSuspendLabel, "true"), new: label(v1alpha1.IgnoredSuspendLabel, "true"), want: true},
		"when our controller touches it":                            {user: v1alpha1.ControllerUser, want: true},
		"when our controller touches one without labels":            {user: v1alpha1.ControllerUser, old: bare, new: bare, want: true},
		"not when another user writes the same again":               {},
		"not when it is scaled":                                     {new: func(_, spec object) { spec["replicas"] = int64(5) }},
		"not when our controller writes another label":              {user: v1alpha1.ControllerUser, new: label(v1alpha1.DefenseStatusLabel, "processed")},
		"not when another label is set":                             {new: label("team", "a")},
		"not when another annotation is set":                        {new: annotation("note", "a")},
		"not when it is suspended by hand":                          {new: suspended},
		"not when it is paused":                                     {new: func(_, spec object) { spec["paused"] = true }},
		"not when a finalizer is removed of one that is going away": {old: func(m, _ object) { m["finalizers"] = []any{"a"}; m["deletionTimestamp"] = "x" }, new: func(m, _ object) { m["deletionTimestamp"] = "x" }},
		// With failurePolicy Fail, an outage of the webhook must not let a failed release roll out.
		"not when our controller holds a release":                 {user: v1alpha1.ControllerUser, new: recorded},
		"not when our controller holds a failed repair":           {user: v1alpha1.ControllerUser, old: all(suspended, bypass), new: all(recorded, label(v1alpha1.SuspendLabel, "1700000001"), annotation(v1alpha1.BypassAnnotation, `{"ended":true}`))},
		"not when our controller changes the record of a hold":    {user: v1alpha1.ControllerUser, old: recorded, new: all(recorded, annotation(v1alpha1.HoldAnnotation, `{"attempt":2}`))},
		"not when our controller ends the suspension of a bypass": {user: v1alpha1.ControllerUser, old: all(suspended, bypass), new: annotation(v1alpha1.BypassAnnotation, `{"ended":true}`)},
		"not when our controller removes the record of a bypass":  {user: v1alpha1.ControllerUser, old: all(suspended, bypass)},
		"when our controller rolls back":                          {user: v1alpha1.ControllerUser, old: recorded, new: all(releases, rollback), want: true},
		"when our controller records a rollback":                  {user: v1alpha1.ControllerUser, new: rollback, want: true},
		"when our controller changes the version":                 {user: v1alpha1.ControllerUser, new: label(v1alpha1.VersionKey, "v2"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			operation, old := "UPDATE", any(workload(tc.old))
			if tc.create {
				operation, old = "CREATE", nil
			}
			for kind := range kinds {
				match(t, mutatingManifest, "m"+kind+".kb.io", object{
					"request": request(operation, user(tc.user)), "object": workload(tc.new), "oldObject": old,
				}, tc.want)
			}
		})
	}
}

func TestWhichChangesOfAHeldKnativeServiceReachTheVersionWebhook(t *testing.T) {
	traffic := set("traffic", []any{object{"revisionName": "web-1", "percent": int64(100)}})
	for name, tc := range map[string]struct {
		user     string
		old, new func(object, object)
		want     bool
	}{
		"when its traffic changes":                        {old: recorded, new: all(recorded, traffic), want: true},
		"when its hold ends":                              {old: recorded, new: suspended, want: true},
		"not when it is labeled":                          {old: recorded, new: all(recorded, label("team", "a"))},
		"not when the traffic of another one changes":     {new: traffic},
		"not when our controller moves its traffic":       {user: v1alpha1.ControllerUser, old: recorded, new: all(recorded, traffic)},
		"not when our controller ends its hold":           {user: v1alpha1.ControllerUser, old: all(recorded, traffic)},
		"not when our controller holds one":               {user: v1alpha1.ControllerUser, new: all(recorded, traffic)},
		"when our controller rolls back during a hold":    {user: v1alpha1.ControllerUser, old: recorded, new: releases, want: true},
		"when our controller touches one during its hold": {user: v1alpha1.ControllerUser, old: recorded, new: recorded, want: true},
		"not when another user writes it again as it was": {old: recorded, new: recorded},
	} {
		t.Run(name, func(t *testing.T) {
			match(t, mutatingManifest, "mservice.kb.io", object{
				"request": request("UPDATE", user(tc.user)), "object": workload(tc.new), "oldObject": workload(tc.old),
			}, tc.want)
		})
	}
}

func TestWhichRequestsReachTheSuspendWebhook(t *testing.T) {
	for kind, of := range kinds {
		for _, stop := range of.stops {
			testGate(t, kind, stop, of.resumes, of.free)
		}
	}
}

func TestAHeldStatefulSetThatGetsOnDeleteReachesTheSuspendWebhook(t *testing.T) {
	held, onDelete := all(recorded, partition(2147483647)), all(recorded, strategy("OnDelete"))
	for name, tc := range map[string]struct {
		old, new func(object, object)
		want     bool
	}{
		"a partition is replaced by OnDelete": {held, onDelete, true},
		"OnDelete is replaced by a partition": {onDelete, held, false},
	} {
		t.Run(name, func(t *testing.T) {
			match(t, validatingManifest, "vstatefulset.kb.io", object{
				"request": request("UPDATE", "alice"), "object": workload(tc.new), "oldObject": workload(tc.old),
			}, tc.want)
		})
	}
}

// testGate tests which updates of a suspended or held workload the API server sends to the
// webhook.
func testGate(t *testing.T, kind string, stop func(object, object), resumes, free []func(object, object)) {
	held := all(recorded, stop)
	type attempt struct {
		user     string
		old, new func(object, object)
		want     bool
	}
	cases := map[string]attempt{
		"when a suspended one is released":                          {old: suspended, new: all(suspended, releases), want: true},
		"when a suspended one is restarted":                         {old: held, new: all(held, releases), want: true},
		"when the suspend label is removed":                         {old: suspended, want: true},
		"when the suspend label is changed":                         {old: suspended, new: label(v1alpha1.SuspendLabel, "1"), want: true},
		"when all labels and annotations of a held one are removed": {old: held, new: all(held, bare), want: true},
		"when the record of the hold is removed":                    {old: held, new: all(held, without("annotations", v1alpha1.HoldAnnotation)), want: true},
		"when the record of the hold is changed":                    {old: held, new: all(held, annotation(v1alpha1.HoldAnnotation, "{}")), want: true},
		"not when our controller resumes":                           {user: v1alpha1.ControllerUser, old: held},
		"not when our controller rolls back":                        {user: v1alpha1.ControllerUser, old: held, new: releases},
		"not when nothing is suspended":                             {new: releases},
		"not when one without labels is released":                   {old: bare, new: all(bare, releases)},
		"not when it is suspended by hand":                          {new: suspended},
		"not when a suspended one is stopped":                       {old: recorded, new: held},
		"not when a suspended one is labeled":                       {old: held, new: all(held, label("team", "a"))},
		"not when a suspended one is annotated":                     {old: held, new: all(held, annotation("note", "a"))},
		// The removal of the record may require the verb bypass.
		"when another repair is allowed":                      {old: all(held, annotation(v1alpha1.BypassAnnotation, "{}")), new: held, want: true},
		"when the record of a repair is changed":              {old: all(held, annotation(v1alpha1.BypassAnnotation, "{}")), new: all(held, annotation(v1alpha1.BypassAnnotation, "{ }")), want: true},
		"not when the record of a repair stays":               {old: all(held, annotation(v1alpha1.BypassAnnotation, "{}")), new: all(held, annotation(v1alpha1.BypassAnnotation, "{}"))},
		"not when a suspended one is written again as it was": {old: held, new: held},
		// The garbage collector would delete the workload.
		"when a suspended one gets an owner":    {old: held, new: all(held, owner("a")), want: true},
		"when the owner of one is replaced":     {old: all(held, owner("a")), new: all(held, owner("b")), want: true},
		"not when the owner of one stays":       {old: all(held, owner("a")), new: all(held, owner("a"))},
		"not when another one gets an owner":    {new: owner("a")},
		"not when our controller adds an owner": {user: v1alpha1.ControllerUser, old: held, new: all(held, owner("a"))},
	}
	for i, resume := range resumes {
		cases[fmt.Sprintf("when the rollout of a held one is resumed (%d)", i)] = attempt{old: held, new: all(held, resume), want: true}
		cases[fmt.Sprintf("not when one that is not suspended is resumed (%d)", i)] = attempt{old: stop, new: all(stop, resume)}
		cases[fmt.Sprintf("not when one that nothing stops is changed so (%d)", i)] = attempt{old: recorded, new: all(recorded, resume)}
	}
	for i, change := range free {
		cases[fmt.Sprintf("not when a held one is changed otherwise (%d)", i)] = attempt{old: held, new: all(held, change)}
	}
	for name, tc := range cases {
		t.Run(kind+" "+name, func(t *testing.T) {
			match(t, validatingManifest, "v"+kind+".kb.io", object{
				"request": request("UPDATE", user(tc.user)), "object": workload(tc.new), "oldObject": workload(tc.old),
			}, tc.want)
		})
	}
}

func TestWhichRequestsReachTheReleaseCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		create   bool
		user     string
		old, new func(object, object)
		want     bool
	}{
		"when a workload is created":                   {create: true, want: true},
		"when one without labels is created":           {create: true, new: bare, want: true},
		"when the template changes":                    {new: releases, want: true},
		"when the template of a suspended one changes": {old: suspended, new: all(suspended, releases), want: true},
		"not when it is scaled":                        {new: func(_, spec object) { spec["replicas"] = int64(5) }},
		"not when it is labeled":                       {new: label("team", "a")},
		"not when it is paused":                        {new: func(_, spec object) { spec["paused"] = true }},
		"not when our controller rolls back":           {user: v1alpha1.ControllerUser, new: releases},
		"not when our controller touches it":           {user: v1alpha1.ControllerUser},
		"not when it is written again as it was":       {},
	} {
		t.Run(name, func(t *testing.T) {
			operation, old := "UPDATE", any(workload(tc.old))
			if tc.create {
				operation, old = "CREATE", nil
			}
			match(t, validatingManifest, "vrelease.kb.io", object{
				"request": request(operation, user(tc.user)), "object": workload(tc.new), "oldObject": old,
			}, tc.want)
		})
	}
}

func TestWhichDeletionsReachTheSuspendWebhook(t *testing.T) {
	for name, tc := range map[string]struct {
		user string
		old  func(metadata, spec object)
		want bool
	}{
		"of a suspended workload":                             {old: suspended, want: true},
		"not of one that is not suspended":                    {},
		"not by our controller":                               {user: v1alpha1.ControllerUser, old: suspended},
		"not with its namespace":                              {user: "system:serviceaccount:kube-system:namespace-controller", old: suspended},
		"not with its owner":                                  {user: "system:serviceaccount:kube-system:generic-garbage-collector", old: suspended},
		"not by a controller manager without ServiceAccounts": {user: "system:kube-controller-manager", old: suspended},
	} {
		for kind := range kinds {
			t.Run(kind+" "+name, func(t *testing.T) {
				match(t, validatingManifest, "v"+kind+".kb.io", object{
					"request": request("DELETE", user(tc.user)), "object": nil, "oldObject": workload(tc.old),
				}, tc.want)
			})
		}
	}
}

func TestWhichUpdatesOfOpsConfigInfosReachTheWebhook(t *testing.T) {
	config := func(content string) object { return object{"spec": object{"type": "isBranch", "content": content}} }
	for name, tc := range map[string]struct {
		request  string
		old, new any
		want     bool
	}{
		"created":    {"CREATE", nil, config("10"), true},
		"changed":    {"UPDATE", config("10"), config("20"), true},
		"relabelled": {"UPDATE", config("10"), config("10"), false},
	} {
		t.Run(name, func(t *testing.T) {
			vars := object{"request": request(tc.request, "alice"), "object": tc.new, "oldObject": tc.old}
			match(t, validatingManifest, "vopsconfiginfo.kb.io", vars, tc.want)
			match(t, mutatingManifest, "mopsconfiginfo.kb.io", vars, tc.want)
		})
	}
}

func user(name string) string {
	if name == "" {
		return "alice"
	}
	return name
}

// match evaluates all conditions of a webhook. An error is a failure: it would
// deny or admit a request, depending on failurePolicy.
func match(t *testing.T, manifest, webhook string, vars object, want bool) {
	t.Helper()
	if got := admissiontest.Matches(t, conditions(t, manifest, webhook), vars); got != want {
		t.Errorf("matched: %v, want %v", got, want)
	}
}

// parsed are the webhooks of the manifests.
var parsed = map[string][]admissionregistrationv1.ValidatingWebhook{}

func conditions(t *testing.T, manifest, webhook string) []admissionregistrationv1.MatchCondition {
	t.Helper()
	if _, done := parsed[manifest]; !done {
		// Both kinds of configuration have these fields at the same paths.
		parsed[manifest] = builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifest)[0].Webhooks
	}
	for _, w := range parsed[manifest] {
		if w.Name == webhook {
			return w.MatchConditions
		}
	}
	t.Fatalf("%s has no webhook %s", manifest, webhook)
	return nil
}
