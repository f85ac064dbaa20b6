// Package upgrade installs an earlier version of Breakwater, begins work, and installs the version
// under test while the work is in progress:
//
//   - A Deployment is released again and again, and each batch gets its verdict after seconds.
//   - A batch of another release got no verdict yet. It gets it after the upgrade.
//   - The release of a third Deployment failed, and is suspended.
//   - A node is drained. The pods of one Deployment leave one by one, because of its budget. The
//     budget of the other allows no eviction until the upgrade is complete.
//   - Pods with a permission set are deleted and start again.
//   - Clients make requests that Breakwater has to admit, and requests that it has to deny.
//
// Afterwards each release must have ended as the verdicts say, without an unjudged pod; the
// suspended Deployment must still be suspended; no more pods than the budget allows were
// unavailable at any time, and the drain must have ended; exactly the existing pods have a grant;
// each request must have been answered as expected; the API server must not have failed to call a
// webhook; stored objects must be readable and unchanged; and the changelog must name each object
// that the new version no longer has.
//
// File from names the earlier version. hack/upgrade.sh, which `make test-upgrade` runs, extracts and
// prepares its sources, and installs the version under test again after a failure. UPGRADE_FROM
// replaces the file: `make test-upgrade UPGRADE_FROM=v0.1.0`.
//
// A failed run writes its state to bin/upgrade.
package upgrade
