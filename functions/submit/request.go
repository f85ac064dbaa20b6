package submit

import (
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The content of requests to the server. The client enforces the server's limits
// (lengths, required fields).

// releaseParams are the details of a release that the server shows to people.
type releaseParams struct {
	Namespace    string `json:"namespace"`
	WorkloadType string `json:"workloadType"`
	WorkloadName string `json:"workloadName"`
	Revision     string `json:"revision"`
	Attempt      int64  `json:"attempt"`
}

// finishResult is the serviceResult of the finish of a batch.
type finishResult struct {
	releaseParams
	Pods []string `json:"pods"`
}

func paramsOf(w *v1alpha1.ChangeWorkload) releaseParams {
	return releaseParams{
		Namespace: w.Namespace, WorkloadType: w.Spec.WorkloadRef.Kind, WorkloadName: w.Spec.WorkloadRef.Name,
		Revision: w.Spec.Reversion, Attempt: w.Spec.Attempt,
	}
}

func orderOf(w *v1alpha1.ChangeWorkload) altershield.OpenOrder {
	name := w.Namespace + "/" + w.Spec.WorkloadRef.Name
	return altershield.OpenOrder{
		OrderID:  w.Spec.OrderID,
		Title:    fmt.Sprintf("%s %s, version %s, attempt %d", w.Spec.WorkloadRef.Kind, name, w.Spec.Reversion, w.Spec.Attempt),
		Apps:     []string{w.Spec.AppName},
		Contents: []altershield.Content{{Type: w.Spec.WorkloadRef.Kind, Name: name}},
		Params:   paramsOf(w),
	}
}

func startOf(w *v1alpha1.ChangeWorkload, p *v1alpha1.ChangePod, now time.Time) altershield.StartBatch {
	return altershield.StartBatch{
		OrderID:      w.Spec.OrderID,
		BatchNo:      p.Spec.BatchNo,
		TotalBatches: p.Spec.TotalBatches,
		Last:         p.Spec.Last,
		StartTime:    now,
		Info: altershield.BatchInfo{
			Namespace: w.Namespace, WorkloadType: w.Spec.WorkloadRef.Kind, WorkloadName: w.Spec.WorkloadRef.Name,
			Pods: podNames(p), Revision: w.Spec.Reversion,
		},
	}
}

func finishOf(w *v1alpha1.ChangeWorkload, p *v1alpha1.ChangePod, now time.Time) altershield.Finish {
	pods := podNames(p)
	return altershield.Finish{
		OrderID:    w.Spec.OrderID,
		NodeID:     p.Status.ChangePodID,
		Message:    fmt.Sprintf("%d pods are ready", len(pods)),
		Result:     finishResult{paramsOf(w), pods},
		FinishTime: now,
		Pods:       pods,
	}
}

func podNames(p *v1alpha1.ChangePod) []string {
	var names []string
	for _, info := range p.Spec.PodInfos {
		names = append(names, info.Pod)
	}
	return names
}
