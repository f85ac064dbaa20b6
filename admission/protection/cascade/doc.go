// Package cascade decides whether a protected Namespace or CustomResourceDefinition may
// be deleted: a Namespace only while it has no active pods and no bound
// PersistentVolumeClaims, a CustomResourceDefinition only while it has no objects. The
// webhook has to count them. For objects whose own fields show dependent objects, such
// as a Deployment with replicas, the ValidatingAdmissionPolicies of config/protection decide.
package cascade
