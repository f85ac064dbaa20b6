package events

import "k8s.io/apimachinery/pkg/types"

// PodFinished is the data of TypePodFinished: the pod is Ready in this version and
// labeled. In a large release these events are minutes late, because the sender limits
// their rate to leave capacity for the rollout.
type PodFinished struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	PodUID    types.UID `json:"podUid"`
	Workload  Workload  `json:"workload"`
	Version   string    `json:"version"`
	Attempt   int64     `json:"attempt"`
}

var _ Data = PodFinished{}

// Type implements Data.
func (PodFinished) Type() string { return TypePodFinished }

// ID implements Data.
func (d PodFinished) ID() string { return string(d.PodUID) + "/" + d.Version + "/finished" }

// Source implements Data: the workload.
func (d PodFinished) Source() string { return d.Workload.source(d.Namespace) }

// Subject implements Data: the pod.
func (d PodFinished) Subject() string { return d.Pod }

// Validate implements Data.
func (d PodFinished) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("pod", d.Pod)
	c.uid("podUid", d.PodUID)
	d.Workload.check(&c)
	c.version(d.Version)
	c.attempt(d.Attempt)
	return c.err()
}

func (d PodFinished) truncated(int) Data { return d }
