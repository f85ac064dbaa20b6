// Package version assigns a release to each change of a workload. It answers for
// mdeployment.kb.io and the equivalent webhooks of other kinds.
//
// The webhook sets the version of the template (a label and an annotation) and the
// attempt (an annotation, incremented with each changed template), and reverts manual
// changes of them. The workload's controller copies the annotations to its revisions,
// from which Breakwater reads the release of a pod. For an admitted bypass, the same
// patch records the bypass and resumes the rollout.
//
// It also writes spec.traffic of a Knative Service: a new Revision gets no traffic until
// its first batch passed, and during a repair the traffic stays at the good Revision.
//
// The webhook does not change the pod template, except that a release of a Knative
// Service is also written to the annotations of its template. Opting a namespace in
// changes no template, so it restarts no pod.
package version
