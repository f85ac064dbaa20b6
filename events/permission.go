package events

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// PermissionVerb is a step of the permissions of a pod.
type PermissionVerb string

// The verbs.
const (
	// PermissionRequested: an attempt began at the permission centre.
	PermissionRequested PermissionVerb = "requested"
	// PermissionGranted: every permission of the set was granted.
	PermissionGranted PermissionVerb = "granted"
	// PermissionDenied: a provider denied a permission set. Requests that the centre rejects have no event.
	PermissionDenied PermissionVerb = "denied"
	// PermissionRevoked: the pod has ended and needs no grant any more. Another pod of its node may keep one.
	PermissionRevoked PermissionVerb = "revoked"
	// PermissionLeaked: the pod has ended and a grant could not be revoked.
	PermissionLeaked PermissionVerb = "leaked"
)

const permissionPrefix = "dev.breakwater.permission."

// maxIPs is the maximum number of addresses of a pod: one of each IP family
// today, with a reserve.
const maxIPs = 8

// Permission is the data of the permission types.
type Permission struct {
	// Verb is part of the event's type and not of the JSON.
	Verb      PermissionVerb `json:"-"`
	Namespace string         `json:"namespace"`
	Pod       string         `json:"pod"`
	PodUID    types.UID      `json:"podUid"`
	IPs       []string       `json:"ips,omitempty"`
	// Set and Application are empty if the event covers all applications of the
	// pod.
	Set         string `json:"set,omitempty"`
	Application string `json:"application,omitempty"`
	// Attempt is the attempt of the application, from 1.
	Attempt int64 `json:"attempt,omitempty"`
	// Reason is one of the Reason constants of permission/podmeta.
	Reason string `json:"reason,omitempty"`
	// Message is for people, truncated to MaxText bytes.
	Message string `json:"message,omitempty"`
}

var _ Data = Permission{}

// Type implements Data.
func (d Permission) Type() string { return permissionPrefix + string(d.Verb) + versionSuffix }

// ID implements Data. An attempt ends once, and is revoked once.
func (d Permission) ID() string {
	application := d.Application
	if application == "" {
		application = "all"
	}
	return fmt.Sprintf("%s/%s.%d/%s", d.PodUID, segment(application), d.Attempt, d.Verb)
}

// Source implements Data: the pod.
func (d Permission) Source() string { return podPath(d.Namespace, d.Pod) }

// Subject implements Data: the pod.
func (d Permission) Subject() string { return d.Pod }

// Validate implements Data.
func (d Permission) Validate() error {
	var c checker
	if !slices.Contains(Types(), d.Type()) {
		c.invalid("verb", string(d.Verb), "unknown")
	}
	c.pod(d.Namespace, d.Pod, d.PodUID)
	if len(d.IPs) > maxIPs {
		c.invalid("ips", len(d.IPs), fmt.Sprintf("at most %d", maxIPs))
	}
	for _, ip := range d.IPs {
		if _, err := netip.ParseAddr(ip); err != nil {
			c.invalid("ips", ip, "must be IP addresses")
		}
	}
	if d.Set != "" {
		c.name("set", d.Set)
	}
	c.optional("application", d.Application, maxUID)
	c.attempt(d.Attempt)
	c.optional("reason", d.Reason, maxReason)
	c.optional("message", d.Message, MaxText)
	return c.err()
}

func (d Permission) truncated(limit int) Data {
	d.Message = text.Truncate(d.Message, limit)
	return d
}
