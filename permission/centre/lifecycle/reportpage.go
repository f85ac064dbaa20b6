package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// A page of a report may always revoke maxReportRevocations applications, or
	// 1/reportShareDivisor of those that it covers. Normally the controller revokes when a pod
	// ends, so a report finds few applications to revoke. Many are a sign of a mistake:
	// two clusters with one name, or a cluster that was restored from a backup.
	maxReportRevocations = 10
	reportShareDivisor   = 5 // 20 %
	// confirmationTime is how long a confirmation lasts: several reports.
	confirmationTime = 24 * time.Hour
	// maxClusterUID bounds the UID of a cluster in bytes.
	maxClusterUID = 253
	// maxConfirmed bounds the number of confirmed revocations.
	maxConfirmed = 10_000_000
)

// The results of a page of a report, for metrics.
const (
	PodReportAccepted     = "accepted"
	PodReportHeld         = "held"
	PodReportOtherCluster = "other_cluster"
)

// OtherCluster is returned for a report or request of a cluster whose name belongs to
// another one.
type OtherCluster struct{ Name, Owner, Sender string }

func (o OtherCluster) Error() string {
	return fmt.Sprintf("the name %s belongs to the cluster whose namespace kube-system has UID %s, and the sender is in the cluster with UID %s: "+
		"give that cluster its own name (key cluster of ConfigMap config-permission, and clusters of ACCESS_FILE), or, if it replaces the first one, "+
		"let an admin confirm its UID with POST /v1/clusters/%s/pods/confirm", o.Name, o.Owner, o.Sender, o.Name)
}

// RegisterCluster returns OtherCluster if the name belongs to another cluster. A name
// that belongs to no cluster then belongs to this one.
func (e *Engine) RegisterCluster(ctx context.Context, name, uid string) error {
	if len(uid) > maxClusterUID {
		return InvalidRequest{"clusterUID", fmt.Sprintf("must have at most %d bytes", maxClusterUID)}
	}
	c, err := e.Store.View(ctx).Cluster(name)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.UID == "" {
		err = e.Store.Write(ctx, func(tx store.Tx) error {
			if c, err = tx.LockCluster(name); err != nil || c.UID != "" {
				return err
			}
			c.UID = uid
			return tx.UpdateCluster(c)
		})
	}
	if err == nil && c.UID != uid {
		err = OtherCluster{name, c.UID, uid}
	}
	return err
}

// PageDecision is the decision about a page of a report.
type PageDecision struct {
	// Unconfirmed: no application is revoked, because no admin has confirmed it.
	Unconfirmed bool
	// UsesConfirmation: each revocation uses up a confirmed one.
	UsesConfirmation bool
}

// DecidePage decides whether a page may revoke. checked is how many applications the
// page covers, unlisted how many of them it would revoke, and confirmed how many
// revocations an admin has confirmed.
func DecidePage(checked, unlisted, confirmed int) PageDecision {
	switch {
	case unlisted <= maxReportRevocations, unlisted*reportShareDivisor <= checked:
		return PageDecision{}
	case unlisted <= confirmed:
		return PageDecision{UsesConfirmation: true}
	}
	return PageDecision{Unconfirmed: true}
}

// decidePage stores a page of a report before its revocations begin, and decides about it.
func (e *Engine) decidePage(ctx context.Context, cluster string, r api.PodReport, checked, unlisted int) (page PageDecision, err error) {
	now := e.Clock.Now().UTC()
	listed := make([]string, len(r.Pods))
	for i, p := range r.Pods {
		listed[i] = p.UID
	}
	err = e.Store.Write(ctx, func(tx store.Tx) error {
		c, err := tx.LockCluster(cluster)
		if err != nil {
			return err
		}
		if c.UID == "" {
			c.UID = r.ClusterUID
		}
		if c.UID != r.ClusterUID {
			return OtherCluster{cluster, c.UID, r.ClusterUID}
		}
		if err := tx.SetListed(cluster, listed, now); err != nil {
			return err
		}
		if !now.Before(c.ConfirmedUntil) {
			c.Confirmed, c.ConfirmedUntil = 0, time.Time{}
		}
		if r.After == "" {
			c.Unconfirmed = 0
		}
		if page = DecidePage(checked, unlisted, c.Confirmed); page.Unconfirmed {
			c.Unconfirmed += unlisted
		}
		if r.Through == "" {
			c.Reported = now
		}
		return tx.UpdateCluster(c)
	})
	result := PodReportAccepted
	if page.Unconfirmed {
		result = PodReportHeld
	}
	if other, ok := errors.AsType[OtherCluster](err); ok {
		result = PodReportOtherCluster
		e.Log.Warn("a report of another cluster with the same name is rejected", "cluster", cluster, "owner", other.Owner, "sender", other.Sender)
	} else if err != nil {
		return page, err
	}
	e.Metrics.PodReportPage(cluster, result)
	return page, err
}

// ConfirmReport stores that an admin has confirmed revocations, or the UID of a
// cluster.
func (e *Engine) ConfirmReport(ctx context.Context, cluster string, r api.ReportConfirmation, user string) (api.Cluster, error) {
	switch {
	case r.Revoke < 0 || r.Revoke > maxConfirmed:
		return api.Cluster{}, InvalidRequest{"revoke", fmt.Sprintf("is %d; must be from 0 to %d", r.Revoke, maxConfirmed)}
	case len(r.ClusterUID) > maxClusterUID:
		return api.Cluster{}, InvalidRequest{"clusterUID", fmt.Sprintf("must have at most %d bytes", maxClusterUID)}
	case r.Revoke == 0 && r.ClusterUID == "":
		return api.Cluster{}, InvalidRequest{"revoke", "required, unless clusterUID is set: the number of applications (field held) that are to be revoked"}
	}
	var after store.Cluster
	err := e.Store.Write(ctx, func(tx store.Tx) error {
		if _, err := tx.Cluster(cluster); err != nil {
			return err // it has neither reported nor requested
		}
		before, err := tx.LockCluster(cluster)
		if err != nil {
			return err
		}
		now := e.Clock.Now().UTC()
		after = before
		if r.Revoke > 0 {
			after.Confirmed, after.ConfirmedUntil = r.Revoke, now.Add(confirmationTime)
		}
		if r.ClusterUID != "" {
			after.UID = r.ClusterUID
		}
		if err := tx.UpdateCluster(after); err != nil {
			return err
		}
		texts := make([]string, 2)
		for i, c := range []store.Cluster{before, after} {
			text, err := json.Marshal(ClusterToAPI(c))
			if err != nil {
				return err
			}
			texts[i] = string(text)
		}
		return tx.AddAudit(now, api.AuditEntry{Who: user, Verb: "update", Kind: "cluster", Name: cluster, Before: texts[0], After: texts[1]})
	})
	return ClusterToAPI(after), err
}

// ClusterToAPI returns the API object of a cluster.
func ClusterToAPI(c store.Cluster) api.Cluster {
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return api.Cluster{Name: c.Name, UID: c.UID, Reported: optional(c.Reported), Held: c.Unconfirmed, Confirmed: c.Confirmed, ConfirmedUntil: optional(c.ConfirmedUntil)}
}
