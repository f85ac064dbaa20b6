// Package version names releases, and answers for mdeployment.kb.io.
//
// It writes on a Deployment which version of its template it is at (a label
// and an annotation) and which attempt (an annotation, one more with each
// changed template): the built-in controller copies annotations to
// ReplicaSets, where a pod's version is read. What a person writes there is put
// back. An update that is admitted to a suspended Deployment is recorded, and
// the roll-out resumes, in the same mutation.
//
// The pod template is never touched, so opting a namespace in restarts nothing.
package version
