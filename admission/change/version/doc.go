// Package version names releases, and answers for mdeployment.kb.io and its
// twins for other kinds.
//
// It writes on a workload which version of its template it is at (a label and
// an annotation) and which attempt (an annotation, one more with each changed
// template): the workload's controller copies annotations to its revisions,
// where a pod's version is read. What a person writes there is put
// back. An update that is admitted to a suspended Deployment is recorded, and
// the roll-out resumes, in the same mutation.
//
// The pod template is never touched, so opting a namespace in restarts nothing.
package version
