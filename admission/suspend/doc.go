// Package suspend decides what may change on a suspended Deployment, and
// answers for vdeployment.kb.io.
//
// A check failed, so the Deployment is suspended: no new release, and nobody
// takes the suspension or the hold of its roll-out away. Two updates are
// admitted all the same: a repair, once a suspension, and the way back to a
// version that was a Success. Scaling and all other metadata never come here;
// the webhook's matchConditions keep them inside the API server.
package suspend
