package events_test

import (
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// The attributes of an event are derived from its data.
func ExampleNew() {
	e, err := events.New(events.ChangePodReady{
		Namespace:      "default",
		Name:           "sleep--x--5d41402a--x--1",
		UID:            "0a1b2c3d-0000-4000-8000-000000000002",
		ChangeWorkload: "sleep--x--5d41402a",
		Version:        "5d41402a",
		Attempt:        3,
		Stage:          v1alpha1.StagePre,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("type:   ", e.Type())
	fmt.Println("id:     ", e.ID())
	fmt.Println("source: ", e.Source())
	fmt.Println("subject:", e.Subject())
	// Output:
	// type:    dev.breakwater.changepod.ready.v1
	// id:      0a1b2c3d-0000-4000-8000-000000000002/5d41402a/PRE
	// source:  /apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/default/changepods/sleep--x--5d41402a--x--1
	// subject: sleep--x--5d41402a--x--1
}

// New names the field of invalid data.
func ExampleNew_invalid() {
	_, err := events.New(events.ChangePodReady{
		Namespace:      "default",
		Name:           "sleep--x--5d41402a--x--1",
		UID:            "0a1b2c3d-0000-4000-8000-000000000002",
		ChangeWorkload: "sleep--x--5d41402a",
		Version:        "5d41402a",
		Stage:          "DURING",
	})
	fmt.Println(err)
	// Output:
	// event dev.breakwater.changepod.ready.v1: stage: Unsupported value: "DURING": supported values: "PRE", "POST"
}

// A subscriber of the Broker that reports failed pods of a release.
func ExampleParseChangeWorkload() {
	receive := func(e cloudevents.Event) error {
		d, err := events.ParseChangeWorkload(e)
		if err != nil {
			return err // permanent: answer 400
		}
		fmt.Printf("%s %s/%s: %s: %d of %d pods failed\n",
			d.Workload.Kind, d.Namespace, d.Workload.Name, d.Verb, d.Counts.Failed, d.Counts.Pods)
		return nil
	}

	e := cloudevents.NewEvent()
	e.SetType(events.TypeChangeWorkloadSuspended)
	e.SetID("0a1b2c3d-0000-4000-8000-000000000003/5d41402a/suspended/1767323045")
	e.SetSource("/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/default/changeworkloads/sleep--x--5d41402a")
	_ = e.SetData(cloudevents.ApplicationJSON, []byte(`{
		"namespace": "default",
		"name": "sleep--x--5d41402a",
		"uid": "0a1b2c3d-0000-4000-8000-000000000003",
		"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sleep"},
		"version": "5d41402a",
		"attempt": 3,
		"status": "Suspend",
		"entryTimeUnix": 1767323045,
		"counts": {"pods": 10, "failed": 1}
	}`))
	if err := receive(e); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Deployment default/sleep: suspended: 1 of 10 pods failed
}
