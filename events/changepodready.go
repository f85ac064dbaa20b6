package events

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// ChangePodReady is the data of TypeChangePodReady: the ChangePod needs the call of a
// stage, or the verdict of a judge other than the server. The event is sent again until
// the object records the call or the verdict.
type ChangePodReady struct {
	// Namespace, Name and UID are the ChangePod's.
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// ChangeWorkload is the name of the owner.
	ChangeWorkload string         `json:"changeWorkload"`
	Version        string         `json:"version"`
	Attempt        int64          `json:"attempt"`
	Stage          v1alpha1.Stage `json:"stage"`
	// Judge is the name of the judge that is woken; empty for function submit, which
	// calls the server.
	Judge string `json:"judge,omitempty"`
	// ChangePod is a copy of the object, if it is small and function submit will write to it.
	ChangePod *v1alpha1.ChangePod `json:"changePod,omitempty"`
}

var _ Data = ChangePodReady{}

// JudgeWakeUp returns the wake-up of a judge other than the server for a batch of a release.
func JudgeWakeUp(batch *v1alpha1.ChangePod, release *v1alpha1.ChangeWorkload, judge string) ChangePodReady {
	return ChangePodReady{
		Namespace: batch.Namespace, Name: batch.Name, UID: batch.UID, ChangeWorkload: release.Name,
		Version: release.Spec.Reversion, Attempt: release.Spec.Attempt, Stage: v1alpha1.StagePost, Judge: judge,
	}
}

// Type implements Data.
func (ChangePodReady) Type() string { return TypeChangePodReady }

// ID implements Data.
func (d ChangePodReady) ID() string {
	id := string(d.UID) + "/" + d.Version + "/" + string(d.Stage)
	if d.Judge != "" {
		id += "/judge." + d.Judge
	}
	return id
}

// judge is the value of JudgeExtension.
func (d ChangePodReady) judge() string { return cmp.Or(d.Judge, v1alpha1.JudgeServer) }

// Source implements Data: the ChangePod.
func (d ChangePodReady) Source() string { return pathOfChange("changepods", d.Namespace, d.Name) }

// Subject implements Data: the ChangePod.
func (d ChangePodReady) Subject() string { return d.Name }

// Validate implements Data.
func (d ChangePodReady) Validate() error {
	var c checker
	c.namespace(d.Namespace)
	c.name("name", d.Name)
	c.uid("uid", d.UID)
	c.name("changeWorkload", d.ChangeWorkload)
	c.version(d.Version)
	c.attempt(d.Attempt)
	c.stage(d.Stage)
	if d.Judge != "" {
		c.conforms("judge", d.Judge, validation.IsDNS1123Label)
	}
	c.changePodCopy(d.ChangePod, d.Namespace, d.Name, d.UID)
	return c.err()
}

func (d ChangePodReady) truncated(int) Data { return d }
